//! What Chandler is, for catalogs of charts and bundles.

/// The repository.
pub(crate) const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
/// The license.
pub(crate) const LICENSE: &str = env!("CARGO_PKG_LICENSE");
/// In one line.
pub(crate) const DESCRIPTION: &str =
    "Installs software bundles on Kubernetes: plain manifests, operators of OLM, and formats of your own";
