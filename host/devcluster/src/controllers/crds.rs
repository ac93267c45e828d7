//! CustomResourceDefinitions: names, establishment, serving, deletion.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use chandler_devcluster_apimachinery::schema::CustomResourceDefinition;
use serde_json::{Value, json};

use super::object::{change, remove_finalizer, set_condition};
use crate::{
    api::{Api, delete::DeleteOptions},
    clock::Moment,
    metadata,
    pipeline::strategy::CRD_FINALIZER,
    registry::{Resource, table_name},
    store::{Key, Listing, Object, Scope},
};

/// The table of CRDs.
const TABLE: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// A CRD with more versions is processed outside of the reactor.
const FEW: usize = 32;
/// How often a CRD whose objects are still there is processed again, besides when they change.
const RETRY: Duration = Duration::from_millis(100);

/// The parts of a CRD that determine how it is served.
#[derive(Debug, PartialEq, Eq)]
struct Served {
    uid: String,
    /// Tells one spec from another.
    generation: Option<i64>,
    default_on_read: bool,
    terminating: bool,
}

/// The controller.
pub struct Crds {
    api: Arc<Api>,
    established_delay: Duration,
    /// When each CRD whose names are accepted becomes established.
    due: HashMap<String, Moment>,
    /// The served parts of each CRD, so that a change of its status alone does not change the served resources.
    served: HashMap<String, Served>,
    /// CRDs that are being deleted and whose objects are still there.
    emptying: HashSet<String>,
}

impl Crds {
    /// A controller that establishes a CRD this long after its names were accepted.
    pub fn new(api: Arc<Api>, established_delay: Duration) -> Self {
        Self { api, established_delay, due: HashMap::new(), emptying: HashSet::new(), served: HashMap::new() }
    }

    /// Serves what was established before, so that it is there when the first request comes.
    pub fn resume(&mut self) {
        self.observe_all(&self.api.store.list_now(&scope()));
    }

    /// Looks first at those whose names were accepted, so that no other takes them.
    fn observe_all(&mut self, listing: &Listing) {
        let (established, others): (Vec<_>, Vec<_>) =
            listing.objects.iter().partition(|(_, object)| has_condition(object.value(), "Established"));
        for (key, object) in established.into_iter().chain(others) {
            self.observe(key, object);
        }
    }

    /// Works until dropped.
    pub async fn run(mut self) {
        loop {
            let (listing, mut watch) = self.api.store.list_and_watch(scope());
            let Some(observed) = self.beside(move |this| this.observe_all(&listing)).await else { return };
            self = observed;
            loop {
                let (clock, due) = (self.api.clock.clone(), self.due.values().min().copied());
                let timer = async {
                    match due {
                        Some(due) => clock.sleep_until(due).await,
                        None => std::future::pending().await,
                    }
                };
                let emptying = !self.emptying.is_empty();
                let of = |names: Vec<String>| names.into_iter().map(|name| Key::new(TABLE.into(), "", name)).collect();
                let keys: Vec<Key> = tokio::select! {
                    batch = watch.next() => {
                        let Ok(batch) = batch else { break };
                        let mut keys: Vec<Key> = batch.events.into_iter().map(|event| event.key).collect();
                        keys.dedup();
                        keys
                    }
                    () = timer => of(self.all_due()),
                    () = tokio::time::sleep(RETRY), if emptying => {
                        of(std::mem::take(&mut self.emptying).into_iter().collect())
                    }
                };
                if !keys.iter().any(|key| self.is_large(key)) {
                    for key in &keys {
                        self.reconcile(key);
                    }
                    continue;
                }
                let work = move |this: &mut Self| keys.iter().for_each(|key| this.reconcile(key));
                let Some(reconciled) = self.beside(work).await else { return };
                self = reconciled;
            }
        }
    }

    /// Works on a thread outside of the reactor: a CRD may have thousands of versions, each with a schema to compile. None when the runtime
    /// ends.
    async fn beside(mut self, work: impl FnOnce(&mut Self) + Send + 'static) -> Option<Self> {
        let worked = tokio::task::spawn_blocking(move || {
            work(&mut self);
            self
        });
        worked.await.ok()
    }

