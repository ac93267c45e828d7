//! Reports what a rollout would change, and why it would be refused.

use chandler_crd_upgrade::Upgrade;

use super::{
    Rollout,
    survey::{Survey, SurveyOptions},
};
use crate::{
    client::cluster::Cluster,
    pure::{
        drift_options::DriftOptions, error::RolloutError, preview::Preview, refusals::OnRefusal,
        request::RolloutRequest,
    },
    read::{checks::Checks, preview::preview, snapshot::Lookup},
};

impl Rollout {
    /// Reports what [`advance`](Self::advance) would change in the end and every reason for which it would be refused, without
    /// changing anything. The owner need not exist yet. Of the drift options only the policy counts. An error means that the
    /// outcome cannot be predicted.
    pub async fn preview(&self, request: &RolloutRequest<'_>) -> Result<Preview, RolloutError> {
        let RolloutRequest { owner, release, .. } = *request;
        let actor = self.actor(owner).await?;
        let result = Box::pin(self.preview_as(&actor, request)).await;
        self.with_missing_permissions(result, &actor, owner, Some(release)).await
    }

    async fn preview_as(&self, actor: &Cluster, request: &RolloutRequest<'_>) -> Result<Preview, RolloutError> {
        let RolloutRequest { owner, .. } = *request;
        let drift = request.drift.drift;
        let parent = self.parent_or_null(owner).await?;
        let options = SurveyOptions { lookup: Lookup::ByLabelAndName, drift, on_refusal: OnRefusal::Collect };
        let Survey { desired, snapshot, mut situations, kept, unwanted, mut refusals, .. } =
            self.survey(actor, request, parent, options).await?;
        DriftOptions::from(drift).apply_to(&desired, &mut situations);
        let checks = Checks {
            own: &self.cluster,
            actor,
            recent: &self.recent,
            access_review: self.access_review(actor, owner),
            owner,
            parent: &snapshot.parent,
            desired: &desired,
            situations: &situations,
            unwanted: &unwanted,
            installation: &self.installation,
        };
        let (mut upgrades, _) = checks.run(&snapshot.live, &mut refusals).await?;
        let mut preview = preview(actor, owner, &desired, &situations, &snapshot.live, &unwanted).await?;
        upgrades.extend(refusals.upgrades());
        preview.findings.extend(kept.into_iter().chain(upgrades.iter().flat_map(Upgrade::warnings)));
        preview.crd_upgrades = upgrades;
        preview.refusals.splice(0..0, refusals.messages());
        Ok(preview)
    }
}
