//! The cache of compiled code on disk, so that a restart does not compile again.
//!
//! A file holds an HMAC-SHA256 and the code. The MAC also covers the digest of the component and the fingerprint of the
//! engine, so one file cannot replace another. The key is stored beside the files and is readable only by this user; a
//! process that can read it could modify this process anyway. If anything is wrong with a file, the component is
//! compiled again and the file is replaced.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use chandler_cache::{Key, TAG_BYTES};
use chandler_core::Digest;

use super::Code;
use crate::EngineError;

/// The subdirectory of the configured cache directory.
const DIRECTORY: &str = "code";

/// The file that holds the key.
const KEY: &str = "key";

/// The suffix of code files.
const SUFFIX: &str = ".cwasm";

/// The domain separator of the MAC, which also names the file format.
const DOMAIN: &[u8] = b"chandler code cache 2";

/// The largest file.
const FILE_BYTES: u64 = 1 << 30;

/// The size above which the least recently used files are removed.
const TOTAL_BYTES: u64 = 2 << 30;

/// The age after which a temporary file was certainly left by a crash.
const STALE_AGE: Duration = Duration::from_hours(1);

/// The code cache.
pub(crate) struct CodeCache {
    directory: PathBuf,
    key: Key,
    fingerprint: [u8; 32],
    total_bytes: u64,
}

/// The result of a lookup.
pub(crate) enum Lookup {
    /// Code that this program wrote for this component and this engine.
    Hit(Code),
    /// No file.
    Miss,
    /// A file that cannot be read or trusted, and why.
    Rejected(String),
}

impl CodeCache {
    /// Opens the cache in a directory, and creates the cache and its key if they do not exist.
    pub(crate) fn open(directory: &Path, fingerprint: [u8; 32]) -> Result<Self, EngineError> {
        let directory = directory.join(DIRECTORY);
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| EngineError::Cache { path, problem: error.to_string() }
        };
        chandler_cache::directory(&directory).map_err(fail(&directory))?;
        let path = directory.join(KEY);
        let key = Key::open(&path).map_err(fail(&path))?;
        Ok(Self { directory, key, fingerprint, total_bytes: TOTAL_BYTES })
    }

    /// The directory of the files, which only this user can access.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The code of a component.
    pub(crate) fn load(&self, component: &Digest) -> Lookup {
        let path = self.path(component);
        let mut bytes = match chandler_cache::read(&path, FILE_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Lookup::Miss,
            Err(error) => return Lookup::Rejected(error.to_string()),
        };
        let Some((tag, code)) = bytes.split_at_checked(TAG_BYTES) else {
            return Lookup::Rejected("it is truncated".into());
        };
        if !self.key.verifies(&self.parts(component, code), tag) {
            return Lookup::Rejected("its MAC does not match".into());
        }
        bytes.drain(..TAG_BYTES);
        // The time of last use determines which files are removed first.
        if let Ok(file) = fs::File::open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        Lookup::Hit(Code(bytes))
    }

    /// Stores the code of a component.
    pub(crate) fn store(&self, component: &Digest, code: &Code) -> io::Result<()> {
        let tag = self.key.tag(&self.parts(component, code.bytes()));
        chandler_cache::write(&self.path(component), &[&tag, code.bytes()], true, true)?;
        self.prune()
    }

    fn path(&self, component: &Digest) -> PathBuf {
        let fingerprint = hex::encode(self.fingerprint);
        let short = fingerprint.get(..16).unwrap_or(&fingerprint);
        self.directory.join(format!("{}-{short}{SUFFIX}", component.hex()))
    }

    /// What the MAC of a file covers.
    fn parts<'a>(&'a self, component: &'a Digest, code: &'a [u8]) -> [&'a [u8]; 4] {
        [DOMAIN, component.as_str().as_bytes(), &self.fingerprint, code]
    }

    /// Removes the least recently used files until the rest fits, and temporary files that a crash left.
    fn prune(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let (name, metadata) = (entry.file_name(), entry.metadata()?);
            let used = metadata.modified()?;
            if name.to_string_lossy().ends_with(SUFFIX) {
                files.push((used, metadata.len(), entry.path()));
            } else if chandler_cache::is_left_over(&name, used, STALE_AGE) {
                remove(&entry.path())?;
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        // The newest file was just written; it stays, whatever its size.
        files.pop();
        for (_, size, path) in files {
            if total <= self.total_bytes {
                break;
            }
            remove(&path)?;
            total = total.saturating_sub(size);
        }
        Ok(())
    }
}

