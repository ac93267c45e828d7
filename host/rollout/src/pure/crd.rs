//! What CustomResourceDefinitions say about the kinds that they define. Pure.

use std::collections::{BTreeMap, BTreeSet};

use chandler_core::{Object, ObjectKey, Release};
use kube::api::ApiResource;
use serde_json::Value;

use crate::pure::{
    desired::{Desired, Served},
    situation::{Action, Situation},
};

/// Whether this is a CustomResourceDefinition.
pub(crate) fn is_crd(key: &ObjectKey) -> bool {
    key.group == "apiextensions.k8s.io" && key.kind == "CustomResourceDefinition"
}

/// The API resource of a CRD's custom resources, or `None` if no version of it is served.
pub(crate) fn custom_resource(crd: &Value) -> Option<ApiResource> {
    let spec = crd.get("spec")?;
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str);
    let (group, kind, plural) = (text("/group")?, text("/names/kind")?, text("/names/plural")?);
    let versions = spec.get("versions")?.as_array()?;
    let served = versions.iter().find(|version| version.get("served").and_then(Value::as_bool) == Some(true))?;
    let version = served.get("name")?.as_str()?;
    Some(ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    })
}

/// The kinds that the CRDs of releases define. It holds names only, so that it stays small, however large the CRDs are.
#[derive(Debug, Default)]
pub struct DefinedKinds(BTreeMap<(String, String, String), Defined>);

impl DefinedKinds {
    /// Adds the kinds of a release. Those that were added before stay as they are.
    pub fn add(&mut self, release: &Release) {
        for (id, defined) in crds(release.objects()) {
            self.0.entry(id).or_insert(defined);
        }
    }

    /// Adds other kinds. Those that were added before stay as they are.
    pub fn extend(&mut self, others: Self) {
        for (id, defined) in others.0 {
            self.0.entry(id).or_insert(defined);
        }
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Defined> {
        self.0.get(&id_of(key))
    }
}

/// A kind that a CRD of the release defines.
#[derive(Debug)]
pub(crate) struct Defined {
    pub(crate) stage: u32,
    pub(crate) kind: Served,
}

pub(crate) fn id_of(key: &ObjectKey) -> (String, String, String) {
    (key.group.clone(), key.version.clone(), key.kind.clone())
}

/// The kinds that CRDs among these objects define, by group, version and kind.
pub(crate) fn crds(objects: &[Object]) -> BTreeMap<(String, String, String), Defined> {
    let mut defined = BTreeMap::new();
    for object in objects.iter().filter(|object| is_crd(&object.key)) {
        let Some(spec) = object.value.get("spec") else { continue };
        let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str);
        let (Some(group), Some(kind), Some(plural)) = (text("/group"), text("/names/kind"), text("/names/plural"))
        else {
            continue;
        };
        let namespaced = text("/scope") != Some("Cluster");
        for version in spec.get("versions").and_then(Value::as_array).into_iter().flatten() {
            let name = version.get("name").and_then(Value::as_str);
            let (Some(name), Some(true)) = (name, version.get("served").and_then(Value::as_bool)) else { continue };
            let resource = ApiResource {
                group: group.to_owned(),
                version: name.to_owned(),
                api_version: format!("{group}/{name}"),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
            };
            defined.insert(
                (group.to_owned(), name.to_owned(), kind.to_owned()),
                Defined { stage: object.stage, kind: Served { resource, namespaced } },
            );
        }
    }
    defined
}

/// The groups and kinds whose schemas this release changes: a dry run would validate them against the old schemas.
pub(crate) fn redefined_kinds<'a>(desired: &'a [Desired], situations: &[Situation]) -> BTreeSet<(&'a str, &'a str)> {
    desired
        .iter()
        .zip(situations)
        .filter(|(desired, situation)| is_crd(&desired.key) && situation.action() != Action::Keep)
        .filter_map(|(desired, _)| {
            let text = |pointer: &str| desired.value.pointer(pointer).and_then(Value::as_str);
            Some((text("/spec/group")?, text("/spec/names/kind")?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn crds_define_plural_scope_and_served_versions() {
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"},
            "spec": {"group": "a.b", "scope": "Cluster", "names": {"kind": "Ox", "plural": "oxen"},
                "versions": [{"name": "v1", "served": true}, {"name": "v0", "served": false}]}});
        let odd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "y"}});
        let defined = crds(&[object(&crd, 3), object(&odd, 0)]);
        assert_eq!(defined.len(), 1);
        let ox = &defined[&("a.b".into(), "v1".into(), "Ox".into())];
        assert_eq!((ox.stage, ox.kind.namespaced, ox.kind.resource.plural.as_str()), (3, false, "oxen"));
    }

    #[test]
    fn a_crd_defines_the_resource_of_its_objects() {
        let crd = |served: bool| {
            json!({"spec": {"group": "example.com", "names": {"kind": "Ox", "plural": "oxen"}, "versions": [
                {"name": "v1", "served": false}, {"name": "v2", "served": served}]}})
        };
        assert_eq!(custom_resource(&crd(true)).unwrap().api_version, "example.com/v2");
        assert_eq!(custom_resource(&crd(false)), None);
        assert_eq!(custom_resource(&json!({"spec": 1})), None);
    }

    #[test]
    fn the_id_of_a_kind_has_its_group_version_and_name() {
        let custom = object(&json!({"apiVersion": "a.b/v1", "kind": "Ox", "metadata": {"name": "x"}}), 0);
        assert_eq!(id_of(&custom.key), ("a.b".into(), "v1".into(), "Ox".into()));
    }

    fn object(value: &Value, stage: u32) -> Object {
        Object::parse(value.to_string().as_bytes(), stage, None).unwrap()
    }
}
