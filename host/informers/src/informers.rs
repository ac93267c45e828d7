//! All informers, and reads and writes through them.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use chandler_client::{Availability, PageMemory};
use chandler_permissions::Account;
use futures::future::join_all;
use kube::{Client, api::ApiResource};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use crate::{
    informer::{Informer, State, Target, Wake},
    observed::{Labels, seen},
    rights::{Rights, refused_for},
    store::{Id, Members, Memory, Outcome, Wanted},
};

/// After this time an informer that ended is tried again: a permission may have been granted. A write that succeeds makes it likely.
const RETRY_AFTER: Duration = Duration::from_mins(10);

/// How [`Informers`] work.
#[derive(Clone, Debug)]
pub struct Options {
    /// The maximum number of bytes of objects in memory, compressed. The state of further objects is unknown, so that each read of
    /// them is a request.
    pub bytes: usize,
    /// Whether the API server answers. By default it counts as available.
    pub availability: Availability,
}

impl Default for Options {
    fn default() -> Self {
        Self { bytes: 128 << 20, availability: Availability::default() }
    }
}

/// A ServiceAccount whose rights are used to watch, on behalf of an owner.
#[derive(Clone)]
struct Impersonated {
    account: Account,
    /// A client that impersonates it.
    client: Client,
    /// The name of the owner.
    owner: String,
}

/// What one informer covers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Scope {
    kind: ApiResource,
    /// None for all namespaces, and for cluster-scoped kinds.
    namespace: Option<String>,
    /// None for the controller itself.
    account: Option<Account>,
}

impl Scope {
    /// Whether an informer of the scope sees an object, in whatever version.
    fn covers(&self, kind: &ApiResource, id: &Id) -> bool {
        (&self.kind.group, &self.kind.kind) == (&kind.group, &kind.kind)
            && (self.namespace.is_none() || self.namespace == id.namespace)
    }
}

/// A running informer.
struct Running {
    informer: Informer,
    /// The owners that it runs for; empty for an informer with the rights of the controller.
    users: BTreeSet<String>,
    /// Whether an object of the kind was written since it began. If it was refused before, a permission was granted.
    has_written: bool,
}

/// The informers of a process. Dropping it ends them.
pub struct Informers {
    client: Client,
    labels: Labels,
    wake: Wake,
    memory: Memory,
    /// The memory for the pages of lists.
    pages: PageMemory,
    rights: Rights,
    availability: Availability,
    running: Mutex<HashMap<Scope, Running>>,
}

impl Informers {
    /// No informers yet. `wake` triggers a reconcile of the owner that the labels of a changed object name.
    pub fn new(client: Client, labels: Labels, options: Options, wake: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let Options { bytes, availability } = options;
        let (memory, rights) = (Memory::new(bytes), Rights::new(availability.clone()));
        let (wake, pages): (Wake, _) = (Arc::new(wake), PageMemory::default());
        Self { client, labels, wake, memory, pages, rights, availability, running: Mutex::default() }
    }

    /// Reads and writes with the rights of the controller.
    pub fn reader(self: &Arc<Self>) -> Reader {
        Reader { informers: Arc::clone(self), impersonated: None }
    }

    /// Whether the controller may list and watch a kind in all namespaces. Where that cannot be known, it may try.
    pub async fn may_watch(&self, kind: &ApiResource) -> bool {
        self.rights.may_watch(&self.client, kind).await
    }

    /// Ends the informers that ran for this owner alone.
    pub fn forget(&self, owner: &str) {
        self.stop(owner, |_| true);
    }

    /// Starts the informer of a scope unless it runs, or ended recently. Returns a future of its state.
    fn start(&self, scope: Scope, client: &Client, user: Option<&str>) -> impl Future<Output = State> + Send + use<> {
        let mut running = self.running();
        let mut users: BTreeSet<String> = user.map(str::to_owned).into_iter().collect();
        if let Some(known) = running.get_mut(&scope) {
            known.users.append(&mut users);
            let is_over = match known.informer.ended() {
                None => false,
                // The caller is about to use the kind, so it may be served now.
                Some((State::NotServed, _)) => true,
                Some((_, began)) => {
                    known.has_written || began.elapsed() >= refused_for(&self.availability, began, RETRY_AFTER)
                }
            };
            if !is_over {
                return known.informer.synced();
            }
            users = std::mem::take(&mut known.users);
        }
        tracing::debug!(kind = %scope.kind.kind, group = %scope.kind.group, namespace = ?scope.namespace, "watching");
        let target = Target {
            client: client.clone(),
            kind: scope.kind.clone(),
            namespace: scope.namespace.clone(),
            labels: self.labels,
            availability: self.availability.clone(),
            memory: self.pages.clone(),
        };
        let informer = Informer::start(target, self.memory.clone(), Arc::clone(&self.wake));
        let synced = informer.synced();
        running.insert(scope, Running { informer, users, has_written: false });
        synced
    }

