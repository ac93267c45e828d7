//! What the controller calls.

mod preview;

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use chandler_core::{Digest, ObjectKey, Release};
use chandler_health::{Probes, Rule, probe::Compiler};
use chandler_permissions::Installation;
use futures::FutureExt as _;
use kube::{Client, api::ApiResource};
use serde_json::Value;

use crate::{
    account,
    adoption::{self, Adoptee},
    checks::{Checks, Extent, Passed, Refusals},
    cluster::{Cluster, about},
    comparisons::Comparisons,
    concurrent::all,
    deletion_plan::{DeletionPlan, DeletionPreview},
    dependencies::{self, ReleaseDependencies},
    desired::{Desired, Served},
    discovery::Discovery,
    drift_options::{self, DriftOptions, DriftPolicy},
    error::{Problem, RolloutError},
    existing_owner::{Collision, ExistingOwner},
    holdings::{ObjectId, Settlement},
    live, orphan,
    owner::Owner,
    parent::{self, Inventory},
    permissions::{AccessReview, Work},
    plan::Situation,
    prune::{self, Pruned, delete_in_order},
    record,
    report::{Changes, Drift, DriftKind, Observation, Progress, Teardown},
    resolve,
    rollback::keep_newer_crds,
    situations,
    snapshot::{self, Member, Snapshot, Verify},
    stages::{Reached, StageContext, Stages},
    teardown, verdicts,
};

/// How a [`Rollout`] works.
#[derive(Clone, Debug)]
pub struct Options {
    /// For how many objects it is remembered that they are as released although they are written in another way. Each takes
    /// about 150 bytes; what is forgotten costs one dry run.
    pub remembered: usize,
    /// How Chandler is installed. It decides what a release may hold.
    pub installation: Installation,
}

impl Default for Options {
    fn default() -> Self {
        Self { remembered: 50_000, installation: Installation::default() }
    }
}

/// Brings releases onto an API server. One serves all owners; what it remembers only saves requests.
pub struct Rollout {
    cluster: Cluster,
    discovery: Discovery,
    /// The rules that were seen, compiled.
    compiler: Compiler,
    /// By the owner's UID, the digest of the release that is on its way and was checked as a whole.
    begun: Mutex<HashMap<String, Digest>>,
    /// Which objects are as released although they seem changed.
    comparisons: Comparisons,
    /// How Chandler is installed. It decides what a release may hold.
    installation: Installation,
}

/// How closely a release is looked at.
#[derive(Clone, Copy)]
struct Look {
    verify: Verify,
    /// Where drift is ignored, objects that seem changed are not compared.
    drift: DriftPolicy,
    /// Whether the first refusal ends it.
    extent: Extent,
}

/// A release, and what is in the cluster of it.
struct Survey {
    desired: Vec<Desired>,
    probes: Probes,
    dependencies: ReleaseDependencies,
    snapshot: Snapshot,
    situations: Vec<Situation>,
    /// What is to be told of CRDs that stay as they are.
    kept: Vec<String>,
    /// What becomes of the objects that the release does not hold.
    unwanted: DeletionPlan<Member>,
    /// What is in the way already, where not the first of it ended the survey.
    refusals: Refusals,
}

impl Rollout {
    /// A rollout over this client.
    pub fn new(client: Client, options: Options) -> Self {
        Self {
            cluster: Cluster::new(client.clone()),
            discovery: Discovery::new(client),
            comparisons: Comparisons::new(options.remembered),
            installation: options.installation,
            compiler: Compiler::default(),
            begun: Mutex::default(),
        }
    }

    /// Brings the release as far as it can be brought now: preflight, stage by stage, prune.
    ///
    /// No field of any object is written before everything was checked that can be checked without that: probes, kinds,
    /// namespaces, that no object of the release is somebody else's, and, by dry runs, that the API server takes them. Nothing is written at all where everything is as it should be.
    pub async fn advance(&self, owner: &Owner, release: &Release, rules: &[Rule]) -> Result<Progress, RolloutError> {
        self.advance_with(owner, release, rules, &DriftOptions::default()).await
    }

