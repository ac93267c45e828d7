//! Namespaces: their default objects, and their deletion.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::object::{change, set_condition};
use crate::{
    api::{Api, delete::DeleteOptions},
    metadata,
    pipeline::{refine, strategy},
    registry::Resource,
    store::{Batch, Change, Event, Expected, Key, Scope},
};

/// The namespaces that every cluster has.
const FIRST: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];
/// The default objects of every namespace: table and name.
const KEPT: [(&str, &str); 2] = [("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")];
/// How often namespaces that are not empty yet are processed again.
const RETRY: Duration = Duration::from_millis(100);

/// Makes the first namespaces.
pub fn bootstrap(api: &Api) {
    for name in FIRST {
        create(api, "namespaces", "", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }
}

fn core(api: &Api, plural: &str) -> Option<Arc<Resource>> {
    api.registry.snapshot().resource("", "v1", plural).cloned()
}

/// Creates an object of the core group, unless it exists.
fn create(api: &Api, plural: &str, namespace: &str, mut object: Value) {
    let Some(resource) = core(api, plural) else { return };
    if !namespace.is_empty() {
        metadata::of(&mut object).insert("namespace".to_owned(), namespace.into());
    }
    let key = Key::new(Arc::clone(&resource.table), namespace, metadata::name(&object));
    strategy::prepare_create(&resource, &mut object, &api.identities.uid(&key), &api.clock.timestamp());
    refine::default(&resource, &mut object);
    // A mismatch means that it exists.
    let _ = api.store.put(key, Expected::Absent, object);
}

/// The controller.
pub struct Namespaces {
    api: Arc<Api>,
    authority: String,
}

impl Namespaces {
    /// A controller that publishes this certificate of the authority in every namespace.
    pub fn new(api: Arc<Api>, authority: String) -> Self {
        Self { api, authority }
    }

    /// Works until dropped.
    pub async fn run(self) {
        loop {
            let scope = Scope { resource: Some("namespaces".into()), namespace: None };
            let (listing, mut watch) = self.api.store.list_and_watch(scope);
            let [mut accounts, mut maps] = KEPT.map(|(table, _)| {
                let scope = Scope { resource: Some(table.into()), namespace: None };
                self.api.store.list_and_watch(scope).1
            });
            let mut terminating = false;
            for (key, _) in &listing.objects {
                terminating |= self.reconcile(key);
            }
            loop {
                let retry = async {
                    if terminating {
                        tokio::time::sleep(RETRY).await;
                    } else {
                        std::future::pending::<()>().await;
                    }
                };
                tokio::select! {
                    batch = watch.next() => {
                        let Ok(batch) = batch else { break };
                        for event in &batch.events {
                            terminating |= self.reconcile(&event.key);
                        }
                    }
                    batch = accounts.next() => {
                        let Ok(batch) = batch else { break };
                        self.restore(&batch);
                    }
                    batch = maps.next() => {
                        let Ok(batch) = batch else { break };
                        self.restore(&batch);
                    }
                    () = retry => terminating = self.sweep(),
                }
            }
        }
    }

    /// Makes again what every namespace has, where it was deleted.
    fn restore(&self, batch: &Batch) {
        for Event { change, key, .. } in &batch.events {
            if *change == Change::Deleted && KEPT.contains(&(&*key.resource, &*key.name)) {
                let namespace = Key::new("namespaces".into(), "", key.namespace.as_str());
                if self.api.store.get(&namespace).is_some_and(|namespace| !metadata::is_deleting(namespace.value())) {
                    self.reconcile(&namespace);
                }
            }
        }
    }

    /// Processes every terminating namespace. Returns whether any is left.
    fn sweep(&self) -> bool {
        let scope = Scope { resource: Some("namespaces".into()), namespace: None };
        let listing = self.api.store.list_now(&scope);
        let ending = listing.objects.iter().filter(|(_, object)| metadata::is_deleting(object.value()));
        ending.fold(false, |left, (key, _)| self.reconcile(key) || left)
    }

    /// Processes a namespace. Returns whether it must be processed again.
    fn reconcile(&self, key: &Key) -> bool {
        let Some(namespace) = self.api.store.get(key) else { return false };
        if metadata::is_deleting(namespace.value()) {
            return self.empty(key);
        }
        let name = &key.name;
        create(
            &self.api,
            "serviceaccounts",
            name,
            json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}),
        );
        create(
            &self.api,
            "configmaps",
            name,
            json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"},
            "data": {"ca.crt": self.authority}}),
        );
        false
    }

    /// Deletes the content of a namespace, then removes its finalizer. Returns whether any content is left.
    fn empty(&self, key: &Key) -> bool {
        let Some(namespaces) = core(&self.api, "namespaces") else { return false };
        let scope = Scope { resource: None, namespace: Some(key.name.clone()) };
        let snapshot = self.api.registry.snapshot();
        let listing = self.api.store.list_now(&scope);
        for (key, object) in &listing.objects {
            if let Some(resource) = snapshot.table(&key.resource)
                && !metadata::is_deleting(object.value())
            {
                // Gone already, or changed and tried again on the next look.
                let _ = self.api.remove(resource, key, &DeleteOptions::default());
            }
        }
        let left = self.api.store.list_now(&scope);
        if left.objects.is_empty() {
            change(&self.api, &namespaces, key, |namespace| {
                metadata::child(metadata::as_map(namespace), "spec").remove("finalizers");
            });
            return false;
        }
        let mut resources: HashMap<&str, usize> = HashMap::new();
        let mut finalizers: HashMap<String, usize> = HashMap::new();
        for (key, object) in &left.objects {
            *resources.entry(&*key.resource).or_default() += 1;
            for finalizer in metadata::finalizers(object.value()) {
                *finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
        let content =
            remaining(resources.into_iter().map(|(name, count)| (qualified(name), count)), "has", "resource instances");
        let held = remaining(finalizers.into_iter(), "in", "resource instances");
        let now = self.api.clock.timestamp();
        change(&self.api, &namespaces, key, |namespace| {
            let message = format!("Some resources are remaining: {content}");
            set_condition(namespace, "NamespaceContentRemaining", true, "SomeResourcesRemain", &message, &now);
            let message = format!("Some content in the namespace has finalizers remaining: {held}");
            set_condition(
                namespace,
                "NamespaceFinalizersRemaining",
                !held.is_empty(),
                "SomeFinalizersRemain",
                &message,
                &now,
            );
        });
        true
    }
}

/// Resource and group as conditions name them; the core group is the empty one.
fn qualified(resource: &str) -> String {
    if resource.contains('.') { resource.to_owned() } else { format!("{resource}.") }
}

fn remaining(counts: impl Iterator<Item = (String, usize)>, verb: &str, what: &str) -> String {
    let mut texts: Vec<String> = counts.map(|(name, count)| format!("{name} {verb} {count} {what}")).collect();
    texts.sort_unstable();
    texts.join(", ")
}
