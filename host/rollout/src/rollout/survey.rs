//! Compares a release with the cluster: the first step of every call that is about a release.

use chandler_core::Release;
use chandler_health::{Probes, Rule};
use futures::FutureExt as _;
use serde_json::Value;

use super::Rollout;
use crate::{
    client::{cluster::Cluster, concurrent::all},
    compute::situations,
    pure::{
        deletion_plan::DeletionPlan,
        dependencies::ReleaseDependencies,
        desired::Desired,
        drift_options::DriftPolicy,
        error::RolloutError,
        member::Member,
        refusals::{OnRefusal, Refusals},
        request::RolloutRequest,
        rollback::keep_newer_crds,
        situation::Situation,
        unrecorded,
    },
    read::{
        creation::{self, CreateAnswer},
        deletion,
        early::{Early, EarlyChecks},
        permissions::Reviewed,
        resolve,
        snapshot::{Lookup, Snapshot},
    },
};

/// How closely the cluster is read.
#[derive(Clone, Copy)]
pub(super) struct SurveyOptions {
    pub(super) lookup: Lookup,
    /// With [`DriftPolicy::Ignore`], objects that look changed are not compared by dry runs.
    pub(super) drift: DriftPolicy,
    pub(super) on_refusal: OnRefusal,
}

/// A release and the state of its objects in the cluster.
pub(super) struct Survey {
    pub(super) desired: Vec<Desired>,
    pub(super) probes: Probes,
    pub(super) dependencies: ReleaseDependencies,
    pub(super) snapshot: Snapshot,
    pub(super) situations: Vec<Situation>,
    /// The answers to dry-run creates of objects that do not exist, in the order of the release.
    pub(super) created: Vec<Option<CreateAnswer>>,
    /// What the permissions of the ServiceAccount for the objects of the release were reviewed for.
    pub(super) permitted: Reviewed,
    /// Warnings about CRDs that keep a newer version.
    pub(super) kept: Vec<String>,
    /// The deletion plan for objects that the release does not contain.
    pub(super) unwanted: DeletionPlan<Member>,
    /// The refusals so far, if the survey did not stop at the first one.
    pub(super) refusals: Refusals,
}

impl Rollout {
    /// Compares the release with the cluster. `parent` is the parent of the owner's ApplySet.
    #[tracing::instrument(target = "chandler::trace", name = "plan", skip_all)]
    pub(super) async fn survey(
        &self,
        actor: &Cluster,
        request: &RolloutRequest<'_>,
        parent: Value,
        options: SurveyOptions,
    ) -> Result<Survey, RolloutError> {
        let RolloutRequest { owner, release, rules, before, .. } = *request;
        let mut refusals = Refusals::new(options.on_refusal);
        let probes = refusals.check(self.compile(release, rules))?.unwrap_or_default();
        let mut desired = resolve::resolve(&self.discovery, owner, release, before, &mut refusals).await?;
        let Early { new, permitted } = match options.lookup {
            Lookup::Recorded => {
                let checks = EarlyChecks {
                    own: &self.cluster,
                    recent: &self.recent,
                    access_review: self.access_review(actor, owner),
                    owner,
                    parent: &parent,
                    desired: &desired,
                    installation: &self.installation,
                };
                checks.run().await?
            }
            Lookup::ByLabelAndName | Lookup::ByLabel => Early::default(),
        };
        let missing = unrecorded::missing(&desired, &request.drift.missing);
        let is_new = |index: usize| new.get(index).copied().unwrap_or_default();
        let unread: Vec<bool> = missing.iter().enumerate().map(|(index, missing)| *missing || is_new(index)).collect();
        let mut snapshot =
            Snapshot::take(actor, &self.discovery, owner, parent, &desired, options.lookup, &unread).await?;
        // One alone is created without a dry run, unless other objects are written as well: then the preflight asks.
        let asked = if unread.iter().filter(|unread| **unread).count() == 1 { &new } else { &unread };
        let created = creation::ask(actor, &self.recent, &desired, asked, permitted, &mut snapshot.live).await?;
        let kept = if owner.rollback { keep_newer_crds(owner, &mut desired, &snapshot.live) } else { Vec::new() };
        let unwanted = deletion::unwanted(actor, owner, std::mem::take(&mut snapshot.stale)).await?;
        let (desired, live, situations) = situations::of_all(owner, desired, snapshot.live).await?;
        snapshot.live = live;
        let situations = desired.iter().zip(&snapshot.live).zip(situations).map(|((desired, live), situation)| {
            async move {
                match (situation, live) {
                    (Situation::SeemsChanged(place), Some(live)) if options.drift != DriftPolicy::Ignore => {
                        match self.comparisons.compare(actor, desired, live, &place).await {
                            // The dry run failed, for example because a webhook does not answer. The apply will report the error,
                            // and the other objects do not wait for this one.
                            Err(RolloutError::Objects(_)) if options.on_refusal == OnRefusal::Stop => {
                                Ok(Situation::Changed(Vec::new()))
                            }
                            compared => compared,
                        }
                    }
                    (situation, _) => Ok(situation),
                }
            }
            .boxed()
        });
        let situations = all(situations.collect()).await.into_iter().collect::<Result<_, _>>()?;
        let dependencies = ReleaseDependencies::read(actor, &desired, &snapshot.live).await?;
        Ok(Survey { desired, probes, dependencies, snapshot, situations, created, permitted, kept, unwanted, refusals })
    }

    /// Compiles the health rules of the provisioner and of the installer.
    fn compile(&self, release: &Release, rules: &[Rule]) -> Result<Probes, RolloutError> {
        let emitted = release.probes().iter().enumerate().map(|(number, probe)| Rule::of_release(number, probe));
        let emitted = Probes::compile(&self.compiler, emitted).map_err(RolloutError::Probe)?;
        let given = Probes::compile(&self.compiler, rules.iter().cloned()).map_err(RolloutError::Rule)?;
        Ok(emitted.and(given))
    }
}
