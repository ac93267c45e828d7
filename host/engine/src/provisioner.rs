//! A loaded provisioner and its three calls.

use std::sync::Arc;

use chandler_core::{Content, Digest, Release, Request};

use crate::{CallError, Facts, Limits};

/// A loaded provisioner. Cheap to clone; calls on it run side by side, each in an instance of its own.
#[derive(Clone)]
pub struct Provisioner {
    inner: Arc<(Digest, Facts)>,
}

impl Provisioner {
    /// The digest of the component's bytes.
    pub fn digest(&self) -> &Digest {
        &self.inner.0
    }

    /// What the component says about itself.
    pub fn facts(&self) -> &Facts {
        &self.inner.1
    }

    /// The name of the format, if the provisioner recognises the content.
    pub async fn detect(&self, content: Arc<dyn Content>, limits: &Limits) -> Result<Option<String>, CallError> {
        let _ = (content, limits);
        Err(CallError::Internal("not built yet".into()))
    }

    /// The JSON Schema of the configuration for this content, if there is one.
    pub async fn config_schema(&self, content: Arc<dyn Content>, limits: &Limits) -> Result<Option<String>, CallError> {
        let _ = (content, limits);
        Err(CallError::Internal("not built yet".into()))
    }

    /// The objects for the request. The configuration is checked against the schema first.
    pub async fn provision(
        &self,
        request: &Request,
        content: Arc<dyn Content>,
        limits: &Limits,
    ) -> Result<Release, CallError> {
        let _ = (request, content, limits);
        Err(CallError::Internal("not built yet".into()))
    }
}