    /// Removes a user from the informers whose scope matches, and ends those that have no user left.
    fn stop(&self, user: &str, matches: impl Fn(&Scope) -> bool) {
        self.running().retain(|scope, running| {
            let removed = matches(scope) && running.users.remove(user);
            !(removed && running.users.is_empty())
        });
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Scope, Running>> {
        self.running.lock()
    }

    /// Notes that an object was written in all informers that cover it.
    fn written(&self, kind: &ApiResource, id: &Id) {
        for (scope, running) in self.running().iter_mut() {
            running.has_written |= scope.covers(kind, id);
        }
    }

    /// Calls `change` for every informer that covers an object, and triggers the owners that it returns.
    fn each(&self, kind: &ApiResource, id: &Id, change: impl Fn(&Informer, bool) -> BTreeSet<String>) {
        let owners: BTreeSet<String> = self
            .running()
            .iter()
            .filter(|(scope, _)| scope.covers(kind, id))
            .flat_map(|(scope, running)| change(&running.informer, scope.kind.version == kind.version))
            .collect();
        for owner in &owners {
            (self.wake)(owner);
        }
    }
}

impl fmt::Debug for Informers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informers").field("running", &self.running().len()).finish_non_exhaustive()
    }
}

/// Reads and writes with the rights of the controller, or of a ServiceAccount.
#[derive(Clone)]
pub struct Reader {
    informers: Arc<Informers>,
    /// None for the controller itself.
    impersonated: Option<Impersonated>,
}

impl Reader {
    /// The reader on behalf of an owner, with a client that impersonates its ServiceAccount. The rights of the controller are still used
    /// where it may watch a kind: an object of the owner's set is the same for both.
    pub fn on_behalf_of(&self, account: Account, client: Client, owner: String) -> Self {
        let impersonated = Some(Impersonated { account, client, owner });
        Self { informers: Arc::clone(&self.informers), impersonated }
    }

    /// Ends the informers that ran for this owner alone.
    pub fn forget(&self, owner: &str) {
        self.informers.forget(owner);
    }

    /// The wanted objects of a kind that belong to a set, in one or all namespaces, and the ones whose state is unknown; starts to watch the kind
    /// if necessary. `None` if the kind is not watched, because it is not served or may not be watched, or because the watch is interrupted. Then
    /// the caller must make a request.
    pub async fn members(
        &self,
        kind: &ApiResource,
        namespace: Option<&str>,
        set: &str,
        wanted: Wanted<'_>,
    ) -> Option<Members> {
        let own = Scope { kind: kind.clone(), namespace: None, account: None };
        let (state, scope) = match (self.own(own.clone()).await, &self.impersonated) {
            (State::Forbidden, Some(impersonated)) => {
                let scope = impersonated.scope(kind.clone(), namespace.map(str::to_owned));
                (impersonated.start(&self.informers, scope.clone()).await, scope)
            }
            (state, _) => (state, own),
        };
        if state != State::Synced {
            return None;
        }
        let running = self.informers.running();
        let store = running.get(&scope)?.informer.store();
        Some(store.members(set, namespace, wanted))
    }

    /// Watches these kinds, in these namespaces where the controller may not watch them in all. The informers that ran for this
    /// owner alone and are not among them end.
    pub async fn watch_only(&self, kinds: impl IntoIterator<Item = (ApiResource, Option<String>)>) {
        let started = kinds.into_iter().map(async |(kind, namespace)| {
            let state = self.own(Scope { kind: kind.clone(), namespace: None, account: None }).await;
            let impersonated = self.impersonated.as_ref()?;
            let scope = impersonated.scope(kind, namespace);
            if state == State::Forbidden {
                drop(impersonated.start(&self.informers, scope.clone()));
            }
            Some(scope)
        });
        let wanted: HashSet<Scope> = join_all(started).await.into_iter().flatten().collect();
        if let Some(Impersonated { owner, .. }) = &self.impersonated {
            self.informers.stop(owner, |scope| !wanted.contains(scope));
        }
    }

