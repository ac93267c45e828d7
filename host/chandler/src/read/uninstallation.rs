//! What `chandler uninstall` finds: the objects of Chandler, the installation, and who holds the Lease.

use chandler_api::{
    Alert, BundleDeployment, Catalog, ChangeApproval, ConditionType, Deletion, OwnKind, PlatformOperator,
    PlatformPolicy, ProvisionerClass, Receiver, Resolution, find_condition,
};
use chandler_controller::options::LEASE;
use chandler_core::ObjectKey;
use k8s_openapi::{
    api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, ServiceAccount},
    apimachinery::pkg::apis::meta::v1::Condition,
    jiff::Timestamp,
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams},
    core::{GroupVersionKind, PartialObjectMeta},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    cluster::{PAGE, pages},
    controller_lease::{Evidence, absent},
    foreign,
    installation_evidence::{self, not_read},
};
use crate::CommandError;

/// The annotation of a ConfigMap that decides a set.
const DECIDES: &str = "resolveset.chandler.dev/set";
/// The label of the ClusterOperators that the controller writes.
const CLUSTER_OPERATOR_OF: &str = "chandler.dev/cluster-operator-of";
/// What Kubernetes creates in every namespace.
const OF_KUBERNETES: [&str; 2] = ["default", "kube-root-ca.crt"];
/// The policy that refuses new objects while the controller is uninstalled, and its binding.
pub const LOCK: &str = "chandler-uninstall";

/// An object of one of the kinds of Chandler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its kind.
    pub kind: OwnKind,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// What keeps it while it is being deleted.
    pub finalizers: Vec<String>,
    /// The UIDs of the BundleDeployments that own it.
    pub owners: Vec<String>,
    /// `spec.deletion` of a BundleDeployment.
    pub deletion: Deletion,
    /// The reason of the condition that reports its deletion.
    pub reason: Option<String>,
    /// The message of this condition.
    pub message: Option<String>,
    /// The object.
    pub object: Value,
}

impl Held {
    /// Whether it has this finalizer.
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }
}

/// A ConfigMap that decides a set: the controller would create its BundleDeployment again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// An object of the installation.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it is.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: String,
    /// Its API.
    pub resource: ApiResource,
}

/// How to read objects of a kind of Chandler.
pub fn resource(kind: OwnKind) -> ApiResource {
    match kind {
        OwnKind::BundleDeployment => ApiResource::erase::<BundleDeployment>(&()),
        OwnKind::ProvisionerClass => ApiResource::erase::<ProvisionerClass>(&()),
        OwnKind::ChangeApproval => ApiResource::erase::<ChangeApproval>(&()),
        OwnKind::Catalog => ApiResource::erase::<Catalog>(&()),
        OwnKind::Resolution => ApiResource::erase::<Resolution>(&()),
        OwnKind::PlatformOperator => ApiResource::erase::<PlatformOperator>(&()),
        OwnKind::PlatformPolicy => ApiResource::erase::<PlatformPolicy>(&()),
        OwnKind::Receiver => ApiResource::erase::<Receiver>(&()),
        OwnKind::Alert => ApiResource::erase::<Alert>(&()),
    }
}

/// All objects of the kinds of Chandler. A kind that is not served has none.
pub async fn held(client: &Client) -> Result<Vec<Held>, CommandError> {
    let mut all = Vec::new();
    for kind in OwnKind::ALL {
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource(*kind));
        let objects = foreign::pages(&api, ListParams::default()).await;
        let objects = objects.map_err(|error| not_read(&format!("the {}", kind.plural()), &error))?.unwrap_or_default();
        all.extend(objects.into_iter().filter_map(|object| held_object(*kind, object)));
    }
    Ok(all)
}

fn held_object(kind: OwnKind, object: DynamicObject) -> Option<Held> {
    let own = OwnKind::BundleDeployment;
    let owners = object.owner_references().iter().filter(|owner| OwnKind::of(group(owner), &owner.kind) == Some(own));
    let conditions = object.data.pointer("/status/conditions").cloned().unwrap_or_default();
    let conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap_or_default();
    let type_ = if kind == own { ConditionType::Progressing } else { ConditionType::Ready };
    let condition = find_condition(&conditions, type_);
    let deletion = object.data.pointer("/spec/deletion").filter(|_| kind == own).cloned().unwrap_or_default();
    Some(Held {
        kind,
        name: object.name_any(),
        uid: object.uid()?,
        is_deleting: object.metadata.deletion_timestamp.is_some(),
        finalizers: object.finalizers().to_vec(),
        owners: owners.map(|owner| owner.uid.clone()).collect(),
        deletion: serde_json::from_value(deletion).unwrap_or_default(),
        reason: condition.map(|it| it.reason.clone()),
        message: condition.map(|it| it.message.clone()),
        object: serde_json::to_value(object).ok()?,
    })
}

fn group(owner: &k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference) -> &str {
    owner.api_version.split_once('/').map_or("", |(group, _)| group)
}

/// The ConfigMaps of the system namespace that decide sets.
pub async fn decisions(client: &Client, system_namespace: &str) -> Result<Vec<Decision>, CommandError> {
    let all = metadata::<ConfigMap>(client, system_namespace).await?;
    let decides = all.into_iter().filter(|map| map.annotations().contains_key(DECIDES));
    let decision = |map: PartialObjectMeta<ConfigMap>| {
        Some(Decision { namespace: system_namespace.to_owned(), name: map.name_any(), uid: map.uid()? })
    };
    Ok(decides.filter_map(decision).collect())
}

