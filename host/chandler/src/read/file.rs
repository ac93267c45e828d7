//! Reads files up to a limit, and checks that no other user can write files that hold credentials.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::CommandError;

/// Reads a whole file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_from(File::open(path)?, limit)
}

/// Reads a whole file that holds credentials. Fails if a user other than its owner can write it.
///
/// A user who can write the token file chooses the token. A user who can write a kubeconfig or the registry credentials chooses
/// commands that this process runs. Pipes and terminals (`<(…)`, `/dev/stdin`) are not checked.
pub fn read_trusted(path: &Path, limit: u64) -> Result<Vec<u8>, TrustedError> {
    read_checked(path, limit, 0)
}

/// Reads a whole file with a private key. Fails if a user other than its owner can read or write it.
///
/// A user who can read the key signs with it. Pipes and terminals are not checked, as in [`read_trusted`].
///
/// # Errors
/// The file cannot be read, is longer than `limit` bytes, belongs to another user, or is open to other users.
#[cfg(feature = "dev")]
pub fn read_private(path: &Path, limit: u64) -> Result<Vec<u8>, TrustedError> {
    read_checked(path, limit, 0o077)
}

/// Reads a file that only its owner can write, and that has none of the permissions in `private`.
fn read_checked(path: &Path, limit: u64, private: u32) -> Result<Vec<u8>, TrustedError> {
    let failed = |source| TrustedError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    // The metadata of the open file, so that the file cannot be replaced between the check and the read.
    let metadata = file.metadata().map_err(failed)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if metadata.is_file() && mode & 0o022 != 0 {
        return Err(TrustedError::Exposed { path: path.to_owned(), mode });
    }
    if metadata.is_file() && mode & private != 0 {
        return Err(TrustedError::Readable { path: path.to_owned(), mode });
    }
    let owner = metadata.uid();
    // For root in a container, mounted files belong to the user of the machine.
    let me = rustix::process::geteuid().as_raw();
    if metadata.is_file() && ![0, me].contains(&owner) && me != 0 {
        return Err(TrustedError::Owner { path: path.to_owned(), owner });
    }
    read_from(file, limit).map_err(failed)
}

/// Reads a whole file with a token. Fails if a user other than its owner can write or replace it.
///
/// A user who can write a directory can replace the files in it, unless its sticky bit is set, as for `/tmp`.
pub fn read_token(path: &Path, limit: u64) -> Result<Vec<u8>, TrustedError> {
    let bytes = read_trusted(path, limit)?;
    let failed = |source| TrustedError::Io { path: path.to_owned(), source };
    // Both the link and its target can be replaced.
    let target = path.canonicalize().map_err(failed)?;
    if target.is_file() {
        for place in [path, &target] {
            let directory = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let mode = directory.metadata().map_err(failed)?.permissions().mode() & 0o7777;
            if mode & 0o022 != 0 && mode & 0o1000 == 0 {
                return Err(TrustedError::ExposedDirectory {
                    path: path.to_owned(),
                    directory: directory.to_owned(),
                    mode,
                });
            }
        }
    }
    Ok(bytes)
}

/// Why a file is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustedError {
    /// It cannot be read.
    #[error("failed to read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Other users can write it.
    #[error("{} can be written by other users (mode {mode:04o}), who could change its content", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Other users can use it, and it must be private.
    #[error("{} is open to other users (mode {mode:04o}), who could use the key in it", path.display())]
    Readable {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Other users can write its directory.
    #[error(
        "the directory {} can be written by other users (mode {mode:04o}), who could replace {}",
        directory.display(), path.display()
    )]
    ExposedDirectory {
        /// The file.
        path: PathBuf,
        /// The directory.
        directory: PathBuf,
        /// The mode of the directory.
        mode: u32,
    },
    /// It belongs to another user.
    #[error("{} belongs to the user with the ID {owner}, who could change its content", path.display())]
    Owner {
        /// The file.
        path: PathBuf,
        /// The user ID of the owner.
        owner: u32,
    },
}

