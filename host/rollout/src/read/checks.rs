//! The checks before the first write: one list for the rollout, which stops at the first refusal, and for the preview, which
//! reports all of them.

use chandler_crd_upgrade::Upgrade;
use chandler_permissions::Installation;
use serde_json::Value;

use crate::{
    client::{cluster::Cluster, recent_answers::RecentAnswers},
    pure::{
        deletion_plan::DeletionPlan,
        desired::Desired,
        error::RolloutError,
        member::Member,
        namespaces,
        owner::Owner,
        refusals::{OnRefusal, Refusals, refuse_collisions, refuse_duplicate_items},
        reserved,
        situation::{Action, Situation},
    },
    read::{
        crd_upgrade,
        permissions::{AccessReview, Reviewed, Work},
    },
};

/// The input of the checks.
#[derive(Clone, Copy)]
pub(crate) struct Checks<'a> {
    /// The client with the controller's rights.
    pub(crate) own: &'a Cluster,
    /// The client that impersonates the ServiceAccount, if there is one.
    pub(crate) actor: &'a Cluster,
    /// What was asked about namespaces some seconds ago.
    pub(crate) recent: &'a RecentAnswers,
    /// The access review for the ServiceAccount, if there is one and it is still needed.
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
    /// Runs all checks except the dry runs, and returns the upgrades of CRDs with findings, and what the permissions of the account were
    /// reviewed for.
    pub(crate) async fn run(
        &self,
        live: &[Option<Value>],
        refusals: &mut Refusals,
    ) -> Result<(Vec<Upgrade>, Reviewed), RolloutError> {
        let Self { own, actor, recent, owner, parent, desired, situations, unwanted, .. } = *self;
        // This check is first: a user who may not write such an object must not learn whether it exists.
        refusals.check(reserved::refuse(owner, desired, self.installation))?;
        refusals.check(refuse_collisions(owner, desired, situations))?;
        // What waits for an object that terminates is written later.
        let is_done = !self.writes() && !situations.contains(&Situation::Terminating);
        if refusals.on_refusal == OnRefusal::Stop && is_done {
            return Ok((Vec::new(), Reviewed::No));
        }
        refusals.check(refuse_duplicate_items(owner, desired, situations))?;
        let created = desired.iter().zip(situations).filter(|(_, situation)| **situation == Situation::Absent);
        let created = created.map(|(desired, _)| desired);
        refusals.check(check_namespaces(own, recent, owner, desired, created).await)?;
        let mut reviewed = Reviewed::No;
        if let Some(access_review) = self.access_review {
            let review = Box::pin(access_review.check(Work { parent, desired, unwanted })).await;
            reviewed = refusals.check(review)?.unwrap_or_default();
        }
        let upgrades = crd_upgrade::check(actor, owner, desired, situations, live).await;
        Ok((refusals.check(upgrades)?.unwrap_or_default(), reviewed))
    }

    /// Whether any object will be written.
    pub(crate) fn writes(&self) -> bool {
        self.situations.iter().any(|situation| !matches!(situation.action(), Action::Keep | Action::Wait))
    }
}

/// Refuses a release that creates objects in namespaces that neither exist nor are in the release. A release that creates
/// anything needs its install namespace.
pub(crate) async fn check_namespaces(
    cluster: &Cluster,
    recent: &RecentAnswers,
    owner: &Owner,
    desired: &[Desired],
    created: impl Iterator<Item = &Desired>,
) -> Result<(), RolloutError> {
    let mut missing = Vec::new();
    for namespace in namespaces::needed(owner, desired, created) {
        let exists = recent.namespace_exists(cluster, namespace).await;
        let exists =
            exists.map_err(|error| RolloutError::Request { action: format!("read namespace {namespace}"), error })?;
        if !exists {
            missing.push(namespace.to_owned());
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(RolloutError::NamespacesNotFound(missing)) }
}
