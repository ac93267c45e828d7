//! Reading files that somebody else wrote, up to a limit.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// A whole file, if it is no longer than `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_from(File::open(path)?, limit)
}

/// All of a stream, if it is no longer than `limit` bytes.
pub fn read_from(stream: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("is longer than {limit} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_at_the_limit_is_read_and_a_longer_one_is_not() {
        assert_eq!(read_from(&b"abc"[..], 3).unwrap(), b"abc");
        assert_eq!(read_from(&b"abcd"[..], 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