    /// Whether a CRD has so many versions that processing it takes long. Other CRDs take effect without yielding.
    fn is_large(&self, key: &Key) -> bool {
        let object = self.api.store.get(key);
        let versions = object.as_ref().and_then(|object| object.value().pointer("/spec/versions")?.as_array());
        versions.is_some_and(|versions| versions.len() > FEW)
    }

    fn all_due(&self) -> Vec<String> {
        let now = self.api.clock.moment();
        self.due.iter().filter(|(_, due)| **due <= now).map(|(name, _)| name.clone()).collect()
    }

    fn reconcile(&mut self, key: &Key) {
        if let Some(object) = self.api.store.get(key) {
            self.observe(key, &object);
        } else {
            self.due.remove(&key.name);
            self.served.remove(&key.name);
            self.api.registry.withdraw(&key.name);
        }
    }

    fn observe(&mut self, key: &Key, object: &Object) {
        let value = object.value();
        let crd = match CustomResourceDefinition::parse(value) {
            Ok(crd) => crd,
            Err(error) => {
                let message = error.to_string();
                self.change(key, |value, now| {
                    set_condition(value, "NonStructuralSchema", true, "Violations", &message, now);
                });
                return;
            }
        };
        if metadata::is_deleting(value) {
            self.finalize(key, value, &crd);
            return;
        }
        let established = has_condition(value, "Established");
        if let Some((reason, message)) = self.name_conflict(&key.name, &crd).or_else(|| own_name(value, &crd)) {
            // Established CRDs stay, with the names that were accepted before.
            if established {
                let short_names = accepted(value, "shortNames");
                self.serve(key, value, CustomResourceDefinition { short_names, ..crd }, true, false);
            }
            self.change(key, |value, now| {
                set_condition(value, "NamesAccepted", false, reason, &message, now);
                if !established {
                    set_condition(value, "Established", false, "NotAccepted", "not all names are accepted", now);
                }
            });
            return;
        }
        let now = self.api.clock.moment();
        let (api, usual) = (&self.api, self.established_delay);
        let delay = || api.faults.established_delay(&key.name).unwrap_or(usual);
        let due = *self.due.entry(key.name.clone()).or_insert_with(|| now + delay());
        if !established && due > now {
            self.change(key, |value, now| {
                accept_names(value, now);
                keep_for_its_objects(value);
            });
            return;
        }
        self.due.remove(&key.name);
        let changed = value.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(1) > 1;
        self.serve(key, value, crd, changed, false);
        self.change(key, |value, now| {
            accept_names(value, now);
            keep_for_its_objects(value);
            set_condition(
                value,
                "Established",
                true,
                "InitialNamesAccepted",
                "the initial names have been accepted",
                now,
            );
        });
    }

    fn serve(
        &mut self,
        key: &Key,
        value: &Value,
        crd: CustomResourceDefinition,
        default_on_read: bool,
        terminating: bool,
    ) {
        let generation = value.pointer("/metadata/generation").and_then(Value::as_i64);
        let served = Served { uid: metadata::uid(value).to_owned(), generation, default_on_read, terminating };
        if self.served.get(&key.name) != Some(&served) {
            self.api.registry.serve(&key.name, crd, default_on_read, terminating);
            self.served.insert(key.name.clone(), served);
        }
    }

    /// Whether another CRD of the group has one of the names: reason and message.
    fn name_conflict(&self, name: &str, crd: &CustomResourceDefinition) -> Option<(&'static str, String)> {
        let snapshot = self.api.registry.snapshot();
        let others = snapshot.resources().iter().filter(|resource| {
            resource.kind().group == crd.group && resource.custom.as_ref().is_none_or(|custom| custom.crd != name)
        });
        for other in others {
            if other.kind().kind == crd.kind {
                return Some(("KindConflict", format!("{:?} is already in use", crd.kind)));
            }
            if other.list_kind() == crd.list_kind {
                return Some(("ListKindConflict", format!("{:?} is already in use", crd.list_kind)));
            }
            let names = &other.resource_type;
            let taken = |name: &str| {
                names.plural == name || names.singular == name || names.short_names.iter().any(|short| short == name)
            };
            let short_names = crd.short_names.iter().map(|name| ("ShortNamesConflict", name));
            let mut wanted =
                [("PluralConflict", &crd.plural), ("SingularConflict", &crd.singular)].into_iter().chain(short_names);
            if let Some((reason, conflict)) = wanted.find(|(_, wanted)| taken(wanted)) {
                return Some((reason, format!("{conflict:?} is already in use")));
            }
        }
        None
    }

