//! A BundleDeployment and its objects, normalized: without UIDs, versions, times and keys, which differ between runs.

use std::{collections::BTreeMap, fmt};

use futures::{StreamExt as _, stream};
use kube::{
    Api, Client, Discovery,
    api::{ApiResource, DynamicObject, ListParams},
    discovery::{Scope, verbs},
};
use serde_json::{Map, Value, json};

use crate::{
    World,
    tls::{Identity, handshake},
};

/// Fields of any object that differ between runs.
const VOLATILE: &[&str] = &[
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "lastTransitionTime",
    "deployment.kubernetes.io/revision",
    "startTime",
    "completionTime",
    "since",
    "clusterIP",
    "clusterIPs",
    "certificates.chandler.dev/not-after",
    "certificates.chandler.dev/renew-after",
    "certificates.chandler.dev/serving-digest",
];

/// Kinds that the control plane creates, with the labels of the object that they are created for.
const DERIVED: &[&str] = &["endpoints", "endpointslices", "events", "pods", "replicasets"];

/// The number of hexadecimal digits of a digest.
const DIGEST: usize = 64;

/// The prefix of ApplySet names. The rest is a digest over the name of the BundleDeployment and more.
const APPLY_SET_PREFIX: &str = "applyset-";

/// A BundleDeployment and its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The BundleDeployment itself; null if it does not exist.
    pub deployment: Value,
    /// All objects with its label, by kind and name.
    pub objects: BTreeMap<String, Value>,
    /// The UIDs of these objects.
    pub uids: BTreeMap<String, String>,
}

impl State {
    /// Reads the current state.
    pub async fn of(world: &World, name: &str) -> Self {
        let mut state = Self::default();
        let registry = world.registry.address().to_string();
        let mut names = Placeholders {
            known: vec![(world.namespace.clone(), "NAMESPACE"), (registry, "REGISTRY")],
            digests: Vec::new(),
        };
        let owned = ListParams::default().labels(&format!("core.rukpak.io/owner-name={name}"));
        let found = list(&world.client, None, &owned).await;
        let identity = found.values().find_map(|object| identity(&object.data));
        for (key, object) in found {
            let uid = object.metadata.uid.clone().unwrap_or_default();
            let mut value = serde_json::to_value(object).expect("an object is JSON");
            if let Some(map) = value.as_object_mut() {
                map.remove("status");
            }
            replace_ca_bundles(&mut value, identity.as_ref());
            let value = normalize(value, &mut names);
            state.uids.insert(key.clone(), uid);
            state.objects.insert(key, value);
        }
        let deployment = world.deployments().get_opt(name).await.expect("the API server answers");
        let deployment = serde_json::to_value(deployment).expect("an object is JSON");
        state.deployment = normalize(deployment, &mut names);
        state
    }

    /// The differences from another state, line by line; empty if they are equal except for UIDs.
    pub fn difference(&self, other: &Self) -> String {
        let (ours, others) = (self.to_string(), other.to_string());
        if ours == others {
            return String::new();
        }
        let only = |sign: char, some: &str, others: &str| {
            let others: std::collections::HashSet<&str> = others.lines().collect();
            let lines = some.lines().filter(|line| !others.contains(line));
            lines.fold(String::new(), |text, line| text + &format!("{sign} {line}\n"))
        };
        format!("{}{}", only('-', &others, &ours), only('+', &ours, &others))
    }
}

impl fmt::Display for State {
    /// One line for each value, with its path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        lines(f, "BundleDeployment", &self.deployment)?;
        self.objects.iter().try_for_each(|(key, object)| lines(f, key, object))
    }
}

fn lines(f: &mut fmt::Formatter<'_>, path: &str, value: &Value) -> fmt::Result {
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().try_for_each(|(name, value)| lines(f, &format!("{path}/{name}"), value))
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().try_for_each(|(number, item)| lines(f, &format!("{path}/{number}"), item))
        }
        value => writeln!(f, "{path} = {value}"),
    }
}

