//! How reconcilers learn of changes that another one noticed.
//!
//! The sender names what changed, and each subscriber decides which objects that concerns. So a reconciler depends on this module, and not
//! on the reconcilers that its changes concern.

use std::sync::{Arc, Weak};

use chandler_api::BundleDeployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;
use parking_lot::RwLock;

/// A change.
#[derive(Clone, Copy)]
pub(crate) enum Signal<'a> {
    /// A BundleDeployment is new or changed.
    DeploymentChanged(&'a BundleDeployment),
    /// The BundleDeployment of this name is gone.
    DeploymentGone(&'a str),
    /// Something that the candidate of this BundleDeployment depends on changed, so that another try may succeed.
    DeploymentInputChanged(&'a str),
    /// The Resolution of this name is new, changed or gone.
    ResolutionChanged(&'a str),
    /// A PlatformOperator is new, changed or gone.
    PlatformOperatorChanged,
    /// Another PlatformPolicy is in force, or the policy has another spec.
    PolicyChanged,
    /// The readable catalogs changed, or one of them became stale.
    CatalogsChanged,
    /// No ProvisionerClass defines a class of this name any more.
    ClassGone(&'a str),
    /// A ConfigMap of the system namespace is new, changed or gone.
    ConfigMapChanged(&'a PartialObjectMeta<ConfigMap>),
    /// The Secret of this name in the system namespace is new, changed or gone.
    SecretChanged(&'a str),
}

/// Receives signals.
pub(crate) trait Subscriber: Send + Sync {
    /// Handles a signal, on the task of the sender: it must not block.
    fn receive(&self, signal: Signal<'_>);
}

/// Delivers each signal to all subscribers, in the order in which they subscribed. It keeps none of them alive.
#[derive(Default)]
pub(crate) struct Signals(RwLock<Vec<Weak<dyn Subscriber>>>);

impl Signals {
    /// Delivers later signals to this subscriber.
    pub(crate) fn subscribe<S: Subscriber + 'static>(&self, subscriber: &Arc<S>) {
        let subscriber: Weak<S> = Arc::downgrade(subscriber);
        self.0.write().push(subscriber);
    }

    /// Delivers a signal.
    pub(crate) fn send(&self, signal: Signal<'_>) {
        // A subscriber may send signals itself, so the lock is not held meanwhile.
        let subscribers = self.0.read().clone();
        subscribers.iter().filter_map(Weak::upgrade).for_each(|subscriber| subscriber.receive(signal));
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[derive(Default)]
    struct Names(Mutex<Vec<String>>);

    impl Subscriber for Names {
        fn receive(&self, signal: Signal<'_>) {
            if let Signal::DeploymentGone(name) = signal {
                self.0.lock().push(name.to_owned());
            }
        }
    }

    #[test]
    fn every_subscriber_that_still_exists_receives_a_signal() {
        let signals = Signals::default();
        let (one, other) = (Arc::new(Names::default()), Arc::new(Names::default()));
        signals.subscribe(&one);
        signals.subscribe(&other);
        signals.send(Signal::DeploymentGone("a"));
        drop(other);
        signals.send(Signal::CatalogsChanged);
        signals.send(Signal::DeploymentGone("b"));
        assert_eq!(*one.0.lock(), ["a", "b"]);
    }
}
