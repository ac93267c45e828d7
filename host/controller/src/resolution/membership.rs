//! Which BundleDeployments belong to the set of a Resolution.
//!
//! The record of the set decides: it lists by UID what the set created. Any user who may write BundleDeployments can give one the label and
//! the owner reference of a set.

use std::{collections::BTreeMap, sync::Arc};

use chandler_api::{AdoptedObject, BundleDeployment, CollisionProtection, Resolution, names::OWNER_NAME_LABEL};
use chandler_decisions::account;
use chandler_records::{RecordError, State};
use chandler_resolution::{Claim, Manifests, checks::Refusal, installation::Placement, manifests, observed::CATALOGS};
use kube::{Resource as _, ResourceExt as _};
use serde_json::json;

use super::{set, sets::Sets};
use crate::deployments::Deployments;

/// The BundleDeployments of a set.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    /// The BundleDeployment of the set.
    set: Option<BundleDeployment>,
    /// Its record.
    state: Option<Arc<State>>,
}

impl Membership {
    /// Reads the record of the set of a Resolution.
    pub(crate) async fn read(sets: &Sets, resolution: &Resolution) -> Result<Self, RecordError> {
        let set = sets.deployments.get(&set::deployment_name(&resolution.name_any()));
        let Some(set) = set.filter(|set| set::is_owned(set, resolution)) else { return Ok(Self::default()) };
        let account = account::recorded(&set, &sets.cluster.options.accounts);
        let state = sets.records.read(&set.name_any(), &set.uid().unwrap_or_default(), account.as_deref()).await?;
        Ok(Self { set: Some(set), state })
    }

    /// Whether the set created or adopted a BundleDeployment.
    pub(crate) fn has(&self, deployment: &BundleDeployment) -> bool {
        let Some(state) = &self.state else { return false };
        let metadata = json!({
            "name": deployment.name_any(), "uid": deployment.uid(), "annotations": deployment.metadata.annotations,
        });
        let (api_version, kind) = (BundleDeployment::api_version(&()), BundleDeployment::kind(&()));
        state.holdings.is_own(&json!({"apiVersion": api_version, "kind": kind, "metadata": metadata}))
            || self.inherits(state, deployment)
    }

    /// Whether the set has taken an object over from another set: its record lists the object, and the object is labelled as its own. Before
    /// that, an interrupted rollout may still need the entry in `spec.adopt`.
    pub(super) fn has_taken_over(&self, deployments: &Deployments, object: &AdoptedObject) -> bool {
        let stored = deployments.get(&object.name).filter(|stored| stored.uid().as_ref() == Some(&object.uid));
        let set = self.set.as_ref().map(kube::ResourceExt::name_any);
        stored.is_some_and(|stored| {
            let is_labelled = stored.labels().get(OWNER_NAME_LABEL) == set.as_ref();
            manifests::is_taken_over(&stored) && is_labelled && self.has(&stored)
        })
    }

    /// Whether the record lists an object that another set still has: a takeover that was begun again before it was complete. Without its
    /// entry in `spec.adopt` the rollout forgets the object, and a new entry adopts it again.
    pub(super) fn is_interrupted(&self, deployments: &Deployments, object: &AdoptedObject) -> bool {
        let stored = deployments.get(&object.name).filter(|stored| stored.uid().as_ref() == Some(&object.uid));
        let set = self.set.as_ref().map(kube::ResourceExt::name_any);
        stored.is_some_and(|stored| stored.labels().get(OWNER_NAME_LABEL) != set.as_ref() && self.has(&stored))
    }

    /// If the record was lost, objects that refer to the set by UID count as its own until the rollout has rebuilt the record.
    fn inherits(&self, state: &State, deployment: &BundleDeployment) -> bool {
        let refers = |set: &BundleDeployment| {
            let uid = set.uid().unwrap_or_default();
            deployment.owner_references().iter().any(|owner| owner.uid == uid)
        };
        state.holdings.inherits() && self.set.as_ref().is_some_and(refers)
    }

    /// Whether the administrator lets the set adopt a BundleDeployment.
    fn may_adopt(&self, deployment: &BundleDeployment) -> bool {
        let Some(set) = &self.set else { return false };
        let uid = deployment.uid();
        let is_listed = set.spec.adopt.iter().any(|listed| Some(&listed.uid) == uid.as_ref());
        is_listed || set.spec.collision_protection.is_some_and(|it| it != CollisionProtection::Prevent)
    }

    /// The members whose names other BundleDeployments have. These are never overwritten, unless another Resolution gives them up
    /// (`taken_over`).
    pub(super) fn taken(
        &self,
        deployments: &Deployments,
        manifests: &Manifests,
        taken_over: &BTreeMap<String, Placement>,
    ) -> Vec<Refusal> {
        let refusal = |member: BundleDeployment| {
            let stored = deployments.get(&member.name_any())?;
            let is_given_up = taken_over.contains_key(&stored.name_any());
            let is_foreign = !is_given_up && !self.has(&stored) && !self.may_adopt(&stored);
            is_foreign.then(|| refusal(&manifests::package(&member), &stored))
        };
        manifests.deployments().into_iter().filter_map(refusal).collect()
    }
}