    /// Does what [`advance`](Self::advance) does, but leaves some of what is not as released as it is.
    pub async fn advance_with(
        &self,
        owner: &Owner,
        release: &Release,
        rules: &[Rule],
        drift_options: &DriftOptions,
    ) -> Result<Progress, RolloutError> {
        let actor = account::actor(&self.cluster, owner).await?;
        let result = self.advance_as(&actor, owner, release, rules, drift_options).await;
        self.note_begun(owner, release, matches!(result, Ok(Progress::Waiting { .. })));
        self.explained(result, &actor, owner, Some(release)).await
    }

    async fn advance_as(
        &self,
        actor: &Cluster,
        owner: &Owner,
        release: &Release,
        rules: &[Rule],
        drift_options: &DriftOptions,
    ) -> Result<Progress, RolloutError> {
        let ledger = owner.ledger()?;
        let verify = self.verification(owner, release);
        let look = Look { verify, drift: drift_options.drift, extent: Extent::First };
        let Survey { desired, probes, dependencies, mut snapshot, mut situations, kept, mut unwanted, .. } =
            self.survey(actor, owner, release, rules, look).await?;
        let crds = unwanted.stay.iter().map(|member| member.key.clone()).collect();
        if drift_options.keeps_stale() {
            unwanted.leave();
        }
        let left = drift_options.hold(&desired, &mut situations);
        if record::is_orphaned(owner, &snapshot.live, &unwanted) {
            // If that was the garbage collector's doing, the deletion of the owner began before what was read.
            snapshot::living_parent_of(&self.cluster, owner).await?;
        }
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
        let Passed { mut warnings, conflicts } =
            checks.before_writing(&mut snapshot.live, verify == Verify::Absence).await?;
        let writes = checks.writes();
        if writes {
            warnings.splice(0..0, kept);
        }
        if writes || unwanted.deleted().next().is_some() || !unwanted.release.is_empty() {
            ledger.begin(record::intent(&desired, &situations, &snapshot.live)).await?;
            let inventory = Inventory::of(&desired, unwanted.all());
            parent::widen(&self.cluster, owner, &mut snapshot.parent, &inventory).await?;
        }
        let context = StageContext {
            cluster: actor,
            discovery: &self.discovery,
            owner,
            desired: &desired,
            probes: &probes,
            dependencies: &dependencies,
        };
        let mut objects = Stages::new(context, snapshot.live, &situations, drift_options);
        let reached = objects.run().await;
        objects.created().for_each(|(desired, live)| self.comparisons.created(desired, live));
        record::settle(ledger, owner, &desired, objects.ours(), &unwanted).await?;
        let Reached { stage, stages, waiting } = reached?;
        let mut changes = Changes { warnings, conflicts, left, kept: crds, ..objects.changes() };
        changes.repaired = drift_options::repaired(&desired, &situations, &changes.recovered);
        if !waiting.is_empty() {
            return Ok(Progress::Waiting { stage, stages, installed: objects.installed(), waiting, changes });
        }
        let DeletionPlan { delete, release, stay } = unwanted;
        let left = release.iter().map(|member| ObjectId::of(&member.key)).collect();
        changes.released = orphan::release(actor, owner, release, orphan::Marks::All).await?;
        let Pruned { deleted, gone, waiting } = delete_in_order(actor, owner, delete).await?;
        changes.pruned = deleted;
        let gone = gone.iter().map(ObjectId::of).collect();
        let complete = waiting.is_empty();
        record::note(ledger, Settlement { gone, left, complete, ..Settlement::default() }).await?;
        if !waiting.is_empty() {
            return Ok(Progress::Waiting { stage, stages, installed: true, waiting, changes });
        }
        let inventory = Inventory::of(&desired, &stay);
        parent::write(&self.cluster, owner, &mut snapshot.parent, &inventory).await?;
        Ok(Progress::Complete { stages, changes })
    }

