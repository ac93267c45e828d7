//! What the BundleDeployments that use a class do with its component: counted for the status, and decided for a staged update.

use chandler_api::{
    Approval, BundleDeployment, ClassUses, ConditionStatus, ConditionType, Outcome, ProvisionerClass, UpdatePolicy,
    find_condition,
};
use chandler_decisions::{
    class_uses, revisions,
    staged::{self, Member, Progress, Stage},
};
use futures::FutureExt as _;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::ResourceExt as _;

use super::{reconciler::ProvisionerClasses, users::uses};

/// How many BundleDeployments use a class, and how far a staged update is.
pub(super) struct Uses {
    pub(super) counts: ClassUses,
    /// How many updates failed, so that the staged update stopped.
    pub(super) stopped: usize,
    /// How many may be updated now.
    pub(super) admitted: usize,
}

impl ProvisionerClasses {
    /// Looks at the users of a class that has this component, and lets those be updated whose turn it is. `None` before the first list of
    /// BundleDeployments is complete.
    pub(super) fn look_at_uses(&self, class: &ProvisionerClass, component: Option<&str>) -> Option<Uses> {
        let name = class.name_any();
        let is_listed = self.deployments.ready().now_or_never() == Some(true);
        if !is_listed {
            return None;
        }
        let all = self.deployments.all();
        let users: Vec<&BundleDeployment> =
            all.iter().filter_map(|guarded| guarded.0.as_ref().ok()).filter(|it| uses(it, &name)).collect();
        let component = component.unwrap_or_default();
        let counts = class_uses::count(users.iter().copied(), component);
        let staged =
            class.spec.update_policy == Some(UpdatePolicy::Staged) && !class.spec.suspend && !component.is_empty();
        let stage = staged.then(|| self.stage(class, component, &users));
        let (stopped, admitted) = stage.as_ref().map_or((0, 0), |stage| (stage.failed.len(), stage.admitted.len()));
        if self.classes.set_stage(&name, stage.clone()) {
            self.wake(stage.as_ref(), &users);
        }
        Some(Uses { counts, stopped, admitted })
    }

    /// The stage of the update of a class to its component. Which component rendered what, and how that ended, comes from the records.
    fn stage(&self, class: &ProvisionerClass, component: &str, users: &[&BundleDeployment]) -> Stage {
        let (settings, class_name) = (class.spec.staged.clone().unwrap_or_default(), &class.name_any());
        let before = self.classes.stage(class_name);
        let has_history = |it: &BundleDeployment| it.status.as_ref().is_some_and(|status| !status.history.is_empty());
        if users.iter().any(|it| has_history(it) && self.records.known(&it.name_any()).is_none()) {
            // After a restart: one whose record is not read yet may have failed.
            let unknown = Stage { component: component.to_owned(), ..Stage::default() };
            return before.filter(|before| before.component == component).unwrap_or(unknown);
        }
        let member = |deployment: &&BundleDeployment| {
            let name = deployment.name_any();
            // A new installation has no record yet, and its author decides about the others.
            let waits_for_its_author = deployment.spec.suspend
                || deployment.spec.approval == Some(Approval::Manual)
                || !matches!(revisions::pinned(deployment), Ok(None));
            let state = self.records.known(&name)?.state();
            let history = state.history.as_slice();
            let last = history.last()?;
            if waits_for_its_author || deployment.metadata.deletion_timestamp.is_some() {
                return None;
            }
            let has_failed = self.classes.has_failed(class_name, component, &name);
            let is_refused = has_failed || self.memory.failed_updates.is_refused(&name, component);
            let is_first = staged::is_first(&settings, deployment.labels());
            let is_unhealthy = is_unhealthy(deployment);
            let progress = staged::progress(history, component, is_refused, is_unhealthy, &Time(Timestamp::now()));
            // The component did not break an installation that failed before. It is updated when its author repairs it, or approves the update.
            let was_broken = last.outcome == Outcome::Failed || is_unhealthy;
            (progress != Progress::Earlier || !was_broken).then_some(Member { name, is_first, progress })
        };
        let members: Vec<Member> = users.iter().filter_map(member).collect();
        staged::decide(&settings, component, &members, before.as_ref(), self.memory.debounce.now())
    }

    /// Triggers the BundleDeployments whose turn it is; all of them where an update goes back.
    fn wake(&self, stage: Option<&Stage>, users: &[&BundleDeployment]) {
        let Some(stage) = stage else { return };
        let names = users.iter().map(|deployment| deployment.name_any());
        for name in names.filter(|name| !stage.failed.is_empty() || stage.admitted.contains_key(name)) {
            self.deployments.wake(&name);
        }
    }
}

/// Whether the objects of a BundleDeployment are not healthy. Its status is a view that its author may be able to write: this stops an update
/// that has not completed, which its author can do as well with a bundle that fails, and nothing else.
fn is_unhealthy(deployment: &BundleDeployment) -> bool {
    let conditions = deployment.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    find_condition(conditions, ConditionType::Healthy)
        .is_some_and(|healthy| healthy.status == ConditionStatus::False.as_str())
}
