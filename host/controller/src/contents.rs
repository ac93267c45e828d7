//! The content of BundleDeployments, for the content service and for the URL in their status.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chandler_core::Digest;
use chandler_serve::{Holding, Holdings, Target};
use kube::{ResourceExt as _, runtime::reflector::ObjectRef};

use crate::context::Context;

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
    /// It did not look: the content is what it was.
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

    /// Notes what a reconcile found: the content that it unpacked, or that there is none, or only that it looked.
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

    /// What was noted last.
    fn get(&self, name: &str) -> Holding {
        match self.unpacked().get(name) {
            Some(Some(content)) => Holding::Content(content.clone()),
            Some(None) => Holding::Nothing,
            None => Holding::Unknown,
        }
    }

    fn unpacked(&self) -> MutexGuard<'_, BTreeMap<String, Option<Digest>>> {
        self.unpacked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the content service may show.
pub(crate) struct Held(pub(crate) Arc<Context>);

impl Held {
    /// The content in the status, as before a restart, if it is that of a revision in the record: others may write a status.
    fn recorded(&self, name: &str) -> Option<Digest> {
        let guarded = self.0.deployments.get(&ObjectRef::new(name))?;
        let described = guarded.0.as_ref().ok()?.status.as_ref()?.content_digest.clone()?;
        let state = self.0.records.known(name)?.state();
        let is_recorded = state.history.iter().any(|revision| revision.content_digest == described);
        described.parse().ok().filter(|_| is_recorded)
    }
}

impl Holdings for Held {
    fn bundle(&self, name: &str) -> Holding {
        let noted = self.0.memory.contents.get(name);
        if matches!(noted, Holding::Content(_)) {
            return noted;
        }
        match self.recorded(name) {
            Some(content) => Holding::Content(content),
            None if self.0.deployments.get(&ObjectRef::new(name)).is_none() => Holding::Nothing,
            None => noted,
        }
    }

    fn catalog(&self, name: &str) -> Option<Digest> {
        self.0.catalogs.digest_in_use(name)
    }

    fn target(&self, name: &str) -> Target {
        let guarded = self.0.deployments.get(&ObjectRef::new(name));
        let Some(deployment) = guarded.as_ref().and_then(|guarded| guarded.0.as_ref().ok()) else {
            return Target::Absent;
        };
        match &deployment.spec.source.upload {
            Some(upload) => Target::Upload { uid: deployment.uid().unwrap_or_default(), digest: upload.digest.clone() },
            None => Target::Other(deployment.spec.source.kind.clone()),
        }
    }

    fn uploaded(&self, name: &str) {
        self.0.memory.try_again(name);
        self.0.wake(name);
    }
}
