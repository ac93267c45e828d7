//! A member that another Resolution needs passes to the set of that one instead of being uninstalled.
//!
//! A Resolution gives up a member when it is deleted, or when its decision has the member no more. Then one that needs it is the successor:
//! its next decision has the member, as it is installed, and its set adopts the BundleDeployment. Until then the member stays in the old set.
//! The account of the new set needs the permissions for the objects of the member; the checks of members find out, as for every new member. One
//! whose checks fail, or do not end, is not the successor: a Resolution keeps nothing of others that it cannot install. Secrets that
//! the member reads were granted to the old account: such a member passes to a set of the same account only.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use chandler_api::{AdoptedObject, BundleDeployment, Resolution, names::OWNER_NAME_LABEL};
use chandler_records::RecordError;
use chandler_resolution::{PlannedMember, installation::Placement, manifests, status::Answer};
use kube::{Resource as _, ResourceExt as _};

use super::{
    membership::Membership,
    reconciler::{Resolutions, set_output},
    set,
    wakes::Guarded,
};

/// When to look again whether the set of another Resolution has adopted what it takes over. That set usually tells before.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// How long a member is kept for a Resolution of another account whose checks do not end: it may not be able to install the member.
const PATIENCE: Duration = Duration::from_mins(5);

/// What is known of members that Resolutions give up.
#[derive(Default)]
pub(crate) struct Handovers(Mutex<State>);

#[derive(Default)]
struct State {
    /// The BundleDeployments that the decision of a Resolution has no more, by the name of the Resolution.
    leaving: BTreeMap<String, BTreeSet<String>>,
    /// The BundleDeployments that the last decision of each Resolution has, also if another set installs them, whether it is installed or waits.
    /// Without a decision since the controller started there is no list.
    decided: BTreeMap<String, Option<BTreeSet<String>>>,
    /// How far each takeover is, by BundleDeployment and Resolution.
    takeovers: BTreeMap<(String, String), Takeover>,
}

