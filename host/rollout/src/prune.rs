//! Deletes objects in order.

use std::collections::BTreeMap;

use chandler_core::ObjectKey;
use chandler_health::{Health, Reader, terminating};
use futures::FutureExt as _;
use serde_json::Value;

use crate::{
    cluster::{Cluster, Deleted, about},
    concurrent::all,
    error::{ObjectFailure, Problem, RolloutError},
    live,
    owner::Owner,
    plan::deletion_rank,
    report::Unhealthy,
    snapshot::Member,
};

/// What became of the objects.
#[derive(Debug, Default)]
pub(crate) struct Pruned {
    /// Deletions that this call asked for.
    pub(crate) deleted: Vec<ObjectKey>,
    /// Objects that are not gone yet.
    pub(crate) waiting: Vec<Unhealthy>,
}

/// Deletes these objects, the last phase first; a phase is begun when the one before is gone.
pub(crate) async fn delete_in_order(
    cluster: &Cluster,
    owner: &Owner,
    members: Vec<Member>,
) -> Result<Pruned, RolloutError> {
    let mut ranks: BTreeMap<_, Vec<Member>> = BTreeMap::new();
    for member in members {
        ranks.entry(deletion_rank(&member.key)).or_default().push(member);
    }
    let mut pruned = Pruned::default();
    for members in ranks.into_values() {
        let deletions = members.into_iter().map(|member| {
            async move {
                if live::is_terminating(&member.object) {
                    return Ok((member.key, false, Deleted::Accepted(member.object)));
                }
                let deleted = delete(cluster, owner, &member).await?;
                Ok::<_, ObjectFailure>((member.key, true, deleted))
            }
            .boxed()
        });
        let results = all(deletions.collect()).await;
        let mut failures = Vec::new();
        for result in results {
            match result {
                Ok((key, asked, deleted)) => {
                    if asked {
                        tracing::debug!(object = %key, "deleted");
                        pruned.deleted.push(key.clone());
                    }
                    if let Deleted::Accepted(object) = deleted {
                        let health = Health::progressing(terminating(Reader(&object)));
                        pruned.waiting.push(Unhealthy { object: key, health });
                    }
                }
                Err(failure) => failures.push(failure),
            }
        }
        if !failures.is_empty() {
            return Err(RolloutError::Objects(failures));
        }
        if !pruned.waiting.is_empty() {
            break;
        }
    }
    Ok(pruned)
}

/// Deletes an object. Where it changed since it was read, it is read again, once, and spared if it is not ours any more.
async fn delete(cluster: &Cluster, owner: &Owner, member: &Member) -> Result<Deleted, ObjectFailure> {
    let failed = about(&member.key, "delete");
    match cluster.delete(&member.resource, &member.object).await {
        Err(Problem::Conflict(_)) => {}
        result => return result.map_err(failed),
    }
    let again = async {
        let found = cluster.get(&member.resource, member.key.namespace.as_deref(), &member.key.name).await?;
        match found.filter(|object| is_same(object, &member.object, owner)) {
            Some(object) => cluster.delete(&member.resource, &object).await,
            None => Ok(Deleted::Gone),
        }
    };
    again.await.map_err(failed)
}

fn is_same(found: &Value, read: &Value, owner: &Owner) -> bool {
    live::uid(found) == live::uid(read) && live::foreign_owner(found, owner).is_none()
}
