//! Manifests of an OpenShift release: which of them are for a cluster, and in which order they are applied.
//!
//! The rules come from the cluster-version operator (`pkg/manifest` in `openshift/library-go`, `pkg/payload` and
//! `lib/resourceapply` in `openshift/cluster-version-operator`). It omits what it cannot interpret; here that is an error,
//! since an object that is silently missing is found late.

use std::collections::BTreeSet;

use chandler_sdk::{
    Diagnostic,
    yaml::{Node, pointer_segment},
};
use serde_json::{Value, json};

use crate::{manifest::Manifest, release_config::Cluster, stage::component};

/// The prefix of the annotations with the profiles that a manifest is for.
const INCLUDE: &str = "include.release.openshift.io/";
const FEATURE_SET: &str = "release.openshift.io/feature-set";
const FEATURE_GATE: &str = "release.openshift.io/feature-gate";
const MAJOR_VERSION: &str = "release.openshift.io/major-version";
const CAPABILITY: &str = "capability.openshift.io/name";
const DELETE: &str = "release.openshift.io/delete";
const CREATE_ONLY: &str = "release.openshift.io/create-only";

/// The position of an object among the objects of its component, for the host (`SEQUENCE_ANNOTATION` there).
pub(crate) const SEQUENCE: &str = "chandler.dev/sequence";
/// That an object is created and never changed, for the host (`CREATE_ONLY_ANNOTATION` there).
const ONLY_CREATED: &str = "chandler.dev/create-only";

/// The manifests that are for a cluster, with their order. `version` is the version of the release.
pub(crate) fn select(
    manifests: Vec<Manifest>,
    cluster: &Cluster,
    version: Option<&str>,
    errors: &mut Vec<Diagnostic>,
) -> Vec<Manifest> {
    let mut selected = Vec::new();
    for (number, mut manifest) in manifests.into_iter().enumerate() {
        // A document that is not an object is reported as such.
        if manifest.node.at("/metadata").is_some() {
            let annotations = Annotations { manifest: &manifest };
            match annotations.decide(cluster, version) {
                Ok(Decision::Omit) => continue,
                Ok(Decision::Install { create_only }) => {
                    let only = create_only.then(|| (ONLY_CREATED, "true".to_owned()));
                    manifest.instructions.extend(only);
                }
                Err(findings) => {
                    errors.extend(findings);
                    continue;
                }
            }
        }
        let name = manifest.path.rsplit('/').next().unwrap_or_default();
        let sequence = format!("{}/{number}", component(name).unwrap_or_default());
        manifest.instructions.push((SEQUENCE, sequence));
        selected.push(manifest);
    }
    selected
}

/// Completes an object as the cluster-version operator does: its type of a ClusterOperator always has a `spec`, which the CRD requires and which
/// manifests omit.
pub(crate) fn complete(object: &mut Value) {
    let is_cluster_operator = object.get("kind").is_some_and(|kind| kind == "ClusterOperator")
        && object
            .get("apiVersion")
            .and_then(Value::as_str)
            .is_some_and(|version| version.starts_with("config.openshift.io/"));
    if let Some(members) = object.as_object_mut().filter(|_| is_cluster_operator) {
        members.entry("spec").or_insert_with(|| json!({}));
    }
}

/// The error for a bundle without any manifest that is for a cluster.
pub(crate) fn none_for(cluster: &Cluster) -> Diagnostic {
    let message = format!(
        "no manifest of the bundle is for a cluster with the profile {:?}, the feature set {:?} and the enabled capabilities",
        cluster.profile, cluster.feature_set
    );
    let help =
        format!("correct release in the configuration, or annotate the manifests with {INCLUDE}PROFILE: \"true\"");
    Diagnostic::error("NoObjectsForCluster", message).at(crate::MANIFESTS).help(help)
}

/// What happens to a manifest.
enum Decision {
    /// It is not part of the release.
    Omit,
    /// It is part of the release.
    Install { create_only: bool },
}

/// The annotations of a manifest.
struct Annotations<'a> {
    manifest: &'a Manifest,
}

