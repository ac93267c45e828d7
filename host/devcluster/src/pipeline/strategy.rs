//! What only the server sets: identity, generation, status.
//!
//! The rules come from `PrepareForCreate` and `PrepareForUpdate` in `k8s.io/kubernetes/pkg/registry`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::reset;
use crate::{metadata, registry::Resource};

/// Fields of `metadata` that an update takes from the stored object.
const KEPT_ON_UPDATE: &[&str] =
    &["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"];

/// Built-in kinds whose `metadata.generation` counts changes of the specification.
const COUNTED: &[(&str, &str)] = &[
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "ReplicationController"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("policy", "PodDisruptionBudget"),
    ("scheduling.k8s.io", "PriorityClass"),
];

/// The finalizer that keeps a CRD until its objects are gone.
pub const CRD_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

fn counts_generation(resource: &Resource) -> bool {
    let kind = resource.kind();
    resource.custom.is_some() || COUNTED.contains(&(kind.group.as_str(), kind.kind.as_str()))
}

/// Gives a new object its identity and first status.
pub fn prepare_create(resource: &Resource, object: &mut Value, uid: &str, now: &str) {
    let map = metadata::of(object);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"] {
        map.remove(field);
    }
    map.insert("uid".to_owned(), uid.into());
    map.insert("creationTimestamp".to_owned(), now.into());
    metadata::set(map, "generation", counts_generation(resource).then(|| 1.into()));
    let fields = metadata::as_map(object);
    if resource.resource_type.status {
        fields.remove("status");
    }
    if resource.custom.is_none() {
        prepare_builtin_create(resource, object, uid);
    }
    prepare_write(resource, object);
}

fn prepare_builtin_create(resource: &Resource, object: &mut Value, uid: &str) {
    let fields = metadata::as_map(object);
    match (resource.kind().group.as_str(), resource.kind().kind.as_str()) {
        ("", "Namespace") => {
            let spec = metadata::child(fields, "spec");
            let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
            if let Some(finalizers) = finalizers.as_array_mut().filter(|all| !all.iter().any(|one| one == "kubernetes"))
            {
                finalizers.push("kubernetes".into());
            }
            fields.insert("status".to_owned(), json!({"phase": "Active"}));
        }
        ("", "Pod") => {
            fields.insert(
                "status".to_owned(),
                json!({"phase": "Pending", "qosClass": quality_of_service(fields.get("spec"))}),
            );
        }
        ("", "PersistentVolumeClaim" | "PersistentVolume") => {
            fields.insert("status".to_owned(), json!({"phase": "Pending"}));
        }
        ("", "Service") => {
            fields.insert("status".to_owned(), json!({"loadBalancer": {}}));
        }
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet" | "DaemonSet") | ("batch", "Job" | "CronJob") => {
            fields.insert("status".to_owned(), json!({}));
            if resource.kind().kind == "Job" {
                prepare_job(object, uid);
            }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let names = json!({"plural": "", "kind": ""});
            fields.insert(
                "status".to_owned(),
                json!({"conditions": null, "acceptedNames": names, "storedVersions": null}),
            );
        }
        ("policy", "PodDisruptionBudget") => {
            let none = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
            fields.insert("status".to_owned(), none.map(|field| (field, Value::from(0))).into_iter().collect());
        }
        _ => {}
    }
}

/// A Job whose selector is not set by hand selects its own Pods by its uid.
fn prepare_job(job: &mut Value, uid: &str) {
    let name = metadata::name(job).to_owned();
    let spec = metadata::child(metadata::as_map(job), "spec");
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let template = metadata::child(metadata::child(spec, "template"), "metadata");
    let labels = metadata::child(template, "labels");
    for prefix in ["", "batch.kubernetes.io/"] {
        labels.insert(format!("{prefix}controller-uid"), uid.into());
        labels.insert(format!("{prefix}job-name"), name.as_str().into());
    }
    spec.insert("selector".to_owned(), json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}));
}

