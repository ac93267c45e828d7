//! A pack out of the response to a fetch.

use gix_packetline::{BandRef, PacketLineRef};

use crate::{GitError, error::text, lines::Lines};

/// Reads the response to [`commit`](crate::protocol::commit) or [`files`](crate::protocol::files), in pieces.
#[derive(Debug, Default)]
pub struct PackReader {
    lines: Lines,
    place: Place,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Sections,
    Pack,
    End,
}

impl PackReader {
    /// Reads a piece of the response. Bytes of the pack are appended to `pack`.
    ///
    /// # Errors
    /// The server says that it failed, or the response violates the protocol.
    pub fn feed(&mut self, bytes: &[u8], pack: &mut Vec<u8>) -> Result<(), GitError> {
        let place = &mut self.place;
        self.lines.feed(bytes, |line| match (*place, line) {
            (Place::Pack, PacketLineRef::Flush) => {
                *place = Place::End;
                Ok(())
            }
            (Place::Pack, PacketLineRef::Data(_)) => match line.decode_band() {
                Ok(BandRef::Data(bytes)) => {
                    pack.extend_from_slice(bytes);
                    Ok(())
                }
                Ok(BandRef::Progress(_)) => Ok(()),
                Ok(BandRef::Error(message)) => Err(GitError::Server(text(message))),
                Err(_) => Err(GitError::Protocol("a line of the pack is in no band")),
            },
            (Place::Sections, PacketLineRef::Data(_)) => {
                if line.as_text().is_some_and(|line| line.0 == b"packfile") {
                    *place = Place::Pack;
                }
                Ok(())
            }
            (Place::Sections, PacketLineRef::Delimiter) => Ok(()),
            (Place::Sections, _) => Err(GitError::Protocol("there is no pack")),
            (Place::Pack | Place::End, _) => Err(GitError::Protocol("the pack is not the last section")),
        })
    }

    /// Ends the response.
    ///
    /// # Errors
    /// It ended before the pack did.
    pub fn end(&self) -> Result<(), GitError> {
        if self.place == Place::End && self.lines.is_complete() { Ok(()) } else { Err(GitError::Truncated) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(response: &[u8]) -> Result<Vec<u8>, GitError> {
        let (mut reader, mut pack) = (PackReader::default(), Vec::new());
        response.chunks(3).try_for_each(|piece| reader.feed(piece, &mut pack))?;
        reader.end().map(|()| pack)
    }

    #[test]
    fn the_pack_is_in_its_band() {
        let shallow = "0011shallow-info\n000cshallow\n0001";
        let response = format!("{shallow}000dpackfile\n0008\u{1}PAC0009\u{2}busy0006\u{1}K0000");
        assert_eq!(read(response.as_bytes()), Ok(b"PACK".to_vec()));
        assert_eq!(read(b"000dpackfile\n0008\x01PAC"), Err(GitError::Truncated));
        assert_eq!(read(b"000dpackfile\n0009\x03full0000"), Err(GitError::Server("full".to_owned())));
        assert_eq!(read(b"0013ERR not our ref"), Err(GitError::Server("not our ref".to_owned())));
        assert_eq!(read(b"0000"), Err(GitError::Protocol("there is no pack")));
        assert_eq!(read(b"000dpackfile\n00000000"), Err(GitError::Protocol("the pack is not the last section")));
        assert_eq!(read(b"000dpackfile\n0006\x09x"), Err(GitError::Protocol("a line of the pack is in no band")));
    }
}
