//! A directory on disk as a source, for the command line.
//!
//! A user who can write to the directory can replace a file with a link at any moment. The reader therefore never inspects a
//! path and then opens it: it opens each path below the file descriptor of the directory without following links, and inspects
//! the open file. It resolves the links that it accepts itself, by their text.

mod beneath;

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, OFlags},
    io::Errno,
};

use self::beneath::Beneath;
use crate::{
    ArchiveError, ContentError, EntryProblem, LimitExceeded, Limits, StoreError, path::entry_path,
    store::workspace::Workspace, tree::Stored, unpack::stored,
};

/// Whether an entry is left out: its path, and whether it is a directory or a link to one.
type LeavesOut<'a> = &'a mut dyn FnMut(&str, bool) -> bool;

/// Adds the files of a directory to the workspace, but for those that are left out. A link to a regular file inside the directory is
/// followed; the file gets the name of the link.
pub(crate) fn read(
    root: &Path,
    leaves_out: LeavesOut<'_>,
    work: &mut Workspace,
    limits: &Limits,
) -> Result<BTreeMap<String, Stored>, ContentError> {
    let beneath = Beneath::at(root).map_err(StoreError::at("open directory", root))?;
    let mut reader = Reader { root: beneath, leaves_out, work, limits, files: BTreeMap::new(), entries: 0, total: 0 };
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        directories.extend(reader.directory(&directory)?);
    }
    Ok(reader.files)
}

struct Reader<'a> {
    root: Beneath,
    leaves_out: LeavesOut<'a>,
    work: &'a mut Workspace,
    limits: &'a Limits,
    files: BTreeMap<String, Stored>,
    entries: usize,
    total: u64,
}

impl Reader<'_> {
    fn failed(&self, operation: &'static str, path: &Path) -> impl FnOnce(Errno) -> ContentError {
        let failed = StoreError::at(operation, self.root.path().join(path));
        |errno| failed(errno.into()).into()
    }

    /// Reads the entries of a directory. Returns its subdirectories, which are read later.
    fn directory(&mut self, path: &Path) -> Result<Vec<PathBuf>, ContentError> {
        let opened = self.root.open(path, OFlags::RDONLY | OFlags::DIRECTORY);
        let opened = opened.map_err(|errno| match errno {
            Errno::LOOP | Errno::NOTDIR => EntryProblem::Changed.at(path.as_os_str().as_bytes()).into(),
            errno => self.failed("list", path)(errno),
        })?;
        let list = Dir::read_from(&opened).map_err(self.failed("list", path))?;
        let mut below = Vec::new();
        for entry in list {
            let entry = entry.map_err(self.failed("list", path))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let location = path.join(OsStr::from_bytes(name.to_bytes()));
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let found = rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW);
                    FileType::from_raw_mode(found.map_err(self.failed("look at", &location))?.st_mode)
                }
                kind => kind,
            };
            let is_directory = match kind {
                FileType::Directory => true,
                // The file type behind the link matters only for what is left out; nothing is read through it.
                FileType::Symlink => rustix::fs::statat(&opened, name, AtFlags::empty())
                    .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory),
                _ => false,
            };
            if (self.leaves_out)(&location.to_string_lossy(), is_directory) {
                continue;
            }
            if self.entry(&location, kind)? {
                below.push(location);
            }
        }
        Ok(below)
    }

    /// Reads one entry. Returns whether it is a directory, which is not read here.
    fn entry(&mut self, location: &Path, kind: FileType) -> Result<bool, ContentError> {
        let name = location.as_os_str().as_bytes();
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(ArchiveError::from(LimitExceeded::Entries(self.limits.entries)).into());
        }
        let path = entry_path(name, self.limits).map_err(|problem| problem.at(name))?;
        let stored = match kind {
            FileType::Directory => return Ok(true),
            FileType::Symlink => self.link(location)?,
            FileType::RegularFile => self.file(location, name)?,
            kind => return Err(EntryProblem::Unsupported(special(kind)).at(name).into()),
        };
        self.total = self.total.saturating_add(stored.size);
        if self.total > self.limits.total_bytes {
            return Err(ArchiveError::from(LimitExceeded::TotalBytes(self.limits.total_bytes)).into());
        }
        self.files.insert(path, stored);
        Ok(false)
    }

    fn link(&mut self, link: &Path) -> Result<Stored, ContentError> {
        let name = link.as_os_str().as_bytes();
        let target = self.root.resolve(link).map_err(|problem| problem.at(name))?;
        self.file(&target, name)
    }

    /// Adds the file at a path without links. The name is for messages.
    fn file(&mut self, path: &Path, name: &[u8]) -> Result<Stored, ContentError> {
        // Without blocking, so that a fifo that takes the file's place cannot hang the reader.
        let opened = self.root.open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY);
        let mut file = match opened {
            Ok(opened) => File::from(opened),
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(EntryProblem::Changed.at(name).into()),
            Err(errno) => return Err(self.failed("open", path)(errno)),
        };
        let metadata: fs::Metadata = file.metadata().map_err(StoreError::at("look at", self.root.path().join(path)))?;
        if metadata.is_dir() {
            let text = path.to_string_lossy().into_owned();
            return Err(EntryProblem::LinkToDirectory(self.root.text(Path::new(OsStr::from_bytes(name)), text))
                .at(name)
                .into());
        }
        if !metadata.is_file() {
            return Err(EntryProblem::Unsupported("special file").at(name).into());
        }
        stored(self.work, &mut file, name, self.limits)
    }
}

fn special(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
        _ => "device",
    }
}
