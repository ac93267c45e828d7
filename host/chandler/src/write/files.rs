//! The files of a bundle on the disk.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use chandler_core::{Content, Entry};

use crate::CommandError;

/// The number of files that are listed at once.
const PAGE: usize = 1024;

/// All files of a bundle, by path.
pub fn entries(content: &dyn Content) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let after = all.last().map(|entry| entry.path.clone());
        let page = content.entries("", after.as_deref(), PAGE);
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// Writes the files of a bundle into a directory, which must be empty if it exists.
pub fn unpack(content: &dyn Content, directory: &Path) -> Result<(), CommandError> {
    create_empty(directory)?;
    for entry in entries(content) {
        // The path of an entry has no `..` and no leading slash: content with such paths does not exist.
        let path = directory.join(&entry.path);
        write(content, &entry, &path).map_err(|error| failed(&error, &path))?;
    }
    Ok(())
}

/// Writes files by path into a directory, which must be empty if it exists. The paths are relative and have no `..`.
pub fn write_all(files: &BTreeMap<String, impl AsRef<[u8]>>, directory: &Path) -> Result<(), CommandError> {
    create_empty(directory)?;
    for (path, bytes) in files {
        let path = directory.join(path);
        let parents = path.parent().map_or(Ok(()), fs::create_dir_all);
        parents.and_then(|()| fs::write(&path, bytes)).map_err(|error| failed(&error, &path))?;
    }
    Ok(())
}

fn create_empty(directory: &Path) -> Result<(), CommandError> {
    fs::create_dir_all(directory).map_err(|error| failed(&error, directory))?;
    let mut found = fs::read_dir(directory).map_err(|error| failed(&error, directory))?;
    if found.next().is_some() {
        return Err(CommandError::usage(format!("{} is not empty", directory.display()))
            .hint("name a directory that does not exist: nothing is overwritten"));
    }
    Ok(())
}

fn failed(error: &io::Error, path: &Path) -> CommandError {
    CommandError::failed(format!("failed to write {}", path.display())).because(error)
}

fn write(content: &dyn Content, entry: &Entry, path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let bytes = content.read_all(&entry.path).map_err(io::Error::other)?;
    File::create_new(path)?.write_all(&bytes)
}
