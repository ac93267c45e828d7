//! Rolls a Resolution back to a decision.

use chandler_api::Resolution;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::{change::merge, deployment::Effect};
use crate::CommandError;

/// Sets the decision to roll back to; `None` removes it. Fails if the Resolution has changed since it was read.
pub async fn set_decision(
    client: &Client,
    resolution: &Resolution,
    number: Option<i64>,
    effect: Effect,
) -> Result<(), CommandError> {
    let patch = json!({
        // After a change by another client the history may hold other decisions.
        "metadata": {"resourceVersion": resolution.metadata.resource_version},
        "spec": {"output": {"resolveSet": {"toDecision": number.map_or(Value::Null, Value::from)}}},
    });
    merge::<Resolution>(client, &resolution.name_any(), "chandler-rollback", patch, effect).await
}
