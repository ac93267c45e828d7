//! A registry+v1 bundle.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    Bundle, PACKAGE,
    csv::{self, Permissions},
};
use crate::{ManifestsError, Settings, objects, yaml::yaml};

/// The kinds, besides CRDs, that OLM accepts in a bundle and that settings print. Policies, FlowSchemas, quotas and Namespaces are not among
/// them.
const KINDS: [&str; 9] = [
    "ClusterRole",
    "ConfigMap",
    "CustomResourceDefinition",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PrometheusRule",
    "Role",
    "Service",
    "ServiceMonitor",
];

/// A registry+v1 bundle of Chandler, for all namespaces. It has to be installed in the namespace of the settings: subjects of bindings name
/// it.
///
/// Without the admission policies, which the format cannot hold, users of the roles `edit` and `admin` may not write BundleDeployments.
///
/// # Errors
/// The settings contradict each other.
pub fn registry(settings: &Settings) -> Result<Bundle, ManifestsError> {
    // What depends on the policies must not assume them.
    let without_policies = Settings { admission_policies: false, ..settings.clone() };
    let all = objects(&without_policies)?;
    let permissions = Permissions::of(&all, &settings.namespace);
    let mut files = BTreeMap::new();
    let mut omitted = Vec::new();
    for object in &all {
        if is_in_csv(object) || permissions.has(object) {
            continue;
        }
        let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
        // Bindings that are left bind accounts of this namespace, or groups, to roles of the bundle.
        if KINDS.contains(&kind) || kind.ends_with("Binding") && kind.starts_with("Role") {
            let path = format!("manifests/{}_{}.yaml", name.replace(':', "-"), kind.to_lowercase());
            files.insert(path, yaml(&local(object, settings))?);
        } else {
            omitted.push(format!("{kind} {name}"));
        }
    }
    if settings.admission_policies {
        let policies = objects(settings)?.into_iter().filter(|object| !all.contains(object));
        omitted
            .extend(policies.map(|object| format!("{} {}", text(&object, "/kind"), text(&object, "/metadata/name"))));
    }
    let csv = csv::csv(settings, &all, &permissions)?;
    files.insert(format!("manifests/{PACKAGE}.clusterserviceversion.yaml"), yaml(&csv)?);
    let annotation =
        |name: &str, value: &str| (format!("operators.operatorframework.io.bundle.{name}.v1"), json!(value));
    let annotations: serde_json::Map<String, Value> = [
        annotation("mediatype", "registry+v1"),
        annotation("manifests", "manifests/"),
        annotation("metadata", "metadata/"),
        annotation("package", PACKAGE),
        annotation("channels", "alpha"),
        annotation("channel.default", "alpha"),
    ]
    .into_iter()
    .collect();
    files.insert("metadata/annotations.yaml".to_owned(), yaml(&json!({ "annotations": annotations }))?);
    Ok(Bundle { files, omitted })
}

/// Whether the ClusterServiceVersion says it.
fn is_in_csv(object: &Value) -> bool {
    matches!(text(object, "/kind"), "Deployment" | "ServiceAccount")
}

/// The object without the namespace that an installation chooses.
fn local(object: &Value, settings: &Settings) -> Value {
    let mut object = object.clone();
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata
        && metadata.get("namespace").and_then(Value::as_str) == Some(&settings.namespace)
    {
        metadata.remove("namespace");
    }
    object
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