    /// Tells whether everything is as released and healthy, without changing anything.
    pub async fn observe(&self, owner: &Owner, release: &Release, rules: &[Rule]) -> Result<Observation, RolloutError> {
        self.observe_with(owner, release, rules, DriftPolicy::default()).await
    }

    /// Does what [`observe`](Self::observe) does. Where drift is ignored, what somebody changed is not found out.
    pub async fn observe_with(
        &self,
        owner: &Owner,
        release: &Release,
        rules: &[Rule],
        drift: DriftPolicy,
    ) -> Result<Observation, RolloutError> {
        let actor = account::actor(&self.cluster, owner).await?;
        let result = self.observe_as(&actor, owner, release, rules, drift).await;
        self.explained(result, &actor, owner, Some(release)).await
    }

    async fn observe_as(
        &self,
        actor: &Cluster,
        owner: &Owner,
        release: &Release,
        rules: &[Rule],
        drift: DriftPolicy,
    ) -> Result<Observation, RolloutError> {
        let look = Look { verify: Verify::Absence, drift, extent: Extent::First };
        let Survey { desired, probes, dependencies, snapshot, situations, unwanted, .. } =
            self.survey(actor, owner, release, rules, look).await?;
        let mut observation = Observation {
            parent_current: parent::is_current(&snapshot.parent, owner, &Inventory::of(&desired, &unwanted.stay)),
            kept: unwanted.stay.iter().map(|member| member.key.clone()).collect(),
            ..Observation::default()
        };
        for (desired, situation) in desired.iter().zip(situations) {
            observation.drift.extend(drift_options::drift(&desired.key, &situation));
        }
        let keys = desired.iter().map(|desired| desired.key.clone()).collect();
        observation.unhealthy = verdicts::unhealthy(probes, dependencies, keys, snapshot.live).await?;
        let stale = unwanted.deleted().chain(&unwanted.release);
        let stale = stale.map(|member| Drift { object: member.key.clone(), kind: DriftKind::Stale });
        observation.drift.extend(stale);
        Ok(observation)
    }

    /// The objects of a release that exist and are somebody else's, whatever the owner's policy says of them.
    pub async fn adoptees(&self, owner: &Owner, release: &Release) -> Result<Vec<Adoptee>, RolloutError> {
        let actor = account::actor(&self.cluster, owner).await?;
        let look = Look { verify: Verify::Absence, drift: DriftPolicy::Ignore, extent: Extent::First };
        let Survey { desired, snapshot, situations, .. } = self.survey(&actor, owner, release, &[], look).await?;
        Ok(adoption::find(&actor, &desired, &situations, &snapshot.live).await)
    }

    /// Deletes every object of the owner and nothing else, in the reverse of the order in which they were applied. A phase is
    /// begun when the one before is gone. What the owner's policy for its deletion keeps is released instead; where it says
    /// nothing about CRDs, and custom resources of others exist, nothing is done at all.
    pub async fn teardown(&self, owner: &Owner) -> Result<Teardown, RolloutError> {
        if owner.ledger()?.holdings().is_empty() {
            // Nothing was made, so that neither an account nor a right of it is needed.
            return Ok(Teardown::Complete { deleted: Vec::new(), released: Vec::new() });
        }
        let actor = account::actor(&self.cluster, owner).await?;
        let result = teardown::teardown(&self.cluster, &actor, &self.discovery, owner).await;
        self.explained(result, &actor, owner, None).await
    }

    /// Takes the owner's reference off its objects where they are to stay. The garbage collector does that for the kinds that it
    /// knows; those of new CustomResourceDefinitions may not be among them, and it would delete their objects later.
    pub async fn let_go(&self, owner: &Owner) -> Result<(), RolloutError> {
        if owner.ledger()?.holdings().is_empty() {
            return Ok(());
        }
        let actor = account::actor(&self.cluster, owner).await?;
        teardown::let_go(&self.cluster, &actor, &self.discovery, owner).await
    }

