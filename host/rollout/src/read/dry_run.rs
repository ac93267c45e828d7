//! Asks the API server what a write would make of an object, without writing.

use serde_json::Value;

use crate::{
    client::{cluster::Cluster, replace::replace},
    pure::{desired::Desired, error::ApplyError, replacement::LISTS, situation::Action},
};

/// The result of a write, according to a dry run.
pub(crate) async fn dry_run_write(
    cluster: &Cluster,
    desired: &Desired,
    action: Action,
    live: Option<&Value>,
) -> Result<Value, ApplyError> {
    match live {
        None => Ok(cluster.create(desired, true).await?),
        // An object of another owner is not changed before every check passed.
        Some(live) if action == Action::Adopt => cluster.try_dry_run(&desired.unowned(), live).await,
        Some(live) => dry_run_apply(cluster, desired, live).await,
    }
}

/// The result of an apply to an object of the owner, according to dry runs.
pub(crate) async fn dry_run_apply(cluster: &Cluster, desired: &Desired, live: &Value) -> Result<Value, ApplyError> {
    let refusal = match cluster.try_dry_run(desired, live).await {
        Err(refusal) if refusal.is_about_stored() => refusal,
        applied => return applied,
    };
    for lists in LISTS {
        if let Some(replaced) = replace(cluster, desired, live, &refusal, lists, true).await? {
            return Ok(replaced);
        }
    }
    Err(refusal)
}
