//! The data directory, with everything that a server needs after a restart.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use crate::store::{Limits, OpenError, Store, disk::Database};

/// A directory for kept data: objects in `objects.redb`, secrets in a file each. All of it is for its owner only.
#[derive(Clone, Debug)]
pub struct DataDirectory {
    path: PathBuf,
}

impl DataDirectory {
    /// The file of the objects.
    const OBJECTS: &str = "objects.redb";
    /// The longest secret that is read, in bytes.
    const SECRET_LIMIT: u64 = 1 << 20;

    /// A directory, which is created if it does not exist.
    ///
    /// # Errors
    /// When it cannot be made, or others may write in it.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.and_then(|()| fs::metadata(path)).map_err(|source| failed(path, source)).and_then(|metadata| {
            check_mode(path, metadata.mode(), 0o022, 0o700)?;
            Ok(Self { path: path.to_owned() })
        })
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The stored objects; an empty store if there is no file yet. While the store is open, no other process can open it.
    ///
    /// # Errors
    /// When it is in use, empty, cut off, damaged, of another format or readable by others.
    pub fn store(&self, limits: Limits) -> Result<Store, OpenError> {
        let path = self.path.join(Self::OBJECTS);
        let open = || private().read(true).write(true).open(&path);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_objects(&path)?;
                open()
            }
            opened => opened,
        };
        let file = file.map_err(|source| failed(&path, source))?;
        check_file(&path, &file)?;
        Store::open(&path, file, limits)
    }

    /// Makes the file of the objects, all at once: whenever this is cut short, there is no such file or a whole one. So one that is
    /// empty or begins with zeros was not written by this program.
    fn make_objects(&self, path: &Path) -> Result<(), OpenError> {
        let next = self.path.join(format!("{}.{}.next", Self::OBJECTS, std::process::id()));
        let made = private().read(true).write(true).create(true).truncate(true).open(&next);
        Database::create(&next, made.map_err(|source| failed(&next, source))?)?;
        let linked = match fs::hard_link(&next, path) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        };
        linked
            .and_then(|()| fs::remove_file(&next))
            .and_then(|()| File::open(&self.path)?.sync_all())
            .map_err(|source| failed(path, source))
    }

    /// A secret that was [kept](Self::keep_secret).
    ///
    /// # Errors
    /// When it cannot be read, or others may read it.
    pub fn secret(&self, name: &str) -> Result<Option<String>, OpenError> {
        let path = self.path.join(name);
        let file = match private().read(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(failed(&path, source)),
        };
        check_file(&path, &file)?;
        let text =
            io::read_to_string(io::Read::take(file, Self::SECRET_LIMIT)).map_err(|source| failed(&path, source))?;
        if text.is_empty() {
            return Err(OpenError::Damaged { path, what: "the file is empty".to_owned() });
        }
        Ok(Some(text))
    }

    /// Keeps a secret, in place of an earlier one of that name: whatever happens, one of the two is there.
    ///
    /// The name is one of a file, without a path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_secret(&self, name: &str, text: &str) -> Result<(), OpenError> {
        let path = self.path.join(name);
        let next = self.path.join(format!("{name}.next"));
        let write = || {
            let mut file = private().write(true).create(true).truncate(true).open(&next)?;
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&next, &path)?;
            // So that the new name survives, too.
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|source| failed(&path, source))
    }
}

/// Where secrets come from that are made once: keys and tokens.
#[derive(Clone, Debug, Default)]
pub enum Secrets {
    /// Each start makes its own.
    #[default]
    Fresh,
    /// They are kept, so that they are the same after a restart.
    Kept(DataDirectory),
}

impl Secrets {
    /// The secret of a name; made, and kept where secrets are kept, when there is none.
    ///
    /// # Errors
    /// When it cannot be made, read or kept.
    pub fn get_or_make<E: From<OpenError>>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<String, E>,
    ) -> Result<String, E> {
        let Self::Kept(directory) = self else { return make() };
        if let Some(secret) = directory.secret(name)? {
            return Ok(secret);
        }
        let secret = make()?;
        directory.keep_secret(name, &secret)?;
        Ok(secret)
    }

    /// The error about an invalid secret.
    pub fn damaged(&self, name: &str, what: impl ToString) -> OpenError {
        let path = match self {
            Self::Fresh => PathBuf::from(name),
            Self::Kept(directory) => directory.path.join(name),
        };
        OpenError::Damaged { path, what: what.to_string() }
    }
}

/// Files for the owner only; links are not followed.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options
}

fn check_file(path: &Path, file: &File) -> Result<(), OpenError> {
    let metadata = file.metadata().map_err(|source| failed(path, source))?;
    check_mode(path, metadata.mode(), 0o077, 0o600)
}

fn check_mode(path: &Path, mode: u32, forbidden: u32, wanted: u32) -> Result<(), OpenError> {
    if mode & forbidden == 0 {
        return Ok(());
    }
    Err(OpenError::Exposed { path: path.to_owned(), mode: mode & 0o7777, wanted })
}

fn failed(path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { path: path.to_owned(), source }
}
