//! The Resolution of a plan, and its changes.

use std::collections::{BTreeMap, BTreeSet};

use chandler_api::{
    OutputType, PackageRequest, Resolution, ResolutionOutput, ResolutionSpec, ResolveSetOutput, ServiceAccountReference,
};
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use super::Plan;

/// Marks the Resolution that the controller makes from PlatformOperators.
pub const MANAGED: &str = "platform.chandler.dev/managed";
/// On that Resolution: the packages whose PlatformOperators were deleted with `--cascade=orphan`, with commas between them.
pub const KEPT: &str = "platform.chandler.dev/kept";

/// What the administrator sets for all PlatformOperators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The name of the Resolution, and of the namespace of packages that no PlatformOperator names.
    pub name: String,
    /// The ServiceAccount of the set. Default: as for a BundleDeployment.
    pub service_account: Option<ServiceAccountReference>,
    /// The labels of the Resolution, with which the controller selects it.
    pub labels: BTreeMap<String, String>,
}

/// A package that stays wanted although no PlatformOperator is known to want it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    request: PackageRequest,
    /// Whether it stays until a PlatformOperator wants it, and not only for now.
    is_orphaned: bool,
    namespace: Option<String>,
    /// The name of its BundleDeployment.
    name: Option<String>,
    config: Option<Map<String, Value>>,
}

/// Whether the controller made a Resolution from PlatformOperators.
pub fn is_managed(resolution: &Resolution) -> bool {
    resolution.annotations().get(MANAGED).is_some_and(|value| value == "true")
}

/// The packages that a Resolution keeps.
pub fn kept_packages(resolution: &Resolution) -> BTreeSet<String> {
    let kept = resolution.annotations().get(KEPT).map(String::as_str).unwrap_or_default();
    kept.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Whether a Resolution asks for a package.
pub fn asks_for(resolution: &Resolution, package: &str) -> bool {
    resolution.spec.packages.iter().any(|request| request.name == package)
}

/// The namespace that a Resolution installs a package in.
pub fn namespace<'a>(resolution: &'a Resolution, package: &str) -> Option<&'a String> {
    set(resolution)?.namespaces.get(package)
}

/// Whether a Resolution installs something in a namespace, a package that is uninstalled aside.
pub fn uses_namespace(resolution: &Resolution, namespace: &str, uninstalled: &str) -> bool {
    let uses = |set: &ResolveSetOutput| {
        let mut others = set.namespaces.iter().filter(|(package, _)| *package != uninstalled);
        set.install_namespace == namespace || others.any(|(_, it)| it == namespace)
    };
    set(resolution).is_some_and(uses)
}

/// The packages of a Resolution that stay wanted: the ones that it keeps, and the packages of PlatformOperators that are deleted as
/// orphans, unless a PlatformOperator of the plan wants them. `all` keeps all of them for now: what some PlatformOperator wants cannot be
/// read.
pub fn kept(existing: Option<&Resolution>, orphaned: &BTreeSet<String>, all: bool, plan: &Plan) -> Vec<Kept> {
    let Some(existing) = existing else { return Vec::new() };
    let names: BTreeSet<String> = kept_packages(existing).union(orphaned).cloned().collect();
    let stays =
        |request: &&PackageRequest| (all || names.contains(&request.name)) && plan.wanted(&request.name).is_none();
    let of = |request: &PackageRequest| Kept {
        request: request.clone(),
        is_orphaned: names.contains(&request.name),
        namespace: namespace(existing, &request.name).cloned(),
        name: set(existing).and_then(|set| set.names.get(&request.name).cloned()),
        config: set(existing).and_then(|set| set.config.get(&request.name).cloned()),
    };
    existing.spec.packages.iter().filter(stays).map(of).collect()
}

