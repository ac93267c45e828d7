//! Certificates: a release with the serving certificates and generated Secrets that it declares.

use std::sync::Arc;

use chandler_api::BundleDeployment;
use chandler_certificates::annotations::ROTATE;
use chandler_core::Release;
use chandler_rollout::Owner;
use kube::ResourceExt as _;

use super::super::handles::CertificateHandles;
use crate::certificates::{Completed, CompletionError, complete as completed};

/// A release could not be completed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct CertificatesError(#[from] pub(crate) CompletionError);

/// Adds the certificates and Secrets that a release declares. Nothing is written.
pub(in super::super) async fn complete(
    handles: CertificateHandles<'_>,
    deployment: &BundleDeployment,
    owner: &Owner,
    release: &Arc<Release>,
) -> Result<Completed, CertificatesError> {
    let rotate = deployment.annotations().get(ROTATE).map(String::as_str);
    Ok(completed(handles.rollout, handles.policy, owner, rotate, Arc::clone(release)).await?)
}
