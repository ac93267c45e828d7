//! The release, object by object, with everything that can be refused before any write.

use std::collections::{BTreeMap, HashMap};

use chandler_core::{Object, ObjectKey, Release};
use kube::api::ApiResource;
use serde_json::Value;

use crate::{
    checks::Refusals,
    desired::{Desired, Served},
    discovery::Discovery,
    error::{Problem, RolloutError},
    owner::Owner,
};

/// Every object of the release as it should be in the cluster, in the order of the release. Where checks go on after a refusal,
/// objects of unknown kinds are left out.
pub(crate) async fn resolve(
    discovery: &Discovery,
    owner: &Owner,
    release: &Release,
    refusals: &mut Refusals,
) -> Result<Vec<Desired>, RolloutError> {
    let defined = crds(release.objects());
    let mut kinds: HashMap<(&str, &str, &str), Option<Served>> = HashMap::new();
    let mut desired = Vec::with_capacity(release.objects().len());
    let mut unknown = Vec::new();
    for object in release.objects() {
        let key = &object.key;
        let id = (key.group.as_str(), key.version.as_str(), key.kind.as_str());
        let served = if let Some(served) = kinds.get(&id) {
            served.clone()
        } else {
            let served = discovery.kind(id.0, id.1, id.2).await.map_err(cannot_discover)?;
            kinds.insert(id, served.clone());
            served
        };
        // A kind that a later stage brings cannot be waited for: that stage waits for this one.
        let promised = || defined.get(&id_of(key)).filter(|defined| defined.stage <= object.stage);
        match (served, promised()) {
            (Some(kind), _) => desired.push(Desired::new(object, kind, true, owner)),
            (None, Some(defined)) => desired.push(Desired::new(object, defined.kind.clone(), false, owner)),
            (None, None) => unknown.push((key.api_version(), key.kind.clone(), key.clone())),
        }
    }
    if !unknown.is_empty() {
        refusals.add(RolloutError::UnknownKinds(unknown))?;
    }
    refusals.pass(refuse_duplicates(&desired))?;
    Ok(desired)
}

/// A kind that a CRD of the release brings.
struct Defined {
    stage: u32,
    kind: Served,
}

fn id_of(key: &ObjectKey) -> (String, String, String) {
    (key.group.clone(), key.version.clone(), key.kind.clone())
}

/// The kinds that CRDs among these objects bring, by group, version and kind.
fn crds(objects: &[Object]) -> BTreeMap<(String, String, String), Defined> {
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

/// Whether this is a CustomResourceDefinition.
pub(crate) fn is_crd(key: &ObjectKey) -> bool {
    key.group == "apiextensions.k8s.io" && key.kind == "CustomResourceDefinition"
}

/// The same resource may be written in two versions, or once with and once without the install namespace.
fn refuse_duplicates(desired: &[Desired]) -> Result<(), RolloutError> {
    let mut seen: HashMap<(&str, &str, Option<&str>, &str), &ObjectKey> = HashMap::new();
    for object in desired {
        let ApiResource { group, plural, .. } = &object.resource;
        let id = (group.as_str(), plural.as_str(), object.key.namespace.as_deref(), object.key.name.as_str());
        if let Some(first) = seen.insert(id, &object.key) {
            return Err(RolloutError::Duplicate {
                first: Box::new(first.clone()),
                second: Box::new(object.key.clone()),
            });
        }
    }
    Ok(())
}

/// The kinds of the release that the API server is known to serve, each once.
pub(crate) fn known_kinds(discovery: &Discovery, release: &Release) -> Vec<ApiResource> {
    let ids: std::collections::BTreeSet<_> = release.objects().iter().map(|object| id_of(&object.key)).collect();
    ids.iter()
        .filter_map(|(group, version, kind)| discovery.known_kind(group, version, kind))
        .map(|served| served.resource)
        .collect()
}

/// The kinds of the release that the API server is known to serve, each once for every namespace in which it has objects
/// of them.
pub(crate) fn known_places(
    discovery: &Discovery,
    owner: &Owner,
    release: &Release,
) -> Vec<(ApiResource, Option<String>)> {
    let places: std::collections::BTreeSet<_> = release
        .objects()
        .iter()
        .map(|object| (id_of(&object.key), object.key.namespace.as_ref().unwrap_or(&owner.install_namespace)))
        .collect();
    let known = places.into_iter().filter_map(|((group, version, kind), namespace)| {
        let served = discovery.known_kind(&group, &version, &kind)?;
        Some((served.resource, served.namespaced.then(|| namespace.clone())))
    });
    let mut known: Vec<(ApiResource, Option<String>)> = known.collect();
    // A kind that lives in no namespace stands there once, whatever its objects say.
    known.dedup();
    known
}

/// A failure to find out about kinds.
pub(crate) fn cannot_discover(problem: Problem) -> RolloutError {
    RolloutError::Request { action: "find out which kinds are served".to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::live::tests::owner;

    fn object(value: &Value, stage: u32) -> Object {
        Object::parse(value.to_string().as_bytes(), stage, None).unwrap()
    }

    #[test]
    fn crds_tell_plural_scope_and_served_versions() {
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
    fn one_object_written_twice_is_refused() {
        let kind = |version: &str| Served {
            namespaced: true,
            resource: ApiResource {
                group: "a.b".into(),
                version: version.into(),
                api_version: format!("a.b/{version}"),
                kind: "Ox".into(),
                plural: "oxen".into(),
            },
        };
        let ox = |version: &str, namespace: Option<&str>| {
            let value = json!({"apiVersion": format!("a.b/{version}"), "kind": "Ox", "metadata": {"name": "x", "namespace": namespace}});
            Desired::new(&object(&value, 0), kind(version), true, &owner())
        };
        assert!(refuse_duplicates(&[ox("v1", None), ox("v1", Some("other"))]).is_ok());
        for pair in [[ox("v1", None), ox("v2", None)], [ox("v1", None), ox("v1", Some("install"))]] {
            assert_eq!(
                refuse_duplicates(&pair).unwrap_err().to_string(),
                "Ox.a.b install/x and Ox.a.b install/x of the release are one object in the cluster"
            );
        }
    }
}
