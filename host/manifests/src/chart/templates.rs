//! The templates of the chart.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    deployment::REPLICAS,
    edits::{edit, when},
    hole::{Holes, escaped, is_namespace, of_release},
};
use crate::{
    ManifestsError, adapt,
    condition::{CONTRADICTIONS, Condition},
    files::FILES,
    yaml::yaml,
};

/// The annotation with which Helm keeps an object that a release no longer has. The removal of a CRD would remove all objects of its kind.
const KEEP: (&str, &str) = ("helm.sh/resource-policy", "keep");

/// The templates by their path in the chart.
pub(super) fn templates() -> Result<BTreeMap<String, String>, ManifestsError> {
    let mut templates = BTreeMap::from([("templates/contradictions.yaml".to_owned(), contradictions())]);
    for crd in chandler_api::crds() {
        let mut object = serde_json::to_value(&crd).map_err(ManifestsError::Crd)?;
        let path = format!("templates/crds/{}.yaml", crd.metadata.name.as_deref().unwrap_or_default());
        keep(&mut object);
        templates.insert(path, when("if .Values.crds", &escaped(&yaml(&object)?), None) + "\n");
    }
    for (file, condition) in FILES {
        let mut documents = Vec::new();
        for object in file.objects()? {
            documents.push(document(object)?);
        }
        let mut text = documents.join("---\n");
        if text.contains("$replicas") {
            text.insert_str(0, REPLICAS);
        }
        templates.insert(format!("templates/{}", file.name), selected(*condition, text));
    }
    Ok(templates)
}

/// An object as a document.
fn document(mut object: Value) -> Result<String, ManifestsError> {
    let (is_namespace, mut holes) = (is_namespace(&object), Holes::default());
    if object.get("kind").is_some_and(|kind| kind == "Namespace") {
        keep(&mut object);
    }
    edit(&mut object, &mut holes)?;
    of_release(&mut object);
    let text = holes.text(&object)?;
    if is_namespace {
        // Helm stores the release in this namespace, so it usually exists before the release.
        return Ok(when("if .Values.createNamespace", &text, None) + "\n");
    }
    let of = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    Ok(selected(adapt::condition(of("/kind"), of("/metadata/name")), text))
}

fn selected(condition: Condition, text: String) -> String {
    if condition.template.is_empty() { text } else { when(&format!("if {}", condition.template), &text, None) + "\n" }
}

fn keep(object: &mut Value) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let annotations = metadata.map(|metadata| metadata.entry("annotations").or_insert_with(|| json!({})));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.insert(KEEP.0.to_owned(), json!(KEEP.1));
    }
}

/// A template without objects, which refuses values that contradict each other.
fn contradictions() -> String {
    let refusals = CONTRADICTIONS.iter().map(|found| {
        let condition = format!("if {}", found.condition.template);
        when(&condition, &format!("{{{{- fail {:?} }}}}", found.message), None)
    });
    refusals.collect::<Vec<_>>().join("\n") + "\n"
}
