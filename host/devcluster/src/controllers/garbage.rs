//! Garbage collection along owner references.

use std::sync::Arc;

use crate::api::Api;

/// The controller.
pub struct GarbageCollector {
    api: Arc<Api>,
}

impl GarbageCollector {
    /// A collector over an API.
    pub fn new(api: Arc<Api>) -> Self {
        Self { api }
    }

    /// Works until dropped.
    pub async fn run(self) {
        let _ = self.api;
    }
}
