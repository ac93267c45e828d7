//! Validates the objects of a bundle and their identities.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
};

use chandler_sdk::{Diagnostic, Location, check_lists, check_types, yaml::Node};

use crate::manifest::{Manifest, kind};

/// The identity of an object; the version is not part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

impl fmt::Display for Identity {
    /// `Deployment.apps namespace/name`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        f.write_str(" ")?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// The objects among the values, without duplicates.
pub(crate) fn check(
    manifests: Vec<Manifest>,
    errors: &mut Vec<Diagnostic>,
    warnings: &mut Vec<Diagnostic>,
) -> Vec<Manifest> {
    let mut objects: Vec<Manifest> = Vec::with_capacity(manifests.len());
    let mut places: BTreeMap<Identity, usize> = BTreeMap::new();
    for manifest in manifests {
        let identity = match identity(&manifest) {
            Ok(identity) => identity,
            Err(found) => {
                errors.extend(found);
                continue;
            }
        };
        errors.extend(check_types(&manifest.node, &manifest.path));
        errors.extend(check_lists(&manifest.node, &manifest.path));
        match places.entry(identity) {
            Entry::Vacant(entry) => {
                entry.insert(objects.len());
                objects.push(manifest);
            }
            Entry::Occupied(entry) => {
                if let Some(first) = objects.get(*entry.get()) {
                    let equal = first.node.to_json() == manifest.node.to_json();
                    let findings = if equal { &mut *warnings } else { &mut *errors };
                    findings.push(duplicate(entry.key(), first, &manifest, equal));
                }
            }
        }
    }
    objects
}

fn duplicate(identity: &Identity, first: &Manifest, second: &Manifest, equal: bool) -> Diagnostic {
    let other = Location::of(&first.path, &first.node);
    let finding = if equal {
        Diagnostic::warning("DuplicateObject", format!("{identity} is a duplicate, equal to the one at {other}"))
    } else {
        Diagnostic::error("DuplicateObject", format!("{identity} is a duplicate, different from the one at {other}"))
    };
    finding.at(&second.path).within(&second.node, "").help("remove one of them")
}

/// The identity of an object, or why API servers would reject it.
fn identity(manifest: &Manifest) -> Result<Identity, Vec<Diagnostic>> {
    let Manifest { node, path, .. } = manifest;
    if node.as_mapping().is_none() {
        let message = format!("got {}, want a Kubernetes object", node.article_and_type());
        let finding = Diagnostic::error("NotAnObject", message).at(path).within(node, "");
        return Err(vec![finding.help("every document in manifests/ must be an object; move others elsewhere")]);
    }
    let text = |pointer: &str| node.at(pointer).and_then(Node::as_str).filter(|text| !text.is_empty());
    let (api_version, kind, name) = (text("/apiVersion"), kind(node), text("/metadata/name"));
    let (Some(api_version), Some(kind), Some(name)) = (api_version, kind, name) else {
        let missing = [
            (
                "ApiVersionMissing",
                "/apiVersion",
                "Object 'apiVersion' is missing",
                "such as v1 or apps/v1",
                api_version,
            ),
            ("KindMissing", "/kind", "Object 'Kind' is missing", "such as ConfigMap", kind),
            (
                "NameMissing",
                "/metadata/name",
                "Object 'metadata.name' is missing",
                "in quotes if it could be a number",
                name,
            ),
        ];
        let missing = missing.into_iter().filter(|(.., value)| value.is_none());
        let findings = missing.map(|(code, pointer, message, example, _)| {
            let message = match node.at(pointer) {
                Some(wrong) if wrong.as_str().is_none() => {
                    format!("{message}: got {}, want text", wrong.article_and_type())
                }
                _ => message.to_owned(),
            };
            let finding = Diagnostic::error(code, message).at(path).within(node, pointer);
            match node.at("/metadata/generateName") {
                Some(_) if code == "NameMissing" => {
                    finding.help("generateName creates another object each time; set metadata.name")
                }
                _ => finding.help(format!("every object needs one, {example}")),
            }
        });
        return Err(findings.collect());
    };
    let namespace = match node.at("/metadata/namespace").filter(|namespace| !namespace.is_null()) {
        Some(namespace) => namespace.as_str().ok_or_else(|| {
            // Plain `n`, `on` and `1` are not strings in YAML.
            let message = format!("Object 'metadata.namespace' is not a string: got {}", namespace.article_and_type());
            let finding = Diagnostic::error("NamespaceInvalid", message).at(path);
            vec![finding.within(node, "/metadata/namespace").help("put it into quotes")]
        })?,
        None => "",
    };
    let illegal = illegal(api_version, kind, namespace, name);
    if !illegal.is_empty() {
        let finding = |(field, pointer, text): (&str, &str, &str)| {
            let message = format!("API servers reject the {field} {text:?}");
            let finding = Diagnostic::error("InvalidIdentity", message).at(path).within(node, pointer);
            finding.help(
                "an apiVersion is a version or group/version, a kind is letters and digits, a name has no / and no %",
            )
        };
        return Err(illegal.into_iter().map(finding).collect());
    }
    Ok(Identity {
        group: api_version.split_once('/').map_or("", |(group, _)| group).to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

/// A part of the identity that is invalid in a URL: field, pointer and text. The host would refuse it too, without the
/// line.
fn illegal<'a>(
    api_version: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
) -> Vec<(&'static str, &'static str, &'a str)> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let parts = [
        ("apiVersion", "/apiVersion", api_version, (group.is_empty() || is_segment(group)) && is_segment(version)),
        ("kind", "/kind", kind, kind.bytes().all(|byte| byte.is_ascii_alphanumeric())),
        ("name", "/metadata/name", name, is_segment(name)),
        ("namespace", "/metadata/namespace", namespace, namespace.is_empty() || is_segment(namespace)),
    ];
    parts.into_iter().filter(|(.., legal)| !legal).map(|(field, pointer, text, _)| (field, pointer, text)).collect()
}

/// The rule of `IsValidPathSegmentName` in `k8s.io/apimachinery/pkg/api/validation/path`, and the maximum length of a
/// name.
fn is_segment(text: &str) -> bool {
    !matches!(text, "" | "." | "..")
        && text.len() <= 253
        && !text.contains(['/', '%'])
        && !text.contains(char::is_control)
}