    /// Deletes the objects of a CRD that is being deleted, then lets it go.
    fn finalize(&mut self, key: &Key, value: &Value, crd: &CustomResourceDefinition) {
        if !self.api.store.get(key).is_some_and(|object| metadata::finalizers(object.value()).contains(&CRD_FINALIZER))
        {
            return;
        }
        let table = table_name(&crd.group, &crd.plural);
        if has_condition(value, "Established") {
            self.serve(key, value, crd.clone(), true, true);
        }
        self.change(key, |value, now| {
            let message = "CustomResource deletion is in progress";
            set_condition(value, "Terminating", true, "InstanceDeletionInProgress", message, now);
        });
        let scope = Scope { resource: Some(Arc::clone(&table)), namespace: None };
        let listing = self.api.store.list_now(&scope);
        if let Some(resource) = self.api.registry.snapshot().table(&table) {
            for (key, object) in &listing.objects {
                if !metadata::is_deleting(object.value()) {
                    // Gone already, or changed and tried again on the next look.
                    let _ = self.api.remove(resource, key, &DeleteOptions::default());
                }
            }
        }
        let left = self.api.store.list_now(&scope);
        if left.objects.is_empty() {
            self.due.remove(&key.name);
            self.change(key, |value, now| {
                set_condition(value, "Terminating", false, "InstanceDeletionCompleted", "removed all instances", now);
                remove_finalizer(value, CRD_FINALIZER);
            });
        } else {
            self.emptying.insert(key.name.clone());
        }
    }

    /// Changes a CRD; `with` also gets the time.
    fn change(&self, key: &Key, with: impl Fn(&mut Value, &str)) {
        if let Some(resource) = self.crd_resource() {
            let now = self.api.clock.timestamp();
            change(&self.api, &resource, key, |value| with(value, &now));
        }
    }

    fn crd_resource(&self) -> Option<Arc<Resource>> {
        self.api.registry.snapshot().table(TABLE).cloned()
    }
}

fn scope() -> Scope {
    Scope { resource: Some(TABLE.into()), namespace: None }
}

fn has_condition(value: &Value, condition_type: &str) -> bool {
    let conditions = value.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.into_iter().any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some(condition_type)
            && condition.get("status").and_then(Value::as_str) == Some("True")
    })
}

/// Lets the CRD wait for the end of its objects when it is deleted.
fn keep_for_its_objects(crd: &mut Value) {
    let map = metadata::of(crd);
    let finalizers = map.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|finalizer| finalizer == CRD_FINALIZER)
    {
        finalizers.push(CRD_FINALIZER.into());
    }
}

/// The names in a list of `status.acceptedNames`.
fn accepted(crd: &Value, list: &str) -> Vec<String> {
    let names = crd.pointer("/status/acceptedNames").and_then(|names| names.get(list)?.as_array());
    names.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether a short name that an update adds is another name of the same CRD, which the API server counts as in use: reason and message.
fn own_name(value: &Value, crd: &CustomResourceDefinition) -> Option<(&'static str, String)> {
    value.pointer("/status/acceptedNames/plural").and_then(Value::as_str).filter(|plural| !plural.is_empty())?;
    let known = accepted(value, "shortNames");
    let mut added = crd.short_names.iter().filter(|name| !known.contains(name));
    let conflict = added.find(|name| **name == crd.plural || **name == crd.singular)?;
    Some(("ShortNamesConflict", format!("{conflict:?} is already in use")))
}

fn accept_names(crd: &mut Value, now: &str) {
    let mut names = crd.pointer("/spec/names").cloned().unwrap_or_else(|| json!({}));
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let accepted = metadata::as_map(&mut names);
    accepted.entry("listKind").or_insert_with(|| format!("{kind}List").into());
    accepted.entry("singular").or_insert_with(|| kind.to_lowercase().into());
    metadata::child(metadata::as_map(crd), "status").insert("acceptedNames".to_owned(), names);
    set_condition(crd, "NamesAccepted", true, "NoConflicts", "no conflicts found", now);
}
