//! All objects in a namespace, of every kind that the API server lists.

use chandler_core::ObjectKey;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
    discovery::{Discovery, Scope, verbs},
};
use serde_json::Value;

use super::{cluster::pages, installation_evidence::not_read};
use crate::{CommandError, view::text::one_line};

/// The label of a copy that OLM makes in every namespace.
const COPIED: &str = "olm.copiedFrom";

/// An object in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceObject {
    /// What it is.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: String,
    /// The UIDs of its owners.
    pub owners: Vec<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether another object in another namespace was copied to every namespace.
    pub is_copy: bool,
}

/// Lists the metadata of all objects in a namespace. Objects without a UID, such as metrics, are computed by an API server and left out.
///
/// # Errors
/// A kind cannot be listed. If the API server that serves it does not answer, nothing is known of its objects, and Kubernetes could not delete
/// the namespace either: the error names the APIServices and the ways out.
pub async fn namespace_objects(client: &Client, namespace: &str) -> Result<Vec<NamespaceObject>, CommandError> {
    // Requests to their API servers would be repeated for minutes.
    let unavailable = unavailable(client).await;
    if !unavailable.is_empty() {
        return Err(unserved(&unavailable, namespace));
    }
    list(client, namespace).await.map_err(|(what, error)| {
        not_read(&what, &error)
            .hint(format!("`--keep-namespace` keeps the namespace {namespace}, and lists nothing in it"))
    })
}

async fn list(client: &Client, namespace: &str) -> Result<Vec<NamespaceObject>, (String, kube::Error)> {
    let served = Discovery::new(client.clone()).run().await;
    let served = served.map_err(|error| ("the kinds of the API server".to_owned(), error))?;
    let mut all = Vec::new();
    for (resource, capabilities) in served.groups().flat_map(kube::discovery::ApiGroup::resources_by_stability) {
        if capabilities.scope != Scope::Namespaced || !capabilities.supports_operation(verbs::LIST) {
            continue;
        }
        let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource);
        let found = pages(ListParams::default(), async |page: &ListParams| api.list_metadata(page).await).await;
        let found = match found {
            // The kind was just removed, or its API server lists nothing in a namespace.
            Err(kube::Error::Api(status)) if [404, 405].contains(&status.code) => continue,
            found => found.map_err(|error| (format!("the {} of {namespace}", resource.plural), error))?,
        };
        all.extend(found.into_iter().filter_map(|object| {
            let key = ObjectKey {
                group: resource.group.clone(),
                version: resource.version.clone(),
                kind: resource.kind.clone(),
                namespace: Some(namespace.to_owned()),
                name: object.name_any(),
            };
            Some(NamespaceObject {
                key,
                uid: object.uid()?,
                owners: object.owner_references().iter().map(|owner| owner.uid.clone()).collect(),
                is_deleting: object.metadata.deletion_timestamp.is_some(),
                is_copy: object.labels().contains_key(COPIED),
            })
        }));
    }
    Ok(all)
}

/// The APIServices that are not available, each with the reason; empty if they cannot be listed.
async fn unavailable(client: &Client) -> Vec<(String, String)> {
    let kind = GroupVersionKind::gvk("apiregistration.k8s.io", "v1", "APIService");
    let api = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let all = pages(ListParams::default(), async |page: &ListParams| api.list(page).await).await;
    all.unwrap_or_default().iter().filter_map(why_unavailable).collect()
}

fn why_unavailable(api_service: &DynamicObject) -> Option<(String, String)> {
    let conditions = api_service.data.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let text =
        |condition: &Value, name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut conditions = conditions.filter(|condition| text(condition, "type") == "Available");
    let condition = conditions.next().filter(|condition| text(condition, "status") != "True")?;
    Some((api_service.name_any(), format!("{}: {}", text(condition, "reason"), text(condition, "message"))))
}

/// The most APIServices that an error names.
const NAMED: usize = 5;

fn unserved(unavailable: &[(String, String)], namespace: &str) -> CommandError {
    let mut error = CommandError::failed(format!("the objects in the namespace {namespace} cannot all be listed"));
    let first = || unavailable.iter().take(NAMED);
    for (name, why) in first() {
        error = error.cause(one_line(&format!("APIService {name} is not available: {why}")));
    }
    let names: Vec<&str> = first().map(|(name, _)| name.as_str()).collect();
    error
        .hint(format!(
            "Kubernetes cannot delete a namespace meanwhile: repair what serves them, or delete what is not used any more: `kubectl delete \
             apiservice {}`",
            one_line(&names.join(" "))
        ))
        .hint(format!("or keep the namespace {namespace} with everything in it: `--keep-namespace`"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn api_service(name: &str, status: &str) -> DynamicObject {
        let condition = json!({"type": "Available", "status": status, "reason": "ServiceNotFound", "message": "it is\nnot present"});
        serde_json::from_value(json!({"metadata": {"name": name}, "status": {"conditions": [condition]}})).unwrap()
    }

    #[test]
    fn an_api_service_that_is_not_available_is_named_with_both_ways_out() {
        assert_eq!(why_unavailable(&api_service("v1.apps", "True")), None);
        let broken: Vec<_> = ["False", "Unknown"]
            .iter()
            .filter_map(|status| why_unavailable(&api_service("v1beta1.metrics.k8s.io", status)))
            .collect();
        assert_eq!(broken.len(), 2);
        let text = format!("{:?}", unserved(&broken[..1], "chandler-system"));
        for words in [
            "APIService v1beta1.metrics.k8s.io is not available: ServiceNotFound: it is",
            "kubectl delete apiservice v1beta1.metrics.k8s.io",
            "--keep-namespace",
        ] {
            assert!(text.contains(words), "{words:?} is not in {text}");
        }
    }
}
