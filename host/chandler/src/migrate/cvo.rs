//! How a component of an OpenShift release payload becomes a package that a PlatformOperator wants.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// The annotation of a manifest whose object the cluster-version operator deletes.
const DELETE: &str = "release.openshift.io/delete";
/// The annotation of a manifest whose object it creates and never updates.
const CREATE_ONLY: &str = "release.openshift.io/create-only";
/// Annotations by which it decides whether a cluster gets the object.
const CHOICES: [&str; 3] =
    ["release.openshift.io/feature-set", "release.openshift.io/feature-gate", "capability.openshift.io/name"];

/// A file of the directory `manifests` of a component, with its objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PayloadFile {
    /// Its name.
    pub name: String,
    /// Its objects.
    pub objects: Vec<Value>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// The PlatformOperator.
    pub operator: Value,
    /// The files of the bundle.
    pub bundle: Vec<String>,
    /// The files that stay in the payload, each with the reason.
    pub stays: BTreeMap<String, String>,
    /// What a person has to decide.
    pub notes: Vec<String>,
}

/// Why a component cannot be moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// There is nothing to put into a bundle.
    #[error("no file has an object for a bundle")]
    Nothing,
    /// Files have parts for the bundle and parts for the payload.
    #[error("{file} has objects for the bundle, and {object}, which {reason}: divide the file")]
    Mixed {
        /// The file.
        file: String,
        /// The object that stays.
        object: String,
        /// Why.
        reason: &'static str,
    },
}

/// How the component with these files becomes the package `name`.
///
/// # Errors
/// A file has to be divided first, or none is for a bundle.
pub fn plan(name: &str, files: &[PayloadFile]) -> Result<Move, MoveError> {
    let (mut bundle, mut stays, mut notes) = (Vec::new(), BTreeMap::new(), Vec::new());
    let moved = files.iter().flat_map(|file| &file.objects).filter(|object| reason_to_stay(object).is_none());
    let namespace = namespace(moved).unwrap_or_else(|| name.to_owned());
    for file in files {
        let reasons: Vec<Option<&str>> = file.objects.iter().map(reason_to_stay).collect();
        if let Some((object, reason)) = file.objects.iter().zip(&reasons).find_map(|(it, why)| Some((it, (*why)?))) {
            if reasons.iter().any(Option::is_none) {
                return Err(MoveError::Mixed { file: file.name.clone(), object: title(object), reason });
            }
            stays.insert(file.name.clone(), format!("{} {reason}", title(object)));
            continue;
        }
        for object in &file.objects {
            notes.extend(note(object).map(|note| format!("{}: {} {note}", file.name, title(object))));
        }
        bundle.push(file.name.clone());
    }
    if files.iter().filter(|file| bundle.contains(&file.name)).all(|file| file.objects.is_empty()) {
        return Err(MoveError::Nothing);
    }
    let operator = json!({
        "apiVersion": "platform.openshift.io/v1alpha1",
        "kind": "PlatformOperator",
        "metadata": {"name": name},
        "spec": {"package": {"name": name}, "installNamespace": namespace},
    });
    Ok(Move { operator, bundle, stays, notes })
}

/// Why an object is not part of the package.
fn reason_to_stay(object: &Value) -> Option<&'static str> {
    if annotation(object, DELETE).is_some() {
        return Some("is deleted by the cluster-version operator");
    }
    // The package is installed into it, and must not delete it.
    (text(object, "/kind") == "Namespace").then_some("must exist before the package is installed")
}

/// What to think of.
fn note(object: &Value) -> Option<String> {
    if let Some(choice) = CHOICES.into_iter().find(|choice| annotation(object, choice).is_some()) {
        return Some(format!(
            "is only for some clusters ({choice}), and a package is for all that have the PlatformOperator"
        ));
    }
    if annotation(object, CREATE_ONLY).is_some() {
        return Some(format!(
            "is only created ({CREATE_ONLY}), and Chandler undoes edits: ignore the fields that others edit"
        ));
    }
    let is_cluster_operator = text(object, "/kind") == "ClusterOperator";
    is_cluster_operator.then(|| {
        "is waited for by the cluster-version operator: afterwards it waits for platform-operators-aggregated, which reports the package".to_owned()
    })
}

