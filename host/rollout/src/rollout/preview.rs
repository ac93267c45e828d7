//! What a rollout would do, and what it would be refused for.

use chandler_core::Release;
use chandler_health::Rule;

use super::{Look, Rollout, Survey};
use crate::{
    account,
    checks::{Checks, Extent},
    cluster::Cluster,
    drift_options::{DriftOptions, DriftPolicy},
    error::RolloutError,
    owner::Owner,
    preview::{Preview, preview},
    snapshot::Verify,
};

impl Rollout {
    /// Tells what [`advance`](Self::advance) would change in the end, without changing anything. The owner need not exist yet.
    pub async fn preview(&self, owner: &Owner, release: &Release, rules: &[Rule]) -> Result<Preview, RolloutError> {
        self.preview_with(owner, release, rules, DriftPolicy::default()).await
    }

    /// Tells the same of [`advance_with`](Self::advance_with), with everything that would be refused. An error says that it
    /// cannot be told.
    pub async fn preview_with(
        &self,
        owner: &Owner,
        release: &Release,
        rules: &[Rule],
        drift: DriftPolicy,
    ) -> Result<Preview, RolloutError> {
        let actor = account::actor(&self.cluster, owner).await?;
        let result = self.preview_as(&actor, owner, release, rules, drift).await;
        self.explained(result, &actor, owner, Some(release)).await
    }

    async fn preview_as(
        &self,
        actor: &Cluster,
        owner: &Owner,
        release: &Release,
        rules: &[Rule],
        drift: DriftPolicy,
    ) -> Result<Preview, RolloutError> {
        let parent = self.parent_if_any(owner).await?;
        let look = Look { verify: Verify::Absence, drift, extent: Extent::All };
        let Survey { desired, snapshot, mut situations, kept, unwanted, mut refusals, .. } =
            self.survey_below(actor, owner, parent, release, rules, look).await?;
        DriftOptions { drift, ..DriftOptions::default() }.hold(&desired, &mut situations);
        let checks = Checks {
            own: &self.cluster,
            actor,
            access_review: self.access_review(actor, owner),
            owner,
            parent: &snapshot.parent,
            desired: &desired,
            situations: &situations,
            unwanted: &unwanted,
            installation: &self.installation,
        };
        let warnings = checks.run(&snapshot.live, &mut refusals).await?;
        let mut preview = preview(actor, &desired, &situations, &snapshot.live, &unwanted).await?;
        preview.findings.extend(kept.into_iter().chain(warnings));
        preview.refusals.splice(0..0, refusals.messages());
        Ok(preview)
    }
}
