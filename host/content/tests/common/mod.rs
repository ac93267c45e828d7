//! What the tests share: stores in temporary directories, and archives made byte by byte.

#![allow(dead_code, reason = "each test file uses some of it")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests may panic as well")]

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

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
