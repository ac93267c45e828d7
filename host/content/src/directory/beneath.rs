//! Opening what lies below a directory, and nothing else.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::EntryProblem;

/// As many links as Linux follows in one path.
const LINKS: usize = 40;

/// A directory that is open.
pub(super) struct Beneath {
    root: OwnedFd,
    path: PathBuf,
    /// Whether to do without `openat2`, as on kernels before 5.6 and where a sandbox forbids it.
    stepwise: bool,
}

impl Beneath {
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        let root = rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, path: path.canonicalize()?, stepwise: false })
    }

    /// Where it lay when it was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a path of names; the empty one is the directory. `ELOOP` or `ENOTDIR` where one of them is a link by now.
    pub(super) fn open(&self, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        if self.stepwise {
            return self.open_stepwise(path, flags);
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM) => self.open_stepwise(path, flags),
            result => result,
        }
    }

    /// Opens one component of the path at a time.
    fn open_stepwise(&self, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut below: Option<OwnedFd> = None;
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            let (Component::Normal(_) | Component::CurDir) = name else { return Err(Errno::XDEV) };
            let flags = if names.peek().is_some() { step } else { flags };
            let at = below.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
            below = Some(rustix::fs::openat(at, name.as_os_str(), flags, Mode::empty())?);
        }
        below.ok_or(Errno::NOENT)
    }

    /// The text of a link, given the path of names at which it lies.
    fn read_link(&self, path: &Path) -> rustix::io::Result<PathBuf> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        let parent = self.open(parent, OFlags::PATH | OFlags::DIRECTORY)?;
        let text = rustix::fs::readlinkat(&parent, name, Vec::new())?;
        Ok(OsString::from_vec(text.into_bytes()).into())
    }

    /// The text of a link for a message; another one where it cannot be read.
    pub(super) fn text(&self, link: &Path, otherwise: String) -> String {
        self.read_link(link).map_or(otherwise, |text| text.to_string_lossy().into_owned())
    }

    /// The path to which a link leads, through further links if there are any. Even if these change afterwards, a file that is
    /// opened at that path is inside the directory.
    pub(super) fn resolve(&self, link: &Path) -> Result<PathBuf, EntryProblem> {
        let text = self.text(link, String::new());
        let mut links = 0;
        let mut reached = PathBuf::new();
        // The last one is the next.
        let mut ahead: Vec<OsString> = parts(link).collect();
        while let Some(part) = ahead.pop() {
            if part == ".." {
                if !reached.pop() {
                    return Err(EntryProblem::LinkLeaves(text));
                }
                continue;
            }
            let next = reached.join(&part);
            match self.read_link(&next) {
                Ok(target) => {
                    links += 1;
                    if links > LINKS {
                        return Err(EntryProblem::LinkLoop(text));
                    }
                    let target = match target.strip_prefix(&self.path) {
                        Ok(inside) => {
                            reached.clear();
                            inside.to_owned()
                        }
                        Err(_) if target.is_absolute() => return Err(EntryProblem::LinkLeaves(text)),
                        Err(_) => target,
                    };
                    ahead.extend(parts(&target));
                }
                Err(Errno::INVAL) => reached = next,
                Err(Errno::NOENT | Errno::NOTDIR) => return Err(EntryProblem::LinkDangling(text)),
                Err(_) => return Err(EntryProblem::Changed),
            }
        }
        Ok(reached)
    }
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    let named = path.components().rev().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    named.map(|part| OsStr::to_owned(part.as_os_str()))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn both_ways_open_the_same_and_follow_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "inside").unwrap();
        fs::write(directory.path().join("secret"), "outside").unwrap();
        symlink("b", root.join("a/link")).unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink(root.join("a"), root.join("absolute")).unwrap();
        let mut beneath = Beneath::at(&root).unwrap();
        for stepwise in [false, true] {
            beneath.stepwise = stepwise;
            let open = |path: &str| beneath.open(Path::new(path), OFlags::RDONLY).map(drop);
            for path in ["", "a", "a/b", "a/b/file"] {
                assert_eq!(open(path), Ok(()), "{path}");
            }
            for (path, errors) in [
                ("a/link", &[Errno::LOOP][..]),
                ("a/link/file", &[Errno::LOOP, Errno::NOTDIR]),
                ("out", &[Errno::LOOP]),
                ("absolute/b", &[Errno::LOOP, Errno::NOTDIR]),
                ("../secret", &[Errno::XDEV]),
                ("/etc/passwd", &[Errno::XDEV]),
                ("none", &[Errno::NOENT]),
            ] {
                let error = open(path).unwrap_err();
                assert!(errors.contains(&error), "{path}: {error}");
            }
            let resolve = |path: &str| beneath.resolve(Path::new(path));
            assert_eq!(resolve("a/link"), Ok("a/b".into()));
            assert_eq!(resolve("absolute/link/file"), Ok("a/b/file".into()));
            assert_eq!(resolve("a/../a/link/../b/file"), Ok("a/b/file".into()));
            assert_eq!(resolve("out"), Err(EntryProblem::LinkLeaves("../secret".to_owned())));
        }
    }
}