/// How far a Resolution is with what it would take over.
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

    /// Notes what the answer to the question of a Resolution has: a refusal does not change what is needed.
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

    /// Notes what the set of a Resolution has and rests on, if there was no decision since the controller started.
    pub(super) fn presumed(&self, resolution: &str, deployments: impl FnOnce() -> BTreeSet<String>) {
        self.state().decided.entry(resolution.to_owned()).or_default().get_or_insert_with(deployments);
    }

    /// Whether a Resolution had an answer since the controller started.
    fn has_answered(&self, resolution: &str) -> bool {
        self.state().decided.contains_key(resolution)
    }

    /// Whether a Resolution needs a BundleDeployment: by its last decision, else by its status, which has the decision that is installed.
    pub(super) fn needs(&self, resolution: &Resolution, deployment: &str) -> bool {
        let state = self.state();
        let decided = state.decided.get(&resolution.name_any()).and_then(Option::as_ref);
        decided.map_or_else(|| reported(resolution).any(|it| it == deployment), |decided| decided.contains(deployment))
    }

    /// All that a Resolution needs.
    fn all_needs(&self, resolution: &Resolution) -> BTreeSet<String> {
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

    /// Notes what the decision of a Resolution has no more.
    fn leave(&self, resolution: &str, deployments: BTreeSet<String>) {
        let mut state = self.state();
        if deployments.is_empty() {
            state.leaving.remove(resolution);
        } else {
            state.leaving.insert(resolution.to_owned(), deployments);
        }
    }

    /// Whether the decision of a Resolution has a BundleDeployment no more, or any.
    fn is_leaving(&self, resolution: &str, deployment: Option<&str>) -> bool {
        let state = self.state();
        let leaving = state.leaving.get(resolution);
        leaving.is_some_and(|leaving| deployment.is_none_or(|deployment| leaving.contains(deployment)))
    }

    /// Whether a BundleDeployment is kept for a Resolution that needs it.
    fn may_follow(&self, deployment: &str, resolution: &str, now: Instant, same_account: bool) -> bool {
        let key = (deployment.to_owned(), resolution.to_owned());
        self.state().takeovers.entry(key).or_insert(Takeover::Asked(now)).may_follow(now, same_account)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A BundleDeployment that stays until the set of another Resolution has adopted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Awaited {
    pub(super) deployment: String,
    /// `None` while it is not known which Resolutions need it.
    successor: Option<String>,
}

impl Awaited {
    /// What users should know.
    pub(super) fn note(&self) -> String {
        let Self { deployment, successor } = self;
        match successor {
            Some(successor) => format!(
                "BundleDeployment {deployment} stays until Resolution {successor}, which needs it, has taken it over; `chandler suspend \
                 resolution/{successor}` lets it be deleted instead"
            ),
            None => format!("BundleDeployment {deployment} stays until the controller has looked at all Resolutions"),
        }
    }
}

/// The notes of several, in one text.
pub(super) fn notes(awaited: &[Awaited]) -> Option<String> {
    let notes: Vec<String> = awaited.iter().map(Awaited::note).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

impl Resolutions {
    /// The members of the set of a Resolution that stay until others have taken them over, and wakes these. `is_given_up` says which members
    /// the Resolution gives up.
    pub(super) async fn hand_over(
        &self,
        resolution: &Resolution,
        is_given_up: impl Fn(&str) -> bool,
    ) -> Result<Vec<Awaited>, RecordError> {
        let from = resolution.name_any();
        let all = self.context.deployments.state();
        let deployments = all.iter().filter_map(|guarded| guarded.0.as_ref().ok());
        let is_candidate =
            |it: &&BundleDeployment| it.metadata.deletion_timestamp.is_none() && is_given_up(&it.name_any());
        let candidates: Vec<&BundleDeployment> = deployments.filter(is_candidate).collect();
        if candidates.is_empty() {
            self.context.resolutions.handovers.leave(&from, BTreeSet::new());
            return Ok(Vec::new());
        }
        let membership = Membership::read(&self.context, resolution).await?;
        let given_up = candidates.into_iter().filter(|it| membership.has(it));
        let others = self.context.resolutions.state();
        let is_unknown = |it: &Resolution| {
            it.name_any() != from
                && can_take_over(it)
                && !self.context.resolutions.handovers.has_answered(&it.name_any())
        };
        let is_known = !decoded(&others).any(is_unknown);
        let awaited = given_up.filter_map(|deployment| {
            let successor = self.successor(resolution, deployment);
            (successor.is_some() || !is_known).then(|| Awaited { deployment: deployment.name_any(), successor })
        });
        let mut awaited: Vec<Awaited> = awaited.collect();
        awaited.sort_by(|one, other| one.deployment.cmp(&other.deployment));
        let leaving = awaited.iter().map(|it| it.deployment.clone()).collect();
        self.context.resolutions.handovers.leave(&from, leaving);
        for successor in awaited.iter().filter_map(|it| it.successor.as_ref()) {
            self.context.resolutions.wake(successor);
        }
        Ok(awaited)
    }

    /// What this Resolution takes over from others: BundleDeployments that it needs and whose Resolutions give them up, and where they are.
    pub(super) async fn taken_over(&self, resolution: &Resolution) -> Result<BTreeMap<String, Placement>, RecordError> {
        let name = resolution.name_any();
        let mut taken = BTreeMap::new();
        // Usually no other Resolution gives anything up, and nothing has to be looked up.
        let gives = |it: &Resolution| it.name_any() != name && self.gives_up(it, None);
        if !decoded(&self.context.resolutions.state()).any(gives) {
            return Ok(taken);
        }
        let needed = self.context.resolutions.handovers.all_needs(resolution);
        for deployment in needed.iter().filter_map(|name| self.context.deployment(name)) {
            let owner = deployment.labels().get(OWNER_NAME_LABEL).and_then(|set| set::resolution_of(set));
            let owner = owner.filter(|owner| *owner != name);
            let Some(from) = owner.and_then(|owner| self.context.resolutions.get(owner)) else { continue };
            let is_given_up = self.gives_up(&from, Some(&deployment.name_any()));
            if !is_given_up || self.successor(&from, &deployment).as_ref() != Some(&name) {
                continue;
            }
            // The label proves nothing.
            if Membership::read(&self.context, &from).await?.has(&deployment) {
                taken.insert(deployment.name_any(), Placement::of(&deployment));
            }
        }
        Ok(taken)
    }

    /// Whether a Resolution gives up a BundleDeployment, or any.
    fn gives_up(&self, from: &Resolution, deployment: Option<&str>) -> bool {
        let is_deleted = from.metadata.deletion_timestamp.is_some() && !self.generations.is_orphaning(from);
        is_deleted || self.context.resolutions.handovers.is_leaving(&from.name_any(), deployment)
    }

    /// What the members of a decision are and rest on, for a Resolution that has no new answer: what it asks for among them.
    pub(super) fn rests_on(&self, resolution: &Resolution, members: &[PlannedMember]) -> BTreeSet<String> {
        let requested = resolution.spec.packages.iter().map(|request| &request.name);
        let packages: BTreeSet<&String> = members.iter().flat_map(|it| &it.rests_on).chain(requested).collect();
        let all = self.context.deployments.state();
        let of_sets = all.iter().filter_map(|it| it.0.as_ref().ok()).filter(|it| manifests::is_named(it));
        let elsewhere =
            of_sets.filter(|it| packages.contains(&manifests::package(it))).map(kube::ResourceExt::name_any);
        members.iter().map(PlannedMember::deployment_name).chain(elsewhere).collect()
    }

    /// These BundleDeployments as the spec of a set names them, so that it adopts them.
    pub(super) fn adopted(&self, taken_over: &BTreeMap<String, Placement>) -> Vec<AdoptedObject> {
        let deployments = taken_over.keys().filter_map(|name| self.context.deployment(name));
        let adopted = deployments.filter_map(|deployment| {
            Some(AdoptedObject {
                group: BundleDeployment::group(&()).into_owned(),
                kind: BundleDeployment::kind(&()).into_owned(),
                namespace: None,
                name: deployment.name_any(),
                uid: deployment.uid()?,
            })
        });
        adopted.collect()
    }

    /// The Resolution that takes over a BundleDeployment which another one gives up: the oldest that needs it and can.
    fn successor(&self, from: &Resolution, deployment: &BundleDeployment) -> Option<String> {
        let (from_name, deployment_name) = (from.name_any(), deployment.name_any());
        let now = Instant::now();
        let all = self.context.resolutions.state();
        let candidates = decoded(&all).filter(|it| {
            let same_account = self.requester(it) == self.requester(from);
            it.name_any() != from_name
                && can_take_over(it)
                && self.context.resolutions.handovers.needs(it, &deployment_name)
                && (!reads_secrets(deployment) || same_account)
                && self.context.resolutions.handovers.may_follow(&deployment_name, &it.name_any(), now, same_account)
        });
        let age = |it: &&Resolution| (it.metadata.creation_timestamp.clone().map(|time| time.0), it.name_any());
        candidates.min_by_key(age).map(kube::ResourceExt::name_any)
    }
}

/// The Resolutions that decode.
fn decoded(all: &[Arc<Guarded>]) -> impl Iterator<Item = &Resolution> {
    all.iter().filter_map(|guarded| guarded.0.as_ref().ok())
}

/// Whether the set of a Resolution may change now.
fn can_take_over(resolution: &Resolution) -> bool {
    let installs = set_output(resolution.spec.output.as_ref()).is_some_and(|it| it.to_decision.is_none());
    installs && !resolution.spec.suspend && resolution.metadata.deletion_timestamp.is_none()
}

/// Whether the spec of a BundleDeployment names ConfigMaps or Secrets, which an administrator added to that of the decision.
fn reads_secrets(deployment: &BundleDeployment) -> bool {
    let spec = &deployment.spec;
    !spec.values_from.is_empty() || spec.source.image.as_ref().is_none_or(|image| image.pull_secret.is_some())
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

    #[test]
    fn a_set_that_may_not_change_takes_nothing_over() {
        let resolution = |spec: &serde_json::Value| {
            let output = json!({"type": "ResolveSet", "resolveSet": {"installNamespace": "shop"}});
            let mut object = json!({
                "apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution", "metadata": {"name": "two"},
                "spec": {"packages": [{"name": "app"}], "output": output},
            });
            object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
            serde_json::from_value::<Resolution>(object).unwrap()
        };
        assert!(can_take_over(&resolution(&json!({}))));
        let back = json!({"type": "ResolveSet", "resolveSet": {"installNamespace": "shop", "toDecision": 1}});
        for spec in [json!({"suspend": true}), json!({"output": null}), json!({"output": back})] {
            assert!(!can_take_over(&resolution(&spec)), "{spec}");
        }
        let mut deleted = resolution(&json!({}));
        deleted.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-26T00:00:00Z")).unwrap();
        assert!(!can_take_over(&deleted));
    }

    #[test]
    fn a_member_whose_spec_names_secrets_is_recognised() {
        let deployment = |more: &serde_json::Value| {
            let mut object = json!({
                "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "base"},
                "spec": {"installNamespace": "shop", "source": {"type": "image", "image": {"ref": "example.com/base"}}},
            });
            object["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value::<BundleDeployment>(object).unwrap()
        };
        assert!(!reads_secrets(&deployment(&json!({}))));
        let values = json!({"valuesFrom": [{"kind": "Secret", "name": "values"}]});
        let pulled =
            json!({"source": {"type": "image", "image": {"ref": "example.com/base", "pullSecret": "registry"}}});
        let other = json!({"source": {"type": "http", "http": {"url": "https://example.com/base.tgz"}}});
        for more in [values, pulled, other] {
            assert!(reads_secrets(&deployment(&more)), "{more}");
        }
    }
}
