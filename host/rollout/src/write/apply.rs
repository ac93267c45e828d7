//! Creates, updates or adopts one object.

use serde_json::{Value, json};

use crate::{
    client::cluster::Cluster,
    pure::{
        desired::Desired,
        error::{ApiError, ApplyError, ObjectFailure, object_failure},
        existing_owner::Collision,
        live, managed_fields,
        owner::{FIELD_MANAGER, Owner},
    },
    read::immutable::is_immutable,
    write::{
        recreate::{RECREATE, Recreated, recreate},
        replace,
    },
};

/// An object could not be written.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request failed.
    Object(ObjectFailure),
    /// Another client created an object of this name in the meantime.
    Collision(Collision),
}

/// Creates an object, or reports its existing owner if another client was faster.
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
        // The next call reads the object as a whole, and adopts it if permitted; or it belongs to the owner after all, or is
        // gone again.
        Some((_, true)) | None => failed(ApiError::Conflict(exists)),
    })
}

/// How often an object is read again that changes between read and write, for example because a controller updates its status.
const READS: usize = 4;

/// What an update did.
pub(crate) enum Updated {
    /// The object was updated.
    Applied(Value),
    /// The object was deleted and created again, or is being deleted.
    Recreated(Recreated),
}

/// Updates an object of the owner to another release. If the update changes an immutable field, the policy of the owner decides.
pub(crate) async fn update(
    cluster: &Cluster,
    owner: &Owner,
    desired: &Desired,
    live: &Value,
) -> Result<Updated, Failure> {
    let failed = |error| Failure::Object(object_failure(&desired.key, "update")(error));
    let (refusal, now) = match attempt(cluster, desired, live).await {
        Ok(object) => return Ok(Updated::Applied(object)),
        Err(refused) => *refused,
    };
    if !is_immutable(cluster, desired, &refusal).await {
        return Err(failed(refusal.error));
    }
    if !owner.on_immutable.recreates(desired, &now) {
        return Err(failed(ApiError::Immutable(refusal.error.to_string())));
    }
    let failed = object_failure(&desired.key, RECREATE);
    recreate(cluster, desired, &now).await.map(Updated::Recreated).map_err(|error| Failure::Object(failed(error)))
}

/// Repairs an object of the owner.
pub(crate) async fn repair(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Value, Failure> {
    let repaired = attempt(cluster, desired, live).await;
    repaired.map_err(|refused| Failure::Object(object_failure(&desired.key, "update")(refused.0.error)))
}

/// Applies an object of the owner, if necessary by replacing values that make applying impossible. An object that changed since
/// it was read is read again, as long as no other owner claimed it and it was not orphaned: in these cases the caller must
/// decide again. Returns a refusal with the object that was refused.
async fn attempt(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Value, Box<(ApplyError, Value)>> {
    let mut now = live.clone();
    let mut reads = 0;
    loop {
        let conflict = match write(cluster, desired, &now).await {
            Ok(written) => return Ok(written),
            Err(refusal) if matches!(refusal.error, ApiError::Conflict(_)) && reads < READS => refusal,
            Err(refusal) => return Err(Box::new((refusal, now))),
        };
        reads += 1;
        let found = cluster.get(&desired.resource, desired.key.namespace.as_deref(), &desired.key.name).await;
        match found {
            Ok(Some(found)) if live::same_claims(live, &found) => now = found,
            Ok(_) => return Err(Box::new((conflict, now))),
            Err(error) => return Err(Box::new((error.into(), now))),
        }
    }
}

async fn write(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Value, ApplyError> {
    let claimed = claim_fields(cluster, desired, live).await?;
    replace::apply(cluster, desired, claimed.as_ref().unwrap_or(live)).await
}

/// Adopts an object that belonged to another owner when it was read, and applies the desired state.
pub(crate) async fn adopt(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Value, Failure> {
    let failed = |error| Failure::Object(object_failure(&desired.key, "adopt")(error));
    // An object can have only one controller, so the API server would refuse a second one.
    let Some(references) = live::references_without_controller(live) else {
        return claim_and_apply(cluster, desired, live).await.map_err(failed);
    };
    let metadata = json!({"ownerReferences": references});
    let unowned = cluster.patch_metadata(&desired.resource, live, metadata, FIELD_MANAGER).await.map_err(failed)?;
    claim_and_apply(cluster, desired, &unowned).await.map_err(failed)
}

async fn claim_and_apply(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Value, ApiError> {
    let claimed = claim_fields(cluster, desired, live).await?;
    cluster.apply(desired, claimed.as_ref().unwrap_or(live)).await
}

/// Rewrites the record of a create into one of an apply, so that applying removes fields that the release no longer contains, if there
/// may be any. No field of the object changes. Returns the object with its new records, if they had to be written.
pub(crate) async fn claim_fields(
    cluster: &Cluster,
    desired: &Desired,
    live: &Value,
) -> Result<Option<Value>, ApiError> {
    if !managed_fields::keeps_more(live, &desired.value) {
        return Ok(None);
    }
    let Some(managed_fields) = managed_fields::upgrade(live) else { return Ok(None) };
    cluster.replace_managed_fields(desired, live::resource_version(live), &managed_fields).await.map(Some)
}
