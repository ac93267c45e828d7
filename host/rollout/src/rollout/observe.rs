//! Reports drift and health without changing anything.

use super::{
    Rollout,
    survey::{Survey, SurveyOptions},
};
use crate::{
    client::cluster::Cluster,
    compute::health,
    pure::{
        drift_options,
        error::RolloutError,
        inventory::{self, Inventory},
        refusals::OnRefusal,
        report::{Drift, DriftKind, Observation},
        request::RolloutRequest,
    },
    read::{parent, snapshot::Lookup},
};

impl Rollout {
    /// Reports whether the cluster matches the release and whether its objects are healthy, without changing anything. With
    /// [`DriftPolicy::Ignore`](crate::DriftPolicy::Ignore), changed objects are not detected.
    pub async fn observe(&self, request: &RolloutRequest<'_>) -> Result<Observation, RolloutError> {
        let RolloutRequest { owner, release, .. } = *request;
        let actor = self.actor(owner).await?;
        let result = Box::pin(self.observe_as(&actor, request)).await;
        self.with_missing_permissions(result, &actor, owner, Some(release)).await
    }

    async fn observe_as(&self, actor: &Cluster, request: &RolloutRequest<'_>) -> Result<Observation, RolloutError> {
        let RolloutRequest { owner, drift, .. } = request;
        let options = SurveyOptions { lookup: Lookup::ByLabelAndName, drift: drift.drift, on_refusal: OnRefusal::Stop };
        let parent = parent::living_parent_of(self.home(), &self.parents, owner).await?;
        let Survey { desired, probes, dependencies, snapshot, situations, unwanted, .. } =
            self.survey(actor, request, parent, options).await?;
        let inventory = Inventory::of(&desired, &unwanted.keep);
        let mut observation = Observation {
            parent_current: inventory::is_current(&snapshot.parent, owner, &inventory),
            kept: unwanted.keep.iter().map(|member| member.key.clone()).collect(),
            ..Observation::default()
        };
        for (desired, situation) in desired.iter().zip(situations) {
            observation.drift.extend(drift_options::drift(&desired.key, &situation));
        }
        let keys = desired.iter().map(|desired| desired.key.clone()).collect();
        observation.unhealthy = health::unhealthy(probes, dependencies, keys, snapshot.live).await?;
        let stale = unwanted.deleted().chain(&unwanted.orphan);
        let stale = stale.map(|member| Drift { object: member.key.clone(), kind: DriftKind::Stale });
        observation.drift.extend(stale);
        Ok(observation)
    }
}