/// The packages that other sets have, by the names of their BundleDeployments. Labels are enough to know that: a forged one only makes a new
/// member get another name.
pub(super) fn members_of_others(deployments: &Deployments, set: &str) -> BTreeMap<String, String> {
    let all = deployments.all();
    let deployments = all.iter().filter_map(|guarded| guarded.0.as_ref().ok()).filter(|it| manifests::is_named(it));
    let is_of_other = |it: &&BundleDeployment| {
        let owner = it.labels().get(OWNER_NAME_LABEL).filter(|owner| *owner != set);
        owner.is_some_and(|owner| set::resolution_of(owner).is_some())
    };
    deployments.filter(is_of_other).map(|it| (it.name_any(), manifests::package(it))).collect()
}

fn refusal(package: &str, stored: &BundleDeployment) -> Refusal {
    let name = stored.name_any();
    let claim = match Claim::of(stored) {
        Some(claim) => claim.does_not_count(CATALOGS),
        None => format!("BundleDeployment {name} exists"),
    };
    let message = format!(
        "{name}: package {package} cannot be installed under this name, which another BundleDeployment has that this Resolution did not \
         create: {claim}. It is not overwritten: delete it (`chandler delete {name}`), or leave the package out"
    );
    Refusal { packages: vec![package.to_owned()], message, excludes: None }
}

#[cfg(test)]
mod tests {
    use chandler_api::{AdoptedObject, BundleDeploymentSpec};
    use chandler_rollout::{Holdings, Intent, ObjectId, Seal, Settlement};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    use super::*;

    fn deployment(name: &str, uid: &str) -> BundleDeployment {
        let mut deployment = BundleDeployment::new(name, BundleDeploymentSpec::default());
        deployment.metadata.uid = Some(uid.to_owned());
        deployment
    }

    fn id(name: &str) -> ObjectId {
        let (group, kind) = ("core.rukpak.io".to_owned(), "BundleDeployment".to_owned());
        ObjectId { group, kind, namespace: None, name: name.to_owned() }
    }

    fn membership(holdings: Holdings) -> Membership {
        let state = Some(Arc::new(State::new("resolveset-shop", holdings)));
        Membership { set: Some(deployment("resolveset-shop", "set")), state }
    }

    /// A BundleDeployment with every field that its author can write.
    fn forged(name: &str, uid: &str) -> BundleDeployment {
        let mut forged = deployment(name, uid);
        let label = chandler_api::names::OWNER_NAME_LABEL.to_owned();
        forged.metadata.labels = Some([(label, "resolveset-shop".to_owned())].into());
        forged.metadata.annotations = Some([("chandler.dev/seal".to_owned(), "0".repeat(64))].into());
        let set = "resolveset-shop".to_owned();
        let owner =
            OwnerReference { uid: "set".to_owned(), name: set, controller: Some(true), ..OwnerReference::default() };
        forged.metadata.owner_references = Some(vec![owner]);
        forged
    }

    #[test]
    fn labels_and_owner_references_make_no_member() {
        let holdings = Holdings::new("set", Seal::new([1; 32]));
        let settled =
            holdings.settled(&Settlement { held: [(id("base"), "1".to_owned())].into(), ..Settlement::default() });
        let of_set = membership(settled.clone());
        assert!(of_set.has(&deployment("base", "1")));
        assert!(!of_set.has(&forged("base", "2")), "another one of its name");
        assert!(!of_set.has(&forged("app", "3")));
        let intent = Intent { created: [id("app")].into(), ..Intent::default() };
        assert!(!membership(settled.intending(&intent)).has(&forged("app", "3")), "its seal is forged");
        assert!(!Membership::default().has(&forged("base", "1")), "there is no set");
        assert!(membership(holdings.inheriting()).has(&forged("base", "1")), "the record was lost");
    }

    #[test]
    fn what_the_administrator_lets_the_set_adopt_is_not_taken() {
        let mut membership = membership(Holdings::new("set", Seal::new([1; 32])));
        assert!(!membership.may_adopt(&deployment("base", "1")));
        let set = membership.set.as_mut().unwrap();
        set.spec.adopt.push(AdoptedObject { uid: "1".to_owned(), ..AdoptedObject::default() });
        assert!(membership.may_adopt(&deployment("base", "1")) && !membership.may_adopt(&deployment("base", "2")));
        let set = membership.set.as_mut().unwrap();
        set.spec.collision_protection = Some(CollisionProtection::None);
        assert!(membership.may_adopt(&deployment("base", "2")));
    }
}
