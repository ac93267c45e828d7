//! The checks before the first write: one list for the rollout, which stops at the first refusal, and for the preview, which
//! reports all of them.

use std::collections::BTreeSet;

use chandler_permissions::Installation;
use kube::api::ApiResource;
use serde_json::Value;

use crate::{
    client::cluster::Cluster,
    pure::{
        deletion_plan::DeletionPlan,
        desired::Desired,
        error::RolloutError,
        member::Member,
        owner::Owner,
        refusals::{OnRefusal, Refusals, refuse_collisions},
        reserved,
        situation::{Action, Situation},
    },
    read::{
        crd_upgrade,
        permissions::{AccessReview, Work},
    },
};

/// The input of the checks.
#[derive(Clone, Copy)]
pub(crate) struct Checks<'a> {
    /// The client with the controller's rights.
    pub(crate) own: &'a Cluster,
    /// The client that impersonates the ServiceAccount, if there is one.
    pub(crate) actor: &'a Cluster,
    /// The access review for the ServiceAccount, if there is one.
    pub(crate) access_review: Option<AccessReview<'a>>,
    pub(crate) owner: &'a Owner,
    pub(crate) parent: &'a Value,
    pub(crate) desired: &'a [Desired],
    pub(crate) situations: &'a [Situation],
    pub(crate) unwanted: &'a DeletionPlan<Member>,
    /// How Chandler is installed. A bundle must not contain objects of the installation.
    pub(crate) installation: &'a Installation,
}

impl Checks<'_> {
    /// Runs all checks except the dry runs, and returns warnings.
    pub(crate) async fn run(
        &self,
        live: &[Option<Value>],
        refusals: &mut Refusals,
    ) -> Result<Vec<String>, RolloutError> {
        let Self { own, actor, owner, parent, desired, situations, unwanted, .. } = *self;
        // This check is first: a user who may not write such an object must not learn whether it exists.
        refusals.check(reserved::refuse(owner, desired, self.installation))?;
        refusals.check(refuse_collisions(owner, desired, situations))?;
        if refusals.on_refusal == OnRefusal::Stop && !self.writes() {
            return Ok(Vec::new());
        }
        refusals.check(check_namespaces(own, owner, desired, situations).await)?;
        if let Some(access_review) = self.access_review {
            refusals.check(access_review.check(Work { parent, desired, unwanted }).await)?;
        }
        let warnings = crd_upgrade::check(actor, &owner.crd_upgrades, desired, situations, live).await;
        Ok(refusals.check(warnings)?.unwrap_or_default())
    }

    /// Whether any object will be written.
    pub(crate) fn writes(&self) -> bool {
        self.situations.iter().any(|situation| !matches!(situation.action(), Action::Keep | Action::Wait))
    }
}

/// Refuses a release with objects in namespaces that neither exist nor are in the release.
async fn check_namespaces(
    cluster: &Cluster,
    owner: &Owner,
    desired: &[Desired],
    situations: &[Situation],
) -> Result<(), RolloutError> {
    let own: BTreeSet<&str> = desired
        .iter()
        .filter(|desired| desired.key.group.is_empty() && desired.key.kind == "Namespace")
        .map(|desired| desired.key.name.as_str())
        .collect();
    let created = desired.iter().zip(situations).filter(|(_, situation)| **situation == Situation::Absent);
    let needed: BTreeSet<&str> = created
        .filter_map(|(desired, _)| desired.key.namespace.as_deref())
        .chain([owner.install_namespace.as_str()])
        .filter(|namespace| !own.contains(namespace))
        .collect();
    let namespaces = ApiResource::erase::<k8s_openapi::api::core::v1::Namespace>(&());
    let mut missing = Vec::new();
    for namespace in needed {
        let found = cluster
            .get(&namespaces, None, namespace)
            .await
            .map_err(|error| RolloutError::Request { action: format!("read namespace {namespace}"), error })?;
        if found.is_none() {
            missing.push(namespace.to_owned());
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(RolloutError::NamespacesNotFound(missing)) }
}
