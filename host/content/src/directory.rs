//! A directory on disk as a source, for the command line.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::unix::{ffi::OsStrExt, fs::FileTypeExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::{
    ArchiveError, ContentError, EntryProblem, LimitExceeded, Limits, StoreError, path::entry_path,
    store::workspace::Workspace, tree::Stored, unpack::stored,
};

/// Puts the files of a directory into the workspace. A link is followed if it leads to a regular file inside; the names of
/// what is read are those in the directory, whatever they lead to.
pub(crate) fn read(
    root: &Path,
    work: &mut Workspace,
    limits: &Limits,
) -> Result<BTreeMap<String, Stored>, ContentError> {
    let root = fs::canonicalize(root).map_err(StoreError::at("open directory", root))?;
    let mut reader = Reader { root: root.clone(), work, limits, files: BTreeMap::new(), entries: 0, total: 0 };
    let mut directories = vec![root];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).map_err(StoreError::at("list", &directory))? {
            let entry = entry.map_err(StoreError::at("list", &directory))?;
            if let Some(below) = reader.entry(&entry)? {
                directories.push(below);
            }
        }
    }
    Ok(reader.files)
}

struct Reader<'a> {
    root: PathBuf,
    work: &'a mut Workspace,
    limits: &'a Limits,
    files: BTreeMap<String, Stored>,
    entries: usize,
    total: u64,
}

impl Reader<'_> {
    /// Reads one entry; a directory is returned, to be read later.
    fn entry(&mut self, entry: &fs::DirEntry) -> Result<Option<PathBuf>, ContentError> {
        let location = entry.path();
        let name = location.strip_prefix(&self.root).unwrap_or(&location).as_os_str().as_bytes().to_owned();
        let name = name.as_slice();
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(ArchiveError::from(LimitExceeded::Entries(self.limits.entries)).into());
        }
        let path = entry_path(name, self.limits).map_err(|problem| problem.at(name))?;
        let kind = entry.file_type().map_err(StoreError::at("look at", &location))?;
        let target = if kind.is_dir() {
            return Ok(Some(location));
        } else if kind.is_symlink() {
            self.link(&location).map_err(|problem| problem.at(name))?
        } else if kind.is_file() {
            location
        } else {
            return Err(EntryProblem::Unsupported(special(kind)).at(name).into());
        };
        let stored = self.file(&target, name)?;
        self.total = self.total.saturating_add(stored.size);
        if self.total > self.limits.total_bytes {
            return Err(ArchiveError::from(LimitExceeded::TotalBytes(self.limits.total_bytes)).into());
        }
        self.files.insert(path, stored);
        Ok(None)
    }

    fn file(&mut self, path: &Path, name: &[u8]) -> Result<Stored, ContentError> {
        // Without blocking, so that a fifo that takes the file's place cannot hang the reader.
        let opened = File::options().read(true).custom_flags(O_NONBLOCK).open(path);
        let mut file = opened.map_err(StoreError::at("open", path))?;
        if !file.metadata().map_err(StoreError::at("look at", path))?.is_file() {
            return Err(EntryProblem::Unsupported("special file").at(name).into());
        }
        stored(self.work, &mut file, name, self.limits)
    }

    fn link(&self, link: &Path) -> Result<PathBuf, EntryProblem> {
        let text = fs::read_link(link).map(|target| target.to_string_lossy().into_owned()).unwrap_or_default();
        match fs::canonicalize(link) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(EntryProblem::LinkDangling(text)),
            Err(_) => Err(EntryProblem::LinkLoop(text)),
            Ok(target) if !target.starts_with(&self.root) => Err(EntryProblem::LinkLeaves(text)),
            Ok(target) if target.is_dir() => Err(EntryProblem::LinkToDirectory(text)),
            Ok(target) => Ok(target),
        }
    }
}

/// `O_NONBLOCK` of Linux, for which alone this crate is built.
const O_NONBLOCK: i32 = 0o4000;

fn special(kind: fs::FileType) -> &'static str {
    if kind.is_fifo() {
        "fifo"
    } else if kind.is_socket() {
        "socket"
    } else {
        "device"
    }
}
