//! Catalogs that OLM reads in the cluster: ClusterCatalogs of OLM v1 and CatalogSources of OLM v0, as if they were Catalogs.
//!
//! Their specifications are apis "olm.operatorframework.io/v1" and "operators.coreos.com/v1alpha1". They are read and never written.

use std::collections::BTreeMap;

use chandler_api::{
    BundleSource, Catalog, CatalogSpec, CatalogStatus, ConditionType, ImageSource, NewCondition, Reason, set_condition,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use serde_json::Value;

use crate::{CommandError, arguments::catalogs::CatalogKind};

/// The objects of a kind as Catalogs. A kind that the cluster does not serve has none.
///
/// # Errors
/// The API server does not list them.
pub async fn list(client: &Client, kind: &CatalogKind) -> Result<Vec<Catalog>, CommandError> {
    let api = |group: &str, version: &str, kind: &str, namespace: Option<&String>| -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        }
    };
    let (api, convert): (_, fn(&DynamicObject) -> Catalog) = match kind {
        CatalogKind::Catalogs => return Ok(Vec::new()),
        CatalogKind::ClusterCatalogs => {
            (api("olm.operatorframework.io", "v1", "ClusterCatalog", None), cluster_catalog)
        }
        CatalogKind::CatalogSources(namespace) => {
            (api("operators.coreos.com", "v1alpha1", "CatalogSource", Some(namespace)), catalog_source)
        }
    };
    match api.list(&ListParams::default()).await {
        Ok(found) => Ok(found.items.iter().map(convert).collect()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(CommandError::failed("failed to list the catalogs of OLM in the cluster").because(&error)),
    }
}

/// A ClusterCatalog: the image that it was resolved to is in use, unless it is set to be unavailable.
fn cluster_catalog(object: &DynamicObject) -> Catalog {
    let text = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_str);
    let found = match (text("/spec/availabilityMode"), text("/status/resolvedSource/image/ref")) {
        (Some("Unavailable"), _) => Err("its spec.availabilityMode is Unavailable"),
        (_, None) => Err("OLM has not resolved it: status.resolvedSource is not set"),
        (_, Some(reference)) => Ok(reference),
    };
    let mut labels = object.metadata.labels.clone().unwrap_or_default();
    // OLM sets it by a webhook, so that selectors can name a catalog.
    labels.entry("olm.operatorframework.io/metadata.name".to_owned()).or_insert_with(|| object.name_any());
    catalog(object, object.name_any(), labels, text("/spec/source/image/ref"), found)
}

/// A CatalogSource with an image.
fn catalog_source(object: &DynamicObject) -> Catalog {
    let image = object.data.pointer("/spec/image").and_then(Value::as_str);
    let found =
        image.ok_or("it has no spec.image: only CatalogSources with the image of a file-based catalog can be read");
    catalog(object, object.name_any(), object.metadata.labels.clone().unwrap_or_default(), image, found)
}

fn catalog(
    object: &DynamicObject,
    name: String,
    labels: BTreeMap<String, String>,
    named: Option<&str>,
    found: Result<&str, &str>,
) -> Catalog {
    let image = |reference: &str| {
        BundleSource::image(ImageSource { reference: reference.to_owned(), ..ImageSource::default() })
    };
    let priority = object.data.pointer("/spec/priority").and_then(Value::as_i64);
    let spec = CatalogSpec {
        source: named.map(image).unwrap_or_default(),
        priority: priority.and_then(|number| i32::try_from(number).ok()).unwrap_or_default(),
        ..CatalogSpec::default()
    };
    let ready = match found {
        Ok(_) => NewCondition::is_true(ConditionType::Ready, Reason::CatalogReady, "OLM reads it"),
        Err(why) => NewCondition::is_false(ConditionType::Ready, Reason::SourceNotResolved, why),
    };
    let mut status = CatalogStatus { resolved_source: found.ok().map(image), ..CatalogStatus::default() };
    status.observed_generation = object.metadata.generation;
    set_condition(&mut status.conditions, ready, object.metadata.generation, Time(Timestamp::UNIX_EPOCH));
    let mut catalog = Catalog::new(&name, spec);
    catalog.metadata.labels = Some(labels);
    catalog.metadata.generation = object.metadata.generation;
    catalog.status = Some(status);
    catalog
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn shown(catalog: &Catalog) -> (String, i32, String) {
        let status = catalog.status.as_ref().unwrap();
        let source = status.resolved_source.as_ref().and_then(|source| source.image.as_ref());
        let found = source.map_or_else(|| status.conditions[0].message.clone(), |image| image.reference.clone());
        (catalog.name_any(), catalog.spec.priority, found)
    }

    #[test]
    fn a_cluster_catalog_is_the_image_that_olm_resolved() {
        let of = |spec: Value, status: Value| {
            let metadata = json!({"name": "operatorhub", "labels": {"a": "b"}});
            cluster_catalog(&object(json!({"metadata": metadata, "spec": spec, "status": status})))
        };
        let source = json!({"type": "Image", "image": {"ref": "quay.io/a:latest"}});
        let resolved = json!({"resolvedSource": {"type": "Image", "image": {"ref": "quay.io/a@sha256:00"}}});
        let catalog = of(json!({"source": source, "priority": 7}), resolved.clone());
        assert_eq!(shown(&catalog), ("operatorhub".to_owned(), 7, "quay.io/a@sha256:00".to_owned()));
        assert_eq!(catalog.labels()["olm.operatorframework.io/metadata.name"], "operatorhub");
        assert_eq!(catalog.labels()["a"], "b");
        let off = of(json!({"source": source, "availabilityMode": "Unavailable"}), resolved);
        assert_eq!(shown(&off).2, "its spec.availabilityMode is Unavailable");
        assert!(shown(&of(json!({"source": source}), Value::Null)).2.contains("OLM has not resolved it"));
    }

    #[test]
    fn a_catalog_source_needs_an_image() {
        let of = |spec: Value| {
            let metadata = json!({"name": "redhat-operators", "namespace": "openshift-marketplace"});
            catalog_source(&object(json!({"metadata": metadata, "spec": spec})))
        };
        let catalog = of(json!({"sourceType": "grpc", "image": "quay.io/a:v1", "priority": -100}));
        let name = "redhat-operators".to_owned();
        assert_eq!(shown(&catalog), (name, -100, "quay.io/a:v1".to_owned()));
        assert!(shown(&of(json!({"sourceType": "grpc", "address": "a:50051"}))).2.starts_with("it has no spec.image"));
        // A number that is none of a priority counts as none.
        assert_eq!(of(json!({"image": "quay.io/a:v1", "priority": 1_u64 << 40})).spec.priority, 0);
    }
}
