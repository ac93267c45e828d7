//! Watches the ConfigMaps and Secrets of `spec.valuesFrom`, and knows which values to hide.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Debug,
    future::Future,
    sync::Arc,
    time::Duration,
};

use chandler_api::{BundleDeployment, Outcome, Revision, ValuesInUse, ValuesKind};
use chandler_client::Availability;
use chandler_permissions::Account;
use chandler_runtime::reconnecting;
use chandler_values::{Redactor, Version, Versions, resolve::has_secrets};
use futures::{StreamExt as _, future::join_all};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, Resource,
    core::PartialObjectMeta,
    runtime::watcher::{self, Event, watcher},
};
use parking_lot::{Mutex, MutexGuard};
use serde::de::DeserializeOwned;
use tokio::task::AbortHandle;

/// How often objects are read again that cannot be watched: the account may get them, but not watch them.
const UNWATCHED: Duration = Duration::from_mins(1);

/// The most bytes of memory for the values to hide of all BundleDeployments. Beyond it, all texts about those with many are hidden.
const MEMORY: usize = 64 << 20;
/// The values of a BundleDeployment that are kept whatever others have, in bytes.
const SMALL: usize = 16 << 10;
/// The most versions of Secrets with the same values that are remembered.
const VERSIONS: usize = 64;

/// Where the objects of a BundleDeployment are, and who reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The namespace.
    pub(crate) namespace: String,
    /// The account that reads them; `None` for the controller.
    pub(crate) account: Option<Account>,
}

/// The watches, and the values to hide, by BundleDeployment.
#[derive(Default)]
pub(crate) struct ValuesWatches(Mutex<HashMap<String, Known>>);

#[derive(Default)]
struct Known {
    watching: Option<Watching>,
    hidden: Option<Hidden>,
}

/// The values that were last read, and the values before, which the release that runs may have. Cloning it copies no values.
#[derive(Clone, Default)]
struct Hidden {
    last: Redactor,
    /// Redacts both.
    both: Redactor,
    /// The Secrets that both were read from.
    read: Vec<ValuesInUse>,
    earlier_read: Vec<ValuesInUse>,
    /// About how many bytes of memory the values take.
    bytes: usize,
    /// Whether the values took too much memory and were dropped, so that every text is hidden.
    is_capped: bool,
}

impl Hidden {
    /// Notes values that were read from these Secrets.
    fn next(self, last: Redactor, secrets: Vec<ValuesInUse>) -> Self {
        if self.last == last {
            let Self { mut read, .. } = self;
            read.retain(|secret| !secrets.contains(secret));
            read.extend(secrets);
            read.drain(..read.len().saturating_sub(VERSIONS));
            return Self { read, ..self };
        }
        Self { both: last.and(&self.last), last, read: secrets, earlier_read: self.read, ..Self::default() }
    }

    fn has_read(&self, secret: &ValuesInUse) -> bool {
        self.read.contains(secret) || self.earlier_read.contains(secret)
    }
}

/// The Secrets among these objects that existed.
fn secrets(in_use: &[ValuesInUse]) -> impl Iterator<Item = &ValuesInUse> {
    in_use.iter().filter(|object| object.kind == ValuesKind::Secret && object.uid.is_some())
}

/// The revisions whose values the messages about a BundleDeployment can have: the last one, the last one that succeeded, and the one that
/// the spec names.
fn of_interest<'a>(deployment: &BundleDeployment, history: &'a [Revision]) -> impl Iterator<Item = &'a Revision> {
    let named = deployment.spec.rollout.as_ref().and_then(|rollout| rollout.to_revision);
    let named = history.iter().find(|revision| Some(revision.number) == named);
    let good = history.iter().rev().find(|revision| revision.outcome == Outcome::Succeeded);
    history.last().into_iter().chain(good).chain(named)
}

/// Dropping it ends the watches.
struct Watching {
    place: Place,
    expected: Arc<Expected>,
    task: AbortHandle,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The versions that were read last.
#[derive(Default)]
pub(crate) struct Expected(Mutex<Versions>);

impl Expected {
    fn all(&self) -> MutexGuard<'_, Versions> {
        self.0.lock()
    }

    /// Notes a version that a watch delivered. Returns whether it has changed.
    fn differs(&self, id: &(ValuesKind, String), seen: Option<Version>) -> bool {
        let mut all = self.all();
        match all.get_mut(id) {
            Some(known) if *known != seen => {
                *known = seen;
                true
            }
            _ => false,
        }
    }
}

