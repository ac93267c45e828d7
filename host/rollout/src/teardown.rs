//! Deletes everything that belongs to an owner.

use crate::{
    cluster::Cluster,
    discovery::Discovery,
    error::RolloutError,
    owner::Owner,
    prune::{Pruned, delete_in_order},
    report::Teardown,
    snapshot,
};

/// Deletes as much as can be deleted now; the parent is read with the rights of the controller.
pub(crate) async fn teardown(
    own: &Cluster,
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
) -> Result<Teardown, RolloutError> {
    let parent = match snapshot::parent_of(own, owner).await {
        Ok(parent) => parent,
        // Without the parent nothing tells what there was. The garbage collector follows the references to it.
        Err(RolloutError::OwnerGone(_)) => return Ok(Teardown::Complete { deleted: Vec::new() }),
        Err(error) => return Err(error),
    };
    let members = snapshot::members(cluster, discovery, owner, &parent, &[]).await?;
    let Pruned { deleted, waiting } = delete_in_order(cluster, owner, members).await?;
    Ok(if waiting.is_empty() { Teardown::Complete { deleted } } else { Teardown::Waiting { waiting, deleted } })
}
