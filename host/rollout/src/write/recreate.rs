//! Deletes an object whose immutable fields the release changes, and creates it again.
//!
//! The record names the object as one that is about to be created before it is deleted. So a controller that crashes in between
//! finds no object and creates it, or finds the new one and knows it by its seal.

use serde_json::Value;

use crate::{
    client::{cluster::Cluster, writes::Deleted},
    pure::{desired::Desired, error::ApiError, immutable::waits_for_dependents},
};

/// The action in a failure of a recreation.
pub(crate) const RECREATE: &str = "recreate";

/// The result of a recreation.
pub(crate) enum Recreated {
    /// The new object exists.
    Created(Value),
    /// The old object terminates. The new one is created by a later call, when it is gone.
    Terminating(Value),
}

/// Recreates an object that has not changed since it was read.
pub(crate) async fn recreate(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Recreated, ApiError> {
    let deleted = if waits_for_dependents(&desired.key, live) {
        cluster.delete_in_foreground(&desired.resource, live).await?
    } else {
        cluster.delete(&desired.resource, live).await?
    };
    tracing::info!(object = %desired.key, "deleted, because the release changes an immutable field");
    match deleted {
        Deleted::Accepted(terminating) => Ok(Recreated::Terminating(terminating)),
        Deleted::Gone => match cluster.create(desired, false).await {
            Ok(created) => Ok(Recreated::Created(created)),
            // Another client was faster. The next call sees whose object it is.
            Err(ApiError::AlreadyExists(message)) => Err(ApiError::Conflict(message)),
            Err(error) => Err(error),
        },
    }
}
