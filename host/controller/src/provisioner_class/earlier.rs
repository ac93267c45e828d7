//! Components that rendered releases and that no class has any more.
//!
//! An installed release keeps its component until the update of its class is approved, and a rollback renders with the component of its
//! revision. The record has the digests of both the component and its artifact, so that it is found in the cache, and else fetched again.
//! It must have the signatures that the class and the administrator demand now.

use std::collections::VecDeque;

use chandler_api::ProvisionerInUse;
use chandler_content::{ContentError, ImageAccess, ImageReference, ReferenceError, RequiredSignatures, ResolvedImage};
use chandler_core::Digest;
use chandler_engine::{LoadError, Provisioner};
use chandler_source::Grantee;
use parking_lot::{Mutex, MutexGuard};

use super::{
    classes::{Class, Classes},
    components::{COMPONENT_BYTES, Components, UnknownSigners},
};

/// How many components stay in memory. Loading another one again costs a read of the cache.
const KEPT: usize = 16;

/// The earlier components in memory, the most recently used one first.
#[derive(Default)]
pub(crate) struct EarlierComponents(Mutex<VecDeque<Kept>>);

/// An earlier component in memory.
struct Kept {
    provisioner: Provisioner,
    /// Its size in bytes.
    bytes: u64,
    /// What its signatures were verified with, as [`Artifact`](super::classes::Artifact) has it.
    proof: Option<Digest>,
}

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
    #[error("it may not run: {0}")]
    Signers(#[source] UnknownSigners),
    #[error("it is not in the cache, and cannot be fetched by digest: {0}")]
    Fetch(#[source] ContentError),
    #[error("its artifact {0} has another component")]
    Differs(String),
    #[error("{0}")]
    Load(#[source] LoadError),
}

impl EarlierComponents {
    /// The component with this digest, if its signatures were verified with this.
    fn get(&self, digest: &str, proof: Option<&Digest>) -> Option<Provisioner> {
        let mut all = self.all();
        let is_it = |kept: &Kept| kept.provisioner.digest().as_str() == digest && kept.proof.as_ref() == proof;
        let index = all.iter().position(is_it)?;
        let found = all.remove(index)?;
        let provisioner = found.provisioner.clone();
        all.push_front(found);
        Some(provisioner)
    }

    /// Keeps a component of this size, whose signatures were verified with this.
    pub(super) fn keep(&self, provisioner: Provisioner, bytes: u64, proof: Option<Digest>) {
        let mut all = self.all();
        all.retain(|kept| kept.provisioner.digest() != provisioner.digest());
        all.push_front(Kept { provisioner, bytes, proof });
        all.truncate(KEPT);
    }

    /// The digests and sizes of the components.
    pub(super) fn list(&self) -> Vec<(Digest, u64)> {
        self.all().iter().map(|kept| (kept.provisioner.digest().clone(), kept.bytes)).collect()
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<Kept>> {
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
    let (earlier, artifact) = (classes.earlier(), class.artifact.as_ref());
    let verification = artifact.and_then(|artifact| artifact.verification.as_ref());
    let reference: Option<ImageReference> =
        wanted.image.as_deref().map(str::parse).transpose().map_err(EarlierError::Reference)?;
    let required = match &reference {
        Some(reference) => components.required(reference, verification).map_err(EarlierError::Signers)?,
        None => None,
    };
    let proof = match reference {
        Some(_) => required.as_ref().map(RequiredSignatures::proof),
        // A record without the artifact: the component was verified as the class demands now, or cannot be.
        None => artifact.and_then(|artifact| artifact.proof.clone()),
    };
    if let Some(known) = earlier.get(&wanted.digest, proof.as_ref()) {
        return Ok(with(known));
    }
    let reference = reference.ok_or(EarlierError::NotNamed)?;
    let digest = reference.digest().ok_or(EarlierError::NotNamed)?.clone();
    let secret = artifact.and_then(|artifact| artifact.pull_secret.as_deref());
    let access = components.sources.image_access(Grantee::ProvisionerClass(&wanted.class), secret, &reference).await;
    let access = access.map_err(|error| EarlierError::Access(error.to_string()))?;
    let access = ImageAccess { signatures: required, ..access };
    let (image, resolved) = (reference.to_string(), ResolvedImage::new(reference, digest));
    let wasm = components.images.fetch_component(&resolved, &access, COMPONENT_BYTES).await;
    let wasm = wasm.map_err(EarlierError::Fetch)?;
    if Digest::of(&wasm).as_str() != wanted.digest {
        return Err(EarlierError::Differs(image));
    }
    let provisioner = components.engine.load(&wasm).await.map_err(EarlierError::Load)?;
    earlier.keep(provisioner.clone(), wasm.len() as u64, proof);
    Ok(with(provisioner))
}
