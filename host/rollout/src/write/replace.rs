//! Applies an object of ours where what another manager wrote makes that impossible.
//!
//! An apply leaves the items and members of others in place, and these may not go with ours: a Service whose unnamed port 80 was
//! edited to 8080 would get both, a volume whose source was edited would have two sources. Or they are
//! not of their type (see [`untyped`]). Such an apply is refused whenever it is tried. So the values that the API server complains
//! about are first replaced by those that are desired, as an update under our field manager, and then the object is applied as
//! usual. This is a merge patch rather than a PUT: it replaces lists, too, and needs no right that an apply does not need.

use serde_json::Value;

use crate::{
    client::{cluster::Cluster, replace::replace},
    pure::{desired::Desired, error::ApiError, replacement::LISTS},
    write::apply::take_over,
};

/// Applies an object of ours that nobody changed since it was read. Replaced is as little as the API server takes; where it takes
/// nothing, or that is of no use, the first refusal stands.
pub(crate) async fn apply(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Value, ApiError> {
    let refusal = match cluster.try_apply(desired, live).await {
        Err(refusal) if refusal.is_about_stored() => refusal,
        applied => return applied.map_err(|refusal| refusal.error),
    };
    let mut live = live.clone();
    for lists in LISTS {
        let Some(replaced) = replace(cluster, desired, &live, &refusal, lists, false).await? else { continue };
        live = take_over(cluster, desired, &replaced).await?.unwrap_or(replaced);
        match cluster.apply(desired, &live).await {
            Err(ApiError::Invalid(_)) => {}
            applied => return applied,
        }
    }
    Err(refusal.error)
}
