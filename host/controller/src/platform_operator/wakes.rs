//! Which changes of other objects concern a PlatformOperator.

use std::sync::Arc;

use chandler_api::PlatformOperator;
use chandler_resolution::names::deployment_name;
use chandler_runtime::{Cache, Reflector, Triggers};
use kube::{ResourceExt as _, runtime::reflector::ObjectRef};

/// A PlatformOperator that may not decode.
pub(super) type Guarded = chandler_runtime::Guarded<PlatformOperator>;

/// Triggers reconciles of PlatformOperators. The default triggers none.
#[derive(Default)]
pub(crate) struct PlatformWakes(Option<Wakes>);

struct Wakes {
    objects: Cache<Guarded>,
    triggers: Triggers<PlatformOperator>,
    /// The name of the Resolution of all PlatformOperators.
    resolution: String,
}

impl PlatformWakes {
    pub(crate) fn new(reflector: &Reflector<PlatformOperator>, resolution: &str) -> Self {
        let (objects, triggers) = (reflector.cache(), reflector.triggers());
        Self(Some(Wakes { objects, triggers, resolution: resolution.to_owned() }))
    }

    /// The PlatformOperators as the watch brought them last.
    pub(super) fn operators(&self) -> Vec<Arc<Guarded>> {
        self.0.as_ref().map(|wakes| wakes.objects.state()).unwrap_or_default()
    }

    /// Something concerns all of them.
    pub(crate) fn all(&self) {
        self.wake(|_| true);
    }

    /// A Resolution is new, changed or gone.
    pub(crate) fn resolution_changed(&self, name: &str) {
        if self.0.as_ref().is_some_and(|wakes| wakes.resolution == name) {
            self.all();
        }
    }

    /// A BundleDeployment is new, changed or gone.
    pub(crate) fn deployment_changed(&self, name: &str) {
        self.wake(|operator| {
            let active = operator.status.as_ref().and_then(|status| status.active_bundle_deployment.as_ref());
            let may_have = [operator.name_any(), operator.spec.package.name.clone()];
            active.is_some_and(|active| active.name == name) || may_have.iter().any(|it| deployment_name(it) == name)
        });
    }

    fn wake(&self, concerned: impl Fn(&PlatformOperator) -> bool) {
        let Some(wakes) = &self.0 else { return };
        for guarded in wakes.objects.state() {
            if guarded.0.as_ref().is_ok_and(&concerned) {
                // A trigger without a receiver means that the controller is stopping.
                let _ = wakes.triggers.send(ObjectRef::new(&guarded.name_any()));
            }
        }
    }
}
