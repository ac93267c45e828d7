//! Every check that is made before the first write: one list for the rollout, which stops at the first refusal, and for the
//! preview, which reports all of them.

use chandler_permissions::Installation;
use serde_json::Value;

use crate::{
    cluster::Cluster,
    crd_upgrade,
    deletion_plan::DeletionPlan,
    desired::Desired,
    error::RolloutError,
    owner::Owner,
    permissions::{AccessReview, Work},
    plan::{Action, Situation},
    preflight,
    report::Conflict,
    reserved,
    snapshot::Member,
};

/// How far checks go on after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The first refusal ends them: for who is about to write.
    First,
    /// All are made and nothing is written: for who wants to know what is in the way.
    All,
}

/// What is in the way of a release.
#[derive(Debug)]
pub(crate) struct Refusals {
    extent: Extent,
    found: Vec<RolloutError>,
}

impl Refusals {
    /// None yet.
    pub(crate) fn new(extent: Extent) -> Self {
        Self { extent, found: Vec::new() }
    }

    /// The value of a check, or nothing where it was refused and the checks go on. What is no refusal, but says that a check
    /// could not be made, ends them in any case.
    pub(crate) fn pass<T>(&mut self, result: Result<T, RolloutError>) -> Result<Option<T>, RolloutError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.extent == Extent::All && error.is_refusal() => {
                self.found.push(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Notes a refusal that was found.
    pub(crate) fn add(&mut self, error: RolloutError) -> Result<(), RolloutError> {
        self.pass::<()>(Err(error)).map(drop)
    }

    /// What a message says of each, the first class first.
    pub(crate) fn messages(&self) -> Vec<String> {
        self.found.iter().map(ToString::to_string).collect()
    }
}

/// What is checked.
#[derive(Clone, Copy)]
pub(crate) struct Checks<'a> {
    /// With the rights of the controller.
    pub(crate) own: &'a Cluster,
    /// With those of the account, where there is one.
    pub(crate) actor: &'a Cluster,
    /// Whose permissions are asked about, where a ServiceAccount is to do it.
    pub(crate) access_review: Option<AccessReview<'a>>,
    pub(crate) owner: &'a Owner,
    pub(crate) parent: &'a Value,
    pub(crate) desired: &'a [Desired],
    pub(crate) situations: &'a [Situation],
    pub(crate) unwanted: &'a DeletionPlan<Member>,
    /// How Chandler is installed: what belongs to that is not to be installed by a bundle.
    pub(crate) installation: &'a Installation,
}

/// What checks found that stops nothing.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// CRDs that are not safe and were let through.
    pub(crate) warnings: Vec<String>,
    /// Fields that are taken over from others who apply them, too.
    pub(crate) conflicts: Vec<Conflict>,
}

impl Checks<'_> {
    /// Makes all checks but the dry runs.
    pub(crate) async fn run(
        &self,
        live: &[Option<Value>],
        refusals: &mut Refusals,
    ) -> Result<Vec<String>, RolloutError> {
        let Self { own, actor, owner, parent, desired, situations, unwanted, .. } = *self;
        // First: whether such an object exists already is not for those who may not write it.
        refusals.pass(reserved::refuse(owner, desired, self.installation))?;
        refusals.pass(preflight::refuse_collisions(owner, desired, situations))?;
        if refusals.extent == Extent::First && !self.writes() {
            return Ok(Vec::new());
        }
        refusals.pass(preflight::check_namespaces(own, owner, desired, situations).await)?;
        if let Some(access_review) = self.access_review {
            refusals.pass(access_review.check(Work { parent, desired, unwanted }).await)?;
        }
        let warnings = crd_upgrade::check(actor, &owner.crd_upgrades, desired, situations, live).await;
        Ok(refusals.pass(warnings)?.unwrap_or_default())
    }

    /// Makes all checks before a rollout writes. `dry_run` says whether the API server is asked about every object; the field
    /// managers of `live` are prepared for what is applied then.
    pub(crate) async fn before_writing(
        &self,
        live: &mut [Option<Value>],
        dry_run: bool,
    ) -> Result<Passed, RolloutError> {
        let warnings = self.run(live, &mut Refusals::new(Extent::First)).await?;
        let conflicts = if dry_run && self.writes() {
            preflight::dry_run(self.actor, self.desired, self.situations, live).await?
        } else {
            Vec::new()
        };
        Ok(Passed { warnings, conflicts })
    }

    /// Whether any object is to be written.
    pub(crate) fn writes(&self) -> bool {
        self.situations.iter().any(|situation| !matches!(situation.action(), Action::Keep | Action::Wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Problem;

    #[test]
    fn only_a_check_that_was_made_refuses() {
        let request = |problem| RolloutError::Request { action: "read".into(), problem };
        let missing = || RolloutError::NamespacesNotFound(vec!["n".into()]);
        assert!(missing().is_refusal());
        assert!(!request(Problem::Forbidden("no".into())).is_refusal());
        assert!(!request(Problem::Unavailable("no".into())).is_refusal());

        let mut all = Refusals::new(Extent::All);
        assert_eq!(all.pass(Ok(1)).unwrap(), Some(1));
        assert_eq!(all.pass::<()>(Err(missing())).unwrap(), None);
        all.add(RolloutError::NamespacesNotFound(vec!["m".into()])).unwrap();
        assert!(all.pass::<()>(Err(request(Problem::Unavailable("away".into())))).is_err());
        assert_eq!(all.messages().len(), 2);
        assert!(Refusals::new(Extent::First).add(missing()).is_err(), "who writes stops at the first");
    }
}
