//! Deletes or orphans everything that belongs to an owner.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    client::{account::Confirmation, cluster::Cluster},
    pure::{
        conversion::DeletedServices,
        error::RolloutError,
        holdings::{ObjectId, Settlement},
        live,
        owner::Owner,
        report::Teardown,
    },
    read::{
        deletion::{TeardownPlan, count_mode, plan},
        discovery::Discovery,
        snapshot,
    },
    write::{
        conversion,
        orphan::{self, Marks},
        prune::{Pruned, delete_in_order},
        record,
    },
};

/// Deletes as many objects as possible now. Without a parent, the owner is gone.
///
/// Objects that stay are orphaned before any object is deleted, so that an interruption loses nothing. With a confirmation, the account
/// of the cluster is known from earlier, and is asked about again before anything is written.
pub(crate) async fn teardown(
    parent: Option<Value>,
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
    confirmation: Option<Confirmation<'_>>,
) -> Result<Teardown, RolloutError> {
    let ledger = owner.ledger()?;
    let Some(TeardownPlan { deletion_plan, in_use, orphaned, all_stay }) =
        plan(parent, cluster, discovery, owner, count_mode(owner)).await?
    else {
        // Without the parent the objects are unknown. The garbage collector follows the references to the parent.
        return Ok(Teardown::Complete { deleted: Vec::new(), orphaned: Vec::new() });
    };
    if !deletion_plan.keep.is_empty() {
        return Ok(Teardown::Held { in_use });
    }
    let writes =
        !deletion_plan.orphan.is_empty() || deletion_plan.deleted().any(|member| !live::is_terminating(&member.object));
    if let Some(confirmation) = confirmation.filter(|_| writes) {
        confirmation.confirm_now().await?;
    }
    let ids = deletion_plan.orphan.iter().chain(&orphaned).map(|member| ObjectId::of(&member.key));
    let ids: BTreeSet<ObjectId> = ids.collect();
    let marks = if all_stay { Marks::Reference } else { Marks::All };
    let services = DeletedServices::of(&deletion_plan);
    let staying = conversion::reset(cluster, deletion_plan.orphan, &services).await?;
    let mut changed = orphan::orphan(cluster, owner, staying, marks).await?;
    changed.extend(orphaned.into_iter().map(|member| member.key));
    if !ids.is_empty() {
        ledger.settle(Settlement { orphaned: ids, ..Settlement::default() }).await?;
    }
    let Pruned { deleted, gone, waiting } = delete_in_order(cluster, owner, deletion_plan.delete).await?;
    // The next call need not look for them.
    let gone = gone.iter().map(ObjectId::of).collect();
    record::note(ledger, Settlement { gone, ..Settlement::default() }).await?;
    Ok(if waiting.is_empty() {
        Teardown::Complete { deleted, orphaned: changed }
    } else {
        Teardown::Waiting { waiting, deleted, orphaned: changed }
    })
}

/// Removes the owner reference from every object that has it.
pub(crate) async fn remove_owner_references(
    parent: Option<Value>,
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
) -> Result<(), RolloutError> {
    let Some(parent) = parent else { return Ok(()) };
    // All objects stay, so that even a record that is older than the objects does no harm.
    let (members, _) = snapshot::members_of_any_record(cluster, discovery, owner, &parent, &[]).await?;
    let referring = members.into_iter().filter(|member| live::refers_to(&member.object, &owner.uid));
    orphan::orphan(cluster, owner, referring.collect(), Marks::Reference).await.map(drop)
}
