//! Deletes or releases everything that belongs to an owner.

use std::collections::BTreeSet;

use chandler_core::is_custom_group;
use serde_json::Value;

use crate::{
    cluster::Cluster,
    custom_resources::{self, CountMode},
    deletion_plan::{CrdInUse, DeletionPlan, DeletionPreview, Occasion, plan_deletion},
    discovery::Discovery,
    error::RolloutError,
    holdings::{ObjectId, Settlement},
    live,
    orphan::{Marks, release},
    owner::Owner,
    policy::CrdPolicy,
    prune::{Pruned, delete_in_order},
    report::Teardown,
    resolve::is_crd,
    snapshot::{self, Member},
};

/// Deletes as much as can be deleted now; the parent is read with the rights of the controller.
///
/// What stays is released before anything is deleted, so that nothing is lost wherever this ends.
pub(crate) async fn teardown(
    own: &Cluster,
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
) -> Result<Teardown, RolloutError> {
    let ledger = owner.ledger()?;
    let Some(Plan { deletion_plan, in_use, orphaned, all_stay }) =
        plan(own, cluster, discovery, owner, cautious(owner)).await?
    else {
        // Without the parent nothing tells what there was. The garbage collector follows the references to it.
        return Ok(Teardown::Complete { deleted: Vec::new(), released: Vec::new() });
    };
    if !deletion_plan.stay.is_empty() {
        return Ok(Teardown::Held { in_use });
    }
    let left = deletion_plan.release.iter().chain(&orphaned).map(|member| ObjectId::of(&member.key));
    let left: BTreeSet<ObjectId> = left.collect();
    let marks = if all_stay { Marks::Reference } else { Marks::All };
    let mut released = release(cluster, owner, deletion_plan.release, marks).await?;
    released.extend(orphaned.into_iter().map(|member| member.key));
    if !left.is_empty() {
        ledger.settle(Settlement { left, ..Settlement::default() }).await?;
    }
    let Pruned { deleted, waiting, .. } = delete_in_order(cluster, owner, deletion_plan.delete).await?;
    Ok(if waiting.is_empty() {
        Teardown::Complete { deleted, released }
    } else {
        Teardown::Waiting { waiting, deleted, released }
    })
}

/// What [`teardown`] would do. Custom resources are counted wherever their CRDs go.
pub(crate) async fn preview(
    own: &Cluster,
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
) -> Result<DeletionPreview, RolloutError> {
    let Some(Plan { deletion_plan, in_use, .. }) = plan(own, cluster, discovery, owner, CountMode::Count).await? else {
        return Ok(DeletionPreview::default());
    };
    let held = !deletion_plan.stay.is_empty();
    let keys = |members: &mut dyn Iterator<Item = &Member>| members.map(|member| member.key.clone()).collect();
    let mut doomed = deletion_plan.deleted().chain(&deletion_plan.stay);
    Ok(DeletionPreview { held, deleted: keys(&mut doomed), released: keys(&mut deletion_plan.release.iter()), in_use })
}

/// How closely custom resources are looked at. Where they go in any case, only the order depends on them.
fn cautious(owner: &Owner) -> CountMode {
    if owner.deletion.crds == CrdPolicy::WhileUnused { CountMode::Count } else { CountMode::Existence }
}

/// What becomes of the objects of an owner that goes.
struct Plan {
    /// What becomes of each.
    deletion_plan: DeletionPlan<Member>,
    /// The CRDs in use among those that would go.
    in_use: Vec<CrdInUse>,
    /// Those that the garbage collector has orphaned already. They are left as they are: that takes no right on them.
    orphaned: Vec<Member>,
    /// Whether the choice was that all of them stay, of which the garbage collector has orphaned those that it knew.
    all_stay: bool,
}

/// The parent, and what it has in the cluster; none where it is gone.
async fn members(
    own: &Cluster,
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
) -> Result<Option<(Value, Vec<Member>)>, RolloutError> {
    let parent = match snapshot::parent_of(own, owner).await {
        Ok(parent) => parent,
        Err(RolloutError::OwnerGone(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let members = snapshot::members(cluster, discovery, owner, &parent, &[]).await?;
    Ok(Some((parent, members)))
}

/// What becomes of each object; none where the parent is gone.
async fn plan(
    own: &Cluster,
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
    custom_resources: CountMode,
) -> Result<Option<Plan>, RolloutError> {
    let Some((parent, members)) = members(own, cluster, discovery, owner).await? else { return Ok(None) };
    // What no longer refers to the owner was orphaned by the garbage collector (`--cascade=orphan`), or never made ours whole.
    let (mut members, loose): (Vec<Member>, Vec<Member>) =
        members.into_iter().partition(|member| live::refers_to(&member.object, &owner.uid));
    if !owner.deletion.orphan && are_orphaned(&members, &loose) {
        let deletion_plan = DeletionPlan { release: members, ..DeletionPlan::default() };
        return Ok(Some(Plan { deletion_plan, in_use: Vec::new(), orphaned: loose, all_stay: true }));
    }
    let keeps = owner.deletion.crds == CrdPolicy::Keep;
    if owner.deletion.orphan || keeps && members.iter().any(|member| is_crd(&member.key)) {
        let strays = snapshot::strays(cluster, discovery, owner, &parent).await?;
        members.extend(strays.into_iter().filter(|stray| owner.deletion.orphan || is_crd(&stray.key)));
    }
    let in_use = if owner.deletion.orphan || keeps {
        Vec::new()
    } else {
        custom_resources::in_use(cluster, &members, custom_resources).await?
    };
    let used: BTreeSet<_> = in_use.iter().map(|in_use| in_use.crd.clone()).collect();
    let mut deletion_plan = plan_deletion(owner.deletion, Occasion::Teardown, members, &used);
    let mut orphaned = Vec::new();
    if !deletion_plan.stay.is_empty() {
        deletion_plan.stay.extend(loose);
    } else if owner.deletion.orphan {
        deletion_plan.release.extend(loose);
    } else {
        orphaned = loose;
    }
    Ok(Some(Plan { deletion_plan, in_use, orphaned, all_stay: false }))
}

/// Whether the garbage collector has orphaned what it knew of (`--cascade=orphan`). It takes the reference off every dependent
/// before it lets the owner go, but may not know the kinds of new CustomResourceDefinitions yet: objects of these still refer to
/// the owner.
fn are_orphaned(referring: &[Member], loose: &[Member]) -> bool {
    let is_built_in = |member: &Member| !is_custom_group(&member.key.group);
    loose.iter().any(is_built_in) && !referring.iter().any(is_built_in)
}

/// Takes the reference off everything that still refers to the owner; the parent is read with the rights of the controller.
pub(crate) async fn let_go(
    own: &Cluster,
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
) -> Result<(), RolloutError> {
    let Some((_, members)) = members(own, cluster, discovery, owner).await? else { return Ok(()) };
    let referring = members.into_iter().filter(|member| live::refers_to(&member.object, &owner.uid));
    release(cluster, owner, referring.collect(), Marks::Reference).await.map(drop)
}
