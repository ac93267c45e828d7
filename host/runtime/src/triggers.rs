//! Requests to reconcile an object.

use futures::Stream;
use kube::{Resource, runtime::reflector::ObjectRef};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// Requests reconciles of objects of kind `K`, from any part of the process. Clones share one queue.
pub struct Triggers<K: Resource>(mpsc::UnboundedSender<ObjectRef<K>>)
where
    K::DynamicType: 'static;

/// The controller of the kind has stopped, so nothing will reconcile the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the controller has stopped")]
pub struct Stopped;

impl<K: Resource> Clone for Triggers<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Resource<DynamicType = ()> + 'static> Triggers<K> {
    /// A queue, with the stream of the requests for the controller of the kind.
    pub fn new() -> (Self, impl Stream<Item = ObjectRef<K>> + Send + use<K>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), UnboundedReceiverStream::new(receiver))
    }

    /// Requests a reconcile. Never waits: the queue is unbounded, and the controller merges requests for one object.
    pub fn send(&self, object: ObjectRef<K>) -> Result<(), Stopped> {
        self.0.send(object).map_err(|_| Stopped)
    }
}
