//! The file of an index.
//!
//! ```text
//! magic
//! records:    pairs of a key and a value, sorted by key    (key: owner, schema, name, ordinal; value: see `record`)
//!             their positions                              (8 bytes each)
//! providers:  the same                                     (key: group, kind, version, package, bundle; no value)
//! order:      for each document, in the order of the files, the number of its record (8 bytes each)
//! packages:   for each owner, the number of its first record and of its records (16 bytes each)
//! footer:     digest of the catalog, the positions and counts above, CRC-32 of everything before it
//! ```
//!
//! Numbers are little-endian; the ordinal in a key is big-endian, so that it sorts. Parts of keys end with a zero byte, which no
//! name contains. Nothing in the file is trusted: each position and length is checked against the file before it is used.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Seek as _, SeekFrom, Write as _},
    os::unix::fs::FileExt as _,
    path::Path,
};

use super::IndexError;

/// The first bytes. The last of them is the version of the format and of the rules that a reader checks: other versions are built anew.
pub(super) const MAGIC: [u8; 8] = *b"CHNDCAT\x05";
/// Bytes of the footer: the hash, the numbers of four tables, and the checksum.
const FOOTER: usize = 32 + 8 * NUMBERS + 4;
const NUMBERS: usize = 8;

/// Pairs that are sorted by key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// The position of the positions.
    pub(super) positions: u64,
    /// The number of pairs.
    pub(super) count: u64,
}

/// What the footer says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) digest: [u8; 32],
    pub(super) records: Table,
    pub(super) providers: Table,
    /// The position and the number of the entries.
    pub(super) order: Table,
    /// The position and the number of the packages.
    pub(super) packages: Table,
}

impl Footer {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.digest.to_vec();
        for table in [self.records, self.providers, self.order, self.packages] {
            bytes.extend(table.positions.to_le_bytes());
            bytes.extend(table.count.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (digest, mut rest) = bytes.split_first_chunk::<32>()?;
        let mut number = || {
            let (number, others) = rest.split_first_chunk::<8>()?;
            rest = others;
            Some(u64::from_le_bytes(*number))
        };
        let mut table = || Some(Table { positions: number()?, count: number()? });
        Some(Self { digest: *digest, records: table()?, providers: table()?, order: table()?, packages: table()? })
    }
}

/// Writes a file from its start, with its checksum.
pub(super) struct Writer {
    file: BufWriter<File>,
    position: u64,
    checksum: crc32fast::Hasher,
}

impl Writer {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let mut writer =
            Self { file: BufWriter::with_capacity(64 << 10, file), position: 0, checksum: crc32fast::Hasher::new() };
        writer.write(&MAGIC)?;
        Ok(writer)
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.position += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    pub(super) fn finish(mut self, footer: &Footer) -> io::Result<File> {
        self.write(&footer.encode())?;
        let checksum = self.checksum.finalize();
        self.file.write_all(&checksum.to_le_bytes())?;
        // Not flushed to the disk: what a loss of power leaves of it, the checksum detects.
        self.file.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

/// Writes a table: pairs as they come, and their positions afterwards. The positions wait on the disk.
pub(super) struct TableWriter {
    positions: BufWriter<File>,
    count: u64,
}

impl TableWriter {
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        Ok(Self { positions: BufWriter::new(tempfile::tempfile_in(directory)?), count: 0 })
    }

    /// Writes the next pair, and returns its number.
    pub(super) fn push(&mut self, writer: &mut Writer, key: &[u8], value: &[u8]) -> io::Result<u64> {
        self.positions.write_all(&writer.position().to_le_bytes())?;
        for part in [key, value] {
            writer.write(&u32::try_from(part.len()).map_err(io::Error::other)?.to_le_bytes())?;
        }
        writer.write(key)?;
        writer.write(value)?;
        self.count += 1;
        Ok(self.count - 1)
    }

    pub(super) fn finish(self, writer: &mut Writer) -> io::Result<Table> {
        let table = Table { positions: writer.position(), count: self.count };
        copy(self.positions, writer)?;
        Ok(table)
    }
}

/// Appends a temporary file.
pub(super) fn copy(file: BufWriter<File>, writer: &mut Writer) -> io::Result<()> {
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        writer.write(buffer.get(..read).unwrap_or_default())?;
    }
}

/// Reads an index file at positions that are checked.
#[derive(Debug)]
pub(super) struct Reader {
    file: File,
    /// The bytes before the footer.
    length: u64,
    pub(super) footer: Footer,
}

impl Reader {
    /// Opens a file. All of it is read once, to compare its checksum.
    pub(super) fn open(mut file: File) -> Result<Self, IndexError> {
        let size = file.metadata().map_err(IndexError::Io)?.len();
        let length = size.checked_sub(FOOTER as u64).filter(|length| *length >= MAGIC.len() as u64);
        let length = length.ok_or(IndexError::Damaged("it is too short"))?;
        let mut magic = [0; MAGIC.len()];
        file.read_exact_at(&mut magic, 0).map_err(IndexError::Io)?;
        if magic != MAGIC {
            return Err(IndexError::Damaged("another version or no index"));
        }
        let mut checksum = crc32fast::Hasher::new();
        let mut buffer = vec![0; 256 << 10];
        let mut rest = size - 4;
        file.seek(SeekFrom::Start(0)).map_err(IndexError::Io)?;
        while rest > 0 {
            let wanted = usize::try_from(rest).unwrap_or(usize::MAX).min(buffer.len());
            let part = buffer.get_mut(..wanted).unwrap_or_default();
            file.read_exact(part).map_err(IndexError::Io)?;
            checksum.update(part);
            rest -= wanted as u64;
        }
        let mut footer = [0; FOOTER];
        file.read_exact_at(&mut footer, length).map_err(IndexError::Io)?;
        let (footer, stored) = footer.split_last_chunk::<4>().ok_or(IndexError::Damaged("it is too short"))?;
        if u32::from_le_bytes(*stored) != checksum.finalize() {
            return Err(IndexError::Damaged("its checksum differs"));
        }
        let footer = Footer::decode(footer).ok_or(IndexError::Damaged("its footer is too short"))?;
        Ok(Self { file, length, footer })
    }