impl ValuesWatches {
    /// Watches objects that were read in these versions on behalf of a BundleDeployment. `watch` runs until it is dropped.
    pub(crate) fn watch<F>(&self, name: &str, place: Place, versions: Versions, watch: impl FnOnce(Arc<Expected>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut all = self.all();
        if versions.is_empty() {
            if let Some(known) = all.get_mut(name) {
                known.watching = None;
            }
            return;
        }
        let known = all.entry(name.to_owned()).or_default();
        if let Some(watching) = known.watching.as_ref().filter(|watching| watching.place == place) {
            let mut expected = watching.expected.all();
            if expected.keys().eq(versions.keys()) && !watching.task.is_finished() {
                *expected = versions;
                return;
            }
        }
        let expected = Arc::new(Expected(Mutex::new(versions)));
        let task = tokio::spawn(watch(Arc::clone(&expected))).abort_handle();
        known.watching = Some(Watching { place, expected, task });
    }

    /// Notes the values to redact in everything that is reported about a BundleDeployment, and the objects that they were read from.
    pub(crate) fn hide(&self, name: &str, redactor: &Redactor, in_use: &[ValuesInUse]) {
        let read: Vec<ValuesInUse> = secrets(in_use).cloned().collect();
        let (before, redactor, others) = {
            let all = self.all();
            let before = all.get(name).and_then(|known| known.hidden.clone());
            let is_known = match &before {
                Some(before) => {
                    !before.is_capped && before.last == *redactor && read.iter().all(|secret| before.has_read(secret))
                }
                None => redactor.is_empty() && read.is_empty(),
            };
            if is_known {
                return;
            }
            let hidden = || all.values().filter_map(|known| known.hidden.as_ref());
            // BundleDeployments with the same Secret share its values.
            let shared = hidden().map(|hidden| &hidden.last).find(|last| *last == redactor);
            // Others may have given memory back. The values before are not known any more, as after a restart.
            let before = before.filter(|before| !before.is_capped);
            (before.unwrap_or_default(), shared.unwrap_or(redactor).clone(), memory(&all, name))
        };
        // Outside of the lock: this compares and sorts many values.
        let mut next = before.next(redactor, read);
        next.bytes = next.both.memory();
        let (needed, everything) = (next.bytes, Redactor::everything());
        let is_too_much = needed > SMALL && others.saturating_add(needed) > MEMORY;
        // Values that nothing is searched for take no memory.
        let is_unused = next.both == everything && next.last.memory() > SMALL;
        if is_too_much || is_unused {
            next = Hidden { last: everything.clone(), both: everything, bytes: 0, is_capped: true, ..next };
        }
        self.all().entry(name.to_owned()).or_default().hidden = Some(next);
    }

    /// Redacts the values of Secrets in everything that is reported about a BundleDeployment with this history. Quoted text is hidden, too,
    /// until the Secrets of the spec, and of the revisions that messages can be about, were read.
    pub(crate) fn redactor(&self, deployment: &BundleDeployment, history: &[Revision]) -> Redactor {
        let hidden = {
            let all = self.all();
            deployment.metadata.name.as_ref().and_then(|name| all.get(name)?.hidden.clone())
        };
        let is_known = |secret: &ValuesInUse| hidden.as_ref().is_some_and(|hidden| hidden.has_read(secret));
        let of_spec = hidden.is_none() && has_secrets(&deployment.spec.values_from);
        let of_history = of_interest(deployment, history).any(|revision| !secrets(&revision.values_from).all(is_known));
        let known = hidden.map(|hidden| hidden.both).unwrap_or_default();
        if of_spec || of_history { known.and(&Redactor::unknown()) } else { known }
    }

    /// Forgets a BundleDeployment.
    pub(crate) fn forget(&self, name: &str) {
        self.all().remove(name);
    }

    /// Stops all watches: the controller stops.
    pub(crate) fn end_all(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.0.lock()
    }
}

/// The memory for the values to hide of all others than `name`. Shared values count once.
fn memory(all: &HashMap<String, Known>, name: &str) -> usize {
    let others = all.iter().filter(|(other, _)| other.as_str() != name);
    let others = others.filter_map(|(_, known)| known.hidden.as_ref());
    let mut counted = BTreeSet::new();
    others.filter(|hidden| counted.insert(hidden.both.address())).map(|hidden| hidden.bytes).sum()
}

/// Calls `changed` whenever the version of one of these objects is not the expected one. Never completes.
pub(crate) async fn watch(
    client: Client,
    availability: Availability,
    namespace: String,
    expected: Arc<Expected>,
    changed: impl Fn() + Send + Sync,
) {
    let ids: Vec<(ValuesKind, String)> = expected.all().keys().cloned().collect();
    let watches = ids.iter().map(|id| {
        let (client, availability) = (client.clone(), availability.clone());
        let (namespace, expected, changed) = (namespace.as_str(), expected.as_ref(), &changed);
        async move {
            match id.0 {
                ValuesKind::ConfigMap => {
                    let api = Api::<PartialObjectMeta<ConfigMap>>::namespaced(client, namespace);
                    watch_one(api, availability, id, expected, changed).await;
                }
                ValuesKind::Secret => {
                    let api = Api::<PartialObjectMeta<Secret>>::namespaced(client, namespace);
                    watch_one(api, availability, id, expected, changed).await;
                }
            }
        }
    });
    join_all(watches).await;
}

async fn watch_one<K>(
    api: Api<K>,
    availability: Availability,
    id: &(ValuesKind, String),
    expected: &Expected,
    changed: impl Fn(),
) where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let only = watcher::Config::default().fields(&format!("metadata.name={}", id.1));
    let mut events = std::pin::pin!(reconnecting(move || watcher(api.clone(), only.clone()), availability));
    let mut unwatched = tokio::time::interval_at(tokio::time::Instant::now() + UNWATCHED, UNWATCHED);
    let (mut listed, mut found) = (false, None);
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            _ = unwatched.tick(), if !listed => {
                changed();
                continue;
            }
        };
        let seen = match event {
            None => return,
            Some(Event::Init) => {
                found = None;
                continue;
            }
            Some(Event::InitApply(object)) => {
                found = Some(Version::of(object.meta()));
                continue;
            }
            Some(Event::InitDone) => {
                listed = true;
                found.take()
            }
            Some(Event::Apply(object)) => Some(Version::of(object.meta())),
            Some(Event::Delete(_)) => None,
        };
        if expected.differs(id, seen) {
            changed();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn version(number: u32) -> Version {
        Version { uid: "u".into(), resource_version: number.to_string() }
    }

    fn versions(number: u32) -> Versions {
        [((ValuesKind::Secret, "db".to_owned()), Some(version(number)))].into()
    }

    fn place(namespace: &str) -> Place {
        Place { namespace: namespace.to_owned(), account: None }
    }

    #[tokio::test]
    async fn the_same_objects_are_watched_once_and_a_change_counts_once() {
        let watches = ValuesWatches::default();
        let begun = Arc::new(Mutex::new(Vec::new()));
        let watch = |place: Place, versions: Versions| {
            let begun = Arc::clone(&begun);
            watches.watch("a", place, versions, move |expected| {
                begun.lock().push(expected);
                std::future::pending()
            });
        };
        watch(place("n"), versions(1));
        watch(place("n"), versions(2));
        let expected = Arc::clone(&begun.lock()[0]);
        let id = (ValuesKind::Secret, "db".to_owned());
        assert!(!expected.differs(&id, Some(version(2))), "the version that was read last");
        assert!(expected.differs(&id, None) && !expected.differs(&id, None));
        assert!(!expected.differs(&(ValuesKind::ConfigMap, "db".to_owned()), Some(version(1))), "it is not watched");
        watch(place("m"), versions(2));
        assert_eq!(begun.lock().len(), 2, "another place");
        watch(place("m"), Versions::new());
        assert!(watches.all()["a"].watching.is_none());
    }

    #[test]
    fn values_are_hidden_before_they_are_known_and_after_they_have_changed() {
        let deployment = |kind: &str| -> BundleDeployment {
            serde_json::from_value(json!({
                "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "a"},
                "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"},
                         "valuesFrom": [{"kind": kind, "name": "x"}]},
            }))
            .unwrap()
        };
        let watches = ValuesWatches::default();
        assert_eq!(watches.redactor(&deployment("Secret"), &[]), Redactor::unknown());
        assert!(watches.redactor(&deployment("ConfigMap"), &[]).is_empty());
        for value in ["first", "second", "second"] {
            watches.hide("a", &Redactor::of([&json!(value)]), &[]);
        }
        assert_eq!(watches.redactor(&deployment("Secret"), &[]).text("first second"), "(hidden) (hidden)");
        watches.forget("a");
        assert_eq!(watches.redactor(&deployment("Secret"), &[]), Redactor::unknown());
    }

    #[test]
    fn values_of_a_revision_are_hidden_though_the_spec_no_longer_names_their_secret() {
        let deployment = |to: Value| -> BundleDeployment {
            serde_json::from_value(json!({
                "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "a"},
                "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"},
                         "rollout": {"toRevision": to}},
            }))
            .unwrap()
        };
        let secret = |version: &str| ValuesInUse {
            kind: ValuesKind::Secret,
            name: "db".to_owned(),
            uid: Some("u".to_owned()),
            resource_version: Some(version.to_owned()),
        };
        let revision = |number, outcome, values_from| Revision { number, outcome, values_from, ..Revision::default() };
        let history = [
            revision(1, Outcome::Succeeded, vec![secret("1")]),
            revision(2, Outcome::Succeeded, vec![secret("2")]),
            revision(3, Outcome::Failed, vec![]),
        ];
        let watches = ValuesWatches::default();
        let quotes = |to: Value, history: &[Revision]| {
            let shown = watches.redactor(&deployment(to), history).text("a \"b\" c").into_owned();
            !shown.contains('b')
        };
        // As after a restart.
        assert!(quotes(Value::Null, &history) && !quotes(Value::Null, &[]));
        let map = ValuesInUse { kind: ValuesKind::ConfigMap, ..secret("1") };
        let absent = ValuesInUse { uid: None, resource_version: None, ..secret("1") };
        assert!(!quotes(Value::Null, &[revision(1, Outcome::Succeeded, vec![map, absent])]));
        watches.hide("a", &Redactor::of([&json!("hunter2")]), &[secret("2")]);
        assert!(!quotes(Value::Null, &history), "what runs is known");
        assert!(quotes(json!(1), &history), "the revision that comes next is not");
        for version in ["3", "4"] {
            watches.hide("a", &Redactor::of([&json!("hunter2")]), &[secret(version)]);
        }
        assert!(!quotes(Value::Null, &history), "these versions have the same value");
        watches.hide("a", &Redactor::of([&json!("swordfish")]), &[secret("5")]);
        assert!(!quotes(Value::Null, &history), "the values before are known");
        watches.hide("a", &Redactor::of([&json!("another")]), &[secret("6")]);
        assert!(quotes(Value::Null, &history), "they are forgotten");
    }

    #[test]
    fn bundle_deployments_share_the_values_of_a_secret_and_the_sum_is_bounded() {
        let deployment = |name: &str| {
            BundleDeployment::new(
                name,
                serde_json::from_value(json!({
                    "installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"},
                }))
                .unwrap(),
            )
        };
        let watches = ValuesWatches::default();
        let redactor = |name: &str| watches.redactor(&deployment(name), &[]);
        for name in ["a", "b"] {
            watches.hide(name, &Redactor::of([&json!("hunter2")]), &[]);
        }
        assert!(redactor("a").is_shared_with(&redactor("b")) && redactor("a").is_shared_with(&redactor("a")));
        let large = |number: u32| {
            let large: Vec<String> = (0..1000).map(|value| format!("{number}-{value}-{}", "x".repeat(500))).collect();
            Redactor::of([&json!(large)])
        };
        // The last one is read again.
        for number in (0..100).chain([99]) {
            watches.hide(&number.to_string(), &large(number), &[]);
        }
        assert_eq!(watches.all()["99"].hidden.as_ref().unwrap().last.memory(), 0);
        let kept = memory(&watches.all(), "");
        assert!(kept > MEMORY / 2 && kept <= MEMORY + 2 * SMALL, "{kept}");
        assert_eq!(redactor("99"), Redactor::everything());
        watches.hide("small", &Redactor::of([&json!("swordfish")]), &[]);
        assert_eq!(redactor("small").text("a swordfish"), "a (hidden)");
        for number in 0..50 {
            watches.forget(&number.to_string());
        }
        watches.hide("99", &large(99), &[]);
        assert_eq!(redactor("99"), large(99), "others gave memory back");
    }
}
