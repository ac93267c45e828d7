//! One document in an index.

use chandler_core::{Content, ReadError};
use chandler_yaml::Node;

use super::IndexError;
use crate::{Blob, Finding, Limits, Meta, Place, Span};

/// A document in an index: its key, its position in the files, and the fields of the known schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The schema.
    pub schema: String,
    /// The package that the document names; empty if it names none.
    pub package: String,
    /// The name; empty if the document has none.
    pub name: String,
    /// Its number, in the order of the files.
    pub ordinal: u64,
    /// Its position in the files.
    pub span: Span,
    /// JSON of the fields; empty for unknown schemas.
    blob: Vec<u8>,
    /// JSON of the findings; empty if there are none.
    findings: Vec<u8>,
}

/// Why a document cannot be read from the files.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// A file cannot be read.
    #[error(transparent)]
    Content(#[from] ReadError),
    /// The files are not those that the index was built from.
    #[error("{0} is not where the index says; these are not the files that it was built from")]
    Moved(Place),
    /// The document cannot be parsed.
    #[error("{place}: {message}")]
    Unreadable {
        /// The place.
        place: Place,
        /// The problem.
        message: String,
    },
}

impl Span {
    /// The bytes of the document, as they are in the file.
    pub fn raw(&self, content: &dyn Content) -> Result<Vec<u8>, RawError> {
        let moved = || RawError::Moved(self.place.clone());
        let length = usize::try_from(self.length).map_err(|_| moved())?;
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let part = content.read(&self.place.file, self.offset + bytes.len() as u64, length - bytes.len())?;
            if part.is_empty() {
                return Err(moved());
            }
            bytes.extend(part);
        }
        Ok(bytes)
    }

    /// The whole document.
    pub fn document(&self, content: &dyn Content, limits: &Limits) -> Result<Node, RawError> {
        let unreadable = |message| RawError::Unreadable { place: self.place.clone(), message };
        let documents = chandler_yaml::parse(&self.raw(content)?, &limits.yaml());
        let document = documents.map_err(|error| unreadable(error.to_string()))?.into_iter().next();
        document.map(|document| document.root).ok_or_else(|| RawError::Moved(self.place.clone()))
    }

    /// The whole document as JSON on one line, keys sorted.
    pub fn json(&self, content: &dyn Content, limits: &Limits) -> Result<Vec<u8>, RawError> {
        let mut json = Vec::new();
        self.document(content, limits)?.write_json(&mut json);
        Ok(json)
    }
}

impl Record {
    /// The fields.
    pub fn blob(&self) -> Result<Blob, IndexError> {
        if self.blob.is_empty() {
            return Ok(Blob::Other);
        }
        serde_json::from_slice(&self.blob).map_err(|_| IndexError::Damaged("a blob is not JSON"))
    }

    /// What is wrong with the document itself.
    pub fn findings(&self) -> Result<Vec<Finding>, IndexError> {
        if self.findings.is_empty() {
            return Ok(Vec::new());
        }
        serde_json::from_slice(&self.findings).map_err(|_| IndexError::Damaged("a finding is not JSON"))
    }
}

/// The key of a document.
pub(super) fn key(meta: &Meta, ordinal: u64) -> Vec<u8> {
    let mut key = prefix(&[meta.owner(), &meta.schema, &meta.name]);
    key.extend(ordinal.to_be_bytes());
    key
}

/// The parts of a key, each with its end.
pub(super) fn prefix(parts: &[&str]) -> Vec<u8> {
    let mut key = Vec::with_capacity(parts.iter().map(|part| part.len() + 1).sum::<usize>() + 8);
    for part in parts {
        key.extend_from_slice(part.as_bytes());
        key.push(0);
    }
    key
}

/// The first parts of a key, and the rest.
pub(super) fn parts<const N: usize>(mut key: &[u8]) -> Result<([&str; N], &[u8]), IndexError> {
    let mut parts = [""; N];
    for part in &mut parts {
        let end = memchr::memchr(0, key).ok_or(IndexError::Damaged("a key is too short"))?;
        let (text, rest) = key.split_at(end);
        *part = std::str::from_utf8(text).map_err(|_| IndexError::Damaged("a key is not UTF-8"))?;
        key = rest.get(1..).unwrap_or_default();
    }
    Ok((parts, key))
}

/// The value of a document.
pub(super) fn encode(meta: &Meta) -> Result<Vec<u8>, serde_json::Error> {
    let mut value = Vec::new();
    value.extend(meta.span.offset.to_le_bytes());
    value.extend(meta.span.length.to_le_bytes());
    value.extend(meta.span.place.line.to_le_bytes());
    let blob = if meta.blob == Blob::Other { Vec::new() } else { serde_json::to_vec(&meta.blob)? };
    let findings = if meta.findings.is_empty() { Vec::new() } else { serde_json::to_vec(&meta.findings)? };
    for part in [meta.span.place.file.as_bytes(), meta.package.as_bytes(), &blob, &findings] {
        value.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
        value.extend(part);
    }
    Ok(value)
}

/// The document with this key and value.
pub(super) fn decode(key: &[u8], value: &[u8]) -> Result<Record, IndexError> {
    let ([_, schema, name], ordinal) = parts::<3>(key)?;
    let ordinal = <[u8; 8]>::try_from(ordinal).map_err(|_| IndexError::Damaged("a key is too short"))?;
    let mut rest = value;
    let short = IndexError::Damaged("a record is too short");
    let (Some(offset), Some(length), Some(line)) = (take::<8>(&mut rest), take::<8>(&mut rest), take::<4>(&mut rest))
    else {
        return Err(short);
    };
    let mut parts = [const { Vec::new() }; 4];
    for part in &mut parts {
        let length = take::<4>(&mut rest).map(|length| u32::from_le_bytes(length) as usize);
        let split = length.and_then(|length| rest.split_at_checked(length));
        let Some((bytes, others)) = split else { return Err(short) };
        *part = bytes.to_vec();
        rest = others;
    }
    let [file, package, blob, findings] = parts;
    let text = |bytes| String::from_utf8(bytes).map_err(|_| IndexError::Damaged("a record is not UTF-8"));
    Ok(Record {
        schema: schema.to_owned(),
        package: text(package)?,
        name: name.to_owned(),
        ordinal: u64::from_be_bytes(ordinal),
        span: Span {
            place: Place::new(text(file)?, u32::from_le_bytes(line)),
            offset: u64::from_le_bytes(offset),
            length: u64::from_le_bytes(length),
        },
        blob,
        findings,
    })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}
