//! `release` in the configuration: the cluster that the manifests of an OpenShift release are for.

use std::collections::BTreeSet;

use chandler_sdk::{
    Diagnostic, Location,
    yaml::{Node, pointer_segment},
};
use serde_json::{Map, Value, json};

use crate::config::{IMAGE, LONGEST as LONGEST_IMAGE, is_image};

/// The profile of a cluster whose configuration names none.
const PROFILE: &str = "self-managed-high-availability";
/// The feature set of a cluster whose configuration names none.
const DEFAULT: &str = "Default";
/// The feature sets of OpenShift's API (`config/v1`).
const FEATURE_SETS: &str = "Default CustomNoUpgrade DevPreviewNoUpgrade OKD TechPreviewNoUpgrade";
/// The capabilities of OpenShift's API (`config/v1`).
const CAPABILITIES: &str = "Build CSISnapshot CloudControllerManager CloudCredential ClusterAPI CompatibilityRequirements Console \
    DeploymentConfig ImageRegistry Ingress Insights MachineAPI NodeTuning OperatorLifecycleManager OperatorLifecycleManagerV1 \
    Storage baremetal marketplace openshift-samples";
/// The characters of a profile; [`is_profile`] has the same rule.
const NAME: &str = "^[A-Za-z0-9][A-Za-z0-9-]*$";
/// The maximum length of a name.
const LONGEST: usize = 253;
/// The maximum number of entries of a list.
const MOST: usize = 1000;

/// A cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cluster {
    /// Its profile.
    pub(crate) profile: String,
    /// Its feature set.
    pub(crate) feature_set: String,
    /// The feature gates that are on.
    pub(crate) feature_gates: BTreeSet<String>,
    /// The enabled capabilities; `None` for all known ones.
    enabled: Option<BTreeSet<String>>,
    /// Known capabilities that are not in the API.
    known: BTreeSet<String>,
    /// The image of the release, for the templates of a release image.
    pub(crate) release_image: Option<String>,
    /// The objects that the administrator of the cluster manages.
    pub(crate) overrides: Vec<Override>,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            profile: PROFILE.to_owned(),
            feature_set: DEFAULT.to_owned(),
            feature_gates: BTreeSet::new(),
            enabled: None,
            known: BTreeSet::new(),
            release_image: None,
            overrides: Vec::new(),
        }
    }
}

/// An object, as in `spec.overrides` of a ClusterVersion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Override {
    group: String,
    kind: String,
    namespace: String,
    name: String,
    /// Whether it is left alone.
    pub(crate) unmanaged: bool,
}

impl Override {
    /// Whether this is the object of a manifest. A cluster-scoped object has no namespace, whatever the override says.
    pub(crate) fn selects(&self, object: &Node) -> bool {
        let text = |pointer: &str| object.at(pointer).and_then(Node::as_str).unwrap_or_default();
        let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
        let namespace = text("/metadata/namespace");
        (group, text("/kind"), text("/metadata/name")) == (self.group.as_str(), self.kind.as_str(), self.name.as_str())
            && (namespace.is_empty() || namespace == self.namespace)
    }
}

impl Cluster {
    /// The names of the feature sets.
    pub(crate) fn feature_sets() -> impl Iterator<Item = &'static str> {
        FEATURE_SETS.split(' ')
    }

    /// Whether a capability exists.
    pub(crate) fn knows(&self, capability: &str) -> bool {
        let listed = CAPABILITIES.split_whitespace().any(|known| known == capability);
        listed || self.known.contains(capability) || self.enabled.as_ref().is_some_and(|all| all.contains(capability))
    }

    /// Whether a capability that exists is enabled.
    pub(crate) fn enables(&self, capability: &str) -> bool {
        self.enabled.as_ref().is_none_or(|enabled| enabled.contains(capability))
    }

    /// Parses the value of `release`, and adds its errors.
    pub(crate) fn parse(members: &Map<String, Value>, findings: &mut Vec<Diagnostic>) -> Self {
        let mut cluster = Self::default();
        for (key, value) in members {
            let pointer = format!("/release/{}", pointer_segment(key));
            match (key.as_str(), value) {
                (key, Value::Null) if FIELDS.contains(&key) => {}
                ("clusterProfile", Value::String(text)) if is_profile(text) => cluster.profile.clone_from(text),
                ("featureSet", Value::String(text)) if Self::feature_sets().any(|known| known == text) => {
                    cluster.feature_set.clone_from(text);
                }
                ("featureGates", Value::Array(items)) => cluster.feature_gates = names(items, &pointer, findings),
                ("enabledCapabilities", Value::Array(items)) => {
                    cluster.enabled = Some(names(items, &pointer, findings));
                }
                ("releaseImage", Value::String(text)) if is_image(text) => cluster.release_image = Some(text.clone()),
                ("knownCapabilities", Value::Array(items)) => cluster.known = names(items, &pointer, findings),
                ("overrides", Value::Array(items)) => {
                    for (index, item) in items.iter().enumerate() {
                        match an_override(item) {
                            Some(found) => cluster.overrides.push(found),
                            None => findings.push(invalid("an override", &format!("{pointer}/{index}"))),
                        }
                    }
                }
                (key, _) if FIELDS.contains(&key) => findings.push(invalid(key, &pointer)),
                _ => {
                    let finding = Diagnostic::error("UnknownField", format!("unknown field {key:?}"));
                    findings.push(finding.at(Location::CONFIG).pointer(&pointer).help(KEYS));
                }
            }
        }
        cluster
    }
}

