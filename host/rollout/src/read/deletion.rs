//! What becomes of objects that are no longer wanted, as far as the custom resources in the cluster decide it.

use std::collections::BTreeSet;

use chandler_core::is_custom_group;
use serde_json::Value;

use crate::{
    client::cluster::Cluster,
    pure::{
        crd::is_crd,
        deletion_plan::{CrdInUse, DeletionPlan, DeletionPreview, DeletionReason, plan_deletion},
        error::RolloutError,
        live,
        member::Member,
        owner::Owner,
        policy::CrdPolicy,
    },
    read::{
        custom_resources::{self, CountMode},
        discovery::Discovery,
        snapshot,
    },
};

/// What becomes of objects that a release does not hold. CRDs stay where it cannot be told whether they are in use.
pub(crate) async fn unwanted(
    cluster: &Cluster,
    owner: &Owner,
    stale: Vec<Member>,
) -> Result<DeletionPlan<Member>, RolloutError> {
    let matters = owner.deletion.crds != CrdPolicy::Keep;
    let in_use =
        if matters { custom_resources::in_use(cluster, &stale, CountMode::Existence).await? } else { Vec::new() };
    let used = in_use.into_iter().map(|in_use| in_use.crd).collect();
    Ok(plan_deletion(owner.deletion, DeletionReason::Prune, stale, &used))
}

/// What becomes of the objects of an owner that goes.
pub(crate) struct TeardownPlan {
    /// What becomes of each.
    pub(crate) deletion_plan: DeletionPlan<Member>,
    /// The CRDs in use among those that would go.
    pub(crate) in_use: Vec<CrdInUse>,
    /// Those that the garbage collector has orphaned already. They are left as they are: that takes no right on them.
    pub(crate) orphaned: Vec<Member>,
    /// Whether the choice was that all of them stay, of which the garbage collector has orphaned those that it knew.
    pub(crate) all_stay: bool,
}

/// How closely custom resources are looked at. Where they go in any case, only the order depends on them.
pub(crate) fn count_mode(owner: &Owner) -> CountMode {
    if owner.deletion.crds == CrdPolicy::WhileUnused { CountMode::Count } else { CountMode::Existence }
}

/// What becomes of each object; none where the parent is gone.
pub(crate) async fn plan(
    own: &Cluster,
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
    custom_resources: CountMode,
) -> Result<Option<TeardownPlan>, RolloutError> {
    let Some((parent, members)) = members(own, cluster, discovery, owner).await? else { return Ok(None) };
    // What no longer refers to the owner was orphaned by the garbage collector (`--cascade=orphan`), or never made ours whole.
    let (mut members, loose): (Vec<Member>, Vec<Member>) =
        members.into_iter().partition(|member| live::refers_to(&member.object, &owner.uid));
    if !owner.deletion.orphan && are_orphaned(&members, &loose) {
        let deletion_plan = DeletionPlan { orphan: members, ..DeletionPlan::default() };
        return Ok(Some(TeardownPlan { deletion_plan, in_use: Vec::new(), orphaned: loose, all_stay: true }));
    }
    let keeps = owner.deletion.crds == CrdPolicy::Keep;
    if owner.deletion.orphan || keeps && members.iter().any(|member| is_crd(&member.key)) {
        let dependents_outside_set = snapshot::dependents_outside_set(cluster, discovery, owner, &parent).await?;
        members.extend(dependents_outside_set.into_iter().filter(|stray| owner.deletion.orphan || is_crd(&stray.key)));
    }
    let in_use = if owner.deletion.orphan || keeps {
        Vec::new()
    } else {
        custom_resources::in_use(cluster, &members, custom_resources).await?
    };
    let used: BTreeSet<_> = in_use.iter().map(|in_use| in_use.crd.clone()).collect();
    let mut deletion_plan = plan_deletion(owner.deletion, DeletionReason::Teardown, members, &used);
    let mut orphaned = Vec::new();
    if !deletion_plan.keep.is_empty() {
        deletion_plan.keep.extend(loose);
    } else if owner.deletion.orphan {
        deletion_plan.orphan.extend(loose);
    } else {
        orphaned = loose;
    }
    Ok(Some(TeardownPlan { deletion_plan, in_use, orphaned, all_stay: false }))
}

/// The parent, and what it has in the cluster; none where it is gone.
pub(crate) async fn members(
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

/// Whether the garbage collector has orphaned what it knew of (`--cascade=orphan`). It takes the reference off every dependent
/// before it lets the owner go, but may not know the kinds of new CustomResourceDefinitions yet: objects of these still refer to
/// the owner.
fn are_orphaned(referring: &[Member], loose: &[Member]) -> bool {
    let is_built_in = |member: &Member| !is_custom_group(&member.key.group);
    loose.iter().any(is_built_in) && !referring.iter().any(is_built_in)
}

/// What [`teardown`] would do. Custom resources are counted wherever their CRDs go.
pub(crate) async fn preview(
    own: &Cluster,
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
) -> Result<DeletionPreview, RolloutError> {
    let Some(TeardownPlan { deletion_plan, in_use, .. }) =
        plan(own, cluster, discovery, owner, CountMode::Count).await?
    else {
        return Ok(DeletionPreview::default());
    };
    let held = !deletion_plan.keep.is_empty();
    let keys = |members: &mut dyn Iterator<Item = &Member>| members.map(|member| member.key.clone()).collect();
    let mut doomed = deletion_plan.deleted().chain(&deletion_plan.keep);
    Ok(DeletionPreview { held, deleted: keys(&mut doomed), orphaned: keys(&mut deletion_plan.orphan.iter()), in_use })
}
