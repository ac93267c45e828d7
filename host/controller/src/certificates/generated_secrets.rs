//! Secrets of a release whose values the host generates: the requests.
//!
//! [`chandler_certificates::generated`] tells which, and makes the values. They are in the Secrets and in the release that is
//! applied, and nowhere else.

use std::sync::Arc;

use chandler_certificates::generated::{GeneratedSecrets, operating_system};
use chandler_core::Release;
use chandler_rollout::{Owner, Rollout};

use crate::certificates::CompletionError;

/// The release with the values that it asks for. One that asks for none stays as it is, and costs no request.
///
/// What is kept is read from the Secret that the owner's record holds: what has the name and is somebody else's is refused.
pub(crate) async fn fill(
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
