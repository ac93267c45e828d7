//! The index of a catalog on the disk: immutable, and found by the digest of the catalog.
//!
//! | module | holds |
//! |---|---|
//! | `format` | the file |
//! | `record` | one document in it |
//! | `sort` | sorting with bounded memory |
//! | `build` | from the documents to the file |
//! | `store` | the indexes of a directory |

mod build;
mod format;
mod record;
mod sort;
mod store;

pub use self::{
    build::BuildError,
    record::{RawError, Record},
    store::{Indexes, StoreError},
};

use std::{fs::File, io, path::Path};

use self::format::{Reader, Table};
use crate::{Blob, Bundle, Channel, Deprecations, Finding, Package, Span, model};

/// Why an index cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The file cannot be read.
    #[error("reading the index: {0}")]
    Io(#[source] io::Error),
    /// The file is not an index of this version, or was altered.
    #[error("the index is damaged: {0}")]
    Damaged(&'static str),
}

/// The index of one catalog. Little of it is in memory: each answer is read from the file.
#[derive(Debug)]
pub struct Index {
    reader: Reader,
}

/// A package of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageEntry {
    /// The name.
    pub name: String,
    /// The number of its documents.
    pub documents: u64,
}

/// A value and its position in the files.
#[derive(Clone, Debug, PartialEq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// The position.
    pub span: Span,
}

/// All documents of a package. Entries that must be unique may be duplicated here: see [`lint`](crate::lint).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PackageBlobs {
    /// The blobs of schema `olm.package`.
    pub packages: Vec<Located<Package>>,
    /// The channels.
    pub channels: Vec<Located<Channel>>,
    /// The bundles.
    pub bundles: Vec<Located<Bundle>>,
    /// The blobs of schema `olm.deprecations`.
    pub deprecations: Vec<Located<Deprecations>>,
    /// Documents of other schemas.
    pub others: Vec<Record>,
    /// What is wrong with single documents. Those that are errors make the package unusable.
    pub findings: Vec<Finding>,
}

/// A bundle that provides a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Provider {
    /// The version of the kind.
    pub version: String,
    /// The package.
    pub package: String,
    /// The bundle.
    pub bundle: String,
}

/// How many blobs a catalog has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packages.
    pub packages: u64,
    /// Channels of all packages.
    pub channels: u64,
    /// Bundles of all packages.
    pub bundles: u64,
}

/// Which documents to return. Each part that is set must equal the document's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Query<'a> {
    /// The schema.
    pub schema: Option<&'a str>,
    /// The package that the document names. Blobs of schema `olm.package` name none.
    pub package: Option<&'a str>,
    /// The name.
    pub name: Option<&'a str>,
}

impl Query<'_> {
    fn matches(&self, record: &Record) -> bool {
        self.schema.is_none_or(|schema| record.schema == schema)
            && self.package.is_none_or(|package| record.package == package)
            && self.name.is_none_or(|name| record.name == name)
    }
}

impl Index {
    /// Opens the file of an index, and compares its checksum.
    pub fn open(path: &Path) -> Result<Self, IndexError> {
        Ok(Self { reader: Reader::open(File::open(path).map_err(IndexError::Io)?)? })
    }

    /// The number of documents.
    pub fn len(&self) -> u64 {
        self.reader.footer.records.count
    }

    /// Whether the catalog has no documents.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of blobs of each schema. Reads all documents, one by one.
    pub fn counts(&self) -> Result<Counts, IndexError> {
        let mut counts = Counts::default();
        for record in self.metas(Query::default())? {
            match &*record?.schema {
                model::PACKAGE => counts.packages += 1,
                model::CHANNEL => counts.channels += 1,
                model::BUNDLE => counts.bundles += 1,
                _ => {}
            }
        }
        Ok(counts)
    }

    /// The packages, by name.
    pub fn packages(&self) -> impl Iterator<Item = Result<PackageEntry, IndexError>> {
        let (records, packages) = (self.reader.footer.records, self.reader.footer.packages);
        (0..packages.count / 2).map(move |at| {
            let first = self.reader.number(packages, at * 2)?;
            let documents = self.reader.number(packages, at * 2 + 1)?;
            let key = self.reader.key(records, first)?;
            let ([name], _) = record::parts(&key)?;
            Ok(PackageEntry { name: name.to_owned(), documents })
        })
    }

    /// All documents of a package, or `None` if there is no such package. No other package is read.
    pub fn package(&self, name: &str) -> Result<Option<PackageBlobs>, IndexError> {
        if name.is_empty() {
            return Ok(None);
        }
        let mut records = self.below(&[name]).peekable();
        if records.peek().is_none() {
            return Ok(None);
        }
        let mut blobs = PackageBlobs::default();
        records.try_for_each(|record| blobs.add(record?))?;
        Ok(Some(blobs))
    }

    /// The channels of a package.
    pub fn channels(&self, package: &str) -> Result<Vec<Located<Channel>>, IndexError> {
        Ok(self.of_schema(package, model::CHANNEL)?.channels)
    }

