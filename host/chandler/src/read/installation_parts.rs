//! The objects of an installation that exist in a cluster, and the objects of others that only have their names.

use std::collections::{BTreeMap, BTreeSet};

use chandler_controller::options::{INSTALLATIONS_NAMESPACE, LEASE};
use chandler_core::ObjectKey;
use chandler_manifests::installation;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, ResourceExt as _,
    api::ApiResource,
    core::{GroupVersionKind, TypeMeta},
};
use serde_json::Value;

use super::{
    installation_evidence::{self, CONTROLLER, not_read, runs_controller},
    uninstallation::{Part, api, cluster_operators, part},
};
use crate::CommandError;

/// How many objects are read at once.
const AT_ONCE: usize = 8;
/// The option of the controller that names the namespace of the Lease of the cluster.
const LEASE_NAMESPACE: &str = "--cluster-lease-namespace";
/// The kinds of admission policies and their bindings.
const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";
/// What a text contains that only objects of Chandler have.
const MARKS: [&str; 4] = ["chandler", "rukpak.io", "deppy.io", "platform.openshift.io"];

/// Where the controller is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its namespace.
    pub system_namespace: String,
    /// The namespace of the Lease that all installations of a cluster share.
    pub lease_namespace: String,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Parts {
    /// The objects of the installation, in the order in which they are applied.
    pub ours: Vec<Part>,
    /// Objects of others, with the names of objects of an installation.
    pub foreign: Vec<ObjectKey>,
    /// What could not be read.
    pub unread: Vec<(String, CommandError)>,
}

impl Parts {
    /// Everything was read, or else the first error.
    fn complete(mut self) -> Result<Self, CommandError> {
        if self.unread.is_empty() { Ok(self) } else { Err(self.unread.remove(0).1) }
    }
}

/// Where the controller is: its Deployment names the namespace of the Lease, unless the caller does.
pub async fn place(
    client: &Client,
    system_namespace: &str,
    lease_namespace: Option<&str>,
) -> Result<Place, CommandError> {
    let lease_namespace = if let Some(named) = lease_namespace {
        named.to_owned()
    } else {
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), system_namespace);
        let deployment = deployments.get_opt(CONTROLLER).await;
        let deployment =
            deployment.map_err(|error| not_read(&format!("Deployment {system_namespace}/{CONTROLLER}"), &error))?;
        let named = deployment.as_ref().filter(|it| runs_controller(it)).and_then(lease_namespace_of);
        named.unwrap_or_else(|| INSTALLATIONS_NAMESPACE.to_owned())
    };
    Ok(Place { system_namespace: system_namespace.to_owned(), lease_namespace })
}

fn lease_namespace_of(deployment: &Deployment) -> Option<String> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    let mut words = pod.containers.iter().flat_map(|it| it.command.iter().chain(&it.args).flatten());
    while let Some(word) = words.next() {
        match word.strip_prefix(LEASE_NAMESPACE) {
            Some("") => return words.next().cloned(),
            Some(value) if value.starts_with('=') => return value.get(1..).map(str::to_owned),
            _ => {}
        }
    }
    None
}

/// The objects of the installation that exist. The Leases and ClusterOperators of the controller are among them.
pub async fn parts(client: &Client, place: &Place) -> Result<Parts, CommandError> {
    read(client, place).await.complete()
}

/// Like [`parts`], but each object that cannot be read is missing by itself.
pub async fn read(client: &Client, place: &Place) -> Parts {
    let mut parts = Parts::default();
    let namespace = place.system_namespace.as_str();
    let printed = match installation(namespace) {
        Ok(printed) => printed,
        Err(error) => {
            let what = "failed to list the objects of an installation";
            parts.unread.push((what.to_owned(), CommandError::failed(what).because(&error)));
            return parts;
        }
    };
    let policies = policies(&printed);
    let mut wanted: Vec<(ObjectKey, Option<Value>)> =
        printed.into_iter().filter_map(|object| Some((key(&object)?, Some(object)))).collect();
    match installation_evidence::leases(client, namespace).await {
        Ok(leases) => wanted.extend(leases.iter().map(|found| (lease(namespace, &found.name_any()), None))),
        Err(error) => parts.unread.push((format!("the Leases of {namespace}"), error)),
    }
    wanted.push((lease(&place.lease_namespace, LEASE), None));
    let found = wanted.into_iter().map(|(key, printed)| async move {
        let printed = printed.filter(|_| is_compared(&key, namespace));
        (key.clone(), find(client, key, printed.as_ref()).await)
    });
    for (key, found) in stream::iter(found).buffered(AT_ONCE).collect::<Vec<_>>().await {
        match found {
            Ok(Some(Found::Ours(part))) => parts.ours.push(*part),
            Ok(Some(Found::Foreign)) => parts.foreign.push(key),
            Ok(None) => {}
            Err(error) => parts.unread.push((key.to_string(), error)),
        }
    }
    keep_foreign_bindings(&mut parts, &policies);
    match cluster_operators(client).await {
        Ok(operators) => parts.ours.extend(operators),
        Err(error) => parts.unread.push(("the ClusterOperators".to_owned(), error)),
    }
    parts
}