/// The Resolution of a plan, or `None` if nothing is wanted. `namespaces` has the namespaces of the plan's packages.
pub fn wanted(
    plan: &Plan,
    kept: &[Kept],
    namespaces: &BTreeMap<String, String>,
    settings: &Settings,
) -> Option<Resolution> {
    if plan.packages.is_empty() && kept.is_empty() {
        return None;
    }
    let mut set = ResolveSetOutput {
        install_namespace: settings.name.clone(),
        namespaces: namespaces.clone(),
        service_account: settings.service_account.clone(),
        ..ResolveSetOutput::default()
    };
    for wanted in &plan.packages {
        set.names.insert(wanted.request.name.clone(), wanted.operator.clone());
    }
    for wanted in plan.packages.iter().filter(|wanted| !wanted.config.is_empty()) {
        set.config.insert(wanted.request.name.clone(), wanted.config.clone());
    }
    for one in kept {
        set.namespaces.extend(one.namespace.iter().map(|namespace| (one.request.name.clone(), namespace.clone())));
        set.names.extend(one.name.iter().map(|name| (one.request.name.clone(), name.clone())));
        set.config.extend(one.config.iter().map(|config| (one.request.name.clone(), config.clone())));
    }
    let packages = plan.packages.iter().map(|wanted| &wanted.request).chain(kept.iter().map(|one| &one.request));
    let spec = ResolutionSpec {
        packages: packages.cloned().collect(),
        output: Some(ResolutionOutput { kind: OutputType::ResolveSet, resolve_set: Some(set) }),
        ..ResolutionSpec::default()
    };
    let mut resolution = Resolution::new(&settings.name, spec);
    let mut annotations = BTreeMap::from([(MANAGED.to_owned(), "true".to_owned())]);
    let orphaned: Vec<&str> = kept.iter().filter(|one| one.is_orphaned).map(|one| one.request.name.as_str()).collect();
    if !orphaned.is_empty() {
        annotations.insert(KEPT.to_owned(), orphaned.join(","));
    }
    resolution.metadata.annotations = Some(annotations);
    resolution.metadata.labels = Some(settings.labels.clone()).filter(|labels| !labels.is_empty());
    Some(resolution)
}

/// The merge patch that gives a Resolution the fields of the desired one, or `None` if it has them. All other fields, such as `suspend`,
/// `approval` and `maintenanceWindows`, belong to administrators.
///
/// # Errors
/// A field cannot be written as JSON.
pub fn change(existing: &Resolution, wanted: &Resolution) -> Result<Option<Value>, serde_json::Error> {
    let mut patch = Map::new();
    let mut metadata = Map::new();
    let kept = |resolution: &Resolution| resolution.annotations().get(KEPT).cloned();
    if kept(existing) != kept(wanted) {
        metadata.insert("annotations".to_owned(), json!({KEPT: kept(wanted)}));
    }
    let mut spec = Map::new();
    if existing.spec.packages != wanted.spec.packages {
        spec.insert("packages".to_owned(), serde_json::to_value(&wanted.spec.packages)?);
    }
    if let Some(output) = output_change(existing, wanted)? {
        spec.insert("output".to_owned(), output);
    }
    for (name, part) in [("metadata", metadata), ("spec", spec)] {
        if !part.is_empty() {
            patch.insert(name.to_owned(), part.into());
        }
    }
    if patch.is_empty() {
        return Ok(None);
    }
    let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("uid".to_owned(), json!(existing.uid()));
    }
    Ok(Some(patch.into()))
}

/// The fields of the output that a plan decides.
const FIELDS: [&str; 5] = ["installNamespace", "namespaces", "names", "serviceAccount", "config"];

fn output_change(existing: &Resolution, wanted: &Resolution) -> Result<Option<Value>, serde_json::Error> {
    let kind = |resolution: &Resolution| resolution.spec.output.as_ref().map(|output| output.kind);
    let fields = |resolution: &Resolution| set(resolution).map_or(Ok(json!({})), serde_json::to_value);
    let (now, new) = (fields(existing)?, fields(wanted)?);
    let mut change = Map::new();
    for field in FIELDS {
        if let Some(difference) = difference(now.get(field), new.get(field)) {
            change.insert(field.to_owned(), difference);
        }
    }
    Ok(match (kind(existing) == kind(wanted), change.is_empty()) {
        (true, true) => None,
        (true, false) => Some(json!({"resolveSet": change})),
        (false, _) => Some(json!({"type": "ResolveSet", "resolveSet": change})),
    })
}

/// The merge patch (RFC 7386) from a value to another one, or `None` if they are equal.
fn difference(old: Option<&Value>, new: Option<&Value>) -> Option<Value> {
    match (old, new) {
        _ if old == new => None,
        (_, None) => Some(Value::Null),
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            let changed = |key: &String| Some((key.clone(), difference(old.get(key), new.get(key))?));
            Some(Value::Object(keys.into_iter().filter_map(changed).collect()))
        }
        (_, Some(new)) => Some(new.clone()),
    }
}

fn set(resolution: &Resolution) -> Option<&ResolveSetOutput> {
    resolution.spec.output.as_ref()?.resolve_set.as_ref()
}

#[cfg(test)]
mod tests;