/// The keys of `release`.
const FIELDS: [&str; 7] = [
    "clusterProfile",
    "featureSet",
    "featureGates",
    "enabledCapabilities",
    "knownCapabilities",
    "overrides",
    "releaseImage",
];

/// The help about an unknown key.
const KEYS: &str = "the keys of release are clusterProfile, featureSet, featureGates, enabledCapabilities, knownCapabilities, overrides and releaseImage";

fn invalid(what: &str, pointer: &str) -> Diagnostic {
    let finding = Diagnostic::error("InvalidRelease", format!("{what} of release has an invalid value"));
    finding.at(Location::CONFIG).pointer(pointer).help(
        "a profile is letters, digits and dashes; lists are of names; an image is registry.example.com/repository@sha256:...; an override is {group, kind, namespace, name, unmanaged}, as in a ClusterVersion",
    )
}

fn names(items: &[Value], pointer: &str, findings: &mut Vec<Diagnostic>) -> BTreeSet<String> {
    if items.len() > MOST {
        findings.push(invalid("a list", pointer));
    }
    let mut found = BTreeSet::new();
    for (index, item) in items.iter().enumerate().take(MOST) {
        match item.as_str().filter(|text| is_profile(text)) {
            Some(text) => drop(found.insert(text.to_owned())),
            None => findings.push(invalid("a name", &format!("{pointer}/{index}"))),
        }
    }
    found
}

fn an_override(item: &Value) -> Option<Override> {
    let mut found = Override::default();
    for (key, value) in item.as_object()? {
        match (key.as_str(), value) {
            ("group", Value::String(text)) => found.group.clone_from(text),
            ("kind", Value::String(text)) => found.kind.clone_from(text),
            ("namespace", Value::String(text)) => found.namespace.clone_from(text),
            ("name", Value::String(text)) => found.name.clone_from(text),
            ("unmanaged", Value::Bool(unmanaged)) => found.unmanaged = *unmanaged,
            _ => return None,
        }
    }
    (!found.kind.is_empty() && !found.name.is_empty()).then_some(found)
}

/// The rule of [`NAME`].
fn is_profile(text: &str) -> bool {
    text.len() <= LONGEST
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// The JSON Schema of `release`.
pub(crate) fn schema() -> Value {
    let name = json!({"type": "string", "maxLength": LONGEST, "pattern": NAME});
    let names = |description: &str| json!({"description": description, "type": ["array", "null"], "maxItems": MOST, "items": name});
    let text = json!({"type": "string", "maxLength": LONGEST});
    let mut sets: Vec<Value> = Cluster::feature_sets().map(Value::from).collect();
    sets.push(Value::Null);
    json!({
        "description": "The cluster that the manifests of an OpenShift release are for. If it is set, their annotations count, and the files of a component are applied in order.",
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": {
            "clusterProfile": {
                "description": "The profile of the cluster: manifests with include.release.openshift.io/PROFILE are installed. self-managed-high-availability by default.",
                "type": ["string", "null"], "maxLength": LONGEST, "pattern": NAME,
            },
            "featureSet": {"description": "The feature set of the cluster. Default by default.", "enum": sets},
            "featureGates": names("The feature gates that are on."),
            "enabledCapabilities": names("The enabled capabilities. All known ones by default."),
            "knownCapabilities": names("Known capabilities that are not in OpenShift's API."),
            "releaseImage": {
                "description": "The image of the release, for the templates of a release image (release-manifests/).",
                "type": ["string", "null"], "maxLength": LONGEST_IMAGE, "pattern": IMAGE,
            },
            "overrides": {
                "description": "Objects that the administrator manages, as in spec.overrides of a ClusterVersion: with unmanaged they are created where they are missing, and never changed.",
                "type": ["array", "null"],
                "maxItems": MOST,
                "items": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["kind", "name"],
                    "properties": {"group": text, "kind": text, "namespace": text, "name": text, "unmanaged": {"type": "boolean"}},
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_a_cluster_is_reported() {
        let wrong = json!({"clusterProfile": "a/b", "featureSet": "Some", "featureGates": ["A", 1], "overrides": [{"kind": "X"}, {"kind": "X", "name": "x", "y": 1}], "profile": "x"});
        let mut findings = Vec::new();
        Cluster::parse(wrong.as_object().unwrap(), &mut findings);
        let pointers: Vec<&str> =
            findings.iter().map(|finding| finding.location.as_ref().unwrap().pointer.as_deref().unwrap()).collect();
        assert_eq!(
            pointers,
            [
                "/release/clusterProfile",
                "/release/featureGates/1",
                "/release/featureSet",
                "/release/overrides/0",
                "/release/overrides/1",
                "/release/profile"
            ]
        );
    }

    #[test]
    fn capabilities_are_known_and_enabled_by_default() {
        let of = |value: Value| Cluster::parse(value.as_object().unwrap(), &mut Vec::new());
        let default = of(json!({}));
        assert!(default.knows("Console") && default.enables("Console") && !default.knows("Teleport"));
        let some = of(json!({"enabledCapabilities": ["Console", "Teleport"], "knownCapabilities": ["Fax"]}));
        assert!(some.knows("Teleport") && some.knows("Fax") && some.knows("Build"));
        assert!(some.enables("Teleport") && !some.enables("Fax") && !some.enables("Build"));
    }
}
