//! The metadata of a bundle, in the form of OLM's file-based catalogs.
//!
//! The properties are the ones that `opm render` writes (`operator-registry/alpha/action/render.go` and `alpha/property`): the ones in
//! `metadata/` and the ClusterServiceVersion, and those derived from the package name, the version, and the owned and required APIs.

use chandler_sdk::{Description, Property};
use serde_json::{Value, json};

use crate::{
    bundle::Bundle,
    csv::{GroupVersionKind, group_of},
};

/// The description of a bundle. Requirements, which a resolver needs most, come first.
pub(crate) fn describe(bundle: &Bundle) -> Description {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let package = bundle.package.as_ref().and_then(|package| text(&package.name));
    let version = bundle.csv.spec.version.as_str().and_then(text);
    let stated = bundle
        .properties
        .iter()
        .map(|property| Property { kind: property.kind.clone(), value: in_catalog(&property.kind, &property.value) });
    let mut properties: Vec<Property> = Vec::new();
    for property in stated.chain(derived(bundle, package.as_deref(), version.as_deref())) {
        let is_second_package = property.kind == PACKAGE && properties.iter().any(|known| known.kind == PACKAGE);
        if !is_second_package && !properties.contains(&property) {
            properties.push(property);
        }
    }
    properties.sort_by_key(|property| rank(&property.kind));
    Description { name: text(&bundle.csv.metadata.name), package, version, properties }
}

const PACKAGE: &str = "olm.package";
const KIND: &str = "olm.gvk";
const REQUIRED_KIND: &str = "olm.gvk.required";
const REQUIRED_PACKAGE: &str = "olm.package.required";

fn rank(kind: &str) -> usize {
    let order =
        [PACKAGE, "olm.maxOpenShiftVersion", REQUIRED_PACKAGE, REQUIRED_KIND, "olm.constraint", KIND, "olm.label"];
    order.iter().position(|known| *known == kind).unwrap_or(order.len())
}

/// A dependencies file has the range in `version`, catalogs have it in `versionRange`.
fn in_catalog(kind: &str, value: &Value) -> Value {
    match (kind, value.get("packageName"), value.get("version")) {
        (REQUIRED_PACKAGE, Some(name), Some(range)) if value.get("versionRange").is_none() => {
            json!({"packageName": name, "versionRange": range})
        }
        _ => value.clone(),
    }
}

/// The properties derived from the rest of the bundle.
fn derived(bundle: &Bundle, package: Option<&str>, version: Option<&str>) -> Vec<Property> {
    let spec = &bundle.csv.spec;
    let property = |kind: &str, value: Value| Property { kind: kind.to_owned(), value };
    let mut properties = Vec::new();
    if let (Some(package), Some(version)) = (package, version) {
        properties.push(property(PACKAGE, json!({"packageName": package, "version": version})));
    }
    let (crds, services) = (&spec.customresourcedefinitions, &spec.apiservicedefinitions);
    for (kind, crds, services) in
        [(KIND, &crds.owned, &services.owned), (REQUIRED_KIND, &crds.required, &services.required)]
    {
        let crds = crds.iter().map(|crd| (group_of(&crd.name), crd.version.as_str(), crd.kind.as_str()));
        let services =
            services.iter().map(|service| (service.group.as_str(), service.version.as_str(), service.kind.as_str()));
        for (group, version, name) in crds.chain(services) {
            let wanted = GroupVersionKind { group: group.into(), version: version.into(), kind: name.into() };
            properties.push(property(kind, json!(wanted)));
        }
    }
    properties
}
