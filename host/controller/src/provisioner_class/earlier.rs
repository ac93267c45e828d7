//! Components that rendered releases and that no class has any more.
//!
//! An installed release keeps its component until the update of its class is approved, and a rollback renders with the component of its
//! revision. The record has the digests of both the component and its artifact, so that it is found in the cache, and else fetched again.

use std::collections::VecDeque;

use chandler_api::ProvisionerInUse;
use chandler_content::{ContentError, ImageReference, ReferenceError, ResolvedImage};
use chandler_core::Digest;
use chandler_engine::{LoadError, Provisioner};
use chandler_source::Grantee;
use parking_lot::{Mutex, MutexGuard};

use super::{
    classes::{Class, Classes},
    components::{COMPONENT_BYTES, Components},
};

/// How many components stay in memory. Loading another one again costs a read of the cache.
const KEPT: usize = 16;

/// The earlier components in memory, the most recently used one first, each with its size in bytes.
#[derive(Default)]
pub(crate) struct EarlierComponents(Mutex<VecDeque<(Provisioner, u64)>>);

/// Why an earlier component is unavailable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EarlierError {
    /// The record of an earlier version of the controller, or of a built-in provisioner.
    #[error("the record does not name its artifact, so that it cannot be fetched again")]
    NotNamed,
    #[error("the reference of its artifact in the record is invalid: {0}")]
    Reference(#[source] ReferenceError),
    #[error("{0}")]
    Access(String),
    #[error("it is not in the cache, and cannot be fetched by digest: {0}")]
    Fetch(#[source] ContentError),
    #[error("its artifact {0} has another component")]
    Differs(String),
    #[error("{0}")]
    Load(#[source] LoadError),
}

impl EarlierComponents {
    /// The component with this digest.
    fn get(&self, digest: &str) -> Option<Provisioner> {
        let mut all = self.all();
        let index = all.iter().position(|(known, _)| known.digest().as_str() == digest)?;
        let found = all.remove(index)?;
        let provisioner = found.0.clone();
        all.push_front(found);
        Some(provisioner)
    }

    /// Keeps a component of this size.
    pub(super) fn keep(&self, provisioner: Provisioner, bytes: u64) {
        let mut all = self.all();
        all.retain(|(known, _)| known.digest() != provisioner.digest());
        all.push_front((provisioner, bytes));
        all.truncate(KEPT);
    }

    /// The digests and sizes of the components.
    pub(super) fn list(&self) -> Vec<(Digest, u64)> {
        self.all().iter().map(|(provisioner, bytes)| (provisioner.digest().clone(), *bytes)).collect()
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<(Provisioner, u64)>> {
        self.0.lock()
    }
}

/// A class with the component that rendered a release, which may differ from the class's current one. The limits and the credentials are
/// the class's current ones.
pub(crate) async fn component_of(
    classes: &Classes,
    components: &Components,
    class: &Class,
    wanted: &ProvisionerInUse,
) -> Result<Class, EarlierError> {
    let with = |provisioner| Class { provisioner, ..class.clone() };
    if class.provisioner.digest().as_str() == wanted.digest {
        return Ok(class.clone());
    }
    let earlier = classes.earlier();
    if let Some(known) = earlier.get(&wanted.digest) {
        return Ok(with(known));
    }
    let image = wanted.image.as_deref().ok_or(EarlierError::NotNamed)?;
    let reference: ImageReference = image.parse().map_err(EarlierError::Reference)?;
    let digest = reference.digest().ok_or(EarlierError::NotNamed)?.clone();
    let secret = class.artifact.as_ref().and_then(|artifact| artifact.pull_secret.as_deref());
    let access = components.sources.image_access(Grantee::ProvisionerClass(&wanted.class), secret, &reference).await;
    let resolved = ResolvedImage::new(reference, digest);
    let wasm = components
        .images
        .fetch_component(&resolved, &access.map_err(|error| EarlierError::Access(error.to_string()))?, COMPONENT_BYTES)
        .await;
    let wasm = wasm.map_err(EarlierError::Fetch)?;
    if Digest::of(&wasm).as_str() != wanted.digest {
        return Err(EarlierError::Differs(image.to_owned()));
    }
    let provisioner = components.engine.load(&wasm).await.map_err(EarlierError::Load)?;
    earlier.keep(provisioner.clone(), wasm.len() as u64);
    Ok(with(provisioner))
}
