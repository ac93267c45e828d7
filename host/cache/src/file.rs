//! Files that only this user can read and write.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::{Duration, SystemTime},
};

use rustix::fs::{Mode, OFlags};

/// The prefix of the names of temporary files.
pub const TEMPORARY: &str = ".new-";

/// Whether a file of this name is a temporary one that a crash left: nothing was written to it for longer than `age`.
pub fn is_left_over(name: &OsStr, modified: SystemTime, age: Duration) -> bool {
    name.to_string_lossy().starts_with(TEMPORARY) && modified.elapsed().is_ok_and(|elapsed| elapsed > age)
}

/// Reads a regular file that only this user can access, of at most `limit` bytes, without following links.
///
/// # Errors
/// The file does not exist, is not such a file, or cannot be read.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(refused("it is not a regular file"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
        return Err(refused("other users have access to it"));
    }
    if metadata.len() > limit {
        return Err(refused("it is too large"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file with mode 0600 under a temporary name, then renames it. An existing file is replaced if `replace` is true;
/// otherwise the error has the kind `AlreadyExists`. With `sync`, the bytes are on the disk before the rename.
///
/// # Errors
/// The disk failed, or there is a file and `replace` is false.
pub fn write(path: &Path, parts: &[&[u8]], replace: bool, sync: bool) -> io::Result<()> {
    let directory = path.parent().ok_or_else(|| refused("it has no directory"))?;
    let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(directory)?;
    for part in parts {
        file.write_all(part)?;
    }
    if sync {
        file.as_file().sync_all()?;
    }
    if replace {
        file.persist(path)?
    } else {
        file.persist_noclobber(path)?
    };
    Ok(())
}

fn refused(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, problem)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn only_private_regular_files_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        write(&file, &[b"a", b"b"], false, false).unwrap();
        assert_eq!(read(&file, 2).unwrap(), b"ab");
        assert!(read(&file, 1).is_err());
        assert_eq!(write(&file, &[b"c"], false, true).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(read(&link, 9).is_err() && read(directory.path(), 9).is_err());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read(&file, 9).unwrap_err().to_string(), "other users have access to it");
        write(&file, &[b"c"], true, true).unwrap();
        assert_eq!(read(&file, 9).unwrap(), b"c");
    }
}
