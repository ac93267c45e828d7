//! What a BundleDeployment waits for that its own objects do not show: grants, and objects of other owners.

use std::sync::Arc;

use super::{assessment::Assessment, subject::Subject};
use crate::{context::Context, problem::Problem};

/// How many objects of other owners are watched on behalf of one BundleDeployment. All have to go, so a few suffice.
const WATCHED: usize = 5;

/// Notes what a reconcile waits for, so that a change of it triggers the next one.
pub(super) fn note(subject: &Subject, found: &Assessment, context: &Arc<Context>) {
    let (name, memory) = (subject.name(), &context.memory);
    let problem = found.problem();
    memory.grants.note(&name, problem.is_some_and(|problem| problem.needs_grant));
    let collisions = problem.map(|Problem { collisions, .. }| collisions.as_slice()).unwrap_or_default();
    let owner = found.candidate().and_then(|candidate| subject.owner(candidate, &context.options.accounts).ok());
    let Some(owner) = owner.filter(|_| !collisions.is_empty()) else {
        memory.collisions.end(&name);
        return;
    };
    let objects = collisions.iter().take(WATCHED).cloned().collect();
    memory.collisions.watch(&subject.name(), objects, |objects| {
        let context = Arc::clone(context);
        async move {
            if context.rollout.owners_change(&owner, &objects).await {
                context.backoff.succeeded(&name);
                context.wake(&name);
            }
        }
    });
}
