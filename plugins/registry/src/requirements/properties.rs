//! Reports properties and dependencies to dependency resolvers and the administrator.

use chandler_sdk::{Diagnostic, Location, Request};
use serde::Deserialize;
use serde_json::Value;

use super::{Kinds, constraint, path, version::Version};
use crate::{
    bundle::{Bundle, Locate as _, Property},
    csv::GroupVersionKind,
};

/// The findings about the properties and dependencies of a bundle on a cluster.
pub(super) fn check(bundle: &Bundle, request: &Request, kinds: &Kinds<'_>) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    for property in &bundle.properties {
        findings.extend(finding(property, request, kinds));
    }
    findings
}

fn finding(property: &Property, request: &Request, kinds: &Kinds<'_>) -> Option<Diagnostic> {
    let place = &property.place;
    let found = match property.kind.as_str() {
        "olm.package" => read(property).map(|package: Package| Some(package.provided(place))),
        "olm.package.required" => read(property).map(|package: Package| Some(package.required(place))),
        "olm.gvk" => read(property).map(|kind: GroupVersionKind| {
            let kind = path(&kind.group, &kind.version, &kind.kind);
            Some(info(place, "ProvidedApi", format!("the bundle provides the API {kind}")))
        }),
        "olm.gvk.required" => read(property).map(|kind| required_kind(&kind, kinds, place)),
        "olm.constraint" => constrained(&property.value, kinds, place),
        "olm.maxOpenShiftVersion" => openshift(&property.value, request, kinds, place),
        // Custom types are allowed.
        _ => Ok(None),
    };
    found.unwrap_or_else(|reason| {
        let message = format!("property {:?} cannot be read: {reason}", property.kind);
        Some(place.warning("InvalidProperty", message).help("it has no effect; fix or remove it"))
    })
}

fn read<T: for<'de> Deserialize<'de>>(property: &Property) -> Result<T, String> {
    T::deserialize(&property.value).map_err(|error| error.to_string())
}

fn info(place: &Location, code: &str, message: String) -> Diagnostic {
    Diagnostic { location: Some(place.clone()), ..Diagnostic::info(code, message) }
}

/// The value of `olm.package` and `olm.package.required`.
#[derive(Deserialize)]
struct Package {
    #[serde(rename = "packageName")]
    name: String,
    /// The bundle's own version.
    #[serde(default)]
    version: String,
    /// The required versions. `dependencies.yaml` has them in `version`.
    #[serde(default, rename = "versionRange")]
    range: String,
}

impl Package {
    fn provided(&self, place: &Location) -> Diagnostic {
        info(place, "ProvidedPackage", format!("the bundle is package {:?}, version {}", self.name, self.version))
    }

    fn required(&self, place: &Location) -> Diagnostic {
        let range = if self.range.is_empty() { &self.version } else { &self.range };
        let message = format!("the operator needs package {:?} in version {range:?}, which is not checked", self.name);
        place.warning("RequiredPackage", message).help("install it first, as a separate BundleDeployment")
    }
}

fn required_kind(kind: &GroupVersionKind, kinds: &Kinds<'_>, place: &Location) -> Option<Diagnostic> {
    let name = path(&kind.group, &kind.version, &kind.kind);
    match kinds.has(kind) {
        Some(true) => None,
        Some(false) => {
            let message = format!("the operator needs the API {name}, and the cluster does not serve it");
            Some(place.warning("RequiredApiMissing", message).help("install the operator that provides it"))
        }
        None => Some(info(place, "RequiredApi", format!("the operator needs the API {name}"))),
    }
}

fn constrained(constraint: &Value, kinds: &Kinds<'_>, place: &Location) -> Result<Option<Diagnostic>, String> {
    let reason = constraint.get("failureMessage").and_then(Value::as_str).unwrap_or("no reason is given");
    Ok(match constraint::evaluate(constraint, kinds)? {
        Some(true) => None,
        Some(false) => {
            let message = format!("the cluster does not meet a constraint of the operator: {reason}");
            Some(place.warning("ConstraintNotMet", message).help("install what the constraint requires"))
        }
        None => {
            let message = format!("a constraint of the operator cannot be checked; if it is not met: {reason}");
            Some(info(place, "ConstraintUnchecked", message))
        }
    })
}

/// The newest OpenShift 4 that the operator runs on: `"4.12"`.
fn openshift(
    value: &Value,
    request: &Request,
    kinds: &Kinds<'_>,
    place: &Location,
) -> Result<Option<Diagnostic>, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err("want a version such as \"4.12\"".to_owned()),
    };
    let most = Version::parse(&text).filter(|version| version.major == 4);
    let most = most.ok_or_else(|| format!("{text:?} is not a version of OpenShift 4"))?;
    if value.is_number() {
        let message = format!("olm.maxOpenShiftVersion is the number {text}, and as a number 4.20 is 4.2");
        return Ok(Some(place.warning("InvalidProperty", message).help("put it into quotes")));
    }
    let running = || Version::parse(request.kubernetes_version()?).and_then(Version::openshift_minor);
    Ok(Some(match kinds.is_openshift().then(running).flatten() {
        Some(minor) if minor > most.minor => {
            let message =
                format!("the operator runs up to OpenShift 4.{}, and the cluster is OpenShift 4.{minor}", most.minor);
            place.warning("OpenShiftTooNew", message).help("use a newer version of the operator")
        }
        _ => info(place, "MaxOpenShiftVersion", format!("the operator runs up to OpenShift 4.{}", most.minor)),
    }))
}
