//! Reading files that somebody else wrote, up to a limit; and files that decide who is trusted.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::CommandError;

/// A whole file, if it is no longer than `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_from(File::open(path)?, limit)
}

/// A whole file that holds credentials or names whom to trust, if nobody but its owner can have written it.
///
/// Whoever can write a token chooses it; whoever can write a kubeconfig or the credentials of registries has commands of theirs run.
/// Pipes and terminals (`<(…)`, `/dev/stdin`) are read as they are.
pub fn read_trusted(path: &Path, limit: u64) -> Result<Vec<u8>, TrustedError> {
    let failed = |source| TrustedError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    // Of what is open, so that nothing comes in its place between the check and the reading.
    let metadata = file.metadata().map_err(failed)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if metadata.is_file() && mode & 0o022 != 0 {
        return Err(TrustedError::Exposed { path: path.to_owned(), mode });
    }
    let owner = metadata.uid();
    // Files of the machine's user are another one's for the root of a container.
    let me = rustix::process::geteuid().as_raw();
    if metadata.is_file() && ![0, me].contains(&owner) && me != 0 {
        return Err(TrustedError::Owner { path: path.to_owned(), owner });
    }
    read_from(file, limit).map_err(failed)
}

/// A whole file with a token, if nobody but its owner can have written it, or put another one in its place.
///
/// Whoever can write a directory can replace the files in it, unless its sticky bit is set, as that of `/tmp` is.
pub fn read_token(path: &Path, limit: u64) -> Result<Vec<u8>, TrustedError> {
    let bytes = read_trusted(path, limit)?;
    let failed = |source| TrustedError::Io { path: path.to_owned(), source };
    // Where a link leads, a file can be replaced, and where the link is, the link.
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
        /// What the system says.
        source: io::Error,
    },
    /// Others may write it.
    #[error("{} can be written by other users (mode {mode:04o}), so that they could choose what it holds", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Others may write the directory that holds it.
    #[error(
        "the directory {} can be written by other users (mode {mode:04o}), so that they could replace {}",
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
    /// It is another user's.
    #[error("{} belongs to the user with the ID {owner}, who could choose what it holds", path.display())]
    Owner {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
}

impl TrustedError {
    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl From<TrustedError> for CommandError {
    fn from(error: TrustedError) -> Self {
        let message = error.to_string();
        match error {
            TrustedError::Io { source, .. } => Self::usage(message).because(&source),
            TrustedError::Exposed { path, .. } => Self::usage(message)
                .hint(format!("run `chmod 600 {0}` and see that it holds what you wrote", path.display())),
            TrustedError::ExposedDirectory { path, directory, .. } => Self::usage(message).hint(format!(
                "run `chmod go-w {}` and see that {} holds what you wrote",
                directory.display(),
                path.display()
            )),
            TrustedError::Owner { path, .. } => {
                Self::usage(message).hint(format!("make a copy of your own: `install -m 600 {} FILE`", path.display()))
            }
        }
    }
}

/// All of a stream, if it is no longer than `limit` bytes.
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
    fn what_others_may_write_is_not_trusted() {
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
        error: FILE can be written by other users (mode 0777), so that they could choose what it holds
          hint: run `chmod 600 FILE` and see that it holds what you wrote
        ");
        assert!(read_trusted(&directory.path().join("none"), 10).unwrap_err().is_missing());
        // A link is judged by what it leads to.
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(read_trusted(&link, 10).unwrap_err(), TrustedError::Exposed { mode: 0o777, .. }));
    }

    #[test]
    fn a_token_that_others_may_replace_is_not_trusted() {
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
            assert_eq!(read_token(&link, 10).is_ok(), trusted, "{mode:o}, by a link from elsewhere");
        }
        let error = CommandError::from(read_token(&path, 10).unwrap_err()).to_string();
        insta::assert_snapshot!(error.replace(&*directory.path().to_string_lossy(), "HOME"), @r"
        error: the directory HOME/open can be written by other users (mode 2777), so that they could replace HOME/open/token
          hint: run `chmod go-w HOME/open` and see that HOME/open/token holds what you wrote
        ");
        // Where the link can be replaced, what it leads to does not help.
        fs::set_permissions(&open, Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(&own, Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(read_token(&link, 10).unwrap_err(), TrustedError::ExposedDirectory { mode: 0o777, .. }));
    }

    #[test]
    fn a_file_at_the_limit_is_read_and_a_longer_one_is_not() {
        assert_eq!(read_from(&b"abc"[..], 3).unwrap(), b"abc");
        assert_eq!(read_from(&b"abcd"[..], 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
