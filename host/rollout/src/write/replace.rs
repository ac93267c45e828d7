//! Applies an object where values of another field manager make that impossible.
//!
//! An apply keeps the items and members of other managers, which may be incompatible with the applied ones: a Service whose
//! unnamed port 80 was edited to 8080 would get both ports, a volume whose source was edited would have two sources. Or the
//! values have the wrong type (see [`untyped`](crate::pure::untyped)). Such an apply is refused every time. So the values that
//! the API server complains about are first replaced by the desired ones, as an update by Chandler's field manager, and then
//! the object is applied as usual. The update is a merge patch rather than a PUT: it replaces lists as well, and needs no
//! permission that an apply does not need.

use serde_json::Value;

use crate::{
    client::{cluster::Cluster, replace::replace},
    pure::{
        desired::Desired,
        error::{ApiError, ApplyError},
        replacement::LISTS,
    },
    write::apply::claim_fields,
};

/// Applies an object that has not changed since it was read. As little as possible is replaced; if the API server refuses that
/// too or it does not help, the first error is returned.
pub(crate) async fn apply(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Value, ApplyError> {
    let refusal = match cluster.try_apply(desired, live).await {
        Err(refusal) if refusal.is_about_stored() => refusal,
        applied => return applied,
    };
    let mut live = live.clone();
    for lists in LISTS {
        let Some(replaced) = replace(cluster, desired, &live, &refusal, lists, false).await? else { continue };
        live = claim_fields(cluster, desired, &replaced).await?.unwrap_or(replaced);
        match cluster.apply(desired, &live).await {
            Err(ApiError::Invalid(_)) => {}
            applied => return Ok(applied?),
        }
    }
    Err(refusal)
}