/// Removes a file; another process may have removed it already.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn open(directory: &Path) -> CodeCache {
        CodeCache::open(directory, [1; 32]).unwrap()
    }

    fn outcome(lookup: Lookup) -> String {
        match lookup {
            Lookup::Hit(code) => format!("hit {:?}", String::from_utf8_lossy(code.bytes())),
            Lookup::Miss => "miss".into(),
            Lookup::Rejected(why) => format!("rejected: {why}"),
        }
    }

    #[test]
    fn code_survives_a_restart_but_no_modification() {
        let directory = tempfile::tempdir().unwrap();
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        let cache = open(directory.path());
        cache.store(&one, &Code::compiled(b"code".to_vec())).unwrap();
        let again = open(directory.path());
        assert_eq!(outcome(again.load(&one)), "hit \"code\"");
        assert_eq!(outcome(again.load(&two)), "miss");

        // The file of another component.
        fs::copy(again.path(&one), again.path(&two)).unwrap();
        assert_eq!(outcome(again.load(&two)), "rejected: its MAC does not match");
        // An engine with another configuration.
        let other = CodeCache::open(directory.path(), [2; 32]).unwrap();
        assert_eq!(outcome(other.load(&one)), "miss");
        fs::copy(again.path(&one), other.path(&one)).unwrap();
        assert_eq!(outcome(other.load(&one)), "rejected: its MAC does not match");
        // A change of any bit or of the length is detected.
        let good = fs::read(again.path(&one)).unwrap();
        for change in 0..good.len() {
            let mut bad = good.clone();
            bad[change] ^= 1;
            fs::write(again.path(&one), bad).unwrap();
            assert_eq!(outcome(again.load(&one)), "rejected: its MAC does not match");
        }
        for length in 0..good.len() {
            fs::write(again.path(&one), &good[..length]).unwrap();
            assert!(outcome(again.load(&one)).starts_with("rejected"), "{length}");
        }
        cache.store(&one, &Code::compiled(b"code".to_vec())).unwrap();
        assert_eq!(outcome(again.load(&one)), "hit \"code\"");
    }

    #[test]
    fn only_private_files_are_trusted() {
        let directory = tempfile::tempdir().unwrap();
        let one = Digest::of(b"one");
        let cache = open(directory.path());
        cache.store(&one, &Code::compiled(b"code".to_vec())).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&cache.directory), 0o700);
        assert_eq!(mode(&cache.directory.join(KEY)), 0o600);
        assert_eq!(mode(&cache.path(&one)), 0o600);

        fs::set_permissions(cache.path(&one), fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(outcome(cache.load(&one)), "rejected: other users have access to it");
        fs::set_permissions(cache.path(&one), fs::Permissions::from_mode(0o600)).unwrap();
        let moved = directory.path().join("elsewhere");
        fs::rename(cache.path(&one), &moved).unwrap();
        std::os::unix::fs::symlink(&moved, cache.path(&one)).unwrap();
        assert!(outcome(cache.load(&one)).starts_with("rejected"));
        fs::remove_file(cache.path(&one)).unwrap();
        fs::rename(&moved, cache.path(&one)).unwrap();
        assert_eq!(outcome(cache.load(&one)), "hit \"code\"");

        // A key that other users could have read is replaced, which invalidates all files.
        fs::set_permissions(cache.directory.join(KEY), fs::Permissions::from_mode(0o640)).unwrap();
        let again = open(directory.path());
        assert_eq!(mode(&again.directory.join(KEY)), 0o600);
        assert_eq!(outcome(again.load(&one)), "rejected: its MAC does not match");
        assert!(CodeCache::open(&cache.directory.join(KEY), [1; 32]).is_err());
    }

    #[test]
    fn a_directory_of_another_user_or_behind_a_link_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real"), directory.path().join(DIRECTORY));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let refusal = || CodeCache::open(directory.path(), [1; 32]).err().unwrap().to_string();
        assert!(refusal().contains("is a symbolic link"), "{}", refusal());
        fs::remove_file(&link).unwrap();
        fs::create_dir(&link).unwrap();
        fs::set_permissions(&link, fs::Permissions::from_mode(0o775)).unwrap();
        assert!(refusal().contains("other users can write to"), "{}", refusal());
        fs::set_permissions(&link, fs::Permissions::from_mode(0o755)).unwrap();
        // Only root can give a directory away.
        if std::os::unix::fs::chown(&link, Some(65534), None).is_ok() {
            assert!(refusal().contains("belongs to the user 65534"), "{}", refusal());
        }
    }

    #[test]
    fn the_cache_stays_small() {
        let directory = tempfile::tempdir().unwrap();
        let mut cache = open(directory.path());
        cache.total_bytes = 250;
        let digests: Vec<Digest> = (0..4_u8).map(|index| Digest::of(&[index])).collect();
        for (age, digest) in digests.iter().enumerate() {
            cache.store(digest, &Code::compiled(vec![0; 68])).unwrap();
            let used = SystemTime::now() - Duration::from_secs(100 - age as u64);
            fs::File::open(cache.path(digest)).unwrap().set_modified(used).unwrap();
        }
        cache.prune().unwrap();
        let kept: Vec<bool> = digests.iter().map(|digest| matches!(cache.load(digest), Lookup::Hit(_))).collect();
        assert_eq!(kept, [false, false, true, true]);
    }
}
