//! Whose a directory is, and who has rights to it.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// Why a directory is not used as a cache. Whoever may write to it could put in what others then run or install.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The path leads elsewhere.
    #[error("{} is a symbolic link; name the directory that it leads to", .0.display())]
    Link(PathBuf),
    /// The path is a file or something else.
    #[error("{} is not a directory; name another one", .0.display())]
    NotADirectory(PathBuf),
    /// It belongs to somebody else.
    #[error(
        "{} belongs to the user {owner}, and this process runs as the user {user}; run `chown {user} {}`, or name another directory",
        .path.display(), .path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The user whom it belongs to.
        owner: u32,
        /// The user who asks.
        user: u32,
    },
    /// Others may write to it.
    #[error(
        "others may write to {} (mode {mode:04o}); run `chmod go-w {}` if you trust what is in it, or name a directory in it",
        .path.display(), .path.display()
    )]
    Writable {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

/// What is known of a directory. Pure, so that every combination can be tested.
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

/// Makes a directory with mode 0700 where there is none, its parents as well. One that is there must be this user's and
/// writable to nobody else; where others may read it, that right is taken away.
///
/// # Errors
/// It cannot be made or looked at, or is [`Unfit`], which is then the source of an error of the kind `PermissionDenied`.
pub fn directory(path: &Path) -> io::Result<()> {
    if root(path)? & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Like [`directory`], but leaves the rights to read it as they are: it may be somebody's mount point. What is secret must
/// then lie in directories below it, or in files that have rights of their own. Returns the mode.
///
/// # Errors
/// As of [`directory`].
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
    fn only_what_is_ours_alone_will_do() {
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
                    "others may write to /c (mode 0775); run `chmod go-w /c` if you trust what is in it, or name a directory in it",
                ),
            ),
            (
                Facts { mode: 0o41777, ..fit },
                Some(
                    "others may write to /c (mode 1777); run `chmod go-w /c` if you trust what is in it, or name a directory in it",
                ),
            ),
        ] {
            assert_eq!(message(facts).as_deref(), expected, "{facts:?}");
        }
    }

    #[test]
    fn the_directory_of_another_user_is_refused_although_all_may_only_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut path = directory.path().join("cache");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        // Only root can give a directory away; for everybody else that of root is another user's.
        if std::os::unix::fs::chown(&path, Some(65534), None).is_err() {
            path = PathBuf::from("/");
        }
        let error = super::directory(&path).unwrap_err().to_string();
        assert!(error.contains("belongs to the user") && error.contains("chown"), "{error}");
    }

    #[test]
    fn a_link_is_no_directory_and_rights_of_others_to_read_are_taken_away() {
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