    /// The bundles of a package.
    pub fn bundles(&self, package: &str) -> Result<Vec<Located<Bundle>>, IndexError> {
        Ok(self.of_schema(package, model::BUNDLE)?.bundles)
    }

    /// The documents with this key, in the order of the files. A package owns its blob of schema `olm.package`.
    pub fn find(&self, package: &str, schema: &str, name: &str) -> Result<Vec<Record>, IndexError> {
        self.below(&[package, schema, name]).collect()
    }

    /// The documents that no package owns.
    pub fn without_package(&self) -> impl Iterator<Item = Result<Record, IndexError>> {
        self.below(&[""])
    }

    /// The bundles that provide a kind, of one version or of any, by version, package and name.
    pub fn providers(&self, group: &str, kind: &str, version: Option<&str>) -> Result<Vec<Provider>, IndexError> {
        let mut wanted = vec![group, kind];
        wanted.extend(version);
        let providers = self.range(self.reader.footer.providers, record::prefix(&wanted)).map(|pair| {
            let (key, _) = pair?;
            let ([_, _, version, package, bundle], _) = record::parts::<5>(&key)?;
            Ok(Provider { version: version.into(), package: package.into(), bundle: bundle.into() })
        });
        providers.collect()
    }

    /// The documents that match a query, in the order of the files. Without a package, all documents are read, one by one.
    pub fn metas<'a>(&'a self, query: Query<'a>) -> Result<Metas<'a>, IndexError> {
        let source = match query.package.filter(|package| !package.is_empty()) {
            Some(package) => {
                let mut ordinals = Vec::new();
                for record in self.below(&[package]) {
                    let record = record?;
                    if query.matches(&record) {
                        ordinals.push(record.ordinal);
                    }
                }
                ordinals.sort_unstable();
                Ordinals::Some(ordinals.into_iter())
            }
            None => Ordinals::All(0..self.reader.footer.order.count),
        };
        Ok(Metas { index: self, query, ordinals: source })
    }

    fn of_schema(&self, package: &str, schema: &str) -> Result<PackageBlobs, IndexError> {
        let mut blobs = PackageBlobs::default();
        self.below(&[package, schema]).try_for_each(|record| blobs.add(record?))?;
        Ok(blobs)
    }

    /// The records whose keys begin with these parts.
    fn below<'s>(&'s self, parts: &[&str]) -> impl Iterator<Item = Result<Record, IndexError>> + use<'s> {
        // No key contains a zero byte inside of a part, and none begins with this one.
        let none = parts.iter().any(|part| part.contains('\0'));
        let prefix = if none { vec![u8::MAX] } else { record::prefix(parts) };
        let pairs = self.range(self.reader.footer.records, prefix);
        pairs.map(|pair| pair.and_then(|(key, value)| record::decode(&key, &value)))
    }

    /// The pairs whose keys begin with `prefix`, up to the first failure.
    fn range(&self, table: Table, prefix: Vec<u8>) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), IndexError>> {
        let mut next = self.reader.lower_bound(table, &prefix);
        std::iter::from_fn(move || {
            let at = match std::mem::replace(&mut next, Ok(table.count)) {
                Ok(at) if at >= table.count => return None,
                Ok(at) => at,
                Err(error) => return Some(Err(error)),
            };
            let pair = self.reader.pair(table, at);
            if let Ok((key, _)) = &pair {
                if !key.starts_with(&prefix) {
                    return None;
                }
                next = Ok(at + 1);
            }
            Some(pair)
        })
    }

    fn record(&self, ordinal: u64) -> Result<Record, IndexError> {
        let at = self.reader.number(self.reader.footer.order, ordinal)?;
        let (key, value) = self.reader.pair(self.reader.footer.records, at)?;
        record::decode(&key, &value)
    }
}

enum Ordinals {
    All(std::ops::Range<u64>),
    Some(std::vec::IntoIter<u64>),
}

/// The documents that match a [`Query`]. Ends after a failure.
pub struct Metas<'a> {
    index: &'a Index,
    query: Query<'a>,
    ordinals: Ordinals,
}

impl Iterator for Metas<'_> {
    type Item = Result<Record, IndexError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let ordinal = match &mut self.ordinals {
                Ordinals::All(ordinals) => ordinals.next()?,
                Ordinals::Some(ordinals) => ordinals.next()?,
            };
            match self.index.record(ordinal) {
                Ok(record) if !self.query.matches(&record) => {}
                Ok(record) => return Some(Ok(record)),
                Err(error) => {
                    self.ordinals = Ordinals::All(0..0);
                    return Some(Err(error));
                }
            }
        }
    }
}

impl PackageBlobs {
    fn add(&mut self, record: Record) -> Result<(), IndexError> {
        self.findings.extend(record.findings()?);
        let blob = record.blob()?;
        let span = || record.span.clone();
        match blob {
            Blob::Package(value) => self.packages.push(Located { value, span: span() }),
            Blob::Channel(value) => self.channels.push(Located { value, span: span() }),
            Blob::Bundle(value) => self.bundles.push(Located { value, span: span() }),
            Blob::Deprecations(value) => self.deprecations.push(Located { value, span: span() }),
            Blob::Other => self.others.push(record),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
