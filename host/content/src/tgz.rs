//! Content as an archive.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Seek, Write},
    path::Path,
};

use chandler_core::{Content, Entry};
use flate2::{Compression, GzBuilder};
use tempfile::NamedTempFile;

use crate::{
    ContentError, Store, StoreError,
    store::{FILE, Room},
};

/// The number of files that are listed at once, and the bytes that are read at once.
const PAGE: usize = 1024;
const CHUNK: usize = 256 << 10;

impl Store {
    /// A new file for content that is being received. It is removed when it is dropped, and after a crash. Blocks on the disk.
    ///
    /// # Errors
    /// The disk fails.
    pub fn temporary_file(&self) -> Result<TemporaryFile, StoreError> {
        let lock = self.lock_for_writing()?;
        let room = self.room();
        room.take(FILE)?;
        let directory = self.work();
        let file = NamedTempFile::new_in(&directory).map_err(StoreError::at("create a file in", directory))?;
        Ok(TemporaryFile { file, room, _lock: lock })
    }

    /// Files as tar, compressed with gzip: the same bytes whenever this version writes the same files, since it has no
    /// times, owners or modes of its own. Paths begin with `below`, unless it is empty. The file has no name, and takes no space
    /// once it is closed. Blocks on the disk.
    ///
    /// # Errors
    /// The disk or the cache is full, or the disk fails.
    pub fn archived(&self, content: &dyn Content, below: &str) -> Result<ArchivedContent, StoreError> {
        let directory = self.work();
        let room = self.room();
        room.take(FILE)?;
        let write = || {
            let mut file = tempfile::tempfile_in(&directory)?;
            write(content, Path::new(below), BufWriter::new(Counted { file: &mut file, room: &room }))?;
            file.rewind()?;
            Ok(file)
        };
        let file = write().map_err(StoreError::at("write an archive in", &directory))?;
        Ok(ArchivedContent { file, _room: room })
    }
}

/// An archive in a file without a name, whose space is free once this is dropped.
#[derive(Debug)]
pub struct ArchivedContent {
    file: File,
    _room: Room,
}

impl ArchivedContent {
    /// Its length in bytes.
    ///
    /// # Errors
    /// The disk fails.
    pub fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// The file alone, for processes that end with it: its space no longer counts.
    pub fn into_file(self) -> File {
        self.file
    }
}

impl Read for ArchivedContent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Seek for ArchivedContent {
    fn seek(&mut self, position: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

/// Takes room before each write.
struct Counted<'a> {
    file: &'a mut File,
    room: &'a Room,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room.take(bytes.len() as u64).map_err(|error| error.source)?;
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file in the cache directory that is removed when this is dropped.
#[derive(Debug)]
pub struct TemporaryFile {
    file: NamedTempFile,
    /// What the file takes. Dropped after it.
    room: Room,
    /// A shared lock, so that no process removes the file as a leftover. Dropped last.
    _lock: File,
}

impl TemporaryFile {
    /// Where the file is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Writes all of these bytes, and removes other content before if the cache is full, without blocking the caller's thread for that.
    ///
    /// # Errors
    /// The cache or the disk is full, or the disk fails.
    pub async fn append(&mut self, bytes: &[u8]) -> Result<(), ContentError> {
        self.room.take_for(bytes.len() as u64).await?;
        // A write into the page cache; the thread is not worth a switch.
        let written = self.file.write_all(bytes);
        Ok(written.map_err(StoreError::at("write to", self.file.path()))?)
    }
}

impl Write for TemporaryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room.take(bytes.len() as u64).map_err(|error| error.source)?;
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn write(content: &dyn Content, below: &Path, to: impl Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(GzBuilder::new().mtime(0).write(to, Compression::default()));
    let mut after: Option<String> = None;
    loop {
        let page = content.entries("", after.as_deref(), PAGE);
        let Some(last) = page.last() else { break };
        after = Some(last.path.clone());
        for entry in &page {
            let mut header = tar::Header::new_gnu();
            header.set_size(entry.size);
            header.set_mode(0o644);
            header.set_mtime(0);
            archive.append_data(&mut header, below.join(&entry.path), FileReader { content, entry, offset: 0 })?;
        }
    }
    archive.into_inner()?.finish()?.flush()
}

/// Reads one file.
struct FileReader<'a> {
    content: &'a dyn Content,
    entry: &'a Entry,
    offset: u64,
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes =
            self.content.read(&self.entry.path, self.offset, buffer.len().min(CHUNK)).map_err(io::Error::other)?;
        buffer.get_mut(..bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(&bytes);
        self.offset = self.offset.saturating_add(bytes.len() as u64);
        Ok(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{FileSet, Limits};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn an_archive_has_the_same_files_and_the_same_bytes_each_time(
            files in prop::collection::btree_map("[a-zä ]{1,90}(/[a-z.-]{1,90}x){0,3}", prop::collection::vec(any::<u8>(), 0..2000), 0..6)
        ) {
            // A file cannot be a directory as well.
            let files: BTreeMap<String, Vec<u8>> = files
                .iter()
                .filter(|(path, _)| !files.keys().any(|other| other.starts_with(&format!("{path}/"))))
                .map(|(path, bytes)| (path.clone(), bytes.clone()))
                .collect();
            let directory = tempfile::tempdir().unwrap();
            let store = Store::open(directory.path(), Limits::default()).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let sets = files.into_iter().map(|(path, bytes)| {
                let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
                let files = [(name.to_owned(), bytes)].into();
                FileSet { source: "test".to_owned(), directory: directory.to_owned(), files }
            });
            let tree = runtime.block_on(store.import_files(sets.collect())).unwrap();
            let bytes = |mut file: ArchivedContent| {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).unwrap();
                bytes
            };
            let archive = bytes(store.archived(&tree, "").unwrap());
            prop_assert_eq!(&bytes(store.archived(&tree, "").unwrap()), &archive);
            let mut file = store.temporary_file().unwrap();
            file.write_all(&archive).unwrap();
            let again = runtime.block_on(store.import_archive(file.path())).unwrap();
            prop_assert_eq!(again.digest(), tree.digest());
        }
    }
}
