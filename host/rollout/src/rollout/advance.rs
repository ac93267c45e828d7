//! Rolls a release out: check, apply stage by stage, prune.

use super::{
    Rollout,
    survey::{Survey, SurveyOptions},
};
use crate::{
    client::{account::Confirmation, cluster::Cluster, recent_answers::Purpose},
    pure::{
        conversion::DeletedServices,
        deletion_plan::DeletionPlan,
        drift_options,
        error::RolloutError,
        holdings::{ObjectId, Settlement},
        inventory::Inventory,
        record::{intent, is_orphaned, lacks_recorded},
        refusals::OnRefusal,
        report::{Changes, Progress},
        request::RolloutRequest,
    },
    read::{checks::Checks, parent as owner_parent, permissions::Reviewed, snapshot::Lookup},
    write::{
        conversion, orphan, parent,
        preflight::{self, Passed},
        prune::{Pruned, delete_in_order},
        record,
        stages::{StageContext, StageProgress, Stages},
    },
};

impl Rollout {
    /// Rolls the release out as far as possible now: preflight checks, stage by stage, prune.
    ///
    /// No field of any object is written before every check passed that needs no write: probes, kinds, namespaces, collisions
    /// with objects of other owners and, by dry runs, whether the API server accepts the objects. Nothing is written if the
    /// cluster already matches the release.
    pub async fn advance(&self, request: &RolloutRequest<'_>) -> Result<Progress, RolloutError> {
        let RolloutRequest { owner, release, .. } = *request;
        let begun = self.in_progress(owner, release);
        // A rollout that waits looks at its objects often, and asks about its account again before it writes.
        let purpose = if begun.is_some() { Purpose::Wait } else { Purpose::Write };
        let actor = self.actor_for(owner, purpose).await?;
        let mut reviewed = begun.as_ref().map(|begun| begun.reviewed).unwrap_or_default();
        let mut result = Box::pin(self.advance_as(&actor, request, begun.is_some(), &mut reviewed)).await;
        if result.as_ref().is_err_and(|error| self.discovery.doubt(error)) {
            // The API server stopped serving a kind: plan again.
            result = Box::pin(self.advance_as(&actor, request, begun.is_some(), &mut reviewed)).await;
        }
        if let Err(RolloutError::Collisions(found)) = &result {
            record::note(owner.ledger()?, Settlement { gone: owner.given_up(found), ..Settlement::default() }).await?;
        }
        self.set_in_progress(owner, release, matches!(result, Ok(Progress::Waiting { .. })), reviewed);
        self.with_missing_permissions(result, &actor, owner, Some(release)).await
    }

