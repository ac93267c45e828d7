//! Deletes or orphans everything that belongs to an owner.

use serde_json::Value;

use super::Rollout;
use crate::{
    client::{account::Confirmation, cluster::Cluster, recent_answers::Purpose},
    pure::{deletion_plan::DeletionPreview, error::RolloutError, owner::Owner, report::Teardown},
    read::deletion,
    write::teardown,
};

impl Rollout {
    /// Deletes every object of the owner and nothing else, in the reverse of the order in which they were applied. A phase
    /// begins when the objects of the previous one are gone. Objects that the owner's deletion policy keeps are orphaned.
    /// With the default policy for CRDs, nothing is deleted while custom resources of other users exist.
    pub async fn teardown(&self, owner: &Owner) -> Result<Teardown, RolloutError> {
        if owner.ledger()?.holdings().is_empty() {
            // Nothing was created, so neither a ServiceAccount nor its permissions are needed.
            return Ok(Teardown::Complete { deleted: Vec::new(), orphaned: Vec::new() });
        }
        // One that waits looks at its objects often, and asks about its account again before it writes.
        let waits = self.tearing_down.lock().remove(&owner.uid);
        let actor = self.actor_of_deletion(owner, if waits { Purpose::Wait } else { Purpose::Write }).await?;
        let confirmation = waits.then_some(Confirmation { own: &self.cluster, recent: &self.recent, owner });
        let result = self.teardown_as(&actor, owner, confirmation).await;
        match result {
            Ok(Teardown::Complete { .. }) => self.parents.forget(owner),
            Ok(Teardown::Waiting { .. }) => {
                self.tearing_down.lock().insert(owner.uid.clone());
            }
            Ok(Teardown::Held { .. }) | Err(_) => {}
        }
        self.with_missing_permissions(result, &actor, owner, None).await
    }

    #[tracing::instrument(target = "chandler::trace", name = "teardown", skip_all)]
    async fn teardown_as(
        &self,
        actor: &Cluster,
        owner: &Owner,
        confirmation: Option<Confirmation<'_>>,
    ) -> Result<Teardown, RolloutError> {
        let parent = self.parent_or_none(owner).await?;
        teardown::teardown(parent, actor, &self.discovery, owner, confirmation).await
    }

    async fn parent_or_none(&self, owner: &Owner) -> Result<Option<Value>, RolloutError> {
        let parent = self.parent_or_null(owner).await?;
        Ok(Some(parent).filter(|parent| !parent.is_null()))
    }

    /// Removes the reference to the owner from its objects, so that they stay when the owner is deleted. The garbage collector
    /// does this only for the kinds that it knows. It may not know kinds of new CustomResourceDefinitions yet, and would delete
    /// their objects later.
    pub async fn remove_owner_references(&self, owner: &Owner) -> Result<(), RolloutError> {
        self.tearing_down.lock().remove(&owner.uid);
        if owner.elsewhere || owner.ledger()?.holdings().is_empty() {
            return Ok(());
        }
        let actor = self.actor_of_deletion(owner, Purpose::Write).await?;
        let parent = self.parent_or_none(owner).await?;
        self.parents.forget(owner);
        teardown::remove_owner_references(parent, &actor, &self.discovery, owner).await
    }

    /// Reports what [`teardown`](Self::teardown) would do, and counts the custom resources of every CRD that would be deleted.
    pub async fn preview_teardown(&self, owner: &Owner) -> Result<DeletionPreview, RolloutError> {
        let actor = self.actor(owner).await?;
        let parent = self.parent_or_none(owner).await?;
        deletion::preview(parent, &actor, &self.discovery, owner).await
    }
}
