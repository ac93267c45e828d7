//! The checks before a rollout lists anything or asks for a dry run: a release that will certainly be refused needs no further requests.

use chandler_permissions::Installation;
use serde_json::Value;

use crate::{
    client::{cluster::Cluster, recent_answers::RecentAnswers},
    pure::{
        deletion_plan::DeletionPlan,
        desired::Desired,
        error::RolloutError,
        owner::Owner,
        reserved,
        unrecorded::{has_others, unrecorded},
    },
    read::{
        checks::check_namespaces,
        permissions::{AccessReview, Reviewed, Work},
    },
};

/// The input of the early checks.
pub(crate) struct EarlyChecks<'a> {
    /// The client with the controller's rights.
    pub(crate) own: &'a Cluster,
    /// What was asked about namespaces some seconds ago.
    pub(crate) recent: &'a RecentAnswers,
    /// The access review for the ServiceAccount, if there is one.
    pub(crate) access_review: Option<AccessReview<'a>>,
    pub(crate) owner: &'a Owner,
    pub(crate) parent: &'a Value,
    pub(crate) desired: &'a [Desired],
    /// How Chandler is installed. A bundle must not contain objects of the installation.
    pub(crate) installation: &'a Installation,
}

/// What the early checks found.
#[derive(Debug, Default)]
pub(crate) struct Early {
    /// The objects whose dry-run create shows whether they exist, in the order of the release.
    pub(crate) new: Vec<bool>,
    /// Whether the ServiceAccount was found to have all permissions for the objects of the release, and what they are needed for.
    pub(crate) permitted: Reviewed,
}

impl EarlyChecks<'_> {
    /// Refuses a release that creates objects, if it cannot, whatever exists.
    pub(crate) async fn run(&self) -> Result<Early, RolloutError> {
        let Self { own, recent, owner, parent, desired, installation, .. } = *self;
        let new = unrecorded(owner, desired);
        if !new.contains(&true) {
            return Ok(Early::default());
        }
        // This check is first: a user who may not write such an object must not learn whether it exists.
        reserved::refuse(owner, desired, installation)?;
        let created = desired.iter().zip(&new).filter(|(_, new)| **new).map(|(desired, _)| desired);
        check_namespaces(own, recent, owner, desired, created).await?;
        let Some(access_review) = self.access_review else { return Ok(Early { new, permitted: Reviewed::No }) };
        match Box::pin(access_review.check(Work { parent, desired, unwanted: &DeletionPlan::default() })).await {
            Ok(permitted) => Ok(Early { new, permitted }),
            // Others may be missing for objects that are no longer in the release, and all are reported at once.
            Err(RolloutError::PermissionsMissing(_))
                if owner.holdings().is_some_and(|holdings| has_others(&holdings, desired)) =>
            {
                Ok(Early::default())
            }
            Err(error) => Err(error),
        }
    }
}
