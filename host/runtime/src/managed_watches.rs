//! Watches the kinds of managed objects, so that a change of one triggers a reconcile of its owner at once.
//!
//! These are metadata watches, limited by label to objects with an owner of kind `K`: object bodies are neither transferred nor
//! cached. With the rights of the controller there is one watch for each kind. On behalf of an account there is one for each
//! kind, namespace and account. The owners that name the account share it, and it ends with the last of them.

mod owners;

use std::{
    collections::{BTreeSet, HashMap},
    error::Error,
    fmt::Display,
    hash::Hash,
    sync::{Mutex, PoisonError},
};

use futures::StreamExt as _;
use kube::{
    Api, Client, Resource,
    api::ApiResource,
    core::{DynamicObject, PartialObjectMeta},
    runtime::{WatchStreamExt as _, reflector::ObjectRef, watcher},
};
use tokio::task::JoinHandle;

use self::owners::ObservedOwners;
use crate::Triggers;

/// The labels of managed objects that identify their owner.
#[derive(Clone, Copy, Debug)]
pub struct OwnerLabels {
    /// The label with the kind of the owner.
    pub kind: &'static str,
    /// The label with the name of the owner.
    pub name: &'static str,
}

/// Makes a client that acts on behalf of an account.
type Impersonate<A> = Box<dyn Fn(&Client, &A) -> Result<Client, Box<dyn Error + Send + Sync>> + Send + Sync>;

/// The objects that one watch covers, and the account that it acts for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Scope<A> {
    kind: ApiResource,
    /// None for all namespaces, and for cluster-scoped kinds.
    namespace: Option<String>,
    /// None for the controller itself.
    account: Option<A>,
}

/// A running watch.
struct Watch {
    task: JoinHandle<()>,
    /// The owners that it runs for; empty for a watch with the rights of the controller.
    users: BTreeSet<String>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The watches of the objects that objects of kind `K` own, on behalf of the controller or of accounts `A`. Dropping it ends
/// them.
pub struct ManagedWatches<K: Resource, A> {
    client: Client,
    triggers: Triggers<K>,
    labels: OwnerLabels,
    impersonate: Impersonate<A>,
    running: Mutex<HashMap<Scope<A>, Watch>>,
}

impl<K, A> ManagedWatches<K, A>
where
    K: Resource<DynamicType = ()> + 'static,
    A: Clone + Eq + Hash + Display,
{
    /// No watches yet. A change of a managed object triggers a reconcile of the owner that its labels name.
    pub fn new(
        client: Client,
        triggers: Triggers<K>,
        labels: OwnerLabels,
        impersonate: impl Fn(&Client, &A) -> Result<Client, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Self {
        Self { client, triggers, labels, impersonate: Box::new(impersonate), running: Mutex::default() }
    }

    /// The triggers of the owners.
    pub fn triggers(&self) -> &Triggers<K> {
        &self.triggers
    }

    /// Watches these kinds with the rights of the controller, in addition to those that are watched already. A watch that ended
    /// because its kind was no longer served starts again.
    pub fn ensure(&self, kinds: impl IntoIterator<Item = ApiResource>) {
        for kind in kinds {
            self.start(Scope { kind, namespace: None, account: None }, None);
        }
    }

    /// Watches exactly these kinds and namespaces for an owner, on behalf of an account.
    pub fn ensure_on_behalf(
        &self,
        owner: &str,
        account: &A,
        scopes: impl IntoIterator<Item = (ApiResource, Option<String>)>,
    ) {
        let mut wanted = Vec::new();
        for (kind, namespace) in scopes {
            let scope = Scope { kind, namespace, account: Some(account.clone()) };
            self.start(scope.clone(), Some(owner));
            wanted.push(scope);
        }
        self.stop(owner, |scope| !wanted.contains(scope));
    }

    /// Ends the watches that ran for this owner alone.
    pub fn forget(&self, owner: &str) {
        self.stop(owner, |_| true);
    }

    fn start(&self, scope: Scope<A>, user: Option<&str>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut users = BTreeSet::new();
        if let Some(watch) = running.get_mut(&scope) {
            watch.users.extend(user.map(str::to_owned));
            if !watch.task.is_finished() {
                return;
            }
            users = std::mem::take(&mut watch.users);
        }
        users.extend(user.map(str::to_owned));
        let client = match &scope.account {
            None => self.client.clone(),
            Some(account) => match (self.impersonate)(&self.client, account) {
                Ok(client) => client,
                Err(error) => {
                    tracing::warn!(%account, %error, "failed to watch on behalf of the account");
                    return;
                }
            },
        };
        tracing::debug!(kind = %scope.kind.kind, group = %scope.kind.group, namespace = ?scope.namespace, "watching");
        let api = match &scope.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &scope.kind),
            None => Api::all_with(client, &scope.kind),
        };
        let task = tokio::spawn(watch(api, scope.kind.clone(), self.labels, self.triggers.clone()));
        running.insert(scope, Watch { task, users });
    }

    /// Removes a user from the watches whose scope matches, and ends those that have no user left.
    fn stop(&self, user: &str, matches: impl Fn(&Scope<A>) -> bool) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|scope, watch| {
            let removed = matches(scope) && watch.users.remove(user);
            !(removed && watch.users.is_empty())
        });
    }
}

async fn watch<K>(
    api: Api<PartialObjectMeta<DynamicObject>>,
    kind: ApiResource,
    labels: OwnerLabels,
    triggers: Triggers<K>,
) where
    K: Resource<DynamicType = ()> + 'static,
{
    let config = watcher::Config::default().labels(&format!("{}={}", labels.kind, K::kind(&())));
    let mut events = watcher::watcher(api, config).default_backoff().boxed();
    let mut owners = ObservedOwners::new(labels.name);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                for owner in owners.affected(&event, |object| &object.metadata) {
                    if triggers.send(ObjectRef::new(&owner)).is_err() {
                        return;
                    }
                }
            }
            Err(error) if is_no_longer_served(&error) => {
                tracing::debug!(kind = %kind.kind, group = %kind.group, "the kind is no longer served; the watch ends");
                return;
            }
            Err(error) => {
                tracing::debug!(kind = %kind.kind, group = %kind.group, %error, "the watch was interrupted");
            }
        }
    }
}

fn is_no_longer_served(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(kube::Error::Api(status))
    | watcher::Error::WatchStartFailed(kube::Error::Api(status))) = error
    else {
        return false;
    };
    status.code == 404
}
