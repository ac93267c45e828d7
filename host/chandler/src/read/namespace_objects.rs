//! All objects in a namespace, of every kind that the API server lists.

use chandler_core::ObjectKey;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DynamicObject, ListParams},
    discovery::{Discovery, Scope, verbs},
};

use super::{cluster::pages, installation_evidence::not_read};
use crate::CommandError;

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
pub async fn namespace_objects(client: &Client, namespace: &str) -> Result<Vec<NamespaceObject>, CommandError> {
    let served =
        Discovery::new(client.clone()).run().await.map_err(|error| not_read("the kinds of the API server", &error))?;
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
            found => found.map_err(|error| not_read(&format!("the {} of {namespace}", resource.plural), &error))?,
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