/// The policy that each binding of an installation binds, by the name of the binding.
fn policies(printed: &[Value]) -> BTreeMap<String, String> {
    let text = |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let bindings = printed.iter().filter(|object| object.get("kind").and_then(Value::as_str) == Some(BINDING));
    bindings.filter_map(|object| Some((text(object, "/metadata/name")?, text(object, "/spec/policyName")?))).collect()
}

/// Leaves a binding to others unless the policy that it binds is Chandler's. A binding has nothing of its own that shows whose it is: any product
/// may bind a policy with one of these names, and deny. What binds Chandler's policy does nothing without it.
fn keep_foreign_bindings(parts: &mut Parts, policies: &BTreeMap<String, String>) {
    let is_ours = |name: &str| parts.ours.iter().any(|part| part.key.kind == POLICY && part.key.name == name);
    let is_foreign =
        |part: &Part| part.key.kind == BINDING && policies.get(&part.key.name).is_some_and(|policy| !is_ours(policy));
    let foreign: BTreeSet<String> =
        parts.ours.iter().filter(|part| is_foreign(part)).map(|part| part.uid.clone()).collect();
    let (foreign, ours) = std::mem::take(&mut parts.ours).into_iter().partition(|part| foreign.contains(&part.uid));
    parts.ours = ours;
    let foreign: Vec<Part> = foreign;
    parts.foreign.extend(foreign.into_iter().map(|part| part.key));
}

enum Found {
    Ours(Box<Part>),
    Foreign,
}

/// Whether the name alone does not show whose object it is: it is not in the namespace of the controller. The name of a CRD contains its group.
fn is_compared(key: &ObjectKey, namespace: &str) -> bool {
    !["CustomResourceDefinition", "Namespace"].contains(&key.kind.as_str())
        && key.namespace.as_deref() != Some(namespace)
}

async fn find(client: &Client, key: ObjectKey, printed: Option<&Value>) -> Result<Option<Found>, CommandError> {
    let Some(printed) = printed else { return Ok(part(client, key).await?.map(|part| Found::Ours(Box::new(part)))) };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&key.group, &key.version, &key.kind));
    let object = match api(client, &resource, key.namespace.as_deref()).get_opt(&key.name).await {
        Ok(object) => object,
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(error) => return Err(not_read(&key.to_string(), &error)),
    };
    Ok(object.and_then(|object| {
        let uid = object.uid()?;
        let live = serde_json::to_value(object).ok()?;
        Some(if is_ours(printed, &live) { Found::Ours(Box::new(Part { key, uid, resource })) } else { Found::Foreign })
    }))
}

/// Whether an object with the name of an object of an installation is one, also of another version. A binding has the same role and the same
/// account. Another object has a text that only Chandler uses; where an object of the installation has no such text, a rule or the whole
/// specification is equal.
fn is_ours(printed: &Value, live: &Value) -> bool {
    if let Some(subjects) = printed.get("subjects").and_then(Value::as_array) {
        let is_equal = |name: &str| live.get(name).is_some_and(|live| has(live, &printed[name]));
        return is_equal("roleRef") && subjects.iter().any(|subject| has_element(live.get("subjects"), subject));
    }
    let name = printed.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let is_mark = |text: &&str| *text != name && MARKS.iter().any(|mark| text.contains(mark));
    let marks: BTreeSet<&str> = content(printed).flat_map(|(_, value)| texts(value)).filter(is_mark).collect();
    if marks.is_empty() {
        return content(printed).any(|(name, value)| match value {
            Value::Array(elements) => elements.iter().any(|element| has_element(live.get(name), element)),
            value => live.get(name).is_some_and(|live| has(live, value)),
        });
    }
    content(live).flat_map(|(_, value)| texts(value)).any(|text| marks.contains(text))
}

/// What an object is about: everything but its type, metadata and status.
fn content(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let members = object.as_object().into_iter().flatten();
    members.filter(|(name, _)| !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()))
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(elements) => elements.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn has_element(live: Option<&Value>, element: &Value) -> bool {
    live.and_then(Value::as_array).is_some_and(|live| live.iter().any(|live| has(live, element)))
}

