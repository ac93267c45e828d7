//! What a ClusterServiceVersion in a catalog says about kinds, versions and its namespace.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_yaml::Node;
use serde_json::Value;

use crate::{
    Csv, Gvk,
    fields::{Fields, Findings},
    model,
};

/// The longest name of a group, version or kind, in bytes. The API server has no longer ones.
const NAME_BYTES: usize = 253;
/// More kinds of one bundle are not kept.
const KINDS: usize = 1_000;
/// The longest name of a namespace, in bytes.
const NAMESPACE_BYTES: usize = 63;
/// The annotation with the namespace that the bundle is meant for.
const SUGGESTED_NAMESPACE: &str = "operatorframework.io/suggested-namespace";
/// What the manifest of a ClusterServiceVersion contains.
const KIND: &str = "ClusterServiceVersion";

/// The kinds and versions of a bundle, from the first of its properties with a ClusterServiceVersion or its metadata. A value of a
/// wrong type says nothing: the rules for catalogs do not cover it.
pub(crate) fn read(bundle: &Fields<'_>) -> Option<Csv> {
    let quiet = &mut Findings::new("", 1);
    let (mut csv, mut provides, mut requires) = (None, false, false);
    for (_, property) in bundle.objects("properties", quiet) {
        match property.text("type", quiet) {
            model::PROPERTY_GVK => provides = true,
            model::PROPERTY_GVK_REQUIRED => requires = true,
            model::PROPERTY_CSV_METADATA if csv.is_none() => {
                csv = property.get("value").map(of_metadata);
            }
            model::PROPERTY_OBJECT if csv.is_none() => csv = property.get("value").and_then(of_object),
            _ => {}
        }
    }
    let mut csv = csv?;
    if provides {
        csv.owned.clear();
    }
    if requires {
        csv.required.clear();
    }
    (csv != Csv::default()).then_some(csv)
}

fn of_metadata(value: &Node) -> Csv {
    let json = |name| value.get(name).map(Node::to_json).unwrap_or_default();
    let csv = of(&json("crdDescriptions"), &json("apiServiceDefinitions"), &json("minKubeVersion"));
    Csv { suggested_namespace: suggested_namespace(&json("annotations")), ..csv }
}

fn of_object(value: &Node) -> Option<Csv> {
    let data = STANDARD.decode(value.get("data")?.as_str()?).ok()?;
    // Most objects are CRDs, which may be large.
    memchr::memmem::find(&data, KIND.as_bytes())?;
    let manifest: Value = serde_json::from_slice(&data).ok()?;
    if manifest.get("kind")?.as_str()? != KIND {
        return None;
    }
    let field = |name| manifest.get("spec").and_then(|spec| spec.get(name)).unwrap_or(&Value::Null);
    let csv = of(field("customresourcedefinitions"), field("apiservicedefinitions"), field("minKubeVersion"));
    let annotations = manifest.pointer("/metadata/annotations").unwrap_or(&Value::Null);
    Some(Csv { suggested_namespace: suggested_namespace(annotations), ..csv })
}

/// The namespace that annotations suggest; empty if there is none.
fn suggested_namespace(annotations: &Value) -> String {
    let suggested = annotations.get(SUGGESTED_NAMESPACE).and_then(Value::as_str).unwrap_or_default();
    if suggested.len() <= NAMESPACE_BYTES { suggested.to_owned() } else { String::new() }
}

fn of(crds: &Value, services: &Value, min_kube_version: &Value) -> Csv {
    let kinds = |list: &str| {
        let items = |section: &Value| section.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
        let (crds, services) = (items(crds), items(services));
        let kinds = crds.iter().filter_map(of_crd).chain(services.iter().filter_map(of_service));
        let short = |it: &Gvk| [&it.group, &it.version, &it.kind].into_iter().all(|part| part.len() <= NAME_BYTES);
        kinds.filter(short).take(KINDS).collect()
    };
    let min_kube_version = min_kube_version.as_str().unwrap_or_default();
    let min_kube_version = min_kube_version.to_owned();
    Csv { owned: kinds("owned"), required: kinds("required"), min_kube_version, ..Csv::default() }
}

/// A CRD is described by its name, `plural.group`.
fn of_crd(description: &Value) -> Option<Gvk> {
    let text = |field: &str| description.get(field).and_then(Value::as_str);
    let (_, group) = text("name")?.split_once('.')?;
    Some(Gvk { group: group.to_owned(), version: text("version")?.to_owned(), kind: text("kind")?.to_owned() })
}

fn of_service(description: &Value) -> Option<Gvk> {
    let text = |field: &str| description.get(field).and_then(Value::as_str).map(str::to_owned);
    Some(Gvk { group: text("group")?, version: text("version")?, kind: text("kind")? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn csv(properties: &Value) -> Option<Csv> {
        let text = json!({"properties": properties}).to_string();
        let documents = chandler_yaml::parse(text.as_bytes(), &chandler_yaml::Limits::default()).unwrap();
        read(&Fields::new(documents[0].root.as_mapping().unwrap()))
    }

    fn kind(group: &str, version: &str, kind: &str) -> Gvk {
        Gvk { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    #[test]
    fn metadata_and_manifests_say_the_same() {
        let owned = json!([{"name": "dbs.example.com", "version": "v1", "kind": "Db", "description": "long"}]);
        let required = json!([{"group": "metrics.k8s.io", "version": "v1beta1", "kind": "PodMetrics"}]);
        let metadata = json!({"type": "olm.csv.metadata", "value": {"crdDescriptions": {"owned": owned},
            "apiServiceDefinitions": {"required": required}, "minKubeVersion": "1.30.0",
            "annotations": {SUGGESTED_NAMESPACE: "dbs"}}});
        let manifest = json!({"kind": KIND, "metadata": {"annotations": {SUGGESTED_NAMESPACE: "dbs"}}, "spec": {"customresourcedefinitions": {"owned": owned},
            "apiservicedefinitions": {"required": required}, "minKubeVersion": "1.30.0"}});
        let object = |manifest: &Value| json!({"type": "olm.bundle.object", "value": {"data": STANDARD.encode(manifest.to_string())}});
        let expected = Csv {
            owned: vec![kind("example.com", "v1", "Db")],
            required: vec![kind("metrics.k8s.io", "v1beta1", "PodMetrics")],
            min_kube_version: "1.30.0".to_owned(),
            suggested_namespace: "dbs".to_owned(),
        };
        let crd = object(&json!({"kind": "CustomResourceDefinition", "spec": {"x": KIND}}));
        assert_eq!(csv(&json!([metadata])), Some(expected.clone()));
        assert_eq!(csv(&json!([crd, object(&manifest), {"type": "olm.csv.metadata", "value": {}}])), Some(expected));
        let gvk = json!({"type": "olm.gvk", "value": {"group": "x", "version": "v1", "kind": "X"}});
        assert_eq!(csv(&json!([gvk, metadata])).unwrap().owned, []);
        assert_eq!(csv(&json!([{"type": "olm.gvk.required", "value": {}}, metadata])).unwrap().required, []);
        for nothing in [json!([]), json!([crd]), json!([{"type": "olm.csv.metadata", "value": 1}]), json!([gvk])] {
            assert_eq!(csv(&nothing), None, "{nothing}");
        }
    }
}
