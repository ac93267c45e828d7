//! Watches on the kinds that releases hold, so that a change of a managed object is seen at once.
//!
//! Metadata watches, limited by label to what Chandler owns: the bodies of objects are neither transferred nor kept. With the
//! rights of the controller there is one for each kind. On behalf of a ServiceAccount there is one for each kind, namespace
//! and account, shared by the BundleDeployments that name the account; it ends with the last of them.

mod seen;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, PoisonError},
};

use chandler_api::{BundleDeployment, names::OWNER_KIND_LABEL};
use chandler_permissions::Account;
use chandler_rollout::impersonating;
use futures::StreamExt as _;
use kube::{
    Api, Client, Resource as _,
    api::ApiResource,
    core::PartialObjectMeta,
    runtime::{WatchStreamExt as _, reflector::ObjectRef, watcher},
};
use tokio::{sync::mpsc, task::JoinHandle};

use self::seen::Seen;

/// What is watched, and on whose behalf.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    kind: ApiResource,
    /// None for all namespaces, and for kinds that live in none.
    namespace: Option<String>,
    /// None for the controller itself.
    account: Option<Account>,
}

/// A watch, and the BundleDeployments that it runs for; none are named for those of the controller itself.
struct Watch {
    task: JoinHandle<()>,
    users: BTreeSet<String>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The running watches. Dropping it ends them.
pub(crate) struct ManagedWatches {
    client: Client,
    triggers: mpsc::UnboundedSender<ObjectRef<BundleDeployment>>,
    running: Mutex<HashMap<Place, Watch>>,
}

impl ManagedWatches {
    /// No watches yet; owners of changed objects go to the receiver.
    pub(crate) fn new(client: Client) -> (Self, mpsc::UnboundedReceiver<ObjectRef<BundleDeployment>>) {
        let (triggers, receiver) = mpsc::unbounded_channel();
        (Self { client, triggers, running: Mutex::default() }, receiver)
    }

    /// Where the BundleDeployments go that are to be looked at.
    pub(crate) fn triggers(&self) -> mpsc::UnboundedSender<ObjectRef<BundleDeployment>> {
        self.triggers.clone()
    }

    /// Watches these kinds too. A watch that ended, because its kind is no longer served, starts again.
    pub(crate) fn ensure(&self, kinds: impl IntoIterator<Item = ApiResource>) {
        for kind in kinds {
            self.start(Place { kind, namespace: None, account: None }, None);
        }
    }

    /// Watches these kinds in these namespaces on behalf of an account, for a BundleDeployment, and nothing else for it any
    /// more.
    pub(crate) fn ensure_on_behalf(
        &self,
        deployment: &str,
        account: &Account,
        places: impl IntoIterator<Item = (ApiResource, Option<String>)>,
    ) {
        let mut wanted = Vec::new();
        for (kind, namespace) in places {
            let place = Place { kind, namespace, account: Some(account.clone()) };
            self.start(place.clone(), Some(deployment));
            wanted.push(place);
        }
        self.leave(deployment, |place| !wanted.contains(place));
    }

    /// Ends what ran for this BundleDeployment alone.
    pub(crate) fn forget(&self, deployment: &str) {
        self.leave(deployment, |_| true);
    }

    fn start(&self, place: Place, user: Option<&str>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut users = BTreeSet::new();
        if let Some(watch) = running.get_mut(&place) {
            watch.users.extend(user.map(str::to_owned));
            if !watch.task.is_finished() {
                return;
            }
            users = std::mem::take(&mut watch.users);
        }
        users.extend(user.map(str::to_owned));
        let client = match &place.account {
            None => self.client.clone(),
            Some(account) => match impersonating(&self.client, account) {
                Ok(client) => client,
                Err(error) => {
                    tracing::warn!(%account, %error, "cannot watch on behalf of the account");
                    return;
                }
            },
        };
        tracing::debug!(kind = %place.kind.kind, group = %place.kind.group, namespace = ?place.namespace, "watching");
        let task = tokio::spawn(watch(client, place.kind.clone(), place.namespace.clone(), self.triggers.clone()));
        running.insert(place, Watch { task, users });
    }

    /// Takes a user off watches, and ends those that nobody uses any more.
    fn leave(&self, user: &str, concerned: impl Fn(&Place) -> bool) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|place, watch| {
            let left = concerned(place) && watch.users.remove(user);
            !(left && watch.users.is_empty())
        });
    }
}

async fn watch(
    client: Client,
    kind: ApiResource,
    namespace: Option<String>,
    triggers: mpsc::UnboundedSender<ObjectRef<BundleDeployment>>,
) {
    let api: Api<PartialObjectMeta<kube::core::DynamicObject>> = match &namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &kind),
        None => Api::all_with(client, &kind),
    };
    let config = watcher::Config::default().labels(&format!("{OWNER_KIND_LABEL}={}", BundleDeployment::kind(&())));
    let mut events = watcher::watcher(api, config).default_backoff().boxed();
    let mut seen = Seen::default();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                for owner in seen.concerned(&event, |object| &object.metadata) {
                    if triggers.send(ObjectRef::new(&owner)).is_err() {
                        return;
                    }
                }
            }
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
