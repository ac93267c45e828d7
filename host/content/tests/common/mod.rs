//! What the tests share: stores in temporary directories, and archives made byte by byte.

#![allow(dead_code, reason = "each test binary uses some of it")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests may panic as well")]

pub(crate) mod server;

use std::io::Write;

use chandler_content::{Limits, Store, Tree};
use chandler_core::Content;
use flate2::{Compression, write::GzEncoder};
use tempfile::TempDir;

/// A store that goes away with the directory.
pub(crate) fn store(limits: Limits) -> (TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("cache"), limits).unwrap();
    (directory, store)
}

/// The paths and texts of a tree.
pub(crate) fn files(tree: &Tree) -> Vec<(String, String)> {
    let entries = tree.entries("", None, usize::MAX).into_iter();
    entries.map(|entry| (entry.path.clone(), String::from_utf8(tree.read_all(&entry.path).unwrap()).unwrap())).collect()
}

/// A tar archive, entry by entry. Headers are written raw, so that they can say what no tool would.
#[derive(Default)]
pub(crate) struct Tar(Vec<u8>);

impl Tar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// An entry of any kind; `size` is what the header says, whatever the bytes are.
    pub(crate) fn entry(mut self, kind: u8, name: &[u8], link: &[u8], size: u64, bytes: &[u8]) -> Self {
        let mut header = [0_u8; 512];
        header[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
        header[100..108].copy_from_slice(b"0000644\0");
        header[108..116].copy_from_slice(b"0000000\0");
        header[116..124].copy_from_slice(b"0000000\0");
        header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
        header[136..148].copy_from_slice(b"00000000000\0");
        header[148..156].copy_from_slice(b"        ");
        header[156] = kind;
        header[157..157 + link.len().min(100)].copy_from_slice(&link[..link.len().min(100)]);
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&header);
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        self.entry(b'0', name.as_bytes(), b"", text.len() as u64, text.as_bytes())
    }

    pub(crate) fn directory(self, name: &str) -> Self {
        self.entry(b'5', name.as_bytes(), b"", 0, b"")
    }

    pub(crate) fn link(self, name: &str, target: &str) -> Self {
        self.entry(b'2', name.as_bytes(), target.as_bytes(), 0, b"")
    }

    pub(crate) fn hard_link(self, name: &str, target: &str) -> Self {
        self.entry(b'1', name.as_bytes(), target.as_bytes(), 0, b"")
    }

    /// An extended header in the form of POSIX.1-2001.
    pub(crate) fn records(self, kind: u8, records: &[(&str, &str)]) -> Self {
        let text: String = records.iter().map(|(key, value)| record(key, value)).collect();
        self.entry(kind, b"extended", b"", text.len() as u64, text.as_bytes())
    }

    pub(crate) fn plain(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }

    pub(crate) fn gzip(self) -> Vec<u8> {
        gzip(&self.plain())
    }
}

/// `<length> <key>=<value>\n`, the length counting itself.
fn record(key: &str, value: &str) -> String {
    let rest = key.len() + value.len() + 3;
    let length = (rest..rest + 10).find(|length| length.to_string().len() + rest == *length).unwrap();
    format!("{length} {key}={value}\n")
}

/// One entry of a zip archive. Every field can be wrong.
#[derive(Clone, Debug)]
pub(crate) struct ZipFile {
    pub(crate) name: Vec<u8>,
    /// The name in the header before the bytes.
    pub(crate) local_name: Vec<u8>,
    /// The Unix mode.
    pub(crate) mode: u32,
    pub(crate) flags: u16,
    pub(crate) method: u16,
    /// The bytes as they are stored.
    pub(crate) bytes: Vec<u8>,
    pub(crate) size: u64,
    pub(crate) checksum: u32,
    /// Whether sizes and place are in the zip64 fields.
    pub(crate) is_long: bool,
    /// Where the header is, if not where it was written.
    pub(crate) place: Option<u64>,
}

