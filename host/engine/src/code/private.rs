//! Files that belong to this process alone.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use rustix::fs::{Mode, OFlags};

/// Makes a directory with mode 0700, or checks that the one that is there is this user's, and takes others' rights away.
pub(super) fn directory(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        return Err(refused("it is not a directory"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("it belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Reads a regular file of this user that no other may write, of at most `limit` bytes, following no link.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(refused("it is not a regular file"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
        return Err(refused("others than this user have rights to it"));
    }
    if metadata.len() > limit {
        return Err(refused("it is too large"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file with mode 0600 under a temporary name, then gives it its own; what was there is replaced if `replace` says
/// so, else it is an error of the kind `AlreadyExists`.
pub(super) fn write(path: &Path, parts: &[&[u8]], replace: bool) -> io::Result<()> {
    let directory = path.parent().ok_or_else(|| refused("it has no directory"))?;
    let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(directory)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.as_file().sync_all()?;
    if replace {
        file.persist(path)?
    } else {
        file.persist_noclobber(path)?
    };
    Ok(())
}

/// What the names of temporary files begin with.
pub(super) const TEMPORARY: &str = ".new-";

fn refused(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, problem)
}
