//! What a BundleDeployment waits for outside of its own objects: grants, and objects of other owners.

use std::sync::Arc;

use chandler_decisions::{assessment::Assessment, problem::Problem};

use super::{installer::Installer, subject::Subject};

/// How many objects of other owners are watched on behalf of one BundleDeployment. All of them must be deleted, so a few suffice.
const WATCHED: usize = 5;

/// Notes what a reconcile waits for, so that a change of it triggers the next one.
pub(super) fn note(subject: &Subject, found: &Assessment, installer: &Arc<Installer>) {
    let (name, memory) = (subject.name(), &installer.memory);
    let problem = found.problem();
    // Permissions in another cluster are not watched.
    let elsewhere = subject.is_elsewhere();
    memory.grants.note(&name, !elsewhere && problem.is_some_and(|problem| problem.needs_grant));
    let collisions = problem.map(|Problem { collisions, .. }| collisions.as_slice()).unwrap_or_default();
    let owner =
        found.candidate().and_then(|candidate| subject.owner(candidate, &installer.cluster.options.accounts).ok());
    let Some(owner) = owner.filter(|_| !elsewhere && !collisions.is_empty()) else {
        memory.collisions.end(&name);
        return;
    };
    let objects = collisions.iter().take(WATCHED).cloned().collect();
    memory.collisions.watch(&subject.name(), objects, |objects| {
        let installer = Arc::clone(installer);
        async move {
            if installer.rollout.owners_change(&owner, &objects).await {
                installer.backoff.succeeded(&name);
                installer.deployments.wake(&name);
            }
        }
    });
}
