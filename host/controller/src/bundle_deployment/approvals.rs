//! The ChangeApprovals that there are, from a watch.

use chandler_api::{BundleDeployment, ChangeApproval};
use futures::{Stream, StreamExt as _};
use kube::{
    Api, Client, ResourceExt as _,
    runtime::{
        WatchStreamExt as _,
        reflector::{self, ObjectRef, Store, reflector},
        watcher::{self, Event, watcher},
    },
};
use tokio::sync::mpsc;

/// The approvals. What is not here yet is not given: a change then waits, and the watch brings it.
#[derive(Clone)]
pub(crate) struct Approvals(Store<ChangeApproval>);

/// Watches approvals until it is dropped.
pub(crate) type Watch = futures::future::BoxFuture<'static, ()>;

impl Approvals {
    /// No approvals yet; the watch brings them, and has their BundleDeployments looked at.
    pub(crate) fn new(client: Client, triggers: mpsc::UnboundedSender<ObjectRef<BundleDeployment>>) -> (Self, Watch) {
        let (store, writer) = reflector::store();
        let events = watcher(Api::<ChangeApproval>::all(client), watcher::Config::default()).default_backoff();
        let events = events.modify(|approval| approval.managed_fields_mut().clear());
        let events = reflector(writer, events);
        (Self(store.clone()), Box::pin(follow(events, store, triggers)))
    }

    /// The approval of this change of this very BundleDeployment, if there is one.
    pub(crate) fn of(&self, deployment: &BundleDeployment, change: &str) -> Option<ChangeApproval> {
        self.0.find(|approval| approval.approves(deployment, change)).map(|found| (*found).clone())
    }
}

/// Has the BundleDeployments looked at whose approvals come or go, once the store says so, too.
async fn follow(
    events: impl Stream<Item = Result<Event<ChangeApproval>, watcher::Error>> + Send,
    store: Store<ChangeApproval>,
    triggers: mpsc::UnboundedSender<ObjectRef<BundleDeployment>>,
) {
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let concerned = match event {
            Ok(Event::Apply(approval) | Event::Delete(approval)) => vec![approval.spec.bundle_deployment],
            // The store takes over a list when it is complete.
            Ok(Event::InitDone) => {
                store.state().iter().map(|approval| approval.spec.bundle_deployment.clone()).collect()
            }
            Ok(Event::Init | Event::InitApply(_)) => Vec::new(),
            Err(error) => {
                tracing::debug!(%error, "the watch of ChangeApprovals was interrupted");
                Vec::new()
            }
        };
        for name in concerned {
            if triggers.send(ObjectRef::new(&name)).is_err() {
                return;
            }
        }
    }
}