/// The objects in a namespace, without those that the control plane creates in every namespace.
pub async fn content_of(client: &Client, namespace: &str) -> Vec<String> {
    let all = list(client, Some(namespace), &ListParams::default()).await;
    let own = ["ConfigMap kube-root-ca.crt", "ServiceAccount default"];
    all.into_keys().filter(|key| !own.contains(&key.as_str())).collect()
}

/// All objects, or the objects of a namespace, by kind and name.
async fn list(client: &Client, namespace: Option<&str>, parameters: &ListParams) -> BTreeMap<String, DynamicObject> {
    let all = stored(client, namespace, parameters).await;
    all.into_iter().map(|(kind, object)| (key(&kind, &object), object)).collect()
}

/// All objects, or the objects of a namespace, with their kinds, except for those that the control plane creates for others. The items have
/// neither `apiVersion` nor `kind`.
pub async fn stored(
    client: &Client,
    namespace: Option<&str>,
    parameters: &ListParams,
) -> Vec<(ApiResource, DynamicObject)> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await.expect("the API server serves discovery");
    let kinds = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
    let kinds: Vec<ApiResource> = kinds
        .filter(|(kind, capabilities)| {
            capabilities.supports_operation(verbs::LIST)
                && !DERIVED.contains(&kind.plural.as_str())
                && (namespace.is_none() || capabilities.scope == Scope::Namespaced)
        })
        .map(|(kind, _)| kind)
        .collect();
    let lists = kinds.into_iter().map(|kind| async move {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
            None => Api::all_with(client.clone(), &kind),
        };
        match api.list(parameters).await {
            Ok(list) => list.items.into_iter().map(|object| (kind.clone(), object)).collect(),
            // Its CRD was deleted in the meantime.
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 405 => Vec::new(),
            Err(error) => panic!("failed to list {}: {error}", kind.plural),
        }
    });
    stream::iter(lists).buffered(8).collect::<Vec<Vec<_>>>().await.into_iter().flatten().collect()
}

pub(crate) fn key(kind: &ApiResource, object: &DynamicObject) -> String {
    format!("{} {}", kind.kind, object.metadata.name.as_deref().unwrap_or_default())
}

/// Removes values that differ between runs, or replaces them by placeholders.
fn normalize(value: Value, names: &mut Placeholders) -> Value {
    match value {
        Value::Object(map) => {
            let mut result = Map::new();
            let secret = map.contains_key("tls.key");
            for (name, value) in map {
                let value = match name.as_str() {
                    name if VOLATILE.contains(&name) => continue,
                    "managedFields" => managers(&value),
                    _ if secret => json!("something"),
                    _ => normalize(value, names),
                };
                result.insert(name, value);
            }
            Value::Object(result)
        }
        Value::Array(items) => items.into_iter().map(|item| normalize(item, names)).collect(),
        Value::String(text) => Value::String(names.replace(text)),
        other => other,
    }
}

/// The `managedFields` entries of Chandler's field managers: manager, operation and subresource.
fn managers(records: &Value) -> Value {
    let text = |record: &Value, name: &str| record[name].as_str().unwrap_or_default().to_owned();
    let records = records.as_array().into_iter().flatten();
    let mut ours: Vec<String> = records
        .filter(|record| text(record, "manager").starts_with("chandler"))
        .map(|record| {
            format!("{} {} {}", text(record, "manager"), text(record, "operation"), text(record, "subresource"))
        })
        .collect();
    ours.sort_unstable();
    json!(ours)
}

/// Placeholders for texts that differ between runs.
#[derive(Default)]
struct Placeholders {
    known: Vec<(String, &'static str)>,
    digests: Vec<String>,
}

impl Placeholders {
    /// Replaces known texts by their placeholders, and each digest by a number: equal digests get equal numbers.
    fn replace(&mut self, mut text: String) -> String {
        if text.starts_with(APPLY_SET_PREFIX) {
            return format!("SET{}", self.number(&text));
        }
        for (known, name) in &self.known {
            text = text.replace(known, name);
        }
        let mut result = String::new();
        let mut rest = text.as_str();
        while let Some(start) = rest.find(|character: char| character.is_ascii_hexdigit()) {
            let (before, found) = rest.split_at(start);
            result.push_str(before);
            // Only of an object that is gone: the others are known.
            if let Some(after) = after_uid(found) {
                result.push_str("UID");
                rest = after;
                continue;
            }
            let end = found.find(|character: char| !character.is_ascii_hexdigit()).unwrap_or(found.len());
            let (run, after) = found.split_at(end);
            if run.len() == DIGEST {
                result.push_str("DIGEST");
                result.push_str(&self.number(run).to_string());
            } else {
                result.push_str(run);
            }
            rest = after;
        }
        result.push_str(rest);
        result
    }