    /// Tells what [`teardown`](Self::teardown) would do, and counts the custom resources of every CRD that would go.
    pub async fn preview_teardown(&self, owner: &Owner) -> Result<DeletionPreview, RolloutError> {
        let actor = account::actor(&self.cluster, owner).await?;
        teardown::preview(&self.cluster, &actor, &self.discovery, owner).await
    }

    /// The kinds of the release that the API server is known to serve: those to watch. A kind that a CRD of the release
    /// brings is among them once its first object was created.
    pub fn managed_kinds(&self, release: &Release) -> Vec<ApiResource> {
        let mut kinds = resolve::known_kinds(&self.discovery, release);
        kinds.extend(dependencies::watched(release.objects()));
        kinds
    }

    /// Where the kinds of [`managed_kinds`](Self::managed_kinds) are to be watched on behalf of the owner's ServiceAccount:
    /// each kind that lives in namespaces in those where the release has objects of it.
    pub fn managed_places(&self, owner: &Owner, release: &Release) -> Vec<(ApiResource, Option<String>)> {
        resolve::known_places(&self.discovery, owner, release)
    }

    /// An object as it is in the cluster, which must be the owner's; none where there is none. What is somebody else's is
    /// refused, as it is by [`advance`](Self::advance).
    pub async fn own(&self, owner: &Owner, key: &ObjectKey) -> Result<Option<Value>, RolloutError> {
        let ObjectKey { group, version, kind, .. } = key;
        let served = self.discovery.kind(group, version, kind).await.map_err(resolve::cannot_discover)?;
        let Some(Served { resource, namespaced }) = served else { return Ok(None) };
        let namespace = namespaced.then(|| key.namespace.as_deref().unwrap_or(&owner.install_namespace));
        let actor = account::actor(&self.cluster, owner).await?;
        let live = match actor.get(&resource, namespace, &key.name).await {
            // `advance` finds out all that the account lacks, and writes nothing that it may not read.
            Err(Problem::Forbidden(_)) if owner.account.is_some() => Ok(None),
            live => live.map_err(about(key, "read")),
        };
        let live = live.map_err(|failure| RolloutError::Objects(vec![failure]))?;
        match live.as_ref().and_then(|live| live::foreign_owner(live, owner)) {
            // What was left behind is taken back as it is.
            None | Some(ExistingOwner::LeftBehind { .. }) => Ok(live),
            Some(existing_owner) => Err(owner.refuse(vec![Collision { object: key.clone(), existing_owner }])),
        }
    }

    /// The parent of the owner's set; null where the owner does not exist.
    async fn parent_if_any(&self, owner: &Owner) -> Result<Value, RolloutError> {
        match snapshot::parent_of(&self.cluster, owner).await {
            Err(RolloutError::OwnerGone(_)) => Ok(Value::Null),
            parent => parent,
        }
    }

