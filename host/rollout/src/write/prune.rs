//! Deletes objects in order.

use chandler_core::ObjectKey;
use chandler_health::{Health, Reader, terminating};
use futures::FutureExt as _;

use crate::{
    client::{cluster::Cluster, concurrent::all, writes::Deleted},
    pure::{
        deletion_plan::Unwanted as _,
        error::{ApiError, ObjectFailure, RolloutError, object_failure},
        live,
        member::Member,
        owner::Owner,
        policy::CrdPolicy,
        report::Unhealthy,
        resource_policy,
    },
    read::{
        custom_resources::{self, CountMode},
        terminating,
    },
};

/// The result of a deletion.
#[derive(Debug, Default)]
pub(crate) struct Pruned {
    /// The objects that this call deleted.
    pub(crate) deleted: Vec<ObjectKey>,
    /// The objects that are gone.
    pub(crate) gone: Vec<ObjectKey>,
    /// The objects that are not gone yet.
    pub(crate) waiting: Vec<Unhealthy>,
}

/// The number of terminating objects that are explained in detail.
const EXPLAINED: usize = 5;

/// Deletes these objects, the first list first. The next list begins when the objects of the previous one are gone.
#[tracing::instrument(target = "chandler::trace", name = "prune", skip_all)]
pub(crate) async fn delete_in_order(
    cluster: &Cluster,
    owner: &Owner,
    ranks: Vec<Vec<Member>>,
) -> Result<Pruned, RolloutError> {
    let mut pruned = Pruned::default();
    for members in ranks {
        let deletions = members.into_iter().map(|member| {
            async move {
                if live::is_terminating(&member.object) {
                    return Ok((false, Deleted::Accepted(member.object.clone()), member));
                }
                let deleted = delete(cluster, owner, &member).await?;
                Ok::<_, ObjectFailure>((true, deleted, member))
            }
            .boxed()
        });
        let results = all(deletions.collect()).await;
        let (mut failures, mut members) = (Vec::new(), Vec::new());
        for result in results {
            match result {
                Ok((asked, deleted, member)) => {
                    if asked {
                        tracing::debug!(object = %member.key, "deleted");
                        pruned.deleted.push(member.key.clone());
                    }
                    match deleted {
                        Deleted::Accepted(object) => members.push((Member { object, ..member }, asked)),
                        Deleted::Gone => pruned.gone.push(member.key),
                    }
                }
                Err(failure) => failures.push(failure),
            }
        }
        if !failures.is_empty() {
            return Err(RolloutError::Objects(failures));
        }
        if !members.is_empty() {
            pruned.waiting = held_back(cluster, members).await;
            break;
        }
    }
    Ok(pruned)
}

/// Objects that are not gone yet, each with whether this call deleted it, with the reasons for the first few of them. An object that was
/// deleted just now is mostly gone a moment later, so that its finalizers are not looked at yet.
async fn held_back(cluster: &Cluster, members: Vec<(Member, bool)>) -> Vec<Unhealthy> {
    let explanations = members.iter().take(EXPLAINED).map(|(member, is_new)| {
        async move {
            if *is_new { terminating(Reader(&member.object)) } else { terminating::describe(cluster, member).await }
        }
        .boxed()
    });
    let mut reasons = all(explanations.collect()).await.into_iter();
    let waiting = members.into_iter().map(|(member, _)| {
        let reason = reasons.next().unwrap_or_else(|| terminating(Reader(&member.object)));
        Unhealthy { object: member.key, health: Health::progressing(reason) }
    });
    waiting.collect()
}

/// Deletes an object, but no CRD that is in use by now: custom resources were counted before other objects were written or deleted, which can
/// take a while. If the object changed since it was read, it is read again, once, and spared if it does not belong to the owner
/// any more.
async fn delete(cluster: &Cluster, owner: &Owner, member: &Member) -> Result<Deleted, ObjectFailure> {
    let failed = object_failure(&member.key, "delete");
    if owner.deletion.crds == CrdPolicy::WhileUnused && is_used(cluster, member).await {
        return Err(failed(ApiError::Conflict("custom resources were created since they were counted".to_owned())));
    }
    match cluster.delete(&member.resource, &member.object).await {
        Err(ApiError::Conflict(_)) => {}
        result => return result.map_err(failed),
    }
    let again = async {
        match member.now(cluster).await?.filter(|object| live::foreign_owner(object, owner).is_none()) {
            Some(object)
                if live::same_claims(&member.object, &object)
                    && resource_policy::asks_to_stay(&member.key, &object) == member.asks_to_stay() =>
            {
                cluster.delete(&member.resource, &object).await
            }
            // It was orphaned meanwhile, or is to be kept now, for example. The caller must decide again.
            Some(_) => Err(ApiError::Conflict("its owner or its resource policy changed since it was read".to_owned())),
            None => Ok(Deleted::Gone),
        }
    };
    again.await.map_err(failed)
}

/// Whether this is a CRD with custom resources. The ones that are deleted with it are gone before it.
async fn is_used(cluster: &Cluster, member: &Member) -> bool {
    let in_use = custom_resources::in_use(cluster, std::slice::from_ref(member), CountMode::Existence).await;
    in_use.map_or(true, |in_use| !in_use.is_empty())
}
