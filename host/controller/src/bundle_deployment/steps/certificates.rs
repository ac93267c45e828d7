//! Certificates: a release with the serving certificates and generated Secrets that it declares.

use std::sync::Arc;

use chandler_api::BundleDeployment;
use chandler_certificates::{
    annotations::ROTATE,
    completion::{self, Completed, CompletionError, ReleaseOwner},
};
use chandler_core::{ObjectKey, Release};
use chandler_rollout::{Owner, RolloutError};
use kube::ResourceExt as _;

use super::super::handles::CertificateHandles;

/// A release could not be completed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct CertificatesError(#[from] pub(crate) CompletionError<RolloutError>);

/// Adds the certificates and Secrets that a release declares. Nothing is written.
pub(in super::super) async fn complete(
    handles: CertificateHandles<'_>,
    deployment: &BundleDeployment,
    owner: &Owner,
    release: &Arc<Release>,
) -> Result<Completed, CertificatesError> {
    let rotate = deployment.annotations().get(ROTATE).map(String::as_str);
    let own = |key: ObjectKey| async move { handles.rollout.own(owner, &key).await };
    let release_owner = ReleaseOwner { name: &owner.name, install_namespace: &owner.install_namespace, rotate };
    Ok(completion::complete(own, handles.policy, release_owner, Arc::clone(release)).await?)
}
