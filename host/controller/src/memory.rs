//! What is remembered of BundleDeployments between reconciles. Losing it costs time and nothing else.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use chandler_api::ImageSource;
use chandler_content::ResolvedImage;
use chandler_core::{Digest, Release};

/// Everything that is remembered.
#[derive(Default)]
pub(crate) struct Memory {
    /// What tags stood for.
    pub(crate) resolutions: Resolutions,
    /// Releases that were made.
    pub(crate) releases: Releases,
}

impl Memory {
    /// Forgets a BundleDeployment.
    pub(crate) fn forget(&self, name: &str) {
        self.resolutions.forget(name);
        self.releases.forget(name);
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

/// The last release of each BundleDeployment, with the digest of what it was made from.
#[derive(Default)]
pub(crate) struct Releases(Mutex<HashMap<String, (Digest, Arc<Release>)>>);

impl Releases {
    /// The release, if it was made from just this.
    pub(crate) fn get(&self, name: &str, key: &Digest) -> Option<Arc<Release>> {
        let releases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        releases.get(name).filter(|(known, _)| known == key).map(|(_, release)| Arc::clone(release))
    }

    /// Keeps a release in place of the one before.
    pub(crate) fn insert(&self, name: String, key: Digest, release: Arc<Release>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, (key, release));
    }

    fn forget(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}
