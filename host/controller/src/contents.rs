//! The content of BundleDeployments, for the content service and for the URL in their status.

use std::collections::BTreeMap;

use chandler_core::Digest;
use chandler_serve::Holding;
use parking_lot::{Mutex, MutexGuard};

/// The content that this controller unpacked, by the name of the BundleDeployment.
#[derive(Default)]
pub(crate) struct Contents {
    /// The URL of the content service, if it runs.
    service: Option<String>,
    /// None for one without content.
    unpacked: Mutex<BTreeMap<String, Option<Digest>>>,
}

/// What a reconcile found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'a> {
    /// Content that it unpacked.
    Content(&'a Digest),
    /// No content.
    Nothing,
    /// It did not look: the content has not changed.
    Same,
}

impl Contents {
    /// No content yet.
    pub(crate) fn new(service: Option<String>) -> Self {
        Self { service, unpacked: Mutex::default() }
    }

    /// The URL of the content of a BundleDeployment.
    pub(crate) fn url(&self, name: &str) -> Option<String> {
        self.service.as_ref().map(|service| format!("{service}/bundles/{name}.tgz"))
    }

    /// Notes what a reconcile found: the content that it unpacked, or that there is none, or that it did not look.
    pub(crate) fn note(&self, name: &str, found: Found<'_>) {
        if self.service.is_none() {
            return;
        }
        let mut unpacked = self.unpacked();
        match found {
            Found::Content(content) => drop(unpacked.insert(name.to_owned(), Some(content.clone()))),
            Found::Nothing => drop(unpacked.insert(name.to_owned(), None)),
            Found::Same => drop(unpacked.entry(name.to_owned()).or_default()),
        }
    }

    /// Forgets a BundleDeployment.
    pub(crate) fn forget(&self, name: &str) {
        self.unpacked().remove(name);
    }

    /// What was last noted.
    pub(crate) fn get(&self, name: &str) -> Holding {
        match self.unpacked().get(name) {
            Some(Some(content)) => Holding::Content(content.clone()),
            Some(None) => Holding::Nothing,
            None => Holding::Unknown,
        }
    }

    fn unpacked(&self) -> MutexGuard<'_, BTreeMap<String, Option<Digest>>> {
        self.unpacked.lock()
    }
}