/// The namespace that most objects are in.
fn namespace<'a>(objects: impl Iterator<Item = &'a Value>) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for object in objects {
        let namespace = text(object, "/metadata/namespace");
        if !namespace.is_empty() {
            *counts.entry(namespace).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by(|(one, some), (other, more)| some.cmp(more).then(other.cmp(one)));
    most.map(|(namespace, _)| namespace.to_owned())
}

impl Move {
    /// What to do, step by step.
    pub fn steps(&self, name: &str) -> Vec<String> {
        let list = |names: &mut dyn Iterator<Item = &String>| names.map(String::as_str).collect::<Vec<_>>().join(" ");
        let stays: BTreeSet<&String> = self.stays.keys().collect();
        let stays = if stays.is_empty() { String::new() } else { format!("; {} stay", list(&mut stays.into_iter())) };
        vec![
            format!("the bundle: put {} into the directory manifests of a bundle, with image-references if there is one; push it with `chandler push DIR IMAGE`", list(&mut self.bundle.iter())),
            format!("the catalog: add package {name} with the bundle, and its property chandler.dev/platform-operator with the value true"),
            format!("the payload of the next release: replace these files by the PlatformOperator on standard output{stays}. Do not set {DELETE}: the cluster-version operator leaves the objects of files that are gone, so that the component keeps running"),
            format!("the controller in that payload: add {name} to --expected-platform-operators, so that the upgrade waits for the package"),
            "the cluster: PlatformOperator says that the objects belong to another owner. Let the set adopt them: `kubectl patch resolution platform-operators --type merge -p '{\"spec\":{\"output\":{\"resolveSet\":{\"collisionProtection\":\"None\"}}}}'`. Set it to null once the package is installed".to_owned(),
            format!("a later release: objects that the package does not have any more are deleted by a manifest with {DELETE}: \"true\""),
        ]
    }
}

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get("metadata")?.get("annotations")?.get(name)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn title(object: &Value) -> String {
    format!("{} {}", text(object, "/kind"), text(object, "/metadata/name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, namespace: &str, annotation: Option<&str>) -> Value {
        let mut metadata = json!({"name": "mine"});
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        if let Some(name) = annotation {
            metadata["annotations"] = json!({name: "true"});
        }
        json!({"apiVersion": "v1", "kind": kind, "metadata": metadata})
    }

    fn file(name: &str, objects: &[Value]) -> PayloadFile {
        PayloadFile { name: name.to_owned(), objects: objects.to_vec() }
    }

    #[test]
    fn a_component_becomes_a_package_in_its_namespace() {
        let files = [
            file("00-namespace.yaml", &[object("Namespace", "", None)]),
            file("01-rbac.yaml", &[object("ClusterRole", "", None), object("Role", "kube-system", None)]),
            file("02-old.yaml", &[object("Job", "mine", Some(DELETE))]),
            file("03-deployment.yaml", &[object("Deployment", "mine", None), object("Service", "mine", None)]),
            file("04-co.yaml", &[object("ClusterOperator", "", None)]),
            file("05-tech-preview.yaml", &[object("Deployment", "mine", Some("release.openshift.io/feature-set"))]),
        ];
        let plan = plan("mine", &files).unwrap();
        assert_eq!(plan.operator["spec"], json!({"package": {"name": "mine"}, "installNamespace": "mine"}));
        assert_eq!(plan.bundle, ["01-rbac.yaml", "03-deployment.yaml", "04-co.yaml", "05-tech-preview.yaml"]);
        assert_eq!(plan.stays.keys().collect::<Vec<_>>(), ["00-namespace.yaml", "02-old.yaml"]);
        assert_eq!(plan.notes.len(), 2, "{:?}", plan.notes);
        let steps = plan.steps("mine").join("\n");
        assert!(
            steps.contains("01-rbac.yaml 03-deployment.yaml") && steps.contains("; 00-namespace.yaml 02-old.yaml stay")
        );
    }

    #[test]
    fn a_file_for_both_is_divided_first() {
        let mixed = file("a.yaml", &[object("Namespace", "", None), object("Deployment", "mine", None)]);
        let refused = plan("mine", &[mixed]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "a.yaml has objects for the bundle, and Namespace mine, which must exist before the package is installed: divide the file"
        );
        assert_eq!(plan("mine", &[file("a.yaml", &[object("Namespace", "", None)])]).unwrap_err(), MoveError::Nothing);
    }
}