/// Whether a value has everything of the other one; the API server adds defaults.
fn has(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| live.get(name).is_some_and(|live| has(live, wanted)))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| has(live, wanted))
        }
        (live, wanted) => live == wanted,
    }
}

fn key(object: &Value) -> Option<ObjectKey> {
    let types: TypeMeta = serde_json::from_value(object.clone()).ok()?;
    let GroupVersionKind { group, version, kind } = GroupVersionKind::try_from(&types).ok()?;
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Some(ObjectKey { group, version, kind, namespace: text("/metadata/namespace"), name: text("/metadata/name")? })
}

fn lease(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: "coordination.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "Lease".to_owned(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_object_of_an_installation_is_recognized_and_an_empty_one_of_its_name_is_not() {
        for namespace in ["chandler-system", "elsewhere"] {
            for printed in installation(namespace).unwrap() {
                let key = key(&printed).unwrap();
                if !is_compared(&key, namespace) {
                    continue;
                }
                let mut live = printed.clone();
                live["metadata"] = json!({"name": key.name, "uid": "1"});
                assert!(is_ours(&printed, &live), "{key}");
                live.as_object_mut()
                    .unwrap()
                    .retain(|name, _| ["apiVersion", "kind", "metadata"].contains(&name.as_str()));
                assert!(!is_ours(&printed, &live), "{key}");
            }
        }
    }

    #[test]
    fn an_object_of_another_product_is_foreign() {
        let all = installation("chandler-system").unwrap();
        let printed = |kind: &str, name: &str| {
            all.iter().find(|it| it["kind"] == kind && it["metadata"]["name"] == name).unwrap()
        };
        let rules = json!([{"apiGroups": ["candles.example.com"], "resources": ["candles"], "verbs": ["get"]}]);
        for name in ["chandler", "chandler-view"] {
            assert!(
                !is_ours(printed("ClusterRole", name), &json!({"metadata": {"name": name}, "rules": rules})),
                "{name}"
            );
        }
        let binding = |namespace: &str| {
            json!({
                "metadata": {"name": "chandler"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "chandler"},
                "subjects": [{"kind": "ServiceAccount", "name": "chandler", "namespace": namespace}],
            })
        };
        assert!(is_ours(printed("ClusterRoleBinding", "chandler"), &binding("chandler-system")));
        assert!(!is_ours(printed("ClusterRoleBinding", "chandler"), &binding("shop")));
    }

    #[test]
    fn a_binding_is_ours_if_its_policy_is() {
        let policies = policies(&installation("chandler-system").unwrap());
        assert!(policies.len() > 5, "{policies:?}");
        let part = |kind: &str, name: &str| {
            let gvk = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
            let (group, version, kind) = (gvk.group.clone(), gvk.version.clone(), gvk.kind.clone());
            let key = ObjectKey { group, version, kind, namespace: None, name: name.to_owned() };
            Part { uid: format!("{}-{name}", key.kind), key, resource: ApiResource::from_gvk(&gvk) }
        };
        let ours = vec![
            part(POLICY, "chandler-status"),
            part(BINDING, "chandler-status"),
            // Its policy is foreign, or does not exist.
            part(BINDING, "chandler-sets"),
        ];
        let mut parts = Parts { ours, foreign: vec![part(POLICY, "chandler-sets").key], ..Parts::default() };
        keep_foreign_bindings(&mut parts, &policies);
        let names =
            |keys: &[&ObjectKey]| keys.iter().map(|key| format!("{} {}", key.kind, key.name)).collect::<Vec<_>>();
        assert_eq!(
            names(&parts.ours.iter().map(|part| &part.key).collect::<Vec<_>>()),
            [format!("{POLICY} chandler-status"), format!("{BINDING} chandler-status")]
        );
        assert_eq!(
            names(&parts.foreign.iter().collect::<Vec<_>>()),
            [format!("{POLICY} chandler-sets"), format!("{BINDING} chandler-sets")]
        );
    }

    #[test]
    fn the_deployment_names_the_namespace_of_the_lease() {
        for (args, expected) in [
            (json!(["controller", "--cluster-lease-namespace=leases"]), Some("leases")),
            (json!(["controller", "--cluster-lease-namespace", "leases"]), Some("leases")),
            (json!(["controller", "--cluster-lease-namespaces=x"]), None),
            (json!(["controller", "--cluster-lease-namespace"]), None),
        ] {
            let pod = json!({"containers": [{"name": "chandler", "args": args}]});
            let deployment = json!({"metadata": {}, "spec": {"selector": {}, "template": {"spec": pod}}});
            assert_eq!(lease_namespace_of(&serde_json::from_value(deployment).unwrap()).as_deref(), expected);
        }
    }
}
