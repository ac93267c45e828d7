//! Environment variables of the operator's containers that are not from its bundle.

use serde_json::{Value, json};

use super::deployment_config::replace_or_append;
use crate::config::Variable;

/// Sets variables in every container of a Deployment's specification, replacing variables of the same name; init containers
/// are not changed, as in OLM.
pub(super) fn set(spec: &mut Value, variables: &[Variable]) {
    let items: Vec<Value> = variables.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let containers = spec.pointer_mut("/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
        replace_or_append(container, "env", &items);
    }
}