    /// Watches a kind with the rights of the controller. On behalf of a ServiceAccount, it is only tried if the controller may watch the
    /// kind.
    async fn own(&self, scope: Scope) -> State {
        let Informers { client, rights, .. } = self.informers.as_ref();
        if self.impersonated.is_some() && !rights.may_watch(client, &scope.kind).await {
            return State::Forbidden;
        }
        self.informers.start(scope, client, None).await
    }

    /// A write to an object of this set begins. The result must be reported.
    pub fn write(&self, kind: &ApiResource, id: Id, set: Option<&str>) -> Writing {
        self.informers.each(kind, &id, |informer, _| {
            informer.store().begin_write(&id);
            BTreeSet::new()
        });
        let informers = Arc::clone(&self.informers);
        Writing { informers, kind: kind.clone(), id, set: set.map(str::to_owned), is_open: true }
    }

    /// Stores an object whose state was unknown, as it was read: `None` if it does not exist.
    pub fn confirm(&self, kind: &ApiResource, id: &Id, object: Option<&Value>) {
        let labels = self.informers.labels;
        self.informers.each(kind, id, |informer, same_version| {
            if same_version {
                informer.store().confirm(id, object.and_then(|object| seen(object, &labels)));
            }
            BTreeSet::new()
        });
    }
}

impl Impersonated {
    fn scope(&self, kind: ApiResource, namespace: Option<String>) -> Scope {
        Scope { kind, namespace, account: Some(self.account.clone()) }
    }

    fn start(&self, informers: &Informers, scope: Scope) -> impl Future<Output = State> + Send + use<> {
        informers.start(scope, &self.client, Some(&self.owner))
    }
}

/// A write in progress. If it is dropped, the outcome counts as unknown.
pub struct Writing {
    informers: Arc<Informers>,
    kind: ApiResource,
    id: Id,
    set: Option<String>,
    is_open: bool,
}

impl Writing {
    /// The write ended.
    pub fn end(mut self, outcome: Outcome<'_>) {
        self.report(outcome);
    }

