//! A zip archive, entry by entry.
//!
//! Its directory at the end states what the archive holds. Tools that read from the start use the header before each file instead.
//! An archive in which the two differ, or in which entries share bytes (as in bombs that unpack the same bytes many times), is
//! refused. The directory is read piece by piece, so that its size does not matter before the entries are counted.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt,
    path::Path,
};

use flate2::read::DeflateDecoder;
use rawzip::{
    CompressionMethod, CreatorSystem, MAX_CENTRAL_DIRECTORY_RECORD_SIZE, ReaderAt, ZipArchive,
    ZipArchiveEntryWayfinder, ZipEntry, ZipFileHeaderRecord, ZipLocator,
};

use super::{
    UnpackError,
    decompress::{Budget, Counts},
    overlay::Overlay,
};
use crate::{
    ArchiveError, EntryProblem, Limits, StoreError,
    path::entry_path,
    store::workspace::{AddError, Workspace},
};

/// The first bytes: of the header of a file, or of the end of an archive without files.
const MAGIC: [[u8; 4]; 2] = [*b"PK\x03\x04", *b"PK\x05\x06"];
/// The mask and the values of the file type in a Unix mode.
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// Whether a file begins like a zip archive.
pub(super) fn is_zip(file: &File) -> io::Result<bool> {
    let mut first = [0; 4];
    match file.read_exact_at(&mut first, 0) {
        Ok(()) => Ok(MAGIC.contains(&first)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The bytes of the archive. There are none at positions after the end, whatever the archive names: the kernel refuses very large ones,
/// which is not a disk failure.
struct Bytes {
    file: File,
    size: u64,
}

impl ReaderAt for Bytes {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= self.size { Ok(0) } else { self.file.read_at(buffer, offset) }
    }
}

/// Reads all entries into the workspace and the overlay.
pub(super) fn read(
    file: File,
    path: &Path,
    work: &mut Workspace,
    limits: &Limits,
    overlay: &mut Overlay,
    budget: &Budget,
) -> Result<(), UnpackError> {
    // As large as any record, so that none is too large for it.
    let mut buffer = vec![0; MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
    let malformed = |error: rawzip::Error| failure(io_error(error), path);
    let size = file.metadata().map_err(StoreError::at("read", path)).map_err(UnpackError::Store)?.len();
    let located = ZipLocator::new().locate_in_reader(Bytes { file, size }, &mut buffer, size);
    let archive = located.map_err(|(_, error)| malformed(error))?;
    let mut reader = Reader {
        archive: &archive,
        path,
        work,
        limits,
        decoder: Decoder { budget, counts: Counts::default() },
        ranges: BTreeMap::new(),
        header: vec![0; 2 * usize::from(u16::MAX)],
    };
    let (mut entries, mut count) = (archive.entries(&mut buffer), 0_u64);
    while let Some(entry) = entries.next_entry().map_err(malformed)? {
        overlay.count().map_err(UnpackError::Refused)?;
        count += 1;
        reader.one(&Entry::of(&entry), overlay)?;
    }
    if count != archive.entries_hint() {
        let message = format!("its directory announces {} entries and has {count}", archive.entries_hint());
        return Err(UnpackError::Refused(ArchiveError::MalformedZip(message)));
    }
    overlay.merge().map_err(UnpackError::Refused)
}

/// What the directory of the archive states about an entry.
struct Entry {
    name: Vec<u8>,
    kind: Kind,
    size: u64,
    method: CompressionMethod,
    encrypted: bool,
    /// Sizes are after the bytes of the file, and not in the header before them.
    sizes_follow: bool,
    place: ZipArchiveEntryWayfinder,
    compressed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    Link,
    Other,
}

impl Entry {
    fn of(record: &ZipFileHeaderRecord<'_>) -> Self {
        let flags = record.flags();
        Self {
            name: record.file_path().as_bytes().to_vec(),
            kind: kind(record),
            size: record.uncompressed_size_hint(),
            method: record.compression_method(),
            encrypted: flags.is_encrypted() || flags.has_strong_encryption() || flags.is_masked(),
            sizes_follow: flags.has_data_descriptor(),
            place: record.wayfinder(),
            compressed: record.compressed_size_hint(),
        }
    }
}

/// The type of an entry: its Unix mode, if it has one, and a slash at the end of the name.
fn kind(record: &ZipFileHeaderRecord<'_>) -> Kind {
    let mode = match record.version_made_by().creator_system() {
        CreatorSystem::UNIX | CreatorSystem::MACOS => record.external_attributes() >> 16,
        _ => 0,
    };
    match mode & TYPE {
        0 | REGULAR if record.is_dir() => Kind::Directory,
        0 | REGULAR => Kind::File,
        DIRECTORY => Kind::Directory,
        LINK => Kind::Link,
        _ => Kind::Other,
    }
}

struct Reader<'a> {
    archive: &'a ZipArchive<Bytes>,
    path: &'a Path,
    work: &'a mut Workspace,
    limits: &'a Limits,
    decoder: Decoder<'a>,
    /// The bytes of earlier entries: where they begin, and where they end.
    ranges: BTreeMap<u64, u64>,
    header: Vec<u8>,
}

impl Reader<'_> {
    fn one(&mut self, entry: &Entry, overlay: &mut Overlay) -> Result<(), UnpackError> {
        let refuse = |problem: EntryProblem| UnpackError::Refused(problem.at(&entry.name));
        let path = entry_path(&entry.name, self.limits).map_err(refuse)?;
        if entry.name.contains(&b'\\') {
            return Err(refuse(EntryProblem::Backslash));
        }
        if entry.encrypted {
            return Err(refuse(EntryProblem::Encrypted));
        }
        let found = self.archive.get_entry(entry.place).map_err(|error| failure(io_error(error), self.path))?;
        self.check_header(entry, &found)?;
        if !self.reserve(found.compressed_data_range()) {
            return Err(refuse(EntryProblem::SharedBytes));
        }
        match entry.kind {
            Kind::Directory if entry.size > 0 => Err(EntryProblem::HasBytes(entry.size)),
            Kind::Directory => overlay.directory(path),
            Kind::Other => Err(EntryProblem::Unsupported("device, fifo or socket")),
            Kind::Link => {
                let target = self.target(entry, &found)?;
                overlay.symbolic_link(path, &target)
            }
            Kind::File if entry.size > self.limits.file_bytes => {
                Err(EntryProblem::FileTooLarge(self.limits.file_bytes))
            }
            Kind::File => {
                let mut bytes = self.decoder.bytes(entry.method, &found).map_err(refuse)?;
                let stored = self.work.add(&mut bytes, self.limits.file_bytes).map_err(|error| match error {
                    AddError::Read(error) => failure(error, self.path),
                    AddError::TooLarge => refuse(EntryProblem::FileTooLarge(self.limits.file_bytes)),
                    AddError::Write(error) => UnpackError::Store(error),
                })?;
                overlay.file(path, stored)
            }
        }
        .map_err(refuse)
    }

    /// Compares the header before the bytes with the directory.
    fn check_header(&mut self, entry: &Entry, found: &ZipEntry<'_, Bytes>) -> Result<(), UnpackError> {
        let header = found.local_header(&mut self.header);
        let header = header.map_err(|error| failure(io_error(error), self.path))?;
        let sizes = (header.compressed_size_hint(), header.uncompressed_size_hint());
        let same = header.file_path().as_bytes() == entry.name
            && header.compression_method() == entry.method
            && header.flags().has_data_descriptor() == entry.sizes_follow
            && !header.flags().is_encrypted()
            && (entry.sizes_follow || sizes == (entry.compressed, entry.size));
        if same { Ok(()) } else { Err(UnpackError::Refused(EntryProblem::HeaderDiffers.at(&entry.name))) }
    }

    /// Notes the place of an entry's bytes. Returns false if another entry has some of them.
    fn reserve(&mut self, (start, end): (u64, u64)) -> bool {
        if start >= end {
            return true;
        }
        let before = self.ranges.range(..end).next_back();
        if before.is_some_and(|(_, other)| *other > start) {
            return false;
        }
        self.ranges.insert(start, end);
        true
    }

    /// The target of a link, which is its content.
    fn target(&self, entry: &Entry, found: &ZipEntry<'_, Bytes>) -> Result<Vec<u8>, UnpackError> {
        let refuse = |problem: EntryProblem| UnpackError::Refused(problem.at(&entry.name));
        let longest = self.limits.path_bytes;
        if entry.size > longest as u64 {
            return Err(refuse(EntryProblem::PathTooLong(longest)));
        }
        let mut target = Vec::new();
        let bytes = self.decoder.bytes(entry.method, found).map_err(refuse)?;
        bytes.take(longest as u64 + 1).read_to_end(&mut target).map_err(|error| failure(error, self.path))?;
        Ok(target)
    }
}

/// The error of the disk, if that is the cause.
fn io_error(error: rawzip::Error) -> io::Error {
    let text = error.to_string();
    match error.into_kind() {
        rawzip::ErrorKind::IO(error) => error,
        _ => io::Error::new(io::ErrorKind::InvalidData, text),
    }
}

/// Decompresses entries, and counts their bytes together.
struct Decoder<'a> {
    budget: &'a Budget,
    counts: Counts,
}

impl Decoder<'_> {
    /// The bytes of an entry, verified against the size and the checksum in the directory when they end.
    fn bytes<'z>(
        &self,
        method: CompressionMethod,
        found: &ZipEntry<'z, Bytes>,
    ) -> Result<Box<dyn Read + 'z>, EntryProblem> {
        let compressed = self.budget.count(found.reader(), &self.counts);
        Ok(match method {
            CompressionMethod::STORE => Box::new(self.budget.bound(found.verifying_reader(compressed), &self.counts)),
            CompressionMethod::DEFLATE => {
                let plain = found.verifying_reader(DeflateDecoder::new(compressed));
                Box::new(self.budget.bound(plain, &self.counts))
            }
            method => return Err(EntryProblem::Compression(method.as_u16())),
        })
    }
}

/// Distinguishes errors of the disk, exceeded limits and damage.
fn failure(error: io::Error, path: &Path) -> UnpackError {
    match UnpackError::reading(error, path) {
        UnpackError::Refused(ArchiveError::Malformed(message)) => {
            UnpackError::Refused(ArchiveError::MalformedZip(message))
        }
        other => other,
    }
}
