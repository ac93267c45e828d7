//! A member that another Resolution needs passes to the set of that one instead of being uninstalled.
//!
//! A Resolution gives up a member when it is deleted, or when its decision has the member no more. Then one that needs it is the successor:
//! its next decision has the member, as it is installed, and its set adopts the BundleDeployment. Until then the member stays in the old set.
//! The account of the new set needs the permissions for the objects of the member; the checks of members find out, as for every new member. One
//! whose checks fail is not the successor, so that nobody keeps what others delete without being able to install it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chandler_api::{AdoptedObject, BundleDeployment, Resolution, names::OWNER_NAME_LABEL};
use chandler_records::RecordError;
use chandler_resolution::installation::Placement;
use kube::{Resource as _, ResourceExt as _};

use super::{
    membership::Membership,
    reconciler::{Resolutions, set_output},
    set,
};

/// When to look again whether the set of another Resolution has adopted what it takes over. That set usually tells before.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What is known of members that Resolutions give up.
#[derive(Default)]
pub(crate) struct Handovers(Mutex<State>);

#[derive(Default)]
struct State {
    /// The BundleDeployments that the decision of a Resolution has no more, by the name of the Resolution.
    leaving: BTreeMap<String, BTreeSet<String>>,
    /// BundleDeployments, and Resolutions whose checks refused them.
    refused: BTreeSet<(String, String)>,
}

impl Handovers {
    /// The checks of a Resolution refused a member that it would have taken over.
    pub(super) fn refuse(&self, deployment: &str, resolution: &str) {
        self.state().refused.insert((deployment.to_owned(), resolution.to_owned()));
    }

    /// Forgets a BundleDeployment that is gone.
    pub(super) fn deployment_gone(&self, deployment: &str) {
        self.state().refused.retain(|(refused, _)| refused != deployment);
    }

    /// Forgets a Resolution that is gone.
    pub(super) fn forget(&self, resolution: &str) {
        let mut state = self.state();
        state.leaving.remove(resolution);
        state.refused.retain(|(_, refusing)| refusing != resolution);
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

    fn is_leaving(&self, resolution: &str, deployment: &str) -> bool {
        self.state().leaving.get(resolution).is_some_and(|leaving| leaving.contains(deployment))
    }

    fn has_refused(&self, deployment: &str, resolution: &str) -> bool {
        self.state().refused.contains(&(deployment.to_owned(), resolution.to_owned()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A BundleDeployment that stays until the set of another Resolution has adopted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Awaited {
    pub(super) deployment: String,
    successor: String,
}

impl Awaited {
    /// What users should know.
    pub(super) fn note(&self) -> String {
        let Self { deployment, successor } = self;
        format!(
            "BundleDeployment {deployment} stays until Resolution {successor}, which needs it, has taken it over; `chandler suspend \
             resolution/{successor}` lets it be deleted instead"
        )
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
        let membership = Membership::read(&self.context, resolution).await?;
        let from = resolution.name_any();
        let all = self.context.deployments.state();
        let members = all.iter().filter_map(|guarded| guarded.0.as_ref().ok());
        let members = members.filter(|it| it.metadata.deletion_timestamp.is_none() && membership.has(it));
        let given_up = members.map(kube::ResourceExt::name_any).filter(|name| is_given_up(name));
        let awaited = given_up.filter_map(|deployment| {
            let successor = self.successor(&from, &deployment)?;
            Some(Awaited { deployment, successor })
        });
        let mut awaited: Vec<Awaited> = awaited.collect();
        awaited.sort_by(|one, other| one.deployment.cmp(&other.deployment));
        let leaving = awaited.iter().map(|it| it.deployment.clone()).collect();
        self.context.resolutions.handovers.leave(&from, leaving);
        for Awaited { successor, .. } in &awaited {
            self.context.resolutions.wake(successor);
        }
        Ok(awaited)
    }

    /// What this Resolution takes over from others: BundleDeployments that it needs and whose Resolutions give them up, and where they are.
    pub(super) async fn taken_over(&self, resolution: &Resolution) -> Result<BTreeMap<String, Placement>, RecordError> {
        let name = resolution.name_any();
        let mut taken = BTreeMap::new();
        for deployment in needed(resolution).into_iter().filter_map(|name| self.context.deployment(name)) {
            let owner = deployment.labels().get(OWNER_NAME_LABEL).and_then(|set| set::resolution_of(set));
            let owner = owner.filter(|owner| *owner != name);
            let Some(from) = owner.and_then(|owner| self.context.resolutions.get(owner)) else { continue };
            let (from_name, deployment_name) = (from.name_any(), deployment.name_any());
            let is_deleted = from.metadata.deletion_timestamp.is_some() && !self.generations.is_orphaning(&from);
            let is_given_up = is_deleted || self.context.resolutions.handovers.is_leaving(&from_name, &deployment_name);
            if !is_given_up || self.successor(&from_name, &deployment_name).as_ref() != Some(&name) {
                continue;
            }
            // The label proves nothing.
            if Membership::read(&self.context, &from).await?.has(&deployment) {
                taken.insert(deployment_name, Placement::of(&deployment));
            }
        }
        Ok(taken)
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
    fn successor(&self, from: &str, deployment: &str) -> Option<String> {
        let can = |resolution: &Resolution| {
            let installs = set_output(resolution.spec.output.as_ref()).is_some_and(|it| it.to_decision.is_none());
            installs && !resolution.spec.suspend && resolution.metadata.deletion_timestamp.is_none()
        };
        let candidates = self.context.resolutions.all_decoded().into_iter().filter(|it| {
            let name = it.name_any();
            name != from
                && can(it)
                && needed(it).contains(&deployment)
                && !self.context.resolutions.handovers.has_refused(deployment, &name)
        });
        let age = |it: &Resolution| (it.metadata.creation_timestamp.clone().map(|time| time.0), it.name_any());
        candidates.min_by_key(age).map(|it| it.name_any())
    }
}

/// The BundleDeployments that the decision of a Resolution has, those of others among them.
fn needed(resolution: &Resolution) -> BTreeSet<&str> {
    let members = resolution.status.iter().flat_map(|status| &status.members);
    members.filter_map(|member| member.bundle_deployment.as_deref()).collect()
}
