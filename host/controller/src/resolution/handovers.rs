//! What is known about members that pass from one set to another.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use chandler_api::Resolution;
use chandler_resolution::{PlannedMember, status::Answer};
use kube::ResourceExt as _;
use parking_lot::{Mutex, MutexGuard};

/// How long a member is kept for a Resolution of another account whose checks do not end: it may not be able to install the member.
const PATIENCE: Duration = Duration::from_mins(5);

/// What is known about members that Resolutions give up.
#[derive(Default)]
pub(crate) struct Handovers(Mutex<State>);

#[derive(Default)]
struct State {
    /// The BundleDeployments that the decision of a Resolution no longer has, by the name of the Resolution.
    leaving: BTreeMap<String, BTreeSet<String>>,
    /// The BundleDeployments that the last decision of each Resolution has, including those that another set installs, whether it is
    /// installed or waits. Without a decision since the controller started there is no list.
    decided: BTreeMap<String, Option<BTreeSet<String>>>,
    /// The progress of each takeover, by BundleDeployment and Resolution.
    takeovers: BTreeMap<(String, String), Takeover>,
}

/// The progress of a Resolution with a member that it would take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takeover {
    /// Its checks have not ended. Since when it is asked for.
    Asked(Instant),
    /// Its checks passed: it may install the member.
    Accepted,
    /// Its checks refused the member.
    Refused,
}

impl Takeover {
    /// Whether the member is kept for it, however long its set takes once it may have the member. `same_account` says that the account of
    /// the old set installs it, too.
    fn may_follow(self, now: Instant, same_account: bool) -> bool {
        match self {
            Self::Accepted => true,
            Self::Asked(since) => same_account || now.duration_since(since) < PATIENCE,
            Self::Refused => false,
        }
    }
}

