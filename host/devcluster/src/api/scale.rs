//! The scale subresource.

use serde_json::{Value, json};

use super::{
    Api, Input, Target,
    write::{Draft, Write, Written},
};
use crate::{
    metadata,
    pipeline::{body, decode},
    status::Status,
    store::object::render,
};
use chandler_devcluster_apimachinery::{
    apply::patch::{json_patch, merge_patch},
    schema::Scale,
};

impl Api {
    /// The scale of an object.
    ///
    /// # Errors
    /// When the object does not exist.
    pub fn scale(&self, target: &Target) -> Result<bytes::Bytes, Status> {
        let object = self.store.get(&target.key());
        let object = object.ok_or_else(|| Status::not_found(&target.resource.group_resource(), &target.name))?;
        Ok(render(&scale_of(scale_paths(target)?, &super::view::served(&target.resource, &object))))
    }

    /// Replaces or patches the scale of an object.
    ///
    /// # Errors
    /// When the object does not exist, or the scale is malformed.
    pub fn set_scale(&self, target: &Target, input: &Input) -> Result<Written, Status> {
        let scale = scale_paths(target)?;
        let mut write = Write::new(self, target, "PatchOptions")?;
        let content_type = input.content_type.as_str();
        let change = if content_type.ends_with("patch+json") {
            decode::json(&input.body)?.value
        } else {
            body::of_kind("autoscaling/v1", "Scale", content_type, &input.body)?.value
        };
        let object = self.modify(&mut write, |old| {
            let before = scale_of(scale, old);
            let after = match content_type {
                "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
                    merge_patch(&before, &change)
                }
                "application/json-patch+json" => {
                    json_patch(&before, &change).map_err(|error| Status::bad_request(error.to_string()))?
                }
                patch if patch.ends_with("patch+json") => {
                    return Err(Status::unsupported_media_type(format!("{patch:?} is not a patch format for a Scale")));
                }
                _ => change.clone(),
            };
            let replicas = after.pointer("/spec/replicas").cloned().unwrap_or_else(|| 0.into());
            if replicas.as_u64().is_none() {
                return Err(Status::bad_request("spec.replicas: must be a whole number and not negative"));
            }
            let mut object = old.clone();
            let stated = metadata::text(&after, "resourceVersion").to_owned();
            if !stated.is_empty() {
                metadata::of(&mut object).insert("resourceVersion".to_owned(), stated.into());
            }
            set_path(&mut object, &scale.spec_replicas, replicas);
            Ok(Draft { object, duplicates: Vec::new(), tracked: false })
        })?;
        let body = render(&scale_of(scale, &super::view::served(&target.resource, &object)));
        Ok(Written { body, created: false, warnings: write.warnings })
    }
}

fn scale_paths(target: &Target) -> Result<&Scale, Status> {
    target.resource.resource_type.scale.as_ref().ok_or_else(Status::no_such_resource)
}

fn pointer(path: &str) -> String {
    path.replace('.', "/")
}

fn set_path(object: &mut Value, path: &str, value: Value) {
    let mut fields: Vec<&str> = path.split('.').filter(|field| !field.is_empty()).collect();
    let Some(last) = fields.pop() else { return };
    let map = fields.into_iter().fold(metadata::as_map(object), |map, field| metadata::child(map, field));
    map.insert(last.to_owned(), value);
}

/// The scale of an object.
pub(super) fn scale_of(scale: &Scale, object: &Value) -> Value {
    let number = |path: &str| object.pointer(&pointer(path)).and_then(Value::as_i64).unwrap_or(0);
    let selector = scale.label_selector.as_ref().and_then(|path| object.pointer(&pointer(path)));
    let map = object.get("metadata");
    let field = |name: &str| map.and_then(|map| map.get(name)).cloned().unwrap_or(Value::Null);
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": field("name"),
            "namespace": field("namespace"),
            "uid": field("uid"),
            "resourceVersion": field("resourceVersion"),
            "creationTimestamp": field("creationTimestamp"),
        },
        "spec": {"replicas": number(&scale.spec_replicas)},
        "status": {"replicas": number(&scale.status_replicas), "selector": selector.map(selector_text).unwrap_or_default()},
    })
}

/// A selector as text: custom resources keep it so, built-in ones as labels.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let labels = selector.get("matchLabels").unwrap_or(selector).as_object().into_iter().flatten();
    let terms: Vec<String> =
        labels.filter_map(|(key, value)| value.as_str().map(|value| format!("{key}={value}"))).collect();
    terms.join(",")
}
