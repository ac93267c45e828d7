//! Watches the ConfigMaps and Secrets of `spec.valuesFrom`, and knows which values to hide.

use std::{collections::HashMap, fmt::Debug, future::Future, sync::Arc, time::Duration};

use chandler_api::{BundleDeployment, ValuesKind};
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
    /// Redacts the values that were last read, and the values before, which the release that runs may have.
    redactor: Option<Redactor>,
    earlier: Redactor,
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

    /// Notes the values to redact in everything that is reported about a BundleDeployment.
    pub(crate) fn hide(&self, name: &str, redactor: &Redactor) {
        let mut all = self.all();
        if redactor.is_empty() && !all.contains_key(name) {
            return;
        }
        let known = all.entry(name.to_owned()).or_default();
        if known.redactor.as_ref() == Some(redactor) {
            return;
        }
        if let Some(before) = known.redactor.replace(redactor.clone()) {
            known.earlier = before;
        }
    }

    /// Redacts the values of Secrets in everything that is reported about a BundleDeployment.
    pub(crate) fn redactor(&self, deployment: &BundleDeployment) -> Redactor {
        let all = self.all();
        let known = deployment.metadata.name.as_ref().and_then(|name| all.get(name));
        match known.and_then(|known| Some((known.redactor.as_ref()?, &known.earlier))) {
            Some((redactor, earlier)) => redactor.and(earlier),
            None if has_secrets(&deployment.spec.values_from) => Redactor::unknown(),
            None => Redactor::default(),
        }
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
    use serde_json::json;

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
        assert_eq!(watches.redactor(&deployment("Secret")), Redactor::unknown());
        assert!(watches.redactor(&deployment("ConfigMap")).is_empty());
        for value in ["first", "second", "second"] {
            watches.hide("a", &Redactor::of([&json!(value)]));
        }
        assert_eq!(watches.redactor(&deployment("Secret")).text("first second"), "(hidden) (hidden)");
        watches.forget("a");
        assert_eq!(watches.redactor(&deployment("Secret")), Redactor::unknown());
    }
}
