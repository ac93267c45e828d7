//! Extended headers of a tar archive, which describe the next entry.
//!
//! The `tar` crate would read them into memory at any size. If the header and an extended header state different sizes, readers
//! disagree about which one counts, and see different files in the same archive.

use std::io::Read;

use tar::{Header, PaxExtensions};

use crate::{EntryProblem, NamedTwice};

/// More than any path or comment needs.
const MOST: u64 = 64 << 10;

/// The extended headers of the next entry.
#[derive(Debug, Default)]
pub(super) struct Extended {
    path: Option<Given>,
    link: Option<Given>,
    size: Option<u64>,
}

/// A name that is not in the header of the entry itself.
#[derive(Debug)]
struct Given {
    name: Vec<u8>,
    by: &'static str,
    /// The position of the header with the name, in bytes from the start of the archive.
    at: u64,
}

const GNU: &str = "GNU header";
const PAX: &str = "PAX header";

/// Sets a name, unless another header has set one: some readers then use the first name, some the last, some the PAX name, and so see
/// different files in one archive. Within one PAX header, all readers use the last.
fn give(slot: &mut Option<Given>, what: &'static str, given: Given) -> Result<(), ExtendedError> {
    match slot {
        Some(other) if (other.by, other.at) != (given.by, given.at) => {
            let (first, second) = ((other.by, other.at), (given.by, given.at));
            Err(ExtendedError::Refused(EntryProblem::NamedTwice(Box::new(NamedTwice { what, first, second }))))
        }
        slot => {
            *slot = Some(given);
            Ok(())
        }
    }
}

/// Why an extended header cannot be read.
#[derive(Debug)]
pub(super) enum ExtendedError {
    Read(std::io::Error),
    Refused(EntryProblem),
}

fn refused(problem: &'static str) -> ExtendedError {
    ExtendedError::Refused(EntryProblem::ExtendedHeader(problem))
}

fn body(reader: &mut impl Read) -> Result<Vec<u8>, ExtendedError> {
    let mut bytes = Vec::new();
    reader.take(MOST + 1).read_to_end(&mut bytes).map_err(ExtendedError::Read)?;
    if bytes.len() as u64 > MOST { Err(refused("it is larger than 64 KiB")) } else { Ok(bytes) }
}

impl Extended {
    /// Reads a GNU long name.
    pub(super) fn long_name(&mut self, reader: &mut impl Read, at: u64) -> Result<(), ExtendedError> {
        let name = without_terminator(body(reader)?);
        give(&mut self.path, "path", Given { name, by: GNU, at })
    }

    /// Reads a GNU long link name.
    pub(super) fn long_link(&mut self, reader: &mut impl Read, at: u64) -> Result<(), ExtendedError> {
        let name = without_terminator(body(reader)?);
        give(&mut self.link, "link", Given { name, by: GNU, at })
    }

    /// Reads the records of POSIX.1-2001 for the next entry.
    pub(super) fn records(&mut self, reader: &mut impl Read, at: u64) -> Result<(), ExtendedError> {
        let bytes = body(reader)?;
        for record in PaxExtensions::new(&bytes) {
            let record = record.map_err(|_| refused("it is not made of records"))?;
            let given = || Given { name: record.value_bytes().to_owned(), by: PAX, at };
            match record.key_bytes() {
                b"path" => give(&mut self.path, "path", given())?,
                b"linkpath" => give(&mut self.link, "link", given())?,
                b"size" => {
                    let size = record.value().ok().and_then(|text| text.parse().ok());
                    self.size = Some(size.ok_or_else(|| refused("its size is not a number"))?);
                }
                key if key.starts_with(b"GNU.sparse.") => return Err(refused("sparse files are not allowed")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads the records for all entries that follow. Comments are common, as in what git makes; others would change
    /// every entry and are refused.
    pub(super) fn check_global(reader: &mut impl Read) -> Result<(), ExtendedError> {
        let mut global = Self::default();
        global.records(reader, 0)?;
        if global.path.is_some() || global.link.is_some() || global.size.is_some() {
            return Err(refused("it names a path or a size for all entries"));
        }
        Ok(())
    }

    /// The name of the entry.
    pub(super) fn name(&self, header: &Header) -> Vec<u8> {
        self.path.as_ref().map_or_else(|| header.path_bytes().into_owned(), |path| path.name.clone())
    }

    /// The target of the link.
    pub(super) fn target(&self, header: &Header) -> Vec<u8> {
        let of_header = || header.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default();
        self.link.as_ref().map_or_else(of_header, |link| link.name.clone())
    }

    /// Whether header and extended header agree on the size.
    pub(super) fn check_size(&self, size: u64) -> Result<(), EntryProblem> {
        match self.size {
            Some(other) if other != size => Err(EntryProblem::ExtendedHeader("it changes the size of the entry")),
            _ => Ok(()),
        }
    }
}

fn without_terminator(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}
