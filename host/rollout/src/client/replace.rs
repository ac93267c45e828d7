//! Replaces the values of a stored object that make an apply impossible.

use chandler_core::nesting;
use serde_json::Value;

use crate::{
    client::cluster::Cluster,
    pure::{
        desired::Desired,
        error::{ApiError, ApplyError},
        replacement::{Lists, merge_patch, replacement},
    },
};

/// Replaces the values that the API server complains about. Returns `None` if it refuses that too, or if nothing would change.
pub(crate) async fn replace(
    cluster: &Cluster,
    desired: &Desired,
    live: &Value,
    refusal: &ApplyError,
    lists: Lists,
    dry_run: bool,
) -> Result<Option<Value>, ApiError> {
    if nesting::is_too_deep(live) {
        // A part of the object could not be parsed, so it cannot be written back.
        return Ok(None);
    }
    let wanted = replacement(live, &desired.value, refusal, lists);
    if wanted == *live {
        return Ok(None);
    }
    match cluster.merge(desired, live, merge_patch(live, &wanted), dry_run).await {
        Err(error) if error.is_transient() => Err(error),
        result => Ok(result.ok()),
    }
}
