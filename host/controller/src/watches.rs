//! Watches on the kinds that releases hold, so that a change of a managed object is seen at once.
//!
//! One metadata watch per kind and process, limited by label to what Chandler owns. The bodies of objects are neither
//! transferred nor kept.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use chandler_api::{
    BundleDeployment,
    names::{OWNER_KIND_LABEL, OWNER_NAME_LABEL},
};
use futures::StreamExt as _;
use kube::{
    Api, Client, Resource as _,
    api::ApiResource,
    core::PartialObjectMeta,
    runtime::{WatchStreamExt as _, reflector::ObjectRef, watcher},
};
use tokio::{sync::mpsc, task::JoinHandle};

/// The running watches. Dropping it ends them.
pub(crate) struct ManagedWatches {
    client: Client,
    triggers: mpsc::UnboundedSender<ObjectRef<BundleDeployment>>,
    running: Mutex<HashMap<ApiResource, JoinHandle<()>>>,
}

impl ManagedWatches {
    /// No watches yet; owners of changed objects go to the receiver.
    pub(crate) fn new(client: Client) -> (Self, mpsc::UnboundedReceiver<ObjectRef<BundleDeployment>>) {
        let (triggers, receiver) = mpsc::unbounded_channel();
        (Self { client, triggers, running: Mutex::default() }, receiver)
    }

    /// Watches these kinds too. A watch that ended, because its kind is no longer served, starts again.
    pub(crate) fn ensure(&self, kinds: impl IntoIterator<Item = ApiResource>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        for kind in kinds {
            if running.get(&kind).is_some_and(|watch| !watch.is_finished()) {
                continue;
            }
            tracing::debug!(kind = %kind.kind, group = %kind.group, "watching");
            let watch = tokio::spawn(watch(self.client.clone(), kind.clone(), self.triggers.clone()));
            running.insert(kind, watch);
        }
    }
}

impl Drop for ManagedWatches {
    fn drop(&mut self) {
        for watch in self.running.lock().unwrap_or_else(PoisonError::into_inner).values() {
            watch.abort();
        }
    }
}

async fn watch(client: Client, kind: ApiResource, triggers: mpsc::UnboundedSender<ObjectRef<BundleDeployment>>) {
    let api: Api<PartialObjectMeta<kube::core::DynamicObject>> = Api::all_with(client, &kind);
    let config = watcher::Config::default().labels(&format!("{OWNER_KIND_LABEL}={}", BundleDeployment::kind(&())));
    let mut events = watcher::watcher(api, config).default_backoff().boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object) | watcher::Event::Delete(object)) => {
                let owner = object.metadata.labels.as_ref().and_then(|labels| labels.get(OWNER_NAME_LABEL));
                if let Some(owner) = owner
                    && triggers.send(ObjectRef::new(owner)).is_err()
                {
                    return;
                }
            }
            Ok(watcher::Event::Init | watcher::Event::InitDone) => {}
            Err(error) if no_longer_served(&error) => {
                tracing::debug!(kind = %kind.kind, group = %kind.group, "no longer served; the watch ends");
                return;
            }
            Err(error) => tracing::debug!(kind = %kind.kind, group = %kind.group, %error, "watch interrupted"),
        }
    }
}

fn no_longer_served(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(kube::Error::Api(status))
    | watcher::Error::WatchStartFailed(kube::Error::Api(status))) = error
    else {
        return false;
    };
    status.code == 404
}