impl Annotations<'_> {
    /// All annotations are checked, even on a manifest that another one omits.
    fn decide(&self, cluster: &Cluster, version: Option<&str>) -> Result<Decision, Vec<Diagnostic>> {
        let mut findings = Vec::new();
        let mut noted = |result: Result<bool, Box<Diagnostic>>| {
            result.unwrap_or_else(|finding| {
                findings.push(*finding);
                false
            })
        };
        let included = noted(self.flag(&format!("{INCLUDE}{}", cluster.profile), &["true"]));
        let in_feature_set = noted(self.feature_set(cluster));
        let gates_match = noted(self.feature_gates(cluster));
        let is_enabled = noted(self.capabilities(cluster));
        let is_for_version = noted(self.major_version(version));
        let deleted = noted(self.flag(DELETE, &["true"]));
        let create_only = noted(self.flag(CREATE_ONLY, &["true", "false"]));
        if self.get(FEATURE_SET).is_some() && self.get(FEATURE_GATE).is_some() {
            findings.push(self.contradictory(FEATURE_GATE, FEATURE_SET));
        }
        if deleted && create_only {
            findings.push(self.contradictory(CREATE_ONLY, DELETE));
        }
        if !findings.is_empty() {
            return Err(findings);
        }
        let is_for_cluster = included && in_feature_set && gates_match && is_enabled && is_for_version;
        if !is_for_cluster || deleted {
            return Ok(Decision::Omit);
        }
        let is_left_alone = cluster.overrides.iter().any(|it| it.unmanaged && it.selects(&self.manifest.node));
        Ok(Decision::Install { create_only: create_only || is_left_alone })
    }

    fn get(&self, name: &str) -> Option<&Node> {
        self.manifest.node.at("/metadata/annotations")?.get(name)
    }

    /// The text of an annotation. A value that is not a string is an error: API servers reject it.
    fn text(&self, name: &str) -> Result<Option<&str>, Box<Diagnostic>> {
        let Some(node) = self.get(name) else { return Ok(None) };
        let invalid =
            || self.invalid(name, &format!("is a {} instead of a string", node.type_name()), "put it into quotes");
        node.as_str().map(Some).ok_or_else(invalid)
    }

    /// Whether an annotation is `true`. Only these values are known.
    fn flag(&self, name: &str, known: &[&str]) -> Result<bool, Box<Diagnostic>> {
        match self.text(name)? {
            Some(value) if !known.contains(&value) => {
                let help = format!("write {}, or remove the annotation", one_of(known));
                Err(self.invalid(name, &format!("has the unknown value {value:?}"), &help))
            }
            value => Ok(value == Some("true")),
        }
    }

    fn feature_set(&self, cluster: &Cluster) -> Result<bool, Box<Diagnostic>> {
        let Some(text) = self.text(FEATURE_SET)? else { return Ok(true) };
        let sets: Vec<&str> = text.split(',').collect();
        if let Some(unknown) = sets.iter().find(|set| !Cluster::feature_sets().any(|known| known == **set)) {
            let known: Vec<&str> = Cluster::feature_sets().collect();
            let help = format!("the feature sets are {}", known.join(", "));
            return Err(self.invalid(FEATURE_SET, &format!("names the unknown feature set {unknown:?}"), &help));
        }
        Ok(sets.contains(&cluster.feature_set.as_str()))
    }

    fn feature_gates(&self, cluster: &Cluster) -> Result<bool, Box<Diagnostic>> {
        let Some(text) = self.text(FEATURE_GATE)? else { return Ok(true) };
        let (excluded, required) = signed(text);
        if let Some(gate) = required.intersection(&excluded).next() {
            let why = format!("requires the feature gate {gate:?} to be both enabled and disabled");
            return Err(self.invalid(FEATURE_GATE, &why, "remove one of the two"));
        }
        let is_on = |gate: &&str| cluster.feature_gates.contains(*gate);
        Ok(required.iter().all(is_on) && !excluded.iter().any(is_on))
    }

    fn capabilities(&self, cluster: &Cluster) -> Result<bool, Box<Diagnostic>> {
        let text = self.text(CAPABILITY)?.filter(|text| !text.is_empty());
        let capabilities: Vec<&str> = text.map(|text| text.split('+').collect()).unwrap_or_default();
        if let Some(unknown) = capabilities.iter().find(|name| !cluster.knows(name)) {
            let help =
                "correct the annotation, or add the capability to release.knownCapabilities in the configuration";
            return Err(self.invalid(CAPABILITY, &format!("names the unknown capability {unknown:?}"), help));
        }
        Ok(capabilities.into_iter().all(|name| cluster.enables(name)))
    }

    fn major_version(&self, version: Option<&str>) -> Result<bool, Box<Diagnostic>> {
        let Some(text) = self.text(MAJOR_VERSION)? else { return Ok(true) };
        let (excluded, included) = signed(text);
        let is_number = |text: &&str| text.parse::<u64>().is_ok();
        if !included.iter().chain(&excluded).all(is_number) || included.intersection(&excluded).next().is_some() {
            let help = "write major versions, such as \"4\" or \"-5\"";
            return Err(self.invalid(MAJOR_VERSION, &format!("has the value {text:?}"), help));
        }
        let Some(major) = version.and_then(|version| version.split('.').next()) else {
            let help = "set releaseVersion in the configuration";
            return Err(self.invalid(MAJOR_VERSION, "depends on the version of the release, which is not set", help));
        };
        Ok((included.is_empty() || included.contains(major)) && !excluded.contains(major))
    }

    fn invalid(&self, name: &str, why: &str, help: &str) -> Box<Diagnostic> {
        Box::new(self.finding("InvalidReleaseAnnotation", name, format!("the annotation {name} {why}"), help))
    }

    fn contradictory(&self, name: &str, other: &str) -> Diagnostic {
        let message = format!("the annotations {other} and {name} contradict each other");
        self.finding("ContradictoryAnnotations", name, message, "remove one of the two")
    }

    fn finding(&self, code: &str, name: &str, message: String, help: &str) -> Diagnostic {
        let pointer = format!("/metadata/annotations/{}", pointer_segment(name));
        Diagnostic::error(code, message).at(&self.manifest.path).within(&self.manifest.node, &pointer).help(help)
    }
}

/// The names in a list with a minus, and those without.
fn signed(text: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let names = || text.split(',').map(str::trim).filter(|name| !name.is_empty());
    (
        names().filter_map(|name| name.strip_prefix('-')).collect(),
        names().filter(|name| !name.starts_with('-')).collect(),
    )
}

/// Values in quotes, for a message.
fn one_of(values: &[&str]) -> String {
    values.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(" or ")
}
