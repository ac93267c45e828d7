//! The PlatformOperators as their watch last delivered them, and which changes of other objects concern one.

use std::sync::Arc;

use chandler_api::PlatformOperator;
use chandler_resolution::names::deployment_name;
use chandler_runtime::{Cache, Reflector, Triggers};
use kube::{ResourceExt as _, runtime::reflector::ObjectRef};

use crate::signals::{Signal, Subscriber};

/// A PlatformOperator that may not decode.
pub(super) type Guarded = chandler_runtime::Guarded<PlatformOperator>;

/// All PlatformOperators. Triggers reconciles of the PlatformOperators that a change concerns.
pub(crate) struct PlatformOperatorStates {
    objects: Cache<Guarded>,
    triggers: Triggers<PlatformOperator>,
    /// The name of the Resolution of all PlatformOperators.
    resolution: String,
}

impl PlatformOperatorStates {
    /// The PlatformOperators that this reflector watches.
    pub(crate) fn new(reflector: &Reflector<PlatformOperator>, resolution: &str) -> Self {
        let (objects, triggers) = (reflector.cache(), reflector.triggers());
        Self { objects, triggers, resolution: resolution.to_owned() }
    }

    /// The PlatformOperators.
    pub(super) fn operators(&self) -> Vec<Arc<Guarded>> {
        self.objects.state()
    }

    /// Reconciles all of them again.
    pub(super) fn wake_all(&self) {
        self.wake(|_| true);
    }

    fn deployment_changed(&self, name: &str) {
        self.wake(|operator| {
            let active = operator.status.as_ref().and_then(|status| status.active_bundle_deployment.as_ref());
            let may_have = [operator.name_any(), operator.spec.package.name.clone()];
            active.is_some_and(|active| active.name == name) || may_have.iter().any(|it| deployment_name(it) == name)
        });
    }

    fn wake(&self, concerned: impl Fn(&PlatformOperator) -> bool) {
        for guarded in self.objects.state() {
            if guarded.0.as_ref().is_ok_and(&concerned) {
                // A trigger without a receiver means that the controller is stopping.
                let _ = self.triggers.send(ObjectRef::new(&guarded.name_any()));
            }
        }
    }
}

impl Subscriber for PlatformOperatorStates {
    fn receive(&self, signal: Signal<'_>) {
        match signal {
            Signal::DeploymentChanged(deployment) => self.deployment_changed(&deployment.name_any()),
            Signal::DeploymentGone(name) => self.deployment_changed(name),
            Signal::ResolutionChanged(name) if name == self.resolution => self.wake_all(),
            Signal::CatalogsChanged | Signal::PolicyChanged => self.wake_all(),
            Signal::ResolutionChanged(_)
            | Signal::DeploymentInputChanged(_)
            | Signal::PlatformOperatorChanged
            | Signal::ClassGone(_)
            | Signal::ConfigMapChanged(_)
            | Signal::SecretChanged(_) => {}
        }
    }
}
