//! Reads Secrets for values that the host generates.
//!
//! [`chandler_certificates::generated`] finds them in a release and generates them. The values are in the Secrets and in the applied
//! release, and nowhere else.

use std::sync::Arc;

use chandler_certificates::generated::{GeneratedSecrets, operating_system};
use chandler_core::Release;
use chandler_rollout::{Owner, Rollout};

use super::CompletionError;

/// The release with the generated values that it requests. A release that requests none is returned unchanged, without a request
/// to the API server.
///
/// Existing values are read from the Secret only if the record of the owner contains it. A Secret of the same name that belongs
/// to another owner is an error.
pub(super) async fn fill(
    rollout: &Rollout,
    owner: &Owner,
    release: Arc<Release>,
) -> Result<Arc<Release>, CompletionError> {
    let generated = GeneratedSecrets::of(&release, &owner.install_namespace)?;
    if generated.is_empty() {
        return Ok(release);
    }
    let mut live = Vec::with_capacity(generated.secrets().len());
    for secret in generated.secrets() {
        live.push(rollout.own(owner, &secret.secret).await?);
    }
    Ok(Arc::new(generated.fill(&release, &live, &mut operating_system).map_err(CompletionError::Randomness)?))
}