/// The policy that refuses new objects, and its binding, if they exist.
pub async fn lock(client: &Client) -> Result<Vec<Part>, CommandError> {
    let mut found = Vec::new();
    for kind in ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"] {
        let key = ObjectKey {
            group: "admissionregistration.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: LOCK.to_owned(),
        };
        found.extend(part(client, key).await?);
    }
    Ok(found)
}

/// An object of the installation; `None` if it does not exist, or its kind does not.
pub async fn part(client: &Client, key: ObjectKey) -> Result<Option<Part>, CommandError> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&key.group, &key.version, &key.kind));
    match api(client, &resource, key.namespace.as_deref()).get_metadata_opt(&key.name).await {
        Ok(object) => Ok(object.and_then(|object| Some(Part { key, uid: object.uid()?, resource }))),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(not_read(&key.to_string(), &error)),
    }
}

/// The API of a kind, in a namespace if it has one.
pub fn api(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

pub(super) async fn cluster_operators(client: &Client) -> Result<Vec<Part>, CommandError> {
    let (group, version, kind) = ("config.openshift.io", "v1", "ClusterOperator");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let selected = ListParams::default().labels(CLUSTER_OPERATOR_OF).limit(PAGE);
    let found = match api(client, &resource, None).list_metadata(&selected).await {
        Ok(found) => found.items,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        Err(error) => return Err(not_read("the ClusterOperators", &error)),
    };
    let part = |object: PartialObjectMeta<DynamicObject>| {
        let (group, version, kind) = (group.to_owned(), version.to_owned(), kind.to_owned());
        let key = ObjectKey { group, version, kind, namespace: None, name: object.name_any() };
        Some(Part { key, uid: object.uid()?, resource: resource.clone() })
    };
    Ok(found.into_iter().filter_map(part).collect())
}

/// What the namespace of the controller holds: it is deleted with the namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceContent {
    /// Secrets: records, and those that users created.
    pub secrets: Vec<String>,
    /// ConfigMaps: uploads, and those that users created.
    pub config_maps: Vec<String>,
    /// ServiceAccounts, the one of the controller included.
    pub service_accounts: Vec<String>,
    /// Volumes.
    pub persistent_volume_claims: Vec<String>,
}

/// Reads the names of what is in the namespace of the controller, and no values.
pub async fn namespace_content(client: &Client, namespace: &str) -> Result<NamespaceContent, CommandError> {
    Ok(NamespaceContent {
        secrets: names::<Secret>(client, namespace).await?,
        config_maps: names::<ConfigMap>(client, namespace).await?,
        service_accounts: names::<ServiceAccount>(client, namespace).await?,
        persistent_volume_claims: names::<PersistentVolumeClaim>(client, namespace).await?,
    })
}

async fn names<K>(client: &Client, namespace: &str) -> Result<Vec<String>, CommandError>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let found = metadata::<K>(client, namespace).await?.into_iter().map(|object| object.name_any());
    Ok(found.filter(|name| !OF_KUBERNETES.contains(&name.as_str())).collect())
}

async fn metadata<K>(client: &Client, namespace: &str) -> Result<Vec<PartialObjectMeta<K>>, CommandError>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let all = pages(ListParams::default(), async |page: &ListParams| api.list_metadata(page).await).await;
    all.map_err(|error| not_read(&format!("the {} of {namespace}", K::plural(&())), &error))
}

/// Who holds the Lease of the controller, or why that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Controller {
    /// It runs.
    Holds(String),
    /// No controller runs: the message.
    Absent(String),
}

/// Reads the Lease of the controller.
pub async fn controller(client: &Client, system_namespace: &str) -> Result<Controller, CommandError> {
    let (leases, now) = (installation_evidence::leases(client, system_namespace).await?, Timestamp::now());
    if let Some(holder) = installation_evidence::live_holder(&leases, system_namespace, now) {
        return Ok(Controller::Holds(holder));
    }
    let lease = leases.iter().find(|lease| lease.name_any() == LEASE);
    Ok(Controller::Absent(absent(lease, system_namespace, Evidence::Unobserved, now).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use chandler_api::DeletionPolicy;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_read_with_what_its_deletion_depends_on() {
        let object = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
            "metadata": {
                "name": "a", "uid": "1", "finalizers": ["chandler.dev/teardown"],
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [
                    {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "name": "set", "uid": "2"},
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "3"},
                ],
            },
            "spec": {"deletion": {"policy": "Orphan"}},
            "status": {"conditions": [{
                "type": "Progressing", "status": "True", "reason": "Deleting", "message": "1 object remains",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        });
        let held = held_object(OwnKind::BundleDeployment, serde_json::from_value(object).unwrap()).unwrap();
        assert!(held.is_deleting && held.has_finalizer("chandler.dev/teardown"));
        assert_eq!((held.owners, held.deletion.policy), (vec!["2".to_owned()], Some(DeletionPolicy::Orphan)));
        assert_eq!((held.reason.as_deref(), held.message.as_deref()), (Some("Deleting"), Some("1 object remains")));
        let bare = json!({"metadata": {"name": "a", "uid": "1"}, "spec": {"deletion": 1}});
        let held = held_object(OwnKind::BundleDeployment, serde_json::from_value(bare).unwrap()).unwrap();
        assert_eq!((held.is_deleting, held.deletion, held.reason), (false, Deletion::default(), None));
    }
}
