//! Catalogs that OLM reads in a cluster, as if they were Catalogs: ClusterCatalogs of OLM v1 and CatalogSources of OLM v0.
//!
//! Their specifications are the APIs `olm.operatorframework.io/v1` and `operators.coreos.com/v1alpha1`. They are read and never written.

use std::{collections::BTreeMap, fmt, str::FromStr};

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{OwnerReference, Time},
    jiff::Timestamp,
};
use kube::{
    ResourceExt as _,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::Value;

use crate::{
    BundleSource, Catalog, CatalogSpec, CatalogStatus, ConditionType, ImageSource, NewCondition, Reason, set_condition,
};

/// The longest name of a namespace.
const NAMESPACE: usize = 63;

/// A kind of catalogs of OLM.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OlmCatalogs {
    /// ClusterCatalogs of OLM v1.
    ClusterCatalogs,
    /// CatalogSources of OLM v0 in this namespace. Users with write access to another namespace could offer packages there under any name.
    CatalogSources(String),
}

/// A text names no kind of catalogs of OLM.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is neither `clustercatalogs` nor `catalogsources/NAMESPACE`")]
pub struct UnknownCatalogs;

impl FromStr for OlmCatalogs {
    type Err = UnknownCatalogs;

    fn from_str(text: &str) -> Result<Self, UnknownCatalogs> {
        let legal = |name: &str| {
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            !name.is_empty()
                && name.len() <= NAMESPACE
                && name.chars().all(inner)
                && !name.starts_with('-')
                && !name.ends_with('-')
        };
        match text.split_once('/') {
            None if text == "clustercatalogs" => Ok(Self::ClusterCatalogs),
            Some(("catalogsources", namespace)) if legal(namespace) => Ok(Self::CatalogSources(namespace.to_owned())),
            _ => Err(UnknownCatalogs),
        }
    }
}

impl fmt::Display for OlmCatalogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClusterCatalogs => f.write_str("clustercatalogs"),
            Self::CatalogSources(namespace) => write!(f, "catalogsources/{namespace}"),
        }
    }
}

impl OlmCatalogs {
    /// The kind.
    pub fn resource(&self) -> ApiResource {
        let (group, version, kind) = match self {
            Self::ClusterCatalogs => ("olm.operatorframework.io", "v1", "ClusterCatalog"),
            Self::CatalogSources(_) => ("operators.coreos.com", "v1alpha1", "CatalogSource"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
    }

    /// The namespace of the objects; none for a cluster-scoped kind.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::ClusterCatalogs => None,
            Self::CatalogSources(namespace) => Some(namespace),
        }
    }

    /// An object as a Catalog, which it owns. `status.resolvedSource` is the image to read; the condition Ready says why there is none.
    pub fn catalog(&self, object: &DynamicObject) -> Catalog {
        match self {
            Self::ClusterCatalogs => self.owned(object, cluster_catalog(object)),
            Self::CatalogSources(_) => self.owned(object, catalog_source(object)),
        }
    }

    /// The Catalog that stands for an object.
    fn owned(&self, object: &DynamicObject, mut catalog: Catalog) -> Catalog {
        let ApiResource { api_version, kind, .. } = self.resource();
        let (name, uid) = (object.name_any(), object.metadata.uid.clone().unwrap_or_default());
        let owner = OwnerReference { api_version, kind, name, uid, ..OwnerReference::default() };
        catalog.metadata.owner_references = Some(vec![owner]);
        catalog
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
    catalog.metadata.uid.clone_from(&object.metadata.uid);
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

    #[test]
    fn kinds_have_the_names_of_resources() {
        for text in ["clustercatalogs", "catalogsources/openshift-marketplace"] {
            assert_eq!(text.parse::<OlmCatalogs>().map(|kind| kind.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["catalogs", "catalogsources", "catalogsources/", "catalogsources/A", "catalogsources/-a", "ClusterCatalog"]
        {
            assert_eq!(text.parse::<OlmCatalogs>(), Err(UnknownCatalogs), "{text}");
        }
    }

    #[test]
    fn a_catalog_names_the_object_that_it_stands_for() {
        let object = object(json!({"metadata": {"name": "a", "uid": "1"}}));
        for (kinds, expected) in [
            (OlmCatalogs::ClusterCatalogs, "ClusterCatalog"),
            (OlmCatalogs::CatalogSources("olm".to_owned()), "CatalogSource"),
        ] {
            let owners = kinds.catalog(&object).metadata.owner_references.unwrap();
            let owners: Vec<(&str, &str)> = owners.iter().map(|it| (it.kind.as_str(), it.name.as_str())).collect();
            assert_eq!(owners, [(expected, "a")]);
        }
    }
}
