//! Brings one object to what it should be.

use serde_json::{Value, json};

use crate::{
    client::cluster::Cluster,
    pure::{
        desired::Desired,
        error::{ApiError, ObjectFailure, object_failure},
        existing_owner::Collision,
        live, managed_fields,
        owner::{FIELD_MANAGER, Owner},
    },
    write::replace,
};

/// Why an object could not be brought to what it should be.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request failed.
    Object(ObjectFailure),
    /// Somebody else made an object of this name in the meantime.
    Collision(Collision),
}

/// Creates an object, or tells whose it is when somebody was faster.
pub(crate) async fn create(cluster: &Cluster, owner: &Owner, desired: &Desired) -> Result<Value, Failure> {
    let failed = |error| Failure::Object(object_failure(&desired.key, "create")(error));
    let exists = match cluster.create(desired, false).await {
        Err(ApiError::AlreadyExists(message)) => message,
        created => return created.map_err(failed),
    };
    let found =
        cluster.get(&desired.resource, desired.key.namespace.as_deref(), &desired.key.name).await.map_err(failed)?;
    let existing_owner = found.and_then(|live| {
        let existing_owner = live::foreign_owner(&live, owner)?;
        let yields = owner.may_adopt(&live, &existing_owner);
        Some((existing_owner, yields))
    });
    Err(match existing_owner {
        Some((existing_owner, false)) => Failure::Collision(Collision { object: desired.key.clone(), existing_owner }),
        // What may be taken over is, once the next call has read it as a whole; it is ours after all, or gone again.
        Some((_, true)) | None => failed(ApiError::Conflict(exists)),
    })
}

/// How often an object is read again that changes whenever it is to be written, as one does whose controller reports on it.
const READS: usize = 4;

/// Changes an object of ours to what it should be, if need be by replacing what makes applying impossible. One that changed since it was read is read again, as long as nobody else
/// claims it and it was not orphaned: then the caller has to decide anew.
pub(crate) async fn update(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Value, Failure> {
    let failed = |error| Failure::Object(object_failure(&desired.key, "update")(error));
    let mut now = live.clone();
    let mut reads = 0;
    loop {
        let conflict = match write(cluster, desired, &now).await {
            Err(ApiError::Conflict(message)) if reads < READS => message,
            result => return result.map_err(failed),
        };
        reads += 1;
        let found = cluster.get(&desired.resource, desired.key.namespace.as_deref(), &desired.key.name).await;
        match found.map_err(failed)? {
            Some(found) if live::same_claims(live, &found) => now = found,
            _ => return Err(failed(ApiError::Conflict(conflict))),
        }
    }
}

async fn write(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Value, ApiError> {
    let taken_over = take_over(cluster, desired, live).await?;
    replace::apply(cluster, desired, taken_over.as_ref().unwrap_or(live)).await
}

/// Takes over an object that was somebody else's when it was read, and brings it to what it should be.
pub(crate) async fn adopt(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Value, Failure> {
    let failed = |error| Failure::Object(object_failure(&desired.key, "take over")(error));
    // An object has one controller at most, so the API server would refuse a second one.
    let Some(references) = live::references_without_controller(live) else {
        return take_over_and_apply(cluster, desired, live).await.map_err(failed);
    };
    let metadata = json!({"ownerReferences": references});
    let released = cluster.patch_metadata(&desired.resource, live, metadata, FIELD_MANAGER).await.map_err(failed)?;
    take_over_and_apply(cluster, desired, &released).await.map_err(failed)
}

async fn take_over_and_apply(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Value, ApiError> {
    let taken_over = take_over(cluster, desired, live).await?;
    cluster.apply(desired, taken_over.as_ref().unwrap_or(live)).await
}

/// Has the record of what was created be one of an apply, so that applying removes what the release no longer has. No field
/// of the object changes. The object with its new records, where they had to be written.
pub(crate) async fn take_over(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Option<Value>, ApiError> {
    let Some(managed_fields) = managed_fields::upgrade(live) else { return Ok(None) };
    cluster.replace_managed_fields(desired, live::resource_version(live), &managed_fields).await.map(Some)
}
