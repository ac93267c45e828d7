//! Helpers of the integration tests: the shared fixtures, and rendering them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests may panic as well"
)]

pub(crate) mod small;

use std::path::{Path, PathBuf};

use chandler_registry::Registry;
use chandler_sdk::{
    Failure, Request,
    testing::{Bundle, Recorder, run},
};
use serde_json::Value;

/// The shared fixtures, if available.
pub(crate) fn fixtures() -> Option<PathBuf> {
    chandler_test_support::needs::fixture("")
}

/// Provisions the bundle in a directory.
pub(crate) fn render(directory: &Path, namespace: &str, config: &Value) -> Result<Recorder, Failure> {
    let bundle = Bundle::from_directory(directory).unwrap();
    let request = Request::new().with_name("test").with_namespace(namespace);
    run::<Registry>(&bundle, &request.with_config(config.as_object().unwrap().clone()))
}

/// The objects of a release.
pub(crate) fn values(release: Recorder) -> impl Iterator<Item = Value> {
    release.objects.into_iter().map(|object| object.value)
}
