//! Builds the file of an index in one reading of the catalog.

use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
    path::Path,
};

use chandler_core::{Content, Digest};

use super::{
    format::{Footer, Table, TableWriter, Writer, copy},
    record,
    sort::Sorter,
};
use crate::{Blob, CatalogError, Finding, Item, Limits, Meta, read};

/// Why an index cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The catalog cannot be read to its end.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A document cannot be part of a catalog.
    #[error("{0}")]
    Finding(Box<Finding>),
    /// The index cannot be written.
    #[error("writing the index: {0}")]
    Io(#[from] io::Error),
}

/// Writes the index of a catalog to `file`. Findings about documents that cannot be part of it go to `on_finding`, which says
/// whether to continue without them.
pub(super) fn build(
    file: File,
    directory: &Path,
    content: &dyn Content,
    limits: &Limits,
    on_finding: &mut dyn FnMut(Finding) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let mut documents = Sorter::new(directory, limits.sort_bytes);
    let mut providers = Sorter::new(directory, limits.sort_bytes / 4);
    let mut ordinal = 0;
    read(content, limits, |item| match item {
        Item::Finding(finding) => on_finding(finding),
        Item::Meta(meta) => {
            provide(&meta, limits, &mut providers)?;
            documents.push(record::key(&meta, ordinal), record::encode(&meta).map_err(io::Error::other)?)?;
            ordinal += 1;
            Ok(())
        }
    })?;

    let mut writer = Writer::new(file)?;
    let mut table = TableWriter::new(directory)?;
    let mut order = Sorter::new(directory, limits.sort_bytes / 4);
    let mut packages = Packages::new(directory)?;
    documents.finish(|key, value| -> io::Result<()> {
        let at = table.push(&mut writer, key, value)?;
        let (owner, ordinal) = owner_and_ordinal(key);
        order.push(ordinal.to_vec(), at.to_le_bytes().to_vec())?;
        packages.push(owner, at)
    })?;
    let records = table.finish(&mut writer)?;

    let mut table = TableWriter::new(directory)?;
    providers.finish(|key, value| table.push(&mut writer, key, value).map(drop))?;
    let providers = table.finish(&mut writer)?;

    let order_table = Table { positions: writer.position(), count: records.count };
    order.finish(|_, at| writer.write(at))?;
    let packages = packages.finish(&mut writer)?;
    let digest = hash(content.digest());
    writer.finish(&Footer { digest, records, providers, order: order_table, packages })?;
    Ok(())
}

/// The bytes of a digest.
pub(super) fn hash(digest: &Digest) -> [u8; 32] {
    let mut hash = [0; 32];
    for (byte, digits) in hash.iter_mut().zip(digest.hex().as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
    }
    hash
}

/// Adds what a bundle provides.
fn provide(meta: &Meta, limits: &Limits, providers: &mut Sorter) -> io::Result<()> {
    let Blob::Bundle(bundle) = &meta.blob else { return Ok(()) };
    for gvk in bundle.provides() {
        let parts = [gvk.group.as_str(), &gvk.kind, &gvk.version, &meta.package, &meta.name];
        // The reader reports these.
        let fits = |part: &str| part.len() <= limits.name_bytes && !part.chars().any(char::is_control);
        if parts.into_iter().all(fits) {
            providers.push(record::prefix(&parts), Vec::new())?;
        }
    }
    Ok(())
}

/// The first part of a key without its end, and the last.
fn owner_and_ordinal(key: &[u8]) -> (&[u8], &[u8]) {
    let owner = key.split(|byte| *byte == 0).next().unwrap_or_default();
    let ordinal = key.split_last_chunk::<8>().map(|(_, ordinal)| ordinal.as_slice()).unwrap_or_default();
    (owner, ordinal)
}

/// The list of packages, while it is written.
struct Packages {
    entries: BufWriter<File>,
    count: u64,
    owner: Vec<u8>,
    first: u64,
    records: u64,
}

impl Packages {
    fn new(directory: &Path) -> io::Result<Self> {
        let entries = BufWriter::new(tempfile::tempfile_in(directory)?);
        Ok(Self { entries, count: 0, owner: Vec::new(), first: 0, records: 0 })
    }

    fn push(&mut self, owner: &[u8], at: u64) -> io::Result<()> {
        if self.records > 0 && self.owner == owner {
            self.records += 1;
            return Ok(());
        }
        self.end()?;
        owner.clone_into(&mut self.owner);
        (self.first, self.records) = (at, 1);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        // Documents without a package belong to none.
        if self.records > 0 && !self.owner.is_empty() {
            self.entries.write_all(&self.first.to_le_bytes())?;
            self.entries.write_all(&self.records.to_le_bytes())?;
            self.count += 2;
        }
        Ok(())
    }

    fn finish(mut self, writer: &mut Writer) -> io::Result<Table> {
        self.end()?;
        let table = Table { positions: writer.position(), count: self.count };
        copy(self.entries, writer)?;
        Ok(table)
    }
}
