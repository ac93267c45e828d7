//! In which versions the objects of Chandler may be stored: `status.storedVersions` of the CRDs, and the objects.

use chandler_api::OwnKind;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};

use super::{cluster::PAGE, installation_evidence::not_read};
use crate::{CommandError, view::text::one_line};

/// A CRD of Chandler whose objects may be stored in an old version.
#[derive(Clone, Debug, PartialEq)]
pub struct OutdatedCrd {
    /// Its name.
    pub name: String,
    /// The version in which the API server stores objects now.
    pub storage: String,
    /// The other versions in which objects may be stored.
    pub old: Vec<String>,
    /// The generation of the CRD, which changes with its versions.
    pub generation: Option<i64>,
    /// How to request its objects in the version that is stored.
    pub resource: ApiResource,
}

/// Why the objects of a CRD cannot be rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is being deleted, with its objects.
    #[error("it is being deleted, with all its objects")]
    Deleting,
    /// No version is stored, which the API server does not accept.
    #[error("none of its versions is the stored one")]
    NoStorage,
    /// Requests in another version could lose fields.
    #[error("it does not serve the version that it stores")]
    NotServed,
}

/// The CRDs of Chandler whose objects may be stored in an old version, in the order in which they are installed.
///
/// # Errors
/// A CRD cannot be read, or the objects of one cannot be rewritten.
pub async fn outdated(client: &Client) -> Result<Vec<OutdatedCrd>, CommandError> {
    let mut all = Vec::new();
    for kind in OwnKind::ALL {
        let name = format!("{}.{}", kind.plural(), kind.group());
        let Some(crd) = crd(client, &name).await? else { continue };
        let found = outdated_crd(&crd).map_err(|problem| {
            CommandError::refused(format!("the objects of CRD {name} cannot be rewritten"))
                .because(&problem)
                .hint("`chandler crds | kubectl apply --server-side -f -` installs the CRDs of this version")
        })?;
        all.extend(found);
    }
    Ok(all)
}

/// A CRD; `None` if it is not installed.
pub async fn crd(client: &Client, name: &str) -> Result<Option<CustomResourceDefinition>, CommandError> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.get_opt(name).await.map_err(|error| not_read(&format!("CRD {name}"), &error))
}

/// What is to be migrated of a CRD; `None` if all its objects are stored in its current version.
///
/// # Errors
/// Its objects cannot be rewritten.
pub fn outdated_crd(crd: &CustomResourceDefinition) -> Result<Option<OutdatedCrd>, Unusable> {
    let stored = crd.status.as_ref().and_then(|status| status.stored_versions.as_deref()).unwrap_or_default();
    let storage = crd.spec.versions.iter().find(|version| version.storage).ok_or(Unusable::NoStorage)?;
    let old: Vec<String> = stored.iter().filter(|version| **version != storage.name).cloned().collect();
    if old.is_empty() {
        return Ok(None);
    }
    if crd.metadata.deletion_timestamp.is_some() {
        return Err(Unusable::Deleting);
    }
    if !storage.served {
        return Err(Unusable::NotServed);
    }
    let names = &crd.spec.names;
    let kind = GroupVersionKind::gvk(&crd.spec.group, &storage.name, &names.kind);
    Ok(Some(OutdatedCrd {
        name: crd.name_any(),
        storage: storage.name.clone(),
        old: old.iter().map(|version| one_line(version)).collect(),
        generation: crd.metadata.generation,
        resource: ApiResource::from_gvk_with_plural(&kind, &names.plural),
    }))
}

/// The names of all objects of a CRD, read page by page without their content. An object that is created later is stored in the current
/// version.
///
/// # Errors
/// The objects cannot be listed.
pub async fn names(client: &Client, crd: &OutdatedCrd) -> Result<Vec<String>, CommandError> {
    let api = Api::<DynamicObject>::all_with(client.clone(), &crd.resource);
    let (mut page, mut names) = (ListParams::default().limit(PAGE), Vec::new());
    loop {
        let found = api.list_metadata(&page).await;
        let found = found.map_err(|error| not_read(&format!("the objects of CRD {}", crd.name), &error))?;
        names.extend(found.items.iter().map(kube::ResourceExt::name_any));
        match found.metadata.continue_ {
            Some(token) if !token.is_empty() => page.continue_token = Some(token),
            _ => return Ok(names),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn crd(versions: &Value, stored: &[&str]) -> CustomResourceDefinition {
        serde_json::from_value(json!({
            "metadata": {"name": "catalogs.chandler.dev", "generation": 3},
            "spec": {"group": "chandler.dev", "scope": "Cluster", "names": {"kind": "Catalog", "plural": "catalogs"},
                     "versions": versions},
            "status": {"storedVersions": stored},
        }))
        .unwrap()
    }

    #[test]
    fn objects_are_rewritten_in_the_version_that_is_stored_and_only_if_an_old_one_is_listed() {
        let versions = json!([{"name": "v1alpha1", "served": true, "storage": false},
                              {"name": "v1", "served": true, "storage": true}]);
        assert_eq!(outdated_crd(&crd(&versions, &["v1"])), Ok(None));
        assert_eq!(outdated_crd(&crd(&versions, &[])), Ok(None));
        let found = outdated_crd(&crd(&versions, &["v1alpha1", "v1"])).unwrap().unwrap();
        assert_eq!((found.storage.as_str(), found.old.as_slice()), ("v1", ["v1alpha1".to_owned()].as_slice()));
        assert_eq!(
            (found.resource.api_version.as_str(), found.resource.plural.as_str()),
            ("chandler.dev/v1", "catalogs")
        );
        assert_eq!(found.generation, Some(3));
    }

    #[test]
    fn what_could_lose_fields_or_objects_is_not_rewritten() {
        let hidden = json!([{"name": "v1alpha1", "served": true, "storage": false},
                            {"name": "v1", "served": false, "storage": true}]);
        assert_eq!(outdated_crd(&crd(&hidden, &["v1alpha1", "v1"])), Err(Unusable::NotServed));
        let none = json!([{"name": "v1", "served": true, "storage": false}]);
        assert_eq!(outdated_crd(&crd(&none, &["v1"])), Err(Unusable::NoStorage));
        let versions = json!([{"name": "v1", "served": true, "storage": true}]);
        let mut deleting = crd(&versions, &["v1alpha1"]);
        deleting.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        assert_eq!(outdated_crd(&deleting), Err(Unusable::Deleting));
    }
}
