//! Identifies a file that should be the database. Pure.
//!
//! The database library only reports that something is wrong. To decide what to do, the user needs to know whether the file
//! is empty, of another format, or truncated, as by an incomplete copy or a full disk.

use std::path::Path;

use crate::store::OpenError;

/// How a database file begins.
const MAGIC: &[u8] = b"redb\x1a\x0a\xa9\x0d\x0a";
/// Where the sizes are: bytes of a page; pages of a region's header; data pages of a full region; full regions; data pages of the
/// last region where that is not full. Each is a little-endian u32.
const SIZES: usize = 12;

/// The beginnings of files that are mistaken for a database.
const FORMATS: &[(&[u8], &str)] = &[
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x1f\x8b", "gzip-compressed: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed: unpack it first"),
    (b"PK\x03\x04", "a zip archive: unpack it first"),
    (b"{", "JSON"),
    (b"apiVersion:", "YAML"),
    (b"---", "YAML"),
];

/// Why a file cannot be the database, by how it begins and how long it is.
pub(super) fn refuse(path: &Path, start: &[u8], length: u64) -> Option<OpenError> {
    let foreign = |what: &str| Some(OpenError::Foreign { path: path.to_owned(), what: what.to_owned() });
    if length == 0 {
        return Some(OpenError::Empty { path: path.to_owned() });
    }
    if start.starts_with(MAGIC) {
        return None;
    }
    if MAGIC.starts_with(start) {
        return Some(OpenError::CutOff { path: path.to_owned(), length, expected: None });
    }
    if start.iter().all(|byte| *byte == 0) {
        return foreign("it begins with zero bytes, as after a crash of the machine or a failed copy");
    }
    // etcd keeps its data in bbolt, whose magic number comes after the header of the first page.
    if start.get(16..20) == Some(&[0xed, 0xda, 0x0c, 0xed]) {
        return foreign("it is the database of an etcd");
    }
    match FORMATS.iter().find(|(magic, _)| start.starts_with(magic)) {
        Some((_, what)) => foreign(&format!("it is {what}")),
        None => foreign("it does not begin like one"),
    }
}

/// Whether a file is shorter than its own header says; if so, the description.
pub(super) fn cut_off(path: &Path, start: &[u8], length: u64) -> Option<OpenError> {
    let error = |expected| Some(OpenError::CutOff { path: path.to_owned(), length, expected });
    match expected_length(start) {
        None => error(None),
        Some(expected) if length < expected => error(Some(expected)),
        Some(_) => None,
    }
}

/// The length that the sizes at the beginning of the file add up to, or `None` if they are cut off.
fn expected_length(start: &[u8]) -> Option<u64> {
    let size = |number: usize| {
        let at = SIZES + 4 * number;
        let bytes = start.get(at..at + 4)?.try_into().ok()?;
        Some(u64::from(u32::from_le_bytes(bytes)))
    };
    let [page, header, full, regions, trailing] = [size(0)?, size(1)?, size(2)?, size(3)?, size(4)?];
    let trailing = if trailing == 0 { 0 } else { header.saturating_add(trailing) };
    let pages = header.saturating_add(full).saturating_mul(regions).saturating_add(trailing).saturating_add(1);
    Some(pages.saturating_mul(page))
}
