//! Finds out whether an object must be created anew, because the update changes an immutable field.

use serde_json::Value;

use crate::{
    client::cluster::Cluster,
    pure::{
        desired::Desired,
        dry_run::refused,
        error::{ApiError, ApplyError, ObjectFailure, object_failure},
        immutable::may_be_immutable,
        owner::Owner,
        situation::Action,
    },
};

/// Whether a new object could be what the stored one cannot become. The API server validates a new object before it looks for
/// another one with the name, so the dry run of a create answers that the object exists if it is valid. Any other answer leaves
/// the stored object alone.
pub(crate) async fn is_immutable(cluster: &Cluster, desired: &Desired, refusal: &ApplyError) -> bool {
    may_be_immutable(refusal) && matches!(cluster.create(desired, true).await, Err(ApiError::AlreadyExists(_)))
}

/// The failure that the dry run of a write to an existing object predicts. None if the rollout would recreate the object, or if the
/// dry run itself may have caused the error.
pub(crate) async fn refusal_of_update(
    cluster: &Cluster,
    owner: &Owner,
    desired: &Desired,
    action: Action,
    live: &Value,
    refusal: &ApplyError,
) -> Option<ObjectFailure> {
    if action != Action::Update || !is_immutable(cluster, desired, refusal).await {
        return refused(desired, action, &refusal.error);
    }
    let immutable = || object_failure(&desired.key, "update")(ApiError::Immutable(refusal.error.to_string()));
    (!owner.on_immutable.recreates(desired, live)).then(immutable)
}
