//! Zip archives with valid checksums: an input is text, of which an archive is built, or the bytes of an archive.

/// The archive of an input: the first byte selects whether the rest is an archive or the files of one.
pub(crate) fn packed(input: &[u8]) -> Vec<u8> {
    let Some((how, bytes)) = input.split_first() else { return Vec::new() };
    if how % 2 == 1 {
        return built(bytes);
    }
    let mut archive = bytes.to_vec();
    // Anything else is not read as a zip archive.
    if let Some(magic) = archive.get_mut(..4) {
        magic.copy_from_slice(b"PK\x03\x04");
    }
    archive
}

/// An archive of files: a line `-- name --` begins one, whatever the name is, and `@` before the name makes it a link.
pub(crate) fn built(text: &[u8]) -> Vec<u8> {
    let (mut archive, mut directory, mut count) = (Vec::new(), Vec::new(), 0_u16);
    let mut lines = text.split_inclusive(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let Some(name) = name_of(line) else { continue };
        let mut bytes = Vec::new();
        while let Some(line) = lines.next_if(|line| name_of(line).is_none()) {
            bytes.extend_from_slice(line);
        }
        let (name, mode) = name.strip_prefix(b"@").map_or((name, 0o100_644_u32), |name| (name, 0o120_777));
        let Ok(length) = u16::try_from(name.len()) else { continue };
        let mut sum = flate2::Crc::new();
        sum.update(&bytes);
        let size = u32::try_from(bytes.len()).unwrap_or_default().to_le_bytes();
        let header = [
            &[20, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
            &sum.sum().to_le_bytes(),
            &size,
            &size,
            &length.to_le_bytes(),
            &[0, 0],
        ]
        .concat();
        let place = u32::try_from(archive.len()).unwrap_or_default().to_le_bytes();
        archive.extend_from_slice(&[b"PK\x03\x04", &header[..], name, &bytes].concat());
        directory.extend_from_slice(
            &[b"PK\x01\x02\x14\x03", &header[..], &[0; 6], &(mode << 16).to_le_bytes(), &place, name].concat(),
        );
        count = count.saturating_add(1);
    }
    let numbers =
        [archive.len(), directory.len()].map(|number| u32::try_from(number).unwrap_or_default().to_le_bytes());
    let [start, size] = numbers;
    let count = count.to_le_bytes();
    archive.extend_from_slice(&directory);
    archive.extend_from_slice(&[b"PK\x05\x06\0\0\0\0", &count[..], &count, &size, &start, &[0, 0]].concat());
    archive
}

fn name_of(line: &[u8]) -> Option<&[u8]> {
    line.strip_suffix(b"\n").unwrap_or(line).strip_prefix(b"-- ")?.strip_suffix(b" --")
}

#[cfg(test)]
mod tests {
    use chandler_core::Content as _;

    use super::*;
    use crate::archives::{runtime, with_store};

    #[test]
    fn what_is_built_is_read() {
        let archive = packed(b"\x01-- manifests/a --\ntext\n-- @b --\nmanifests/a");
        with_store(|store, _| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), archive).unwrap();
            let tree = runtime().block_on(store.import_archive(file.path())).unwrap();
            assert_eq!(tree.read_all("manifests/a").unwrap(), b"text\n");
            assert_eq!(tree.read_all("b").unwrap(), b"text\n");
        });
    }
}
