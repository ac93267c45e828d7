//! A backup of everything that a test installed, and its restoration as backup tools do it.
//!
//! Such a tool reads objects one by one, and creates them again kind by kind: without UIDs, owner references, status and managed fields,
//! with labels of its own, and with a UID that the API server gives each of them.

use std::{collections::BTreeMap, time::Duration};

use kube::{
    Api, Client, Discovery, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, PropagationPolicy},
    discovery::{Scope, verbs},
};
use serde_json::{Value, json};

use crate::{World, wait};

/// Kinds whose objects the control plane creates.
const DERIVED: &[&str] =
    &["controllerrevisions", "endpoints", "endpointslices", "events", "leases", "namespaces", "pods", "replicasets"];

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
        let discovery =
            Discovery::new(world.client.clone()).run_aggregated().await.expect("the API server serves discovery");
        let kinds = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
        let mut objects = Vec::new();
        for (resource, capabilities) in kinds {
            if !capabilities.supports_operation(verbs::LIST)
                || !capabilities.supports_operation(verbs::CREATE)
                || DERIVED.contains(&resource.plural.as_str())
            {
                continue;
            }
            let all = Api::<DynamicObject>::all_with(world.client.clone(), &resource);
            let Ok(list) = all.list(&ListParams::default()).await else { continue };
            let is_namespaced = capabilities.scope == Scope::Namespaced;
            let saved = list.items.into_iter().filter(|object| is_of(world, is_namespaced, object));
            objects.extend(saved.map(|object| Saved { resource: resource.clone(), object }));
        }
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
            let orphan =
                DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
            let _ = api.delete(&name, &orphan).await;
        }
        for saved in &self.objects {
            let (api, name) = (saved.api(client), saved.object.name_any());
            wait::eventually("everything is gone", || async { matches!(api.get_opt(&name).await, Ok(None) | Err(_)) })
                .await;
        }
    }

    /// Restores the objects that are chosen by their kind and name, unless they exist.
    pub async fn restore(&self, client: &Client, is_chosen: impl Fn(&str, &str) -> bool) {
        for saved in self.objects.iter().filter(|saved| is_chosen(&saved.resource.kind, &saved.object.name_any())) {
            let object = saved.stripped();
            let api = saved.api(client);
            // A CRD that was just restored is not served at once.
            let mut left = 100_u32;
            loop {
                match api.create(&PostParams::default(), &object).await {
                    Ok(_) => break,
                    Err(kube::Error::Api(status)) if status.is_already_exists() => break,
                    Err(kube::Error::Api(status)) if status.code == 404 && left > 0 => {
                        left -= 1;
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    Err(error) => {
                        panic!("{} {} is not restored: {error}", saved.resource.kind, saved.object.name_any())
                    }
                }
            }
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
        format!("{} {}", self.resource.kind, self.object.name_any())
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
fn is_of(world: &World, is_namespaced: bool, object: &DynamicObject) -> bool {
    let name = object.name_any();
    if is_namespaced {
        let namespace = object.namespace().unwrap_or_default();
        let is_ours = namespace == world.namespace || namespace == world.system_namespace;
        return is_ours && name != "kube-root-ca.crt" && name != "default";
    }
    let owner = object.labels().get("core.rukpak.io/owner-name");
    name.contains(world.run().name()) || owner.is_some_and(|owner| owner.contains(world.run().name()))
}
