//! Checks a new configuration against the bundle of a BundleDeployment, before it is written to the spec.

use std::time::Duration;

use chandler_api::BundleDeployment;
use kube::Client;

use super::{
    deployed,
    rendering::{BundleOptions, OpenedBundle},
};
use crate::CommandError;

/// How long the bundle of an image or a URL may take to arrive: this machine may not reach its server, and the controller checks the
/// configuration anyway.
const PATIENCE: Duration = Duration::from_secs(30);

/// Renders the bundle of `wanted`, the BundleDeployment with its new configuration. Returns why it could not be checked, if it could not.
///
/// # Errors
/// The provisioner refuses the configuration; the error has its findings.
pub async fn check(
    client: &Client,
    system_namespace: &str,
    options: &BundleOptions,
    wanted: &BundleDeployment,
) -> Result<Option<String>, CommandError> {
    let unchecked =
        |why: &str| Ok(Some(format!("the configuration was not checked here, but the controller checks it: {why}")));
    let opening = deployed::open(client, system_namespace, options, wanted, None);
    let mut opened: OpenedBundle = match tokio::time::timeout(PATIENCE, Box::pin(opening)).await {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => return unchecked(error.summary()),
        Err(_) => return unchecked("the bundle could not be fetched in time"),
    };
    match deployed::release(client, &mut opened).await {
        Ok(_) => Ok(None),
        Err(error) if !error.findings().is_empty() => Err(error),
        Err(error) => unchecked(error.summary()),
    }
}