impl ZipFile {
    /// A deflated file.
    pub(crate) fn new(name: &str, text: &[u8]) -> Self {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        let bytes = encoder.finish().unwrap();
        let mut checksum = flate2::Crc::new();
        checksum.update(text);
        Self {
            name: name.into(),
            local_name: name.into(),
            mode: 0o100_644,
            flags: 0,
            method: 8,
            bytes,
            size: text.len() as u64,
            checksum: checksum.sum(),
            is_long: false,
            place: None,
        }
    }

    /// A file that is not compressed.
    pub(crate) fn stored(name: &str, text: &[u8]) -> Self {
        Self { method: 0, bytes: text.to_vec(), ..Self::new(name, text) }
    }

    pub(crate) fn link(name: &str, target: &str) -> Self {
        Self { mode: 0o120_777, ..Self::stored(name, target.as_bytes()) }
    }

    /// What the header before the bytes and the directory have in common; with the zip64 field that follows the name.
    fn header(&self, place: Option<u64>) -> (Vec<u8>, Vec<u8>) {
        let short = |number: u64| if self.is_long { u32::MAX } else { u32::try_from(number).unwrap() };
        let mut extra = Vec::new();
        if self.is_long {
            let places = place.map(u64::to_le_bytes).into_iter().flatten();
            let numbers: Vec<u8> =
                [self.size, self.bytes.len() as u64].into_iter().flat_map(u64::to_le_bytes).chain(places).collect();
            extra.extend_from_slice(&1_u16.to_le_bytes());
            extra.extend_from_slice(&u16::try_from(numbers.len()).unwrap().to_le_bytes());
            extra.extend_from_slice(&numbers);
        }
        let mut header = Vec::new();
        for number in [45, self.flags, self.method, 0, 0x21] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        header.extend_from_slice(&self.checksum.to_le_bytes());
        header.extend_from_slice(&short(self.bytes.len() as u64).to_le_bytes());
        header.extend_from_slice(&short(self.size).to_le_bytes());
        let name = if place.is_some() { &self.name } else { &self.local_name };
        for length in [name.len(), extra.len()] {
            header.extend_from_slice(&u16::try_from(length).unwrap().to_le_bytes());
        }
        (header, extra)
    }
}

/// A zip archive of these entries; with `zip64` the directory's own numbers are in the long form.
pub(crate) fn zip(files: &[ZipFile], zip64: bool) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for file in files {
        let place = file.place.unwrap_or(archive.len() as u64);
        let (header, extra) = file.header(None);
        archive.extend_from_slice(&[b"PK\x03\x04".as_slice(), &header, &file.local_name, &extra, &file.bytes].concat());
        let (header, extra) = file.header(Some(place));
        directory.extend_from_slice(b"PK\x01\x02\x2d\x03");
        directory.extend_from_slice(&header);
        // No comment, the first disk, no internal attributes.
        directory.extend_from_slice(&[0; 6]);
        directory.extend_from_slice(&(file.mode << 16).to_le_bytes());
        let short = if file.is_long { u32::MAX } else { u32::try_from(place).unwrap() };
        directory.extend_from_slice(&short.to_le_bytes());
        directory.extend_from_slice(&[file.name.as_slice(), &extra].concat());
    }
    let (start, count) = (archive.len() as u64, files.len() as u64);
    let size = directory.len() as u64;
    archive.extend_from_slice(&directory);
    let end = archive.len() as u64;
    if zip64 {
        archive.extend_from_slice(b"PK\x06\x06");
        archive.extend_from_slice(&44_u64.to_le_bytes());
        archive.extend_from_slice(&[45, 3, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        archive.extend([count, count, size, start].into_iter().flat_map(u64::to_le_bytes));
        archive.extend_from_slice(b"PK\x06\x07\0\0\0\0");
        archive.extend_from_slice(&end.to_le_bytes());
        archive.extend_from_slice(&1_u32.to_le_bytes());
    }
    archive.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    let count = if zip64 { u16::MAX } else { u16::try_from(count).unwrap() };
    archive.extend([count, count].into_iter().flat_map(u16::to_le_bytes));
    let short = |number: u64| if zip64 { u32::MAX } else { u32::try_from(number).unwrap() };
    archive.extend([short(size), short(start)].into_iter().flat_map(u32::to_le_bytes));
    archive.extend_from_slice(&[0, 0]);
    archive
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
