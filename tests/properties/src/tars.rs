//! Tar archives with valid header checksums: an input is mutated as bytes, and the checksums of its headers are corrected afterwards,
//! since nothing after an invalid header is read.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

const BLOCK: usize = 512;

/// The archive of an input: the first byte selects the compression, the rest is a tar archive.
pub(crate) fn packed(input: &[u8]) -> Vec<u8> {
    let Some((how, bytes)) = input.split_first() else { return Vec::new() };
    match how % 4 {
        0 => bytes.to_vec(),
        1 => summed(bytes),
        2 => gzip(&summed(bytes)),
        _ => zstd(&summed(bytes)),
    }
}

/// The archive with valid checksums in all its headers.
pub(crate) fn summed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while let Some(header) = bytes.get_mut(at..at + BLOCK) {
        if header.iter().any(|byte| *byte != 0) {
            header[148..156].fill(b' ');
            let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
            header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
        // Only as far as sizes are small numbers: after another size, readers find no header either.
        let size = header[124..135].iter().fold(0_usize, |size, byte| match byte {
            b'0'..=b'7' => size.saturating_mul(8).saturating_add(usize::from(byte - b'0')),
            _ => size,
        });
        at = size
            .checked_next_multiple_of(BLOCK)
            .and_then(|size| at.checked_add(BLOCK + size))
            .unwrap_or(usize::MAX - BLOCK);
    }
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes bytes")
}

/// One frame of raw blocks (RFC 8878, 3.1.1.2).
fn zstd(bytes: &[u8]) -> Vec<u8> {
    // The magic number; no checksum, several segments, a window of one megabyte.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50];
    let mut blocks = bytes.chunks(1 << 16).peekable();
    if blocks.peek().is_none() {
        frame.extend_from_slice(&[1, 0, 0]);
    }
    while let Some(block) = blocks.next() {
        let header = u32::try_from(block.len()).unwrap_or_default() << 3 | u32::from(blocks.peek().is_none());
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.extend_from_slice(block);
    }
    frame
}

/// An entry of an archive, for seeds.
pub(crate) fn entry(kind: u8, name: &[u8], link: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut header = vec![0_u8; BLOCK];
    header[..name.len()].copy_from_slice(name);
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
    header[156] = kind;
    header[157..157 + link.len()].copy_from_slice(link);
    header[257..265].copy_from_slice(b"ustar\x0000");
    header.extend_from_slice(bytes);
    header.resize(header.len().next_multiple_of(BLOCK), 0);
    summed(&header)
}

/// A record of an extended header: its length, which counts itself, a key and a value.
pub(crate) fn record(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len() + 1;
    while format!("{length}{rest}").len() != length {
        length += 1;
    }
    format!("{length}{rest}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_record_includes_itself() {
        assert_eq!(record("path", "abc"), b"12 path=abc\n");
        // One more byte needs one more digit.
        assert_eq!(record("p", &"x".repeat(93)).len(), 99);
        assert_eq!(record("p", &"x".repeat(94)).len(), 101);
    }
}
