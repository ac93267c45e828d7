//! Serving certificates that the release of a BundleDeployment asks for.

use std::sync::Arc;

use chandler_api::{BundleDeployment, Reason};
use chandler_certificates::annotations::ROTATE;
use chandler_core::Release;
use chandler_rollout::Owner;
use kube::ResourceExt as _;

use crate::{
    certificates::{Completed, CompletionError, complete as completed},
    context::Context,
    problem::Problem,
};

/// Adds what a release asks the host for.
pub(crate) async fn complete(
    deployment: &BundleDeployment,
    owner: &Owner,
    release: Arc<Release>,
    context: &Context,
) -> Result<Completed, Problem> {
    let rotate = deployment.annotations().get(ROTATE).map(String::as_str);
    let result = completed(&context.rollout, &context.options.certificates, owner, rotate, release).await;
    result.map_err(|error| match error {
        CompletionError::Declaration(error) => Problem::lasting(Reason::InvalidOutput, error.to_string()),
        CompletionError::Generated(error) => Problem::lasting(Reason::InvalidOutput, error.to_string()),
        CompletionError::Read(error) => Problem::from(&error),
        CompletionError::Issue(_) | CompletionError::Object(_) | CompletionError::Randomness(_) => {
            Problem::passing(Reason::InternalError, error.to_string())
        }
    })
}
