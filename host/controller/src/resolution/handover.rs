//! A member that another Resolution needs passes to the other Resolution's set instead of being uninstalled.
//!
//! A Resolution gives up a member when it is deleted, or when its decision no longer has the member. Then a Resolution that needs it is the
//! successor: its next decision has the member, as it is installed, and its set adopts the BundleDeployment. Until then the member stays in
//! the old set. The account of the new set needs the permissions for the objects of the member; the checks of members verify that, as for
//! every new member. A Resolution whose checks fail, or do not end, is not the successor: it keeps nothing that it cannot install. Secrets
//! that the member reads were granted to the old account: such a member passes only to a set of the same account.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_api::{AdoptedObject, BundleDeployment, Resolution, names::OWNER_NAME_LABEL};
use chandler_records::RecordError;
use chandler_resolution::{PlannedMember, installation::Placement, manifests};
use kube::{Resource as _, ResourceExt as _};

use super::{
    membership::Membership,
    reconciler::{Resolutions, set_output},
    set,
    states::Guarded,
};

/// When to look again whether the set of another Resolution has adopted what it takes over. Usually a change of that set triggers it
/// earlier.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// A BundleDeployment that stays until the set of another Resolution has adopted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Awaited {
    pub(super) deployment: String,
    /// `None` while it is not known which Resolutions need it.
    successor: Option<String>,
}

impl Awaited {
    /// Notes for users.
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
    /// The members of the set of a Resolution that stay until others have taken them over; wakes these Resolutions. `is_given_up` says
    /// which members the Resolution gives up.
    pub(super) async fn hand_over(
        &self,
        resolution: &Resolution,
        is_given_up: impl Fn(&str) -> bool,
    ) -> Result<Vec<Awaited>, RecordError> {
        let from = resolution.name_any();
        let all = self.deployments.all();
        let deployments = all.iter().filter_map(|guarded| guarded.0.as_ref().ok());
        let is_candidate =
            |it: &&BundleDeployment| it.metadata.deletion_timestamp.is_none() && is_given_up(&it.name_any());
        let candidates: Vec<&BundleDeployment> = deployments.filter(is_candidate).collect();
        if candidates.is_empty() {
            self.states.handovers.leave(&from, BTreeSet::new());
            return Ok(Vec::new());
        }
        let membership = Membership::read(&self.sets, resolution).await?;
        let given_up = candidates.into_iter().filter(|it| membership.has(it));
        let others = self.states.state();
        let is_unknown = |it: &Resolution| {
            it.name_any() != from && can_take_over(it) && !self.states.handovers.has_answered(&it.name_any())
        };
        let is_known = !decoded(&others).any(is_unknown);
        let awaited = given_up.filter_map(|deployment| {
            let successor = self.successor(resolution, deployment);
            (successor.is_some() || !is_known).then(|| Awaited { deployment: deployment.name_any(), successor })
        });
        let mut awaited: Vec<Awaited> = awaited.collect();
        awaited.sort_by(|one, other| one.deployment.cmp(&other.deployment));
        let leaving = awaited.iter().map(|it| it.deployment.clone()).collect();
        self.states.handovers.leave(&from, leaving);
        for successor in awaited.iter().filter_map(|it| it.successor.as_ref()) {
            self.states.wake(successor);
        }
        Ok(awaited)
    }

    /// What this Resolution takes over from others: BundleDeployments that it needs and that their Resolutions give up, with their places.
    pub(super) async fn taken_over(&self, resolution: &Resolution) -> Result<BTreeMap<String, Placement>, RecordError> {
        let name = resolution.name_any();
        let mut taken = BTreeMap::new();
        // Usually no other Resolution gives anything up, and nothing has to be looked up.
        let gives = |it: &Resolution| it.name_any() != name && self.gives_up(it, None);
        if !decoded(&self.states.state()).any(gives) {
            return Ok(taken);
        }
        let needed = self.states.handovers.all_needs(resolution);
        for deployment in needed.iter().filter_map(|name| self.deployments.get(name)) {
            let owner = deployment.labels().get(OWNER_NAME_LABEL).and_then(|set| set::resolution_of(set));
            let owner = owner.filter(|owner| *owner != name);
            let Some(from) = owner.and_then(|owner| self.states.get(owner)) else { continue };
            let is_given_up = self.gives_up(&from, Some(&deployment.name_any()));
            if !is_given_up || self.successor(&from, &deployment).as_ref() != Some(&name) {
                continue;
            }
            // The label proves nothing.
            if Membership::read(&self.sets, &from).await?.has(&deployment) {
                taken.insert(deployment.name_any(), Placement::of(&deployment));
            }
        }
        Ok(taken)
    }

    /// Whether a Resolution gives up a BundleDeployment, or any.
    fn gives_up(&self, from: &Resolution, deployment: Option<&str>) -> bool {
        let is_deleted = from.metadata.deletion_timestamp.is_some() && !self.generations.is_orphaning(from);
        is_deleted || self.states.handovers.is_leaving(&from.name_any(), deployment)
    }

    /// The members of a decision and their dependencies, for a Resolution that has no new answer, including the packages that it asks for.
    pub(super) fn rests_on(&self, resolution: &Resolution, members: &[PlannedMember]) -> BTreeSet<String> {
        let requested = resolution.spec.packages.iter().map(|request| &request.name);
        let packages: BTreeSet<&String> = members.iter().flat_map(|it| &it.rests_on).chain(requested).collect();
        let all = self.deployments.all();
        let of_sets = all.iter().filter_map(|it| it.0.as_ref().ok()).filter(|it| manifests::is_named(it));
        let elsewhere =
            of_sets.filter(|it| packages.contains(&manifests::package(it))).map(kube::ResourceExt::name_any);
        members.iter().map(PlannedMember::deployment_name).chain(elsewhere).collect()
    }

    /// These BundleDeployments as the spec of a set names them, so that it adopts them.
    pub(super) fn adopted(&self, taken_over: &BTreeMap<String, Placement>) -> Vec<AdoptedObject> {
        let deployments = taken_over.keys().filter_map(|name| self.deployments.get(name));
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
        let all = self.states.state();
        let candidates = decoded(&all).filter(|it| {
            let same_account = self.requester(it) == self.requester(from);
            it.name_any() != from_name
                && can_take_over(it)
                && self.states.handovers.needs(it, &deployment_name)
                && (!reads_secrets(deployment) || same_account)
                && self.states.handovers.may_follow(&deployment_name, &it.name_any(), now, same_account)
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

/// Whether the spec of a BundleDeployment names ConfigMaps or Secrets, which an administrator added to the decision's spec.
fn reads_secrets(deployment: &BundleDeployment) -> bool {
    let spec = &deployment.spec;
    !spec.values_from.is_empty() || spec.source.image.as_ref().is_none_or(|image| image.pull_secret.is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
