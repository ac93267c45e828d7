//! Dry-run creates, which show whether new objects exist: the preflight needs them anyway, so nothing is read first.

use std::collections::BTreeSet;

use futures::FutureExt as _;
use serde_json::Value;

use crate::{
    client::{cluster::Cluster, concurrent::all, recent_answers::RecentAnswers},
    pure::{
        desired::Desired,
        error::{ApiError, RolloutError},
        new_namespaces::{namespace, undecided},
    },
    read::{absent, permissions::Reviewed},
};

/// The answer to the dry-run create of an object that does not exist.
pub(crate) type CreateAnswer = Result<(), ApiError>;

/// Asks about the objects that are marked in `new` and have no live object. Those that exist are read. Returns the answers, in
/// the order of the release, for the objects that do not exist. `permitted` is what the permissions for them were reviewed for.
///
/// An API server validates an object before it looks for another one with the name, so an error does not show that there is
/// none: such an object is read, too. Nothing is asked about objects in namespaces that do not exist where
/// [the answer is known](crate::pure::new_namespaces).
pub(crate) async fn ask(
    cluster: &Cluster,
    recent: &RecentAnswers,
    desired: &[Desired],
    new: &[bool],
    permitted: Reviewed,
    live: &mut [Option<Value>],
) -> Result<Vec<Option<CreateAnswer>>, RolloutError> {
    let asked = new.iter().zip(live.iter()).enumerate();
    let asked: Vec<usize> = asked.filter(|(_, (new, live))| **new && live.is_none()).map(|(index, _)| index).collect();
    let undecided = undecided(desired, &asked, permitted != Reviewed::No);
    let mut found = dry_run(cluster, desired, asked.iter().copied().filter(|index| !undecided.contains(index))).await;
    let absent: BTreeSet<&str> =
        found.iter().filter(|(.., answer)| answer.is_ok()).filter_map(|(_, desired, _)| namespace(desired)).collect();
    let is_inside = |index: &usize| {
        let namespace = desired.get(*index).and_then(|desired| desired.key.namespace.as_deref());
        namespace.is_some_and(|namespace| absent.contains(namespace))
    };
    let (known, others): (Vec<usize>, Vec<usize>) = undecided.into_iter().partition(is_inside);
    found.extend(dry_run(cluster, desired, others.into_iter()).await);
    let mut answers: Vec<Option<CreateAnswer>> = vec![None; desired.len()];
    for index in known {
        if let Some(place) = answers.get_mut(index) {
            *place = Some(Ok(()));
        }
    }
    let (mut places, mut unsure) = (Vec::new(), Vec::new());
    for (index, desired, answer) in found {
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

/// The answers to the dry-run creates of the objects at these places.
async fn dry_run<'a>(
    cluster: &Cluster,
    desired: &'a [Desired],
    places: impl Iterator<Item = usize>,
) -> Vec<(usize, &'a Desired, CreateAnswer)> {
    let objects = places.filter_map(|index| Some((index, desired.get(index)?)));
    let requests = objects
        .map(|(index, desired)| async move { (index, desired, cluster.create(desired, true).await.map(drop)) }.boxed());
    all(requests.collect()).await
}