    /// Whom to ask about permissions, where a ServiceAccount needs them.
    fn access_review<'a>(&'a self, actor: &'a Cluster, owner: &'a Owner) -> Option<AccessReview<'a>> {
        let account = owner.account.as_ref()?;
        let installation = &self.installation;
        Some(AccessReview { own: &self.cluster, actor, discovery: &self.discovery, owner, account, installation })
    }

    /// The same result, where a ServiceAccount was refused something with everything that it lacks.
    async fn explained<T>(
        &self,
        result: Result<T, RolloutError>,
        actor: &Cluster,
        owner: &Owner,
        release: Option<&Release>,
    ) -> Result<T, RolloutError> {
        match (result, self.access_review(actor, owner)) {
            (Err(error), Some(access_review)) if error.is_forbidden() => {
                let desired = match release {
                    Some(release) => {
                        let mut refusals = Refusals::new(Extent::First);
                        resolve::resolve(&self.discovery, owner, release, &mut refusals).await?
                    }
                    None => Vec::new(),
                };
                let parent = self.parent_if_any(owner).await?;
                access_review
                    .check(Work { parent: &parent, desired: &desired, unwanted: &DeletionPlan::default() })
                    .await?;
                // It lacks nothing: something else than permissions forbids it, such as a quota.
                Err(error)
            }
            (result, _) => result,
        }
    }

    /// What is still to be verified: nothing that an earlier pass of the same rollout did. Each pass would otherwise ask
    /// about every object of the stages that are still to come.
    fn verification(&self, owner: &Owner, release: &Release) -> Verify {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.get(&owner.uid) == Some(release.digest()) { Verify::Nothing } else { Verify::Absence }
    }

    /// Notes whether a release is on its way and waits. After any failure everything is verified again.
    fn note_begun(&self, owner: &Owner, release: &Release, waits: bool) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if waits {
            begun.insert(owner.uid.clone(), release.digest().clone());
        } else {
            begun.remove(&owner.uid);
        }
    }

    /// The rules that objects have to meet: those of the provisioner and those of whoever installs the release.
    fn compile(&self, release: &Release, rules: &[Rule]) -> Result<Probes, RolloutError> {
        let emitted = release.probes().iter().enumerate().map(|(number, probe)| Rule::of_release(number, probe));
        let emitted = Probes::compile(&self.compiler, emitted).map_err(RolloutError::Probe)?;
        let given = Probes::compile(&self.compiler, rules.iter().cloned()).map_err(RolloutError::Rule)?;
        Ok(emitted.and(given))
    }

    /// What the release should be, and what is there.
    async fn survey(
        &self,
        actor: &Cluster,
        owner: &Owner,
        release: &Release,
        rules: &[Rule],
        look: Look,
    ) -> Result<Survey, RolloutError> {
        let parent = snapshot::living_parent_of(&self.cluster, owner).await?;
        self.survey_below(actor, owner, parent, release, rules, look).await
    }

    async fn survey_below(
        &self,
        actor: &Cluster,
        owner: &Owner,
        parent: Value,
        release: &Release,
        rules: &[Rule],
        look: Look,
    ) -> Result<Survey, RolloutError> {
        let mut refusals = Refusals::new(look.extent);
        let probes = refusals.pass(self.compile(release, rules))?.unwrap_or_default();
        let mut desired = resolve::resolve(&self.discovery, owner, release, &mut refusals).await?;
        let mut snapshot = Snapshot::take(actor, &self.discovery, owner, parent, &desired, look.verify).await?;
        let kept = if owner.rollback { keep_newer_crds(owner, &mut desired, &snapshot.live) } else { Vec::new() };
        let unwanted = prune::unwanted(actor, owner, std::mem::take(&mut snapshot.stale)).await?;
        let (desired, live, situations) = situations::of_all(owner, desired, snapshot.live).await?;
        snapshot.live = live;
        let situations = desired.iter().zip(&snapshot.live).zip(situations).map(|((desired, live), situation)| {
            async move {
                match (situation, live) {
                    (Situation::SeemsChanged(place), Some(live)) if look.drift != DriftPolicy::Ignore => {
                        match self.comparisons.compare(actor, desired, live, &place).await {
                            // A webhook that does not answer, say. The apply will tell, and the others do not wait for it.
                            Err(RolloutError::Objects(_)) if look.extent == Extent::First => {
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
        let dependencies = ReleaseDependencies::look(actor, &desired, &snapshot.live).await?;
        Ok(Survey { desired, probes, dependencies, snapshot, situations, kept, unwanted, refusals })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Controllers run reconciles on any thread: this has to compile.
    #[test]
    fn calls_can_move_between_threads() {
        fn assert_send<T: Send>(_: Option<T>) {}
        fn no_call<'a, F: Future + Send + 'a>(_: impl Fn(&'a Rollout, &'a Owner, &'a Release) -> F) {}
        no_call(|rollout, owner, release| rollout.advance(owner, release, &[]));
        no_call(|rollout, owner, release| rollout.observe(owner, release, &[]));
        no_call(|rollout, owner, _| rollout.teardown(owner));
        assert_send(None::<Rollout>);
    }
}