impl TrustedError {
    /// Whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl From<TrustedError> for CommandError {
    fn from(error: TrustedError) -> Self {
        let message = error.to_string();
        match error {
            TrustedError::Io { source, path } => {
                Self::usage(message).because(&source).hint(format!("check the path: `ls -l {}`", path.display()))
            }
            TrustedError::Exposed { path, .. } => {
                Self::usage(message).hint(format!("run `chmod 600 {0}`, then check its content", path.display()))
            }
            TrustedError::Readable { path, .. } => Self::usage(message)
                .hint(format!("run `chmod 600 {}`; make another key if they may have read it", path.display())),
            TrustedError::ExposedDirectory { path, directory, .. } => Self::usage(message).hint(format!(
                "run `chmod go-w {}`, then check the content of {}",
                directory.display(),
                path.display()
            )),
            TrustedError::Owner { path, .. } => Self::usage(message)
                .hint(format!("copy it to a file of your own: `install -m 600 {} FILE`", path.display())),
        }
    }
}

/// Reads a whole stream of at most `limit` bytes.
pub fn read_from(stream: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("is longer than {limit} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    #[test]
    fn a_file_that_other_users_can_write_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        fs::write(&path, "abc").unwrap();
        for (mode, trusted) in
            [(0o600, true), (0o400, true), (0o644, true), (0o660, false), (0o602, false), (0o777, false)]
        {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_trusted(&path, 10).is_ok(), trusted, "{mode:o}");
        }
        let error = CommandError::from(read_trusted(&path, 10).unwrap_err()).to_string();
        insta::assert_snapshot!(error.replace(&*path.to_string_lossy(), "FILE"), @r"
        error: FILE can be written by other users (mode 0777), who could change its content
          hint: run `chmod 600 FILE`, then check its content
        ");
        assert!(read_trusted(&directory.path().join("none"), 10).unwrap_err().is_missing());
        // For a link, the mode of its target counts.
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(read_trusted(&link, 10).unwrap_err(), TrustedError::Exposed { mode: 0o777, .. }));
    }

    #[cfg(feature = "dev")]
    #[test]
    fn a_private_key_that_other_users_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key.pem");
        fs::write(&path, "abc").unwrap();
        for (mode, private) in
            [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o622, false), (0o644, false)]
        {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_private(&path, 10).is_ok(), private, "{mode:o}");
        }
        let error = CommandError::from(read_private(&path, 10).unwrap_err()).to_string();
        insta::assert_snapshot!(error.replace(&*path.to_string_lossy(), "FILE"), @r"
        error: FILE is open to other users (mode 0644), who could use the key in it
          hint: run `chmod 600 FILE`; make another key if they may have read it
        ");
    }

    #[test]
    fn a_token_file_that_other_users_can_replace_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (open, own) = (directory.path().join("open"), directory.path().join("own"));
        fs::create_dir(&open).unwrap();
        fs::create_dir(&own).unwrap();
        let (path, link) = (open.join("token"), own.join("link"));
        fs::write(&path, "abc").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for (mode, trusted) in [
            (0o700, true),
            (0o755, true),
            (0o1777, true),
            (0o1770, true),
            (0o775, false),
            (0o702, false),
            (0o2777, false),
        ] {
            fs::set_permissions(&open, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_token(&path, 10).is_ok(), trusted, "{mode:o}");
            assert_eq!(read_token(&link, 10).is_ok(), trusted, "{mode:o}, through a link in another directory");
        }
        let error = CommandError::from(read_token(&path, 10).unwrap_err()).to_string();
        insta::assert_snapshot!(error.replace(&*directory.path().to_string_lossy(), "HOME"), @r"
        error: the directory HOME/open can be written by other users (mode 2777), who could replace HOME/open/token
          hint: run `chmod go-w HOME/open`, then check the content of HOME/open/token
        ");
        // A link that can be replaced is refused whatever its target is.
        fs::set_permissions(&open, Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(&own, Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(read_token(&link, 10).unwrap_err(), TrustedError::ExposedDirectory { mode: 0o777, .. }));
    }

    #[test]
    fn a_stream_at_the_limit_is_read_and_a_longer_one_is_refused() {
        assert_eq!(read_from(&b"abc"[..], 3).unwrap(), b"abc");
        assert_eq!(read_from(&b"abcd"[..], 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
