//! The BundleDeployments as their watch last delivered them.

use std::sync::Arc;

use chandler_api::BundleDeployment;
use chandler_runtime::{Cache, Reflector, Triggers};
use kube::runtime::reflector::ObjectRef;

/// A BundleDeployment, or why it cannot be decoded: one such object does not stop the watch.
pub(crate) type Guarded = chandler_runtime::Guarded<BundleDeployment>;

/// Reads BundleDeployments from the cache, and triggers their reconciles.
#[derive(Clone)]
pub(crate) struct Deployments {
    cache: Cache<Guarded>,
    triggers: Triggers<BundleDeployment>,
}

impl Deployments {
    /// The BundleDeployments that this reflector watches.
    pub(crate) fn new(reflector: &Reflector<BundleDeployment>) -> Self {
        Self { cache: reflector.cache(), triggers: reflector.triggers() }
    }

    /// Waits for the first list. False means that the controller is stopping.
    pub(crate) async fn ready(&self) -> bool {
        self.cache.ready().await
    }

    /// The BundleDeployment of this name, or `None` if there is none or it cannot be decoded.
    pub(crate) fn get(&self, name: &str) -> Option<BundleDeployment> {
        self.guarded(name)?.0.as_ref().ok().cloned()
    }

    /// The BundleDeployment of this name, even if it cannot be decoded.
    pub(crate) fn guarded(&self, name: &str) -> Option<Arc<Guarded>> {
        self.cache.get(&ObjectRef::new(name))
    }

    /// All BundleDeployments.
    pub(crate) fn all(&self) -> Vec<Arc<Guarded>> {
        self.cache.state()
    }

    /// Triggers a reconcile.
    pub(crate) fn wake(&self, name: &str) {
        // A trigger without a receiver means that the controller is stopping.
        let _ = self.triggers.send(ObjectRef::new(name));
    }
}
