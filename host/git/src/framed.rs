//! Where a response ends that a connection does not end.

use gix_packetline::PacketLineRef;

use crate::{GitError, lines::Lines};

/// Finds the end of a response over SSH: its flush line. Each response of a server is for one request, so nothing follows.
#[derive(Debug, Default)]
pub struct Framed {
    lines: Lines,
    has_ended: bool,
}

impl Framed {
    /// Reads a piece. Returns whether the response ended with it.
    ///
    /// # Errors
    /// The server reports a failure, the bytes are not lines, or there is data after the end.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<bool, GitError> {
        let has_ended = &mut self.has_ended;
        let unasked = GitError::Protocol("the server sends what was not asked for");
        self.lines.feed(bytes, |line| {
            if *has_ended {
                return Err(unasked.clone());
            }
            *has_ended = line == PacketLineRef::Flush;
            Ok(())
        })?;
        if self.has_ended && !self.lines.is_complete() { Err(unasked) } else { Ok(self.has_ended) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_ends_with_its_flush_line() {
        let feed = |pieces: &[&[u8]]| {
            let mut framed = Framed::default();
            pieces.iter().map(|piece| framed.feed(piece)).collect::<Vec<_>>()
        };
        let unasked = || Err(GitError::Protocol("the server sends what was not asked for"));
        assert_eq!(feed(&[b"0006", b"ab00", b"01", b"0000"]), [Ok(false), Ok(false), Ok(false), Ok(true)]);
        assert_eq!(feed(&[b"0006ab0000"]), [Ok(true)]);
        assert_eq!(feed(&[b"00000006ab"]), [unasked()]);
        assert_eq!(feed(&[b"000000"]), [unasked()]);
        assert_eq!(feed(&[b"0000", b"0"]), [Ok(true), unasked()]);
        assert_eq!(feed(&[b"Welcome!"]), [Err(GitError::Protocol("a line has a wrong length"))]);
    }
}
