//! The binding subresource: a scheduler assigns a Pod to a node.

use serde_json::{Value, json};

use super::{Api, Input, Target, write::Written};
use crate::{
    metadata,
    pipeline::body,
    status::Status,
    store::{Expected, object::render},
};

const ATTEMPTS: usize = 32;

impl Api {
    /// Gives a Pod its node, once.
    ///
    /// # Errors
    /// When the Pod does not exist, is another one than is meant, is being deleted or has a node.
    pub fn bind(&self, target: &Target, input: &Input) -> Result<Written, Status> {
        let binding = body::of_kind("v1", "Binding", &input.content_type, &input.body)?.value;
        let node = binding.pointer("/target/name").and_then(Value::as_str).unwrap_or_default();
        if node.is_empty() {
            return Err(Status::bad_request("target.name: the name of a node is required"));
        }
        let mut warnings = Vec::new();
        self.confirm_subresource(target, &binding, &mut warnings)?;
        let group_resource = target.resource.group_resource();
        let conflict = |why: &str| Status::conflict(&group_resource, &target.name, why);
        for _ in 0..ATTEMPTS {
            let current = self.store.get(&target.key());
            let current = current.ok_or_else(|| Status::not_found(&group_resource, &target.name))?;
            let mut pod = current.value().clone();
            let (wanted, actual) = (metadata::uid(&binding), metadata::uid(&pod));
            if !wanted.is_empty() && wanted != actual {
                let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {actual}");
                return Err(conflict(&why));
            }
            if metadata::is_deleting(&pod) {
                return Err(conflict(&format!("pod {} is being deleted, cannot be assigned to a host", target.name)));
            }
            let bound = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
            if !bound.is_empty() {
                return Err(conflict(&format!("pod {} is already assigned to node {bound:?}", target.name)));
            }
            let spec = metadata::child(metadata::as_map(&mut pod), "spec");
            spec.insert("nodeName".to_owned(), node.into());
            set_scheduled(&mut pod, &self.clock.timestamp());
            if self.store.put(target.key(), Expected::Revision(current.revision()), pod).is_ok() {
                let body = render(&json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
                }));
                return Ok(Written { body, created: true, warnings });
            }
        }
        Err(Status::stale(&group_resource, &target.name))
    }
}

fn set_scheduled(pod: &mut Value, now: &str) {
    let status = metadata::child(metadata::as_map(pod), "status");
    if let Some(conditions) = status.entry("conditions").or_insert_with(|| json!([])).as_array_mut() {
        conditions.retain(|condition| condition.get("type").and_then(Value::as_str) != Some("PodScheduled"));
        conditions.push(json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": now}));
    }
}