    fn report(&mut self, outcome: Outcome<'_>) {
        self.is_open = false;
        if matches!(outcome, Outcome::Written(_)) {
            self.informers.written(&self.kind, &self.id);
        }
        let (id, set, labels) = (&self.id, self.set.as_deref(), self.informers.labels);
        let written = match outcome {
            Outcome::Written(object) => seen(object, &labels),
            _ => None,
        };
        self.informers.each(&self.kind, id, |informer, same_version| {
            let mut store = informer.store();
            match (outcome, &written) {
                (Outcome::Written(_), Some(seen)) if same_version => store.end_with(seen.clone()),
                (Outcome::Deleted(uid), _) => store.end_deleted(id, uid),
                (Outcome::Refused, _) => store.end_refused(id),
                // Another version of the same object has another form.
                _ => store.end_unknown(id, set),
            }
        });
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if self.is_open {
            self.report(Outcome::Unknown);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// An API server on which the controller may watch nothing, and everything else fails.
    fn client() -> Client {
        let service = tower::service_fn(|request: http::Request<Body>| async move {
            let is_review = request.uri().path().ends_with("/selfsubjectrulesreviews");
            let body =
                if is_review { json!({"status": {"resourceRules": [], "incomplete": false}}) } else { json!({}) };
            Ok::<_, Infallible>(http::Response::new(Body::from(body.to_string().into_bytes())))
        });
        Client::new(service, "default")
    }

    fn kind(kind: &str) -> ApiResource {
        ApiResource {
            group: String::new(),
            version: "v1".into(),
            api_version: "v1".into(),
            kind: kind.into(),
            plural: format!("{}s", kind.to_lowercase()),
        }
    }

    /// The running informers, as `kind account`, sorted.
    fn running(informers: &Informers) -> Vec<String> {
        let name = |scope: &Scope| {
            let account = scope.account.as_ref().map_or("-", |account| account.name.as_str());
            format!("{} {account}", scope.kind.kind)
        };
        let mut all: Vec<String> = informers.running().keys().map(name).collect();
        all.sort();
        all
    }

    #[tokio::test]
    async fn an_owner_that_changes_its_account_or_its_kinds_ends_the_informers_that_it_no_longer_uses() {
        let labels = Labels { set: "set", owner: "owner" };
        let informers = Arc::new(Informers::new(client(), labels, Options::default(), |_| {}));
        let reader = informers.reader();
        let account = |name: &str| Account { namespace: "n".into(), name: name.into() };
        let of = |name: &str, owner: &str| reader.on_behalf_of(account(name), client(), owner.to_owned());
        let place = |name: &str| (kind(name), Some("n".to_owned()));

        of("a", "x").watch_only([place("ConfigMap"), place("Secret")]).await;
        assert_eq!(running(&informers), ["ConfigMap a", "Secret a"]);
        of("a", "y").watch_only([place("Secret")]).await;
        of("a", "x").watch_only([place("ConfigMap")]).await;
        assert_eq!(running(&informers), ["ConfigMap a", "Secret a"], "y uses the second");
        of("b", "x").watch_only([place("ConfigMap")]).await;
        assert_eq!(running(&informers), ["ConfigMap b", "Secret a"]);
        reader.forget("x");
        assert_eq!(running(&informers), ["Secret a"]);
    }

    /// Objects of a mebibyte, which any user may create, do not fill the memory.
    #[tokio::test]
    async fn a_list_with_large_objects_has_small_pages() {
        const OBJECTS: usize = 12;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let noted = Arc::clone(&noted);
            async move {
                let query = request.uri().query().unwrap_or_default().to_owned();
                let of = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.parse::<usize>().ok());
                let Some(limit) = of("limit=") else { return std::future::pending().await };
                noted.lock().push(limit);
                let first = of("continue=").unwrap_or_default();
                let end = OBJECTS.min(first + limit);
                let object = |number: usize| {
                    json!({"metadata": {"namespace": "n", "name": format!("m{number}"), "uid": "u", "resourceVersion": "1",
                        "labels": {"set": "s"}}, "data": {"text": "x".repeat(3 << 20)}})
                };
                let next = if end < OBJECTS { json!(end.to_string()) } else { json!("") };
                let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1", "continue": next},
                    "items": (first..end).map(object).collect::<Vec<_>>()});
                Ok::<_, Infallible>(http::Response::new(Body::from(list.to_string().into_bytes())))
            }
        });
        let labels = Labels { set: "set", owner: "owner" };
        let informers = Arc::new(Informers::new(Client::new(service, "default"), labels, Options::default(), |_| {}));
        let members = informers.reader().members(&kind("ConfigMap"), None, "s", &|_, _| false).await.unwrap();
        assert_eq!((members.objects.len(), members.unknown.len()), (0, 0));
        let running = informers.running();
        let listed = running.values().map(|it| it.informer.store().members("s", None, &|_, _| true).objects.len());
        assert_eq!(listed.collect::<Vec<_>>(), [OBJECTS]);
        assert_eq!(*asked.lock(), [50, 8, 8]);
    }

    #[tokio::test]
    async fn a_kind_that_was_refused_is_listed_again_after_a_write() {
        let lists = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&lists);
        let service = tower::service_fn(move |_: http::Request<Body>| {
            counted.fetch_add(1, Ordering::Relaxed);
            let refused = json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403});
            let response = http::Response::builder().status(403).body(Body::from(refused.to_string().into_bytes()));
            async move { Ok::<_, Infallible>(response.unwrap()) }
        });
        let labels = Labels { set: "set", owner: "owner" };
        let informers = Arc::new(Informers::new(client(), labels, Options::default(), |_| {}));
        let account = Account { namespace: "n".into(), name: "a".into() };
        let reader = informers.reader().on_behalf_of(account, Client::new(service, "default"), "x".to_owned());
        let listed = async || {
            assert!(reader.members(&kind("ConfigMap"), Some("n"), "s", &|_, _| true).await.is_none());
            lists.load(Ordering::Relaxed)
        };
        assert_eq!((listed().await, listed().await), (1, 1));
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "n", "name": "m"}});
        let write = |namespace: &str, outcome: Outcome<'_>| {
            let id = Id { namespace: Some(namespace.to_owned()), name: "m".to_owned() };
            reader.write(&kind("ConfigMap"), id, Some("s")).end(outcome);
        };
        write("n", Outcome::Refused);
        write("other", Outcome::Written(&object));
        assert_eq!(listed().await, 1);
        write("n", Outcome::Written(&object));
        assert_eq!((listed().await, listed().await), (2, 2));
    }
}
