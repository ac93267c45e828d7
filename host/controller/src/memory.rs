//! What is remembered of BundleDeployments between reconciles. Losing it costs time and nothing else.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use chandler_api::ImageSource;
use chandler_content::ResolvedImage;
use chandler_core::{Digest, Release};

use crate::fights::Fights;

/// Everything that is remembered.
#[derive(Default)]
pub(crate) struct Memory {
    /// What tags stood for.
    pub(crate) resolutions: Resolutions,
    /// Releases that were made.
    pub(crate) releases: Releases,
    /// Since when the health of releases has not been as it is reported.
    pub(crate) unsteady: Unsteady,
    /// Objects that others change again and again.
    pub(crate) fights: Quarrels,
}

impl Memory {
    /// Forgets a BundleDeployment.
    pub(crate) fn forget(&self, name: &str) {
        self.resolutions.forget(name);
        self.releases.forget(name);
        self.unsteady.forget(name);
        self.fights.forget(name);
    }
}

/// The objects of each BundleDeployment that others change again and again.
pub(crate) struct Quarrels {
    origin: Instant,
    all: Mutex<HashMap<String, Quarrel>>,
}

#[derive(Default)]
struct Quarrel {
    fights: Fights,
    /// When the last pass began, and what it was asked to do.
    pass: Option<(Duration, Digest)>,
}

impl Default for Quarrels {
    fn default() -> Self {
        Self { origin: Instant::now(), all: Mutex::default() }
    }
}

impl Quarrels {
    /// How often a BundleDeployment is looked at while others change its objects all the time: each change of theirs would
    /// else have everything compared.
    const BREATH: Duration = Duration::from_secs(2);

    /// How long to wait with a pass that is asked to do this; zero where it may begin, and then it has begun.
    pub(crate) fn breathe(&self, name: &str, asked: Digest) -> Duration {
        let now = self.origin.elapsed();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(quarrel) = all.get_mut(name).filter(|quarrel| quarrel.fights.look_again(now).is_some()) else {
            return Duration::ZERO;
        };
        if let Some((began, before)) = &quarrel.pass
            && *before == asked
            && let Some(pause) = began.saturating_add(Self::BREATH).checked_sub(now)
        {
            return pause;
        }
        quarrel.pass = Some((now, asked));
        Duration::ZERO
    }

    /// Does something with the fights about the objects of a BundleDeployment, now.
    pub(crate) fn of<T>(&self, name: &str, act: impl FnOnce(&mut Fights, Duration) -> T) -> T {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut all.entry(name.to_owned()).or_default().fights, self.origin.elapsed());
        all.retain(|_, quarrel| quarrel.fights != Fights::default());
        result
    }

    fn forget(&self, name: &str) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// Since when the health of each BundleDeployment has not been as it is reported.
pub(crate) struct Unsteady {
    origin: Instant,
    since: Mutex<HashMap<String, Duration>>,
}

impl Default for Unsteady {
    fn default() -> Self {
        Self { origin: Instant::now(), since: Mutex::default() }
    }
}

impl Unsteady {
    /// Now, by the clock of these times.
    pub(crate) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Since when it differs; none where it does not.
    pub(crate) fn since(&self, name: &str) -> Option<Duration> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    /// Notes since when it differs.
    pub(crate) fn note(&self, name: &str, since: Option<Duration>) {
        let mut all = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        match since {
            Some(since) => all.insert(name.to_owned(), since),
            None => all.remove(name),
        };
    }

    /// Forgets a BundleDeployment.
    pub(crate) fn forget(&self, name: &str) {
        self.note(name, None);
    }
}

/// When each tag was resolved last, by BundleDeployment.
#[derive(Default)]
pub(crate) struct Resolutions(Mutex<BTreeMap<String, (ImageSource, ResolvedImage, Instant)>>);

impl Resolutions {
    /// What a tag stood for, if that was found out within the interval.
    pub(crate) fn recent(&self, name: &str, source: &ImageSource, interval: Duration) -> Option<ResolvedImage> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (known_source, resolved, when) = known.get(name)?;
        (known_source == source && when.elapsed() < interval).then(|| resolved.clone())
    }

    /// Remembers what a tag stands for now.
    pub(crate) fn remember(&self, name: String, source: ImageSource, resolved: ResolvedImage) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name, (source, resolved, Instant::now()));
    }

    fn forget(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// The last release of each BundleDeployment, with the digest of what it was made from, and beside it the release of an
/// earlier revision while that runs again.
#[derive(Default)]
pub(crate) struct Releases(Mutex<HashMap<String, Vec<Made>>>);

/// What a release was made from, and the release.
type Made = (Digest, Arc<Release>);

/// How many releases are kept for one BundleDeployment.
const KEPT: usize = 2;

impl Releases {
    /// The release, if it was made from just this.
    pub(crate) fn get(&self, name: &str, key: &Digest) -> Option<Arc<Release>> {
        let releases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, release) = releases.get(name)?.iter().find(|(known, _)| known == key)?;
        Some(Arc::clone(release))
    }

    /// Keeps a release beside the last one.
    pub(crate) fn insert(&self, name: &str, key: Digest, release: Arc<Release>) {
        let mut releases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = releases.entry(name.to_owned()).or_default();
        kept.insert(0, (key, release));
        kept.truncate(KEPT);
    }

    /// Forgets all releases of a BundleDeployment but the one that was made from this.
    pub(crate) fn keep_only(&self, name: &str, key: &Digest) {
        let mut releases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = releases.get_mut(name) {
            kept.retain(|(known, _)| known == key);
        }
    }

    fn forget(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}
