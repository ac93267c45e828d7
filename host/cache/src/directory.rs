//! The owner and the mode of a cache directory.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// Why a directory is not used as a cache. A user who can write to it could insert content that others run or install.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The path leads elsewhere.
    #[error("{} is a symbolic link; name the directory that it leads to", .0.display())]
    Link(PathBuf),
    /// The path is a file or something else.
    #[error("{} is not a directory; name another one", .0.display())]
    NotADirectory(PathBuf),
    /// It belongs to another user.
    #[error(
        "{} belongs to the user {owner}, and this process runs as the user {user}; run `chown {user} {}`, or name another directory",
        .path.display(), .path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The owner.
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// Other users can write to it.
    #[error(
        "other users can write to {} (mode {mode:04o}); run `chmod go-w {}` if you trust its content, or name a directory in it",
        .path.display(), .path.display()
    )]
    Writable {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

/// The facts about a directory that [`check`] depends on. Pure, so that every combination can be tested.
#[derive(Clone, Copy, Debug)]
struct Facts {
    is_link: bool,
    is_directory: bool,
    owner: u32,
    mode: u32,
}

fn check(path: &Path, facts: Facts, user: u32) -> Result<(), Unfit> {
    let path = path.to_owned();
    if facts.is_link {
        return Err(Unfit::Link(path));
    }
    if !facts.is_directory {
        return Err(Unfit::NotADirectory(path));
    }
    if facts.owner != user {
        return Err(Unfit::Foreign { path, owner: facts.owner, user });
    }
    if facts.mode & 0o022 != 0 {
        return Err(Unfit::Writable { path, mode: facts.mode & 0o7777 });
    }
    Ok(())
}

/// Creates a directory and its parents with mode 0700. An existing directory must belong to this user and must not be writable
/// by other users. If other users can read it, this permission is removed.
///
/// # Errors
/// It cannot be created or inspected, or is [`Unfit`], which is then the source of an error of the kind `PermissionDenied`.
pub fn directory(path: &Path) -> io::Result<()> {
    if root(path)? & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Like [`directory`], but keeps the read permissions of other users, since the directory may be a mount point. Secrets must then
/// be in directories below it, or in files with restrictive modes. Returns the mode.
///
/// # Errors
/// The same as [`directory`].
pub fn root(path: &Path) -> io::Result<u32> {
    match DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let metadata = fs::symlink_metadata(path)?;
    let facts = Facts {
        is_link: metadata.is_symlink(),
        is_directory: metadata.is_dir(),
        owner: metadata.uid(),
        mode: metadata.mode(),
    };
    let checked = check(path, facts, rustix::process::geteuid().as_raw());
    checked.map_err(|unfit| io::Error::new(io::ErrorKind::PermissionDenied, unfit))?;
    Ok(metadata.mode())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_private_directory_of_this_user_is_accepted() {
        let fit = Facts { is_link: false, is_directory: true, owner: 7, mode: 0o40700 };
        let message = |facts: Facts| check(Path::new("/c"), facts, 7).err().map(|unfit| unfit.to_string());
        for (facts, expected) in [
            (fit, None),
            (Facts { mode: 0o40755, ..fit }, None),
            (
                Facts { is_link: true, is_directory: false, ..fit },
                Some("/c is a symbolic link; name the directory that it leads to"),
            ),
            (Facts { is_directory: false, ..fit }, Some("/c is not a directory; name another one")),
            (
                Facts { owner: 8, ..fit },
                Some(
                    "/c belongs to the user 8, and this process runs as the user 7; run `chown 7 /c`, or name another directory",
                ),
            ),
            (
                Facts { mode: 0o40775, ..fit },
                Some(
                    "other users can write to /c (mode 0775); run `chmod go-w /c` if you trust its content, or name a directory in it",
                ),
            ),
            (
                Facts { mode: 0o41777, ..fit },
                Some(
                    "other users can write to /c (mode 1777); run `chmod go-w /c` if you trust its content, or name a directory in it",
                ),
            ),
        ] {
            assert_eq!(message(facts).as_deref(), expected, "{facts:?}");
        }
    }

    #[test]
    fn the_directory_of_another_user_is_refused_even_if_it_is_read_only() {
        let directory = tempfile::tempdir().unwrap();
        let mut path = directory.path().join("cache");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        // Only root can change the owner. For any other user, `/` belongs to another user.
        if std::os::unix::fs::chown(&path, Some(65534), None).is_err() {
            path = PathBuf::from("/");
        }
        let error = super::directory(&path).unwrap_err().to_string();
        assert!(error.contains("belongs to the user") && error.contains("chown"), "{error}");
    }

    #[test]
    fn a_link_is_refused_and_read_permissions_of_other_users_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("a/b"), directory.path().join("link"));
        super::directory(&path).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o700, 0o700));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        super::directory(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(super::directory(&link).unwrap_err().to_string().contains("is a symbolic link"));
    }
}