    fn bytes(&self, position: u64, length: u64) -> Result<Vec<u8>, IndexError> {
        // Checked before memory is taken, so that it takes at most the size of the file.
        let end = position.checked_add(length).filter(|end| *end <= self.length);
        let length =
            end.and_then(|_| usize::try_from(length).ok()).ok_or(IndexError::Damaged("a position is outside"))?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, position).map_err(IndexError::Io)?;
        Ok(bytes)
    }

    fn array<const N: usize>(&self, position: u64) -> Result<[u8; N], IndexError> {
        let end = position.checked_add(N as u64).filter(|end| *end <= self.length);
        end.ok_or(IndexError::Damaged("a position is outside"))?;
        let mut bytes = [0; N];
        self.file.read_exact_at(&mut bytes, position).map_err(IndexError::Io)?;
        Ok(bytes)
    }

    /// The number at this place of a list of numbers.
    pub(super) fn number(&self, list: Table, at: u64) -> Result<u64, IndexError> {
        if at >= list.count {
            return Err(IndexError::Damaged("a number is outside"));
        }
        let position = at.checked_mul(8).and_then(|at| at.checked_add(list.positions));
        Ok(u64::from_le_bytes(self.array(position.ok_or(IndexError::Damaged("a position is outside"))?)?))
    }

    /// The position of the key of a pair, and the lengths of its key and value.
    fn pair_at(&self, table: Table, at: u64) -> Result<(u64, u64, u64), IndexError> {
        let position = self.number(table, at)?;
        let lengths = u64::from_le_bytes(self.array(position)?);
        Ok((position.saturating_add(8), lengths & u64::from(u32::MAX), lengths >> 32))
    }

    /// The key of a pair.
    pub(super) fn key(&self, table: Table, at: u64) -> Result<Vec<u8>, IndexError> {
        let (position, key, _) = self.pair_at(table, at)?;
        self.bytes(position, key)
    }

    /// A pair.
    pub(super) fn pair(&self, table: Table, at: u64) -> Result<(Vec<u8>, Vec<u8>), IndexError> {
        let (position, key, value) = self.pair_at(table, at)?;
        let mut bytes = self.bytes(position, key.saturating_add(value))?;
        let split = usize::try_from(key).unwrap_or(usize::MAX).min(bytes.len());
        let value = bytes.split_off(split);
        Ok((bytes, value))
    }

    /// The number of the first pair whose key is not smaller.
    pub(super) fn lower_bound(&self, table: Table, key: &[u8]) -> Result<u64, IndexError> {
        let (mut from, mut to) = (0, table.count);
        while from < to {
            let middle = from + (to - from) / 2;
            if self.key(table, middle)?.as_slice() < key {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        Ok(from)
    }
}