    /// Like [`advance`](Self::advance), on behalf of the account. `reviewed` is what its permissions were reviewed for in this rollout.
    async fn advance_as(
        &self,
        actor: &Cluster,
        request: &RolloutRequest<'_>,
        begun: bool,
        reviewed: &mut Reviewed,
    ) -> Result<Progress, RolloutError> {
        let RolloutRequest { owner, drift: drift_options, .. } = request;
        let ledger = owner.ledger()?;
        // Later calls of a rollout would otherwise look up every object of the stages that are still to come.
        let lookup = if begun { Lookup::ByLabel } else { Lookup::Recorded };
        let options = SurveyOptions { lookup, drift: drift_options.drift, on_refusal: OnRefusal::Stop };
        let parent = owner_parent::living_parent_of(self.home(), &self.parents, owner).await?;
        let Survey {
            desired,
            probes,
            dependencies,
            mut snapshot,
            mut situations,
            created,
            permitted,
            kept,
            mut unwanted,
            ..
        } = self.survey(actor, request, parent, options).await?;
        let crds = unwanted.keep.iter().map(|member| member.key.clone()).collect();
        if drift_options.keeps_stale() {
            unwanted.keep_all();
        }
        let unrepaired = drift_options.apply_to(&desired, &mut situations);
        let may_be_late = owner.parent.is_some() && lacks_recorded(owner, &desired, &situations);
        if may_be_late || is_orphaned(owner, &snapshot.live, &unwanted) {
            // If the garbage collector orphaned or deleted the objects, the deletion of the owner began before they were read.
            snapshot.parent = owner_parent::newest_living_parent_of(self.home(), owner).await?;
        }
        let checks = Checks {
            own: &self.cluster,
            actor,
            recent: &self.recent,
            // The permissions for the objects of the release were reviewed before they were looked up, or in an earlier call. In later
            // calls the API server decides, unless it does not know what a permission is needed for.
            access_review: self.access_review(actor, owner).filter(|_| match *reviewed {
                Reviewed::No => permitted == Reviewed::No || unwanted.all().next().is_some(),
                Reviewed::Requests => false,
                Reviewed::Delegations => true,
            }),
            owner,
            parent: &snapshot.parent,
            desired: &desired,
            situations: &situations,
            unwanted: &unwanted,
            installation: &self.installation,
        };
        let is_single = drift_options.creates_one(&desired, &situations)
            && unwanted.deleted().next().is_none()
            && unwanted.orphan.is_empty();
        let created = (lookup != Lookup::ByLabel && !is_single).then_some(&created[..]);
        let Passed { mut warnings, conflicts, reviewed: review } =
            preflight::before_writing(&checks, &mut snapshot.live, created).await?;
        let writes = checks.writes();
        *reviewed = (*reviewed).max(permitted).max(review);
        if writes {
            warnings.splice(0..0, kept);
        }
        if writes || unwanted.deleted().next().is_some() || !unwanted.orphan.is_empty() {
            // The finalizer of the owner comes before the record, which is deleted with the finalizer.
            let inventory = Inventory::of(&desired, unwanted.all());
            parent::widen(self.home(), &self.parents, owner, &mut snapshot.parent, &inventory).await?;
            ledger.begin(intent(owner, &desired, &situations, &snapshot.live)).await?;
        }
        let confirmation = Confirmation { own: &self.cluster, recent: &self.recent, owner };
        let context = StageContext {
            cluster: actor,
            confirmation,
            discovery: &self.discovery,
            owner,
            desired: &desired,
            probes: &probes,
            dependencies: &dependencies,
        };
        let mut objects = Stages::new(context, snapshot.live, &situations, drift_options);
        let progress = objects.run().await;
        objects.written().for_each(|(desired, live)| self.comparisons.written(desired, live));
        record::settle(ledger, owner, &desired, objects.ours(), &unwanted).await?;
        let StageProgress { stage, stages, waiting } = progress?;
        let mut changes = Changes { warnings, conflicts, unrepaired, kept: crds, ..objects.changes() };
        changes.repaired = drift_options::repaired(&desired, &situations, &changes.recovered);
        if !waiting.is_empty() {
            return Ok(Progress::Waiting { stage, stages, installed: objects.installed(), waiting, changes });
        }
        if unwanted.all().next().is_some() {
            confirmation.confirm().await?;
        }
        let services = DeletedServices::of(&unwanted);
        let DeletionPlan { delete, orphan, keep } = unwanted;
        let orphan = conversion::reset(actor, orphan, &services).await?;
        let keep = conversion::reset(actor, keep, &services).await?;
        let orphaned = orphan.iter().map(|member| ObjectId::of(&member.key)).collect();
        changes.orphaned = orphan::orphan(actor, owner, orphan, orphan::Marks::All).await?;
        let Pruned { deleted, gone, waiting } = delete_in_order(actor, owner, delete).await?;
        changes.pruned = deleted;
        let gone = gone.iter().map(ObjectId::of).collect();
        let complete = waiting.is_empty();
        record::note(ledger, Settlement { gone, orphaned, complete, ..Settlement::default() }).await?;
        if !waiting.is_empty() {
            return Ok(Progress::Waiting { stage, stages, installed: true, waiting, changes });
        }
        let inventory = Inventory::of(&desired, &keep);
        parent::write(self.home(), &self.parents, owner, &mut snapshot.parent, &inventory).await?;
        Ok(Progress::Complete { stages, changes })
    }
}
