//! The database file.

use std::{
    collections::HashMap,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use redb::{
    DatabaseError, ReadableDatabase as _, ReadableTable as _, StorageError, TableDefinition, TableError,
    backends::FileBackend,
};

use super::{Disk, journal::PENDING, recognise};
use crate::store::{
    Key, Object, OpenError, Recovered,
    object::{Meter, Rendered},
    state::{Committed, Restored},
    table::Version,
};

/// The way in which data is kept. A change that old programs cannot read needs another number.
const FORMAT: u64 = 1;
/// The cache size of the database: objects are read once, at the start.
const CACHE: usize = 4 << 20;
/// How many revisions are skipped after a crash: more than can have been given out without reaching the disk, so that no
/// revision that a client may have seen is reused with another meaning.
const SKIPPED: u64 = 2 * PENDING as u64;
/// How many bytes at the start of a file identify it.
const START: u64 = 512;
/// The deepest nesting of an object that is believed.
const DEPTH: usize = 1024;

/// Resource, namespace, name.
type Place = (&'static str, &'static str, &'static str);
/// Revision, expiry, where members other than the type begin, JSON.
type Record = (u64, Option<i64>, u32, &'static [u8]);

const OBJECTS: TableDefinition<'_, Place, Record> = TableDefinition::new("objects");
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
/// The number of the format.
const FORMAT_FACT: &str = "format";
/// The last revision that was written.
const REVISION_FACT: &str = "revision";
/// One when nothing came after that revision.
const CLOSED_FACT: &str = "closed";

/// An open database file.
#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    database: redb::Database,
}

impl Database {
    /// Makes a database in an empty file, and brings it to disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn create(path: &Path, file: File) -> Result<(), OpenError> {
        let made = Self::open_any(path, file)?;
        made.begin().map_err(|error| damaged(path, &error))?;
        made.database.close().map_err(|error| damaged(path, &redb::Error::from(error)))
    }

    /// Opens a file that [`create`](Self::create) made; checks all of it.
    ///
    /// # Errors
    /// When it is in use, empty, cut off, damaged, of another format or no database at all.
    pub(crate) fn open(path: &Path, file: File) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        let mut start = Vec::new();
        (&file).take(START).read_to_end(&mut start).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        if let Some(error) = recognise::refuse(path, &start, length) {
            return Err(error);
        }
        let opened = Self::open_any(path, file).and_then(|database| database.check_format().map(|()| database));
        opened.map_err(|error| match error {
            // The damage may only be that the rest of the file is missing.
            OpenError::Damaged { .. } => recognise::cut_off(path, &start, length).unwrap_or(error),
            OpenError::Io { ref source, .. } if source.kind() == std::io::ErrorKind::UnexpectedEof => {
                recognise::cut_off(path, &start, length).unwrap_or(error)
            }
            error => error,
        })
    }

    fn open_any(path: &Path, file: File) -> Result<Self, OpenError> {
        let failed = |error: DatabaseError| match error {
            DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
                OpenError::InUse { path: path.to_owned() }
            }
            DatabaseError::Storage(StorageError::Io(source)) if source.kind() != std::io::ErrorKind::InvalidData => {
                OpenError::Io { path: path.to_owned(), source }
            }
            other => damaged(path, &other),
        };
        let mut builder = redb::Database::builder();
        builder.set_cache_size(CACHE).set_check_integrity_on_open(true);
        let database =
            FileBackend::new(file).and_then(|backend| builder.create_with_backend(backend)).map_err(failed)?;
        Ok(Self { path: path.to_owned(), database })
    }

    fn check_format(&self) -> Result<(), OpenError> {
        let damaged = |error: redb::Error| damaged(&self.path, &error);
        match self.format().map_err(damaged)? {
            Some(FORMAT) => Ok(()),
            Some(found) => Err(OpenError::Format { path: self.path.clone(), found, supported: FORMAT }),
            None => {
                Err(OpenError::Foreign { path: self.path.clone(), what: "it is a database of another program".into() })
            }
        }
    }

    /// The format of the file, or `None` if it is not one of this program.
    fn format(&self) -> Result<Option<u64>, redb::Error> {
        let transaction = self.database.begin_read()?;
        let facts = match transaction.open_table(FACTS) {
            Ok(facts) => facts,
            Err(TableError::TableDoesNotExist(_) | TableError::TableTypeMismatch { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(facts.get(FORMAT_FACT)?.map(|format| format.value()))
    }

    /// Writes what an empty database holds.
    fn begin(&self) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut facts = transaction.open_table(FACTS)?;
            facts.insert(FORMAT_FACT, FORMAT)?;
            facts.insert(REVISION_FACT, 1)?;
            facts.insert(CLOSED_FACT, 1)?;
            transaction.open_table(OBJECTS)?;
        }
        Ok(transaction.commit()?)
    }

    /// Everything that is kept.
    ///
    /// # Errors
    /// If the file cannot be read, or does not hold objects.
    pub(crate) fn load(&self) -> Result<Restored, OpenError> {
        self.read().map_err(|error| damaged(&self.path, &error))?.map_err(|what| damaged(&self.path, &what))
    }

    fn read(&self) -> Result<Result<Restored, String>, redb::Error> {
        let transaction = self.database.begin_read()?;
        let facts = transaction.open_table(FACTS)?;
        let fact = |name| Ok::<_, redb::Error>(facts.get(name)?.map_or(0, |value| value.value()));
        let (revision, closed) = (fact(REVISION_FACT)?, fact(CLOSED_FACT)? == 1);
        let meter = Arc::new(Meter::default());
        let mut resources: HashMap<String, Arc<str>> = HashMap::new();
        let mut objects = Vec::new();
        for entry in transaction.open_table(OBJECTS)?.iter()? {
            let (place, record) = entry?;
            let (resource, namespace, name) = place.value();
            let (written, expires, rest, json) = record.value();
            let Ok(rest) = usize::try_from(rest) else { continue };
            if written > revision || !is_sound(json) || json.get(rest..).is_none() {
                return Ok(Err(format!("the record of {resource} {namespace}/{name} is wrong")));
            }
            let resource = resources.entry(resource.to_owned()).or_insert_with(|| resource.into());
            let rendered = Rendered { bytes: Bytes::copy_from_slice(json), rest };
            let object = Arc::new(Object::from_rendered(rendered, written, &meter));
            objects
                .push((Key::new(Arc::clone(resource), namespace, name), Version { object, deleted: false, expires }));
        }
        let recovered = (!closed).then(|| Recovered { path: self.path.clone(), objects: objects.len(), revision });
        let revision = if closed { revision } else { revision.saturating_add(SKIPPED) };
        Ok(Ok(Restored { revision, objects, meter, recovered }))
    }

    fn commit(&self, changes: &[Committed]) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            // Of several changes to one object only the last one matters.
            let last: HashMap<&Key, &Version> = changes.iter().map(|change| (&change.key, &change.version)).collect();
            for (key, version) in last {
                let place = (&*key.resource, &*key.namespace, &*key.name);
                match version.present() {
                    Some(object) => {
                        let Rendered { bytes, rest } = object.rendered();
                        let rest = u32::try_from(*rest).unwrap_or_default();
                        objects.insert(place, (version.revision(), version.expires, rest, bytes.as_ref()))?;
                    }
                    None => {
                        objects.remove(place)?;
                    }
                }
            }
            let mut facts = transaction.open_table(FACTS)?;
            if let Some(last) = changes.last() {
                facts.insert(REVISION_FACT, last.version.revision())?;
            }
            facts.insert(CLOSED_FACT, 0)?;
        }
        Ok(transaction.commit()?)
    }

    fn finish(self, revision: u64) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut facts = transaction.open_table(FACTS)?;
            facts.insert(REVISION_FACT, revision)?;
            facts.insert(CLOSED_FACT, 1)?;
        }
        transaction.commit()?;
        Ok(self.database.close()?)
    }
}

impl Disk for Database {
    fn path(&self) -> &Path {
        &self.path
    }

    fn write(&mut self, changes: &[Committed]) -> Result<(), String> {
        self.commit(changes).map_err(|error| error.to_string())
    }

    fn close(self: Box<Self>, revision: u64) -> Result<(), String> {
        self.finish(revision).map_err(|error| error.to_string())
    }
}

fn damaged(path: &Path, what: &impl ToString) -> OpenError {
    OpenError::Damaged { path: path.to_owned(), what: what.to_string() }
}

/// Whether this is JSON of an object that is not nested without end.
fn is_sound(json: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH {
            return false;
        }
    }
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    deserializer.disable_recursion_limit();
    <serde::de::IgnoredAny as serde::Deserialize>::deserialize(&mut deserializer).is_ok() && deserializer.end().is_ok()
}