fn quality_of_service(spec: Option<&Value>) -> &'static str {
    let containers = spec.and_then(|spec| spec.get("containers")).and_then(Value::as_array);
    let resources: Vec<&Value> =
        containers.into_iter().flatten().map(|container| container.get("resources").unwrap_or(&Value::Null)).collect();
    let amount =
        |resources: &Value, list: &str, name: &str| resources.get(list).and_then(|list| list.get(name)).cloned();
    let guaranteed = |resources: &&Value| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = amount(resources, "limits", name);
            limit.is_some() && amount(resources, "requests", name).is_none_or(|request| Some(request) == limit)
        })
    };
    let empty = |resources: &&Value| {
        ["limits", "requests"]
            .iter()
            .all(|list| resources.get(list).and_then(Value::as_object).is_none_or(Map::is_empty))
    };
    if resources.iter().all(empty) {
        "BestEffort"
    } else if resources.iter().all(guaranteed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Takes from the stored object what an update of the main endpoint or of a subresource may not change.
pub fn prepare_update(resource: &Resource, object: &mut Value, old: &Value, subresource: Option<&str>) {
    let managed_fields = object.pointer("/metadata/managedFields").cloned();
    match subresource {
        Some("status") if resource.custom.is_some() => {
            let status = object.get("status").cloned();
            *object = old.clone();
            metadata::set(metadata::as_map(object), "status", status);
        }
        Some("finalize") => {
            let finalizers = object.pointer("/spec/finalizers").cloned();
            *object = old.clone();
            let spec = metadata::child(metadata::as_map(object), "spec");
            metadata::set(spec, "finalizers", finalizers);
        }
        _ => reset::restore(object, old, reset::fields(resource, subresource)),
    }
    if subresource.is_none() && resource.is_core("namespaces") {
        let finalizers = old.pointer("/spec/finalizers").cloned();
        metadata::set(metadata::child(metadata::as_map(object), "spec"), "finalizers", finalizers);
    }
    let old_metadata = old.get("metadata");
    let kept =
        KEPT_ON_UPDATE.iter().map(|field| (*field, old_metadata.and_then(|metadata| metadata.get(*field)).cloned()));
    let map = metadata::of(object);
    for (field, value) in kept {
        metadata::set(map, field, value);
    }
    metadata::set(map, "managedFields", managed_fields);
    prepare_write(resource, object);
}

/// The rules for every write.
fn prepare_write(resource: &Resource, object: &mut Value) {
    match (resource.kind().group.as_str(), resource.kind().kind.as_str()) {
        ("", "Secret") => merge_string_data(object),
        ("", "Namespace") => {
            let name = metadata::name(object).to_owned();
            let labels = metadata::child(metadata::of(object), "labels");
            labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => record_storage_version(object),
        _ => {}
    }
}

/// `stringData` is write-only: its values go to `data`.
pub fn merge_string_data(secret: &mut Value) {
    let fields = metadata::as_map(secret);
    if let Some(Value::Object(plain)) = fields.remove("stringData") {
        let data = metadata::child(fields, "data");
        for (key, value) in plain {
            data.insert(key, STANDARD.encode(value.as_str().unwrap_or_default()).into());
        }
    }
}

/// Adds the storage version to `status.storedVersions`.
fn record_storage_version(crd: &mut Value) {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let storage = versions
        .filter(|version| version.get("storage") == Some(&Value::Bool(true)))
        .find_map(|version| version.get("name").cloned());
    let Some(storage) = storage else { return };
    let status = metadata::child(metadata::as_map(crd), "status");
    let stored = status.entry("storedVersions").or_insert_with(|| json!([]));
    if stored.is_null() {
        *stored = json!([]);
    }
    if let Some(stored) = stored.as_array_mut()
        && !stored.contains(&storage)
    {
        stored.push(storage);
    }
}

/// Counts the generation up when an update changed more than metadata and status.
pub fn count_generation(resource: &Resource, object: &mut Value, old: &Value) {
    if !counts_generation(resource) {
        return;
    }
    let ignores_status = resource.resource_type.status || resource.custom.is_none();
    let counted = |object: &Value| -> Map<String, Value> {
        let fields = object.as_object().into_iter().flatten();
        fields
            .filter(|(name, _)| !matches!(name.as_str(), "metadata" | "apiVersion" | "kind"))
            .filter(|(name, _)| !(ignores_status && *name == "status"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    if counted(object) != counted(old) {
        let generation = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
        metadata::of(object).insert("generation".to_owned(), (generation + 1).into());
    }
}
