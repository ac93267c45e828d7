//! Components that harmed the compiler: they are not compiled again at every attempt.
//!
//! What is known is kept in memory and, where there is a code cache, in files beside the code, so that a restart does not
//! begin anew. Another digest is another component; another version of Chandler, or an engine with another configuration,
//! may do better; and after a while the cause may have been the machine.

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use chandler_core::Digest;
use serde::{Deserialize, Serialize};

use crate::text::tame;

/// After what time a component is tried again.
pub(crate) const PERIOD: Duration = Duration::from_hours(1);

/// The most components that are remembered, in memory and on disk.
const MOST: usize = 100;

/// How the names of the files end.
const SUFFIX: &str = ".quarantine";

const FILE_BYTES: u64 = 16 << 10;

/// What is kept of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// What happened, as it is told.
    problem: String,
    /// Seconds since 1970.
    since: u64,
}

/// The components that are not compiled for now.
pub(crate) struct Quarantine {
    /// Where entries are kept; none keeps them in memory only.
    directory: Option<PathBuf>,
    /// Tells the entries of this version and configuration from others.
    edition: String,
    entries: Mutex<HashMap<Digest, Entry>>,
}

impl Quarantine {
    /// `fingerprint` is what code must have in common to be exchanged.
    pub(crate) fn new(directory: Option<PathBuf>, fingerprint: [u8; 32]) -> Self {
        let fingerprint = hex::encode(fingerprint);
        let short = fingerprint.get(..16).unwrap_or(&fingerprint);
        let edition = format!("{short}-{}", env!("CARGO_PKG_VERSION"));
        Self { directory, edition, entries: Mutex::default() }
    }

    /// What happened to the compiler with this component, if that was not long ago.
    pub(crate) fn problem(&self, component: &Digest, now: SystemTime) -> Option<String> {
        let entry = self.entries().get(component).cloned().or_else(|| self.read(component))?;
        let since = UNIX_EPOCH.checked_add(Duration::from_secs(entry.since))?;
        // What happened in the future, the clock was wrong about.
        let fresh = now.duration_since(since).is_ok_and(|age| age < PERIOD);
        fresh.then(|| tame(entry.problem, 4096))
    }

    /// Remembers what happened.
    pub(crate) fn add(&self, component: &Digest, problem: String, now: SystemTime) {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let entry = Entry { problem, since };
        if let Some(path) = self.path(component)
            && let Ok(text) = serde_json::to_vec(&entry)
            && let Err(error) = chandler_cache::write(&path, &[&text], true, true)
        {
            tracing::warn!(digest = %component.short(), %error, "failed to keep what the compiler failed on");
        }
        self.prune();
        let mut entries = self.entries();
        if entries.len() >= MOST
            && let Some(oldest) = entries.iter().min_by_key(|(_, entry)| entry.since).map(|(digest, _)| digest.clone())
        {
            entries.remove(&oldest);
        }
        entries.insert(component.clone(), entry);
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, HashMap<Digest, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, component: &Digest) -> Option<Entry> {
        let bytes = chandler_cache::read(&self.path(component)?, FILE_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn path(&self, component: &Digest) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(format!("{}-{}{SUFFIX}", component.hex(), self.edition)))
    }

    /// Removes the oldest files above the bound.
    fn prune(&self) {
        let Some(Ok(listing)) = self.directory.as_ref().map(fs::read_dir) else { return };
        let file = |entry: std::io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            let ours = entry.file_name().to_string_lossy().ends_with(SUFFIX);
            ours.then_some((entry.metadata().ok()?.modified().ok()?, entry.path()))
        };
        let mut files: Vec<_> = listing.filter_map(file).collect();
        files.sort();
        let above = files.len().saturating_sub(MOST);
        for (_, path) in files.into_iter().take(above) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_holds_for_its_digest_edition_and_time() {
        let directory = tempfile::tempdir().unwrap();
        let open = |fingerprint| Quarantine::new(Some(directory.path().to_owned()), [fingerprint; 32]);
        let (bad, other) = (Digest::of(b"bad"), Digest::of(b"other"));
        let now = SystemTime::now();
        let first = open(1);
        first.add(&bad, "it hung".into(), now);
        for quarantine in [&first, &open(1)] {
            assert_eq!(quarantine.problem(&bad, now + Duration::from_mins(59)).as_deref(), Some("it hung"));
            assert_eq!(quarantine.problem(&bad, now + Duration::from_mins(61)), None, "it is tried again");
            assert_eq!(quarantine.problem(&bad, now - Duration::from_mins(1)), None, "the clock was wrong");
            assert_eq!(quarantine.problem(&other, now), None);
        }
        assert_eq!(open(2).problem(&bad, now), None, "another engine may do better");
    }

    #[test]
    fn what_is_kept_is_bounded_and_garbage_is_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let quarantine = Quarantine::new(Some(directory.path().to_owned()), [1; 32]);
        let now = SystemTime::now();
        for index in 0..MOST + 5 {
            quarantine.add(&Digest::of(&index.to_le_bytes()), "x".into(), now);
        }
        assert_eq!(quarantine.entries().len(), MOST);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), MOST);
        let odd = Digest::of(b"odd");
        fs::write(quarantine.path(&odd).unwrap(), "garbage").unwrap();
        assert_eq!(quarantine.problem(&odd, now), None);
    }
}
