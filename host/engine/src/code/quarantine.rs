//! Quarantine: components that crashed the compiler or exceeded its limits are not compiled again at every attempt.
//!
//! Entries are kept in memory and, if there is a code cache, in files beside the code, so that they survive a restart.
//! An entry applies to one component digest, one version of Chandler and one configuration of the engine. It expires,
//! because the machine may have been the cause, and ends when a user requests another try.

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use chandler_core::Digest;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::text::sanitize;

/// How long a component stays in quarantine.
pub(crate) const QUARANTINE_PERIOD: Duration = Duration::from_hours(1);

/// The maximum number of entries, in memory and on disk.
const MAX_ENTRIES: usize = 100;

/// The suffix of entry files.
const SUFFIX: &str = ".quarantine";

const FILE_BYTES: u64 = 16 << 10;

/// One quarantined component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// The message of the failure.
    problem: String,
    /// Unix time in seconds.
    since: u64,
}

/// The quarantined components.
pub(crate) struct Quarantine {
    /// The directory of the entries; without one they are kept in memory only.
    directory: Option<PathBuf>,
    /// Identifies entries of this version of Chandler and this configuration of the engine.
    edition: String,
    entries: Mutex<HashMap<Digest, Entry>>,
}

impl Quarantine {
    /// `fingerprint` identifies the configuration of the engine.
    pub(crate) fn new(directory: Option<PathBuf>, fingerprint: [u8; 32]) -> Self {
        let fingerprint = hex::encode(fingerprint);
        let short = fingerprint.get(..16).unwrap_or(&fingerprint);
        let edition = format!("{short}-{}", env!("CARGO_PKG_VERSION"));
        Self { directory, edition, entries: Mutex::default() }
    }

    /// Why the component is quarantined, if it is.
    pub(crate) fn problem(&self, component: &Digest, now: SystemTime) -> Option<String> {
        let entry = self.entries().get(component).cloned().or_else(|| self.read(component))?;
        let since = UNIX_EPOCH.checked_add(Duration::from_secs(entry.since))?;
        // An entry from the future was written with a wrong clock.
        let fresh = now.duration_since(since).is_ok_and(|age| age < QUARANTINE_PERIOD);
        fresh.then(|| sanitize(entry.problem, 4096))
    }

    /// Adds an entry.
    pub(crate) fn add(&self, component: &Digest, problem: String, now: SystemTime) {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let entry = Entry { problem, since };
        if let Some(path) = self.path(component)
            && let Ok(text) = serde_json::to_vec(&entry)
            && let Err(error) = chandler_cache::write(&path, &[&text], true, true)
        {
            tracing::warn!(digest = %component.short(), %error, "failed to store the quarantine of a component");
        }
        self.prune();
        let mut entries = self.entries();
        if entries.len() >= MAX_ENTRIES
            && let Some(oldest) = entries.iter().min_by_key(|(_, entry)| entry.since).map(|(digest, _)| digest.clone())
        {
            entries.remove(&oldest);
        }
        entries.insert(component.clone(), entry);
    }

    /// Removes the entry of a component.
    pub(crate) fn remove(&self, component: &Digest) {
        self.entries().remove(component);
        if let Some(path) = self.path(component)
            && let Err(error) = fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(digest = %component.short(), %error, "failed to end the quarantine of a component");
        }
    }

    fn entries(&self) -> parking_lot::MutexGuard<'_, HashMap<Digest, Entry>> {
        self.entries.lock()
    }

    fn read(&self, component: &Digest) -> Option<Entry> {
        let bytes = chandler_cache::read(&self.path(component)?, FILE_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn path(&self, component: &Digest) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(format!("{}-{}{SUFFIX}", component.hex(), self.edition)))
    }

    /// Removes the oldest files above the maximum.
    fn prune(&self) {
        let Some(Ok(listing)) = self.directory.as_ref().map(fs::read_dir) else { return };
        let file = |entry: std::io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            let ours = entry.file_name().to_string_lossy().ends_with(SUFFIX);
            ours.then_some((entry.metadata().ok()?.modified().ok()?, entry.path()))
        };
        let mut files: Vec<_> = listing.filter_map(file).collect();
        files.sort();
        let above = files.len().saturating_sub(MAX_ENTRIES);
        for (_, path) in files.into_iter().take(above) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_applies_to_its_digest_edition_and_period() {
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
        assert_eq!(open(2).problem(&bad, now), None, "another configuration is not affected");
        first.remove(&bad);
        for quarantine in [&first, &open(1)] {
            assert_eq!(quarantine.problem(&bad, now), None, "a user requested another try");
        }
        first.remove(&other);
    }

    #[test]
    fn entries_are_bounded_and_malformed_ones_are_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let quarantine = Quarantine::new(Some(directory.path().to_owned()), [1; 32]);
        let now = SystemTime::now();
        for index in 0..MAX_ENTRIES + 5 {
            quarantine.add(&Digest::of(&index.to_le_bytes()), "x".into(), now);
        }
        assert_eq!(quarantine.entries().len(), MAX_ENTRIES);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), MAX_ENTRIES);
        let odd = Digest::of(b"odd");
        fs::write(quarantine.path(&odd).unwrap(), "garbage").unwrap();
        assert_eq!(quarantine.problem(&odd, now), None);
    }
}
