//! A backup of everything that a test installed, and its restoration as backup tools do it.
//!
//! Such a tool reads objects one by one, and creates them again kind by kind: without UIDs, owner references, status and managed fields,
//! with labels of its own, and with a UID that the API server gives each of them.

use std::collections::BTreeMap;

use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    World,
    state::{key, stored},
    wait,
};

/// Kinds whose objects stay: the namespaces, and what the control plane and the controller write by themselves.
const KEPT: &[&str] = &["controllerrevisions", "leases", "namespaces"];

/// The kinds that are restored first; all others follow in the order of their names.
const FIRST: &[&str] = &["customresourcedefinitions", "secrets", "configmaps", "serviceaccounts"];

/// One object of a backup.
#[derive(Clone, Debug)]
struct Saved {
    resource: ApiResource,
    object: DynamicObject,
}

/// What a test installed, in the order in which it is restored.
#[derive(Clone, Debug)]
pub struct Backup {
    objects: Vec<Saved>,
}

/// The UIDs of objects, by kind and name.
pub type Uids = BTreeMap<String, String>;

impl Backup {
    /// Saves the objects in the namespaces of a world, and the cluster-scoped objects with its name.
    pub async fn take(world: &World) -> Self {
        let all = stored(&world.client, None, &ListParams::default()).await;
        let saved = all
            .into_iter()
            .filter(|(resource, object)| !KEPT.contains(&resource.plural.as_str()) && is_of(world, object));
        let mut objects: Vec<Saved> = saved.map(|(resource, object)| Saved { resource, object }).collect();
        let place = |plural: &str| FIRST.iter().position(|first| *first == plural).unwrap_or(FIRST.len());
        objects.sort_by_key(|saved| {
            (place(&saved.resource.plural), saved.resource.plural.clone(), saved.object.name_any())
        });
        Self { objects }
    }

    /// Deletes everything that was saved, finalizers or not, and waits until it is gone.
    pub async fn delete_all(&self, client: &Client) {
        // Custom resources after their CRD are gone with it.
        for saved in self.objects.iter().rev() {
            let (api, name) = (saved.api(client), saved.object.name_any());
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let _ = api.patch(&name, &PatchParams::default(), &free).await;
            let _ = api.delete(&name, &DeleteParams::background()).await;
        }
        for saved in &self.objects {
            let (api, name) = (saved.api(client), saved.object.name_any());
            wait::eventually("everything is gone", || async { matches!(api.get_opt(&name).await, Ok(None)) }).await;
        }
    }

    /// Restores the objects that are chosen by their kind and name, unless they exist.
    pub async fn restore(&self, client: &Client, is_chosen: impl Fn(&str, &str) -> bool) {
        for saved in self.objects.iter().filter(|saved| is_chosen(&saved.resource.kind, &saved.object.name_any())) {
            let (api, object) = (saved.api(client), saved.stripped());
            wait::eventually("the API server serves the kind", || async {
                match api.create(&PostParams::default(), &object).await {
                    Ok(_) => true,
                    Err(kube::Error::Api(status)) if status.is_already_exists() => true,
                    // A CRD that was just restored is not served at once.
                    Err(kube::Error::Api(status)) if status.code == 404 => false,
                    Err(error) => panic!("{} is not restored: {error}", saved.key()),
                }
            })
            .await;
        }
    }

    /// The UIDs that the saved objects have now, without objects that do not exist.
    pub async fn uids(&self, client: &Client) -> Uids {
        let mut uids = Uids::new();
        for saved in &self.objects {
            if let Ok(Some(found)) = saved.api(client).get_opt(&saved.object.name_any()).await {
                uids.insert(saved.key(), found.uid().unwrap_or_default());
            }
        }
        uids
    }

    /// The UIDs that the objects had when they were saved.
    pub fn saved_uids(&self) -> Uids {
        self.objects.iter().map(|saved| (saved.key(), saved.object.uid().unwrap_or_default())).collect()
    }
}

impl Saved {
    fn key(&self) -> String {
        key(&self.resource, &self.object)
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        match &self.object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        }
    }

    /// The object as a tool creates it again.
    fn stripped(&self) -> DynamicObject {
        let mut object = self.object.clone();
        let metadata = &mut object.metadata;
        (metadata.uid, metadata.resource_version, metadata.creation_timestamp) = (None, None, None);
        (metadata.generation, metadata.owner_references, metadata.managed_fields) = (None, None, None);
        metadata.labels.get_or_insert_default().insert("velero.io/restore-name".into(), "test".into());
        if let Some(content) = object.data.as_object_mut() {
            content.remove("status");
            if let Some(Value::Object(spec)) = content.get_mut("spec").filter(|_| self.resource.kind == "Service") {
                spec.remove("clusterIP");
                spec.remove("clusterIPs");
            }
        }
        object
    }
}

/// Whether an object belongs to a world. The API server creates a ConfigMap and a ServiceAccount in each namespace.
fn is_of(world: &World, object: &DynamicObject) -> bool {
    let name = object.name_any();
    if let Some(namespace) = object.namespace() {
        let rest = namespace.strip_prefix(&world.namespace);
        let is_ours =
            namespace == world.system_namespace || rest.is_some_and(|it| it.is_empty() || it.starts_with('-'));
        return is_ours && name != "kube-root-ca.crt" && name != "default";
    }
    let owner = object.labels().get("core.rukpak.io/owner-name");
    name.contains(world.run().name()) || owner.is_some_and(|owner| owner.contains(world.run().name()))
}