    fn number(&mut self, digest: &str) -> usize {
        self.digests.iter().position(|known| known == digest).unwrap_or_else(|| {
            self.digests.push(digest.to_owned());
            self.digests.len() - 1
        })
    }
}

/// What follows the UID with which a text begins.
fn after_uid(text: &str) -> Option<&str> {
    let (uid, after) = text.split_at_checked(36)?;
    let groups: Vec<&str> = uid.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let is_hexadecimal = groups.iter().all(|group| group.chars().all(|character| character.is_ascii_hexdigit()));
    (lengths == [8, 4, 4, 4, 12] && is_hexadecimal).then_some(after)
}

fn identity(object: &Value) -> Option<Identity> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let entry = |name: &str| STANDARD.decode(object.get("data")?.get(name)?.as_str()?).ok();
    Some(Identity { certificate: entry("tls.crt")?, key: entry("tls.key")? })
}

/// Replaces each `caBundle` by the result of a TLS handshake: a client that trusts it connects to a server with the identity.
fn replace_ca_bundles(value: &mut Value, identity: Option<&Identity>) {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    match value {
        Value::Object(map) => {
            if let Some(bundle) = map.get("caBundle").and_then(Value::as_str) {
                let service =
                    |name: &str| map.get("service").and_then(|service| service[name].as_str()).unwrap_or_default();
                let server = format!("{}.{}.svc", service("name"), service("namespace"));
                let bundle = STANDARD.decode(bundle).expect("a caBundle is base64");
                let trusted = identity.map(|identity| handshake(identity, &bundle, &server));
                map.insert("caBundle".to_owned(), json!(format!("{trusted:?}")));
            }
            map.values_mut().for_each(|value| replace_ca_bundles(value, identity));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_ca_bundles(item, identity)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_of_objects_that_are_gone_are_placeholders() {
        let replaced = |text: &str| Placeholders::default().replace(text.to_owned());
        let (uid, digest) = ("1bbe457e-32a1-4249-b8ba-4fd85d38a923", "a".repeat(DIGEST));
        assert_eq!(replaced(&format!("4.{uid}.{digest}")), "4.UID.DIGEST0");
        for text in ["4.1bbe457e-32a1-4249-b8ba-4fd85d38a92", "1bbe457e-32a1", "é"] {
            assert_eq!(replaced(text), text);
        }
    }

    #[test]
    fn values_that_differ_between_runs_are_ignored() {
        let (a, b) = ("a".repeat(DIGEST), "b".repeat(DIGEST));
        let state = |namespace: &str, first: &str, second: &str, data: &str| State {
            deployment: normalize(
                json!({"metadata": {"uid": namespace, "name": "x"}, "spec": {"in": format!("{namespace}/x")},
                       "status": {"was": format!("sha256:{first}"), "is": format!("sha256:{second}")}, "data": data}),
                &mut Placeholders { known: vec![(namespace.to_owned(), "NAMESPACE")], digests: Vec::new() },
            ),
            ..State::default()
        };
        let one = state("one", &a, &b, "1");
        assert_eq!(one.difference(&state("two", &b, &a, "1")), "");
        let other = state("two", &b, &b, "2");
        assert_eq!(
            other.difference(&one),
            "- BundleDeployment/data = \"1\"\n- BundleDeployment/status/was = \"sha256:DIGEST1\"\n\
             + BundleDeployment/data = \"2\"\n+ BundleDeployment/status/was = \"sha256:DIGEST0\"\n"
        );
    }
}