impl Handovers {
    /// The checks of a Resolution passed, or refused members.
    pub(super) fn checked<'a>(
        &self,
        resolution: &str,
        taken_over: impl Iterator<Item = &'a String>,
        is_refused: impl Fn(&str) -> bool,
    ) {
        let mut state = self.state();
        for deployment in taken_over {
            let takeover = if is_refused(deployment) { Takeover::Refused } else { Takeover::Accepted };
            state.takeovers.insert((deployment.clone(), resolution.to_owned()), takeover);
        }
    }

    /// Notes which BundleDeployments the answer for a Resolution has: a refusal does not change what is needed.
    pub(super) fn answered(&self, resolution: &str, answer: &Answer) {
        let decided = match answer {
            Answer::Plan(plan) => {
                let deployment =
                    |member: &PlannedMember| member.elsewhere.clone().unwrap_or_else(|| member.deployment_name());
                Some(plan.members.iter().map(deployment).collect())
            }
            _ => None,
        };
        let mut state = self.state();
        let known = state.decided.entry(resolution.to_owned()).or_default();
        if decided.is_some() {
            *known = decided;
        }
    }

    /// Notes the members of the set of a Resolution and their dependencies, if there was no decision since the controller started.
    pub(super) fn presumed(&self, resolution: &str, deployments: impl FnOnce() -> BTreeSet<String>) {
        self.state().decided.entry(resolution.to_owned()).or_default().get_or_insert_with(deployments);
    }

    /// Whether a Resolution had an answer since the controller started.
    pub(super) fn has_answered(&self, resolution: &str) -> bool {
        self.state().decided.contains_key(resolution)
    }

    /// Whether a Resolution needs a BundleDeployment: by its last decision, else by its status, which has the decision that is installed.
    pub(super) fn needs(&self, resolution: &Resolution, deployment: &str) -> bool {
        let state = self.state();
        let decided = state.decided.get(&resolution.name_any()).and_then(Option::as_ref);
        decided.map_or_else(|| reported(resolution).any(|it| it == deployment), |decided| decided.contains(deployment))
    }

    /// All that a Resolution needs.
    pub(super) fn all_needs(&self, resolution: &Resolution) -> BTreeSet<String> {
        let decided = self.state().decided.get(&resolution.name_any()).cloned().flatten();
        decided.unwrap_or_else(|| reported(resolution).map(str::to_owned).collect())
    }

    /// Forgets a BundleDeployment that is gone.
    pub(super) fn deployment_gone(&self, deployment: &str) {
        self.state().takeovers.retain(|(taken, _), _| taken != deployment);
    }

    /// Forgets a Resolution that is gone.
    pub(super) fn forget(&self, resolution: &str) {
        let mut state = self.state();
        state.leaving.remove(resolution);
        state.decided.remove(resolution);
        state.takeovers.retain(|(_, taking), _| taking != resolution);
    }

    /// Notes which BundleDeployments the decision of a Resolution no longer has.
    pub(super) fn leave(&self, resolution: &str, deployments: BTreeSet<String>) {
        let mut state = self.state();
        if deployments.is_empty() {
            state.leaving.remove(resolution);
        } else {
            state.leaving.insert(resolution.to_owned(), deployments);
        }
    }

    /// Whether the decision of a Resolution no longer has a BundleDeployment or, without a name, any of its BundleDeployments.
    pub(super) fn is_leaving(&self, resolution: &str, deployment: Option<&str>) -> bool {
        let state = self.state();
        let leaving = state.leaving.get(resolution);
        leaving.is_some_and(|leaving| deployment.is_none_or(|deployment| leaving.contains(deployment)))
    }

    /// Whether a BundleDeployment is kept for a Resolution that needs it.
    pub(super) fn may_follow(&self, deployment: &str, resolution: &str, now: Instant, same_account: bool) -> bool {
        let key = (deployment.to_owned(), resolution.to_owned());
        self.state().takeovers.entry(key).or_insert(Takeover::Asked(now)).may_follow(now, same_account)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

/// The BundleDeployments that the status of a Resolution names.
fn reported(resolution: &Resolution) -> impl Iterator<Item = &str> {
    let members = resolution.status.iter().flat_map(|status| &status.members);
    members.filter_map(|member| member.bundle_deployment.as_deref())
}

#[cfg(test)]
mod tests {
    use chandler_resolution::Plan;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_is_kept_for_who_may_install_it_and_for_a_while_where_that_is_not_known() {
        let (handovers, now) = (Handovers::default(), Instant::now());
        let later = now + PATIENCE;
        let follows = |resolution: &str, at: Instant, same: bool| handovers.may_follow("base", resolution, at, same);
        assert!(follows("two", now, false));
        assert!(!follows("two", later, false), "its checks do not end, and it may lack the permissions");
        assert!(follows("two", later, true), "it has the permissions of the old set");
        let base = ["base".to_owned()];
        handovers.checked("two", base.iter(), |_| false);
        assert!(follows("two", later, false), "its set may take its time");
        handovers.checked("two", base.iter(), |_| true);
        assert!(!follows("two", now, true));
        assert!(follows("three", now, false), "another one may be able to");
        handovers.deployment_gone("base");
        assert!(follows("two", now, false), "another BundleDeployment");
        handovers.checked("two", base.iter(), |_| true);
        handovers.forget("two");
        assert!(follows("two", now, false), "another Resolution");
    }

    #[test]
    fn what_is_needed_does_not_depend_on_what_waits() {
        let handovers = Handovers::default();
        let status = json!({"members": [{"package": "app", "bundle": "app.v1.0.0", "version": "1.0.0", "image": "example.com/app", "bundleDeployment": "app"}]});
        let object = json!({"apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution", "metadata": {"name": "two"}, "spec": {"packages": []}, "status": status});
        let two: Resolution = serde_json::from_value(object).unwrap();
        assert!(!handovers.has_answered("two"));
        assert!(handovers.needs(&two, "app") && !handovers.needs(&two, "base"), "the status says so");
        let member = |package: &str, elsewhere: Option<&str>| PlannedMember {
            package: package.to_owned(),
            elsewhere: elsewhere.map(str::to_owned),
            ..PlannedMember::default()
        };
        let plan = Plan { members: vec![member("app", None), member("base", Some("first-base"))], ..Plan::default() };
        handovers.answered("two", &Answer::Plan(plan));
        assert!(handovers.has_answered("two") && handovers.needs(&two, "first-base"));
        handovers.answered("two", &Answer::Suspended);
        handovers.presumed("two", || panic!("its last decision is known"));
        assert_eq!(handovers.all_needs(&two), BTreeSet::from(["app".to_owned(), "first-base".to_owned()]));
        handovers.forget("two");
        assert!(!handovers.has_answered("two") && !handovers.needs(&two, "first-base"));
        handovers.presumed("two", || BTreeSet::from(["first-base".to_owned()]));
        assert!(handovers.needs(&two, "first-base"), "its installed decision rests on it");
    }

    #[test]
    fn what_leaves_a_set_is_what_its_decision_has_no_more() {
        let handovers = Handovers::default();
        assert!(!handovers.is_leaving("one", Some("base")));
        handovers.leave("one", ["base".to_owned()].into());
        assert!(handovers.is_leaving("one", Some("base")) && !handovers.is_leaving("two", Some("base")));
        handovers.leave("one", BTreeSet::new());
        assert!(!handovers.is_leaving("one", Some("base")));
    }
}
