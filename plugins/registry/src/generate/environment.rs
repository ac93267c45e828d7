//! Variables in the containers of the operator that its bundle does not name.

use serde_json::{Value, json};

use super::deployment_config::replace_or_append;
use crate::config::Variable;

/// Sets variables in every container of a Deployment's specification, in place of namesakes; init containers are left
/// alone, as with OLM.
pub(super) fn set(spec: &mut Value, variables: &[Variable]) {
    let items: Vec<Value> = variables.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let containers = spec.pointer_mut("/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
        replace_or_append(container, "env", &items);
    }
}
