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

/// Replaces what the API server complains about; none where it refuses that too, or nothing would change.
pub(crate) async fn replace(
    cluster: &Cluster,
    desired: &Desired,
    live: &Value,
    refusal: &ApplyError,
    lists: Lists,
    dry_run: bool,
) -> Result<Option<Value>, ApiError> {
    if nesting::is_too_deep(live) {
        // Something of it could not be read, and what could not be read cannot be written back.
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
