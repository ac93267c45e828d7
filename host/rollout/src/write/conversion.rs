//! Resets the conversion of CustomResourceDefinitions that stay while the Service of their webhook is deleted.

use futures::FutureExt as _;

use crate::{
    client::{cluster::Cluster, concurrent::all},
    pure::{
        conversion::{DeletedServices, without_webhook},
        error::{ApiError, ObjectFailure, RolloutError, object_failure},
        member::Member,
        owner::FIELD_MANAGER,
    },
};

/// Resets the conversion of those among the members that these Services convert, before the Services are deleted. Returns all members as they
/// are then. All are tried before failures are reported.
pub(crate) async fn reset(
    cluster: &Cluster,
    members: Vec<Member>,
    deleted: &DeletedServices,
) -> Result<Vec<Member>, RolloutError> {
    let requests = members.into_iter().map(|member| {
        async move { if deleted.convert(&member) { reset_one(cluster, member, deleted).await } else { Ok(member) } }
            .boxed()
    });
    let (mut members, mut failures) = (Vec::new(), Vec::new());
    for result in all(requests.collect()).await {
        match result {
            Ok(member) => members.push(member),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() { Ok(members) } else { Err(RolloutError::Objects(failures)) }
}

/// Resets the conversion of a CRD. If it changed since it was read, it is read again, once.
async fn reset_one(cluster: &Cluster, member: Member, deleted: &DeletedServices) -> Result<Member, ObjectFailure> {
    let key = member.key.clone();
    let failed = object_failure(&key, "update");
    let patch = |member: Member| async move {
        let Member { key, resource, object } = member;
        let object = cluster.patch(&resource, &object, without_webhook(), FIELD_MANAGER).await?;
        tracing::info!(object = %key, "conversion reset to strategy None: the Service of its webhook is deleted");
        Ok(Member { key, resource, object })
    };
    match patch(member.clone()).await {
        Err(ApiError::Conflict(_)) => {}
        // A deleted CRD converts nothing.
        Err(ApiError::NotFound(_)) => return Ok(member),
        result => return result.map_err(failed),
    }
    let again = async {
        match member.now(cluster).await? {
            Some(object) => {
                let member = Member { object, ..member };
                if deleted.convert(&member) { patch(member).await } else { Ok(member) }
            }
            None => Ok(member),
        }
    };
    again.await.map_err(failed)
}
