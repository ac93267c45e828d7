//! Dry-run creates, which show whether new objects exist: the preflight needs them anyway, so nothing is read first.

use futures::FutureExt as _;
use serde_json::Value;

use crate::{
    client::{cluster::Cluster, concurrent::all, recent_answers::RecentAnswers},
    pure::{
        desired::Desired,
        error::{ApiError, RolloutError},
    },
    read::absent,
};

/// The answer to the dry-run create of an object that does not exist.
pub(crate) type CreateAnswer = Result<(), ApiError>;

/// Asks about the objects that are marked in `new` and have no live object. Those that exist are read. Returns the answers, in
/// the order of the release, for the objects that do not exist.
///
/// An API server validates an object before it looks for another one with the name, so an error does not show that there is
/// none: such an object is read, too.
pub(crate) async fn ask(
    cluster: &Cluster,
    recent: &RecentAnswers,
    desired: &[Desired],
    new: &[bool],
    live: &mut [Option<Value>],
) -> Result<Vec<Option<CreateAnswer>>, RolloutError> {
    let asked = desired.iter().zip(new).zip(live.iter()).enumerate();
    let asked = asked.filter(|(_, ((_, new), live))| **new && live.is_none());
    let requests = asked.map(|(index, ((desired, _), _))| {
        async move { (index, desired, cluster.create(desired, true).await.map(drop)) }.boxed()
    });
    let mut answers: Vec<Option<CreateAnswer>> = vec![None; desired.len()];
    let (mut places, mut unsure) = (Vec::new(), Vec::new());
    for (index, desired, answer) in all(requests.collect()).await {
        // Its namespace is gone or terminating.
        if let (Err(ApiError::NotFound(_) | ApiError::Forbidden(_)), Some(namespace)) =
            (&answer, &desired.key.namespace)
        {
            recent.forget_namespace(namespace);
        }
        // Without its namespace, or its kind, there is no object.
        if !matches!(answer, Ok(()) | Err(ApiError::NotFound(_))) {
            places.push(index);
            unsure.push(desired);
        }
        // If the object that exists is gone until it is read, the preflight asks again.
        if let Some(place) = answers.get_mut(index).filter(|_| !matches!(answer, Err(ApiError::AlreadyExists(_)))) {
            *place = Some(answer);
        }
    }
    for (index, found) in places.into_iter().zip(absent::find(cluster, &unsure).await?) {
        if let (Some(found), Some(live), Some(answer)) = (found, live.get_mut(index), answers.get_mut(index)) {
            *live = Some(found);
            *answer = None;
        }
    }
    Ok(answers)
}
