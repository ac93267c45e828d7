//! The deletion plan, which depends on the custom resources in the cluster.

use std::collections::BTreeSet;

use chandler_core::is_custom_group;
use serde_json::Value;

use crate::{
    client::cluster::Cluster,
    pure::{
        conversion::DeletedServices,
        crd::is_crd,
        deletion_plan::{CrdInUse, DeletionPlan, DeletionPreview, DeletionReason, Unwanted as _, plan_deletion},
        error::RolloutError,
        member::Member,
        owner::Owner,
        policy::CrdPolicy,
        resource_policy,
    },
    read::{
        custom_resources::{self, CountMode},
        discovery::Discovery,
        snapshot,
    },
};

/// The deletion plan for objects that the release does not contain. A CRD is kept if it is unknown whether it is in use.
pub(crate) async fn unwanted(
    cluster: &Cluster,
    owner: &Owner,
    stale: Vec<Member>,
) -> Result<DeletionPlan<Member>, RolloutError> {
    let stale = resource_policy::split(owner.deletion, stale);
    let in_use = in_use(cluster, owner, &stale.rest, CountMode::Existence).await?;
    let used = in_use.into_iter().map(|in_use| in_use.crd).collect();
    Ok(plan_deletion(owner.deletion, DeletionReason::Prune, stale, &used))
}

/// The CRDs among these objects with custom resources that would be deleted with them.
async fn in_use(
    cluster: &Cluster,
    owner: &Owner,
    members: &[Member],
    custom_resources: CountMode,
) -> Result<Vec<CrdInUse>, RolloutError> {
    if owner.deletion.crds == CrdPolicy::Keep {
        return Ok(Vec::new());
    }
    custom_resources::in_use(cluster, members, custom_resources).await
}

/// The plan of a teardown.
pub(crate) struct TeardownPlan {
    /// The plan for each object.
    pub(crate) deletion_plan: DeletionPlan<Member>,
    /// The CRDs in use among those that would be deleted.
    pub(crate) in_use: Vec<CrdInUse>,
    /// Objects that the garbage collector already orphaned. They are not changed, which requires no permission.
    pub(crate) orphaned: Vec<Member>,
    /// Whether the user chose to orphan all objects, and the garbage collector orphaned the objects of the kinds that it knew.
    pub(crate) all_stay: bool,
}

/// How custom resources are counted. If they are deleted in any case, only the order depends on them.
pub(crate) fn count_mode(owner: &Owner) -> CountMode {
    if owner.deletion.crds == CrdPolicy::WhileUnused { CountMode::Count } else { CountMode::Existence }
}

/// The plan of a teardown, or `None` if the parent is gone.
pub(crate) async fn plan(
    parent: Option<Value>,
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
    custom_resources: CountMode,
) -> Result<Option<TeardownPlan>, RolloutError> {
    let Some(parent) = parent else { return Ok(None) };
    let members = snapshot::members(cluster, discovery, owner, &parent, &[]).await?;
    // Objects that do not refer to the owner were orphaned by the garbage collector (`--cascade=orphan`), or were never
    // completely adopted.
    let (mut members, loose): (Vec<Member>, Vec<Member>) =
        members.into_iter().partition(|member| owner.is_referred_to(&member.object));
    if !owner.deletion.orphan && are_orphaned(&members, &loose) {
        let deletion_plan = DeletionPlan { orphan: members, ..DeletionPlan::default() };
        return Ok(Some(TeardownPlan { deletion_plan, in_use: Vec::new(), orphaned: loose, all_stay: true }));
    }
    let keeps_crds = owner.deletion.crds == CrdPolicy::Keep;
    let asks_to_stay = |member: &Member| !owner.deletion.delete_kept && member.asks_to_stay();
    let is_kept = |member: &Member| keeps_crds && is_crd(&member.key) || asks_to_stay(member);
    // In another cluster, the record is all that is known of objects without the labels of the set.
    let may_stray = !owner.elsewhere;
    if may_stray && (owner.deletion.orphan || members.iter().any(is_kept)) {
        let dependents_outside_set = snapshot::dependents_outside_set(cluster, discovery, owner, &parent).await?;
        members.extend(dependents_outside_set.into_iter().filter(|stray| owner.deletion.orphan || is_kept(stray)));
    }
    let members = resource_policy::split(owner.deletion, members);
    let in_use = if owner.deletion.orphan {
        Vec::new()
    } else {
        in_use(cluster, owner, &members.rest, custom_resources).await?
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

/// Whether the garbage collector orphaned the objects (`--cascade=orphan`). It removes the reference from every dependent
/// before it removes the owner's finalizer, but may not know the kinds of new CustomResourceDefinitions yet: their objects
/// still refer to the owner.
fn are_orphaned(referring: &[Member], loose: &[Member]) -> bool {
    let is_built_in = |member: &Member| !is_custom_group(&member.key.group);
    loose.iter().any(is_built_in) && !referring.iter().any(is_built_in)
}

/// What a teardown would do. Custom resources are counted for every CRD that would be deleted.
pub(crate) async fn preview(
    parent: Option<Value>,
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
) -> Result<DeletionPreview, RolloutError> {
    let Some(TeardownPlan { deletion_plan, in_use, .. }) =
        plan(parent, cluster, discovery, owner, CountMode::Count).await?
    else {
        return Ok(DeletionPreview::default());
    };
    let held = !deletion_plan.keep.is_empty();
    let keys = |members: &mut dyn Iterator<Item = &Member>| members.map(|member| member.key.clone()).collect();
    let services = DeletedServices::of(&deletion_plan);
    let mut stranded = deletion_plan.orphan.iter().filter(|member| services.convert(member));
    let mut deleted = deletion_plan.deleted().chain(&deletion_plan.keep);
    Ok(DeletionPreview {
        held,
        deleted: keys(&mut deleted),
        orphaned: keys(&mut deletion_plan.orphan.iter()),
        without_conversion: keys(&mut stranded),
        in_use,
    })
}
