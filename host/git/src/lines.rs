//! Lines of the protocol: four hexadecimal digits of length, and the bytes.

use gix_packetline::{PacketLineRef, decode};

use crate::{GitError, error::text};

/// Splits bytes that arrive in pieces into lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Passes on every line that is complete with these bytes. Less than one line (64 KiB) is kept.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(PacketLineRef<'_>) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        self.rest.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let unread = self.rest.get(at..).unwrap_or_default();
            // Four bytes without any others are a line that the library takes for an error.
            let found = decode::streaming(unread).map_err(|_| GitError::Protocol("a line has a wrong length"))?;
            let decode::Stream::Complete { line, bytes_consumed } = found else { break };
            if let Some(error) = line.check_error() {
                return Err(GitError::Server(text(error.0)));
            }
            each(line)?;
            at += bytes_consumed;
        }
        self.rest.drain(..at);
        Ok(())
    }

    /// Whether the last line was complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.rest.is_empty()
    }
}

/// The lines of a whole response, without their line ends; special lines are empty.
pub(crate) fn all(bytes: &[u8]) -> Result<Vec<Vec<u8>>, GitError> {
    let (mut lines, mut found) = (Lines::default(), Vec::new());
    lines.feed(bytes, |line| {
        found.push(line.as_text().map(|line| line.0.to_vec()).unwrap_or_default());
        Ok(())
    })?;
    if lines.is_complete() { Ok(found) } else { Err(GitError::Truncated) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_read_and_errors_of_servers_are_errors() {
        assert_eq!(all(b"0009abcd\n0000"), Ok(vec![b"abcd".to_vec(), Vec::new()]));
        assert_eq!(all(b"0009ab"), Err(GitError::Truncated));
        assert_eq!(all(b"zzzz"), Err(GitError::Protocol("a line has a wrong length")));
        assert_eq!(all(b"0004"), Err(GitError::Protocol("a line has a wrong length")));
        assert_eq!(all(b"0011ERR no\x1b[2Jway"), Err(GitError::Server("no [2Jway".to_owned())));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(bytes in prop::collection::vec(any::<u8>(), 0..200), lengths in prop::collection::vec(1_usize..40, 0..8)) {
            let mut encoded = Vec::new();
            for length in lengths {
                encoded.extend(format!("{:04x}", length + 4).bytes());
                encoded.extend(std::iter::repeat_n(b'x', length));
            }
            encoded.extend(&bytes);
            let whole = all(&encoded);
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            let pieces = encoded.chunks(7).try_for_each(|piece| lines.feed(piece, |line| {
                found.push(line.as_text().map(|line| line.0.to_vec()).unwrap_or_default());
                Ok(())
            }));
            match whole {
                Ok(whole) => prop_assert_eq!(whole, found),
                Err(GitError::Truncated) => prop_assert!(pieces.is_ok() && !lines.is_complete()),
                Err(error) => prop_assert_eq!(pieces, Err(error)),
            }
        }
    }
}
