//! A bundle with a request, rendered twice.

use std::sync::Arc;

use chandler_core::{Content, Request};
use chandler_engine::{Limits, Provisioner};

use crate::Rendering;

/// A bundle, and the request to render it.
#[derive(Clone)]
pub struct Case {
    /// Its name, for messages.
    pub name: String,
    /// The bundle.
    pub content: Arc<dyn Content>,
    /// The request.
    pub request: Request,
}

/// Two calls with the same inputs that returned different results.
#[derive(Debug)]
pub struct Differing {
    /// The result of the first call.
    pub first: Rendering,
    /// The result of the second.
    pub second: Rendering,
}

impl Case {
    /// What the provisioner returns, after two calls returned the same.
    ///
    /// # Errors
    /// The two results, if they differ.
    pub async fn rendering(&self, provisioner: &Provisioner, limits: &Limits) -> Result<Rendering, Box<Differing>> {
        let first = self.render(provisioner, limits).await;
        let second = self.render(provisioner, limits).await;
        if first == second { Ok(first) } else { Err(Box::new(Differing { first, second })) }
    }

    /// What the provisioner returns in one call. The bundle is rendered whatever format was detected, as for a BundleDeployment that
    /// names its class.
    pub async fn render(&self, provisioner: &Provisioner, limits: &Limits) -> Rendering {
        let format = match provisioner.detect(Arc::clone(&self.content), limits).await {
            Ok(format) => format,
            Err(error) => return Rendering::failed(None, &error),
        };
        Rendering::of(format, &provisioner.provision(&self.request, Arc::clone(&self.content), limits).await)
    }
}
