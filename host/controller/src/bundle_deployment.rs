//! The reconciler of BundleDeployments.
//!
//! There are two tracks: the release that runs, which is repaired, watched and reported, and the candidate, which is fetched,
//! rendered, checked and approved. Only a candidate that passed every check replaces what runs; what is wrong with it never
//! keeps the other track from being looked after.
//!
//! [`decide`](decide::decide) tells what to do without a client, the steps do it, and [`status::derive`] tells what to say
//! about it. What was rolled out is read from the record that only the controller writes, never from the status.

mod approval;
mod approvals;
mod assessment;
mod bundle;
mod certificates;
mod choose;
mod decide;
mod departure;
pub(crate) mod drift;
mod gates;
mod owner;
mod preparing;
mod reconciler;
mod render;
mod report;
mod rerender;
mod revisions;
mod rolling;
mod running;
mod service_account;
mod source;
mod stalled;
mod status;
mod upgrade_warnings;

use std::{sync::Arc, time::Duration};

use chandler_api::{BundleDeployment, BundleDeploymentStatus, Reason};
use chandler_core::{Digest, Release};
use chandler_records::{Book, Opening, RecordError};
use chandler_rollout::RolloutError;
use chandler_runtime::Slot;
use futures::FutureExt as _;
use k8s_openapi::jiff::Timestamp;
use kube::{
    ResourceExt as _,
    runtime::{controller::Action, reflector::ObjectRef},
};

pub use self::owner::owner_of;
pub(crate) use self::{
    approvals::Approvals, preparing::Preparing, reconciler::BundleDeployments, service_account::account,
    stalled::Stalled,
};
use self::{
    assessment::{Assessment, Reached},
    decide::{Intent, Route},
    revisions::Cause,
    stalled::Begun,
};
use crate::{context::Context, problem::Problem};

/// A BundleDeployment that may not decode.
pub(crate) type Guarded = chandler_runtime::Guarded<BundleDeployment>;

/// One reconcile ended with nothing to say in the status.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// The status or the finalizers could not be written.
    #[error("failed to write {what}: {source}")]
    Write { what: &'static str, source: kube::Error },
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The API server was away or somebody else was faster. The status says so only when it happens again and again, so
    /// that a hiccup does not look like an outage.
    #[error("{0}")]
    Hiccup(String),
}

impl ReconcileError {
    /// Whether an object was written that had changed since it was read.
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Write { source: kube::Error::Api(status), .. } if status.is_conflict())
    }
}

/// After how many failures in a row a hiccup is told in the status.
const HICCUPS: u32 = 3;

/// A BundleDeployment that is reconciled.
struct Subject {
    /// As it was read, but with the revisions of the record: whoever may write the status decides nothing.
    deployment: BundleDeployment,
    /// The status that is stored.
    stored: Option<BundleDeploymentStatus>,
    book: Arc<Book>,
    /// When the pass began.
    begun: Begun,
}

impl Subject {
    fn new(deployment: BundleDeployment, book: Arc<Book>, begun: Begun) -> Self {
        let mut subject = Self { stored: deployment.status.clone(), deployment, book, begun };
        subject.read_record();
        subject
    }

    /// Takes the revisions from the record.
    fn read_record(&mut self) {
        let state = self.book.state();
        if self.deployment.status.is_none() && state.history.is_empty() {
            return;
        }
        let status = self.deployment.status.get_or_insert_default();
        status.revision = state.history.last().map(|current| current.number);
        status.history.clone_from(&state.history);
    }

    fn pass<'a>(&'a self, context: &'a Arc<Context>, slot: &'a Slot) -> Pass<'a> {
        Pass { deployment: &self.deployment, book: &self.book, context, slot }
    }
}

/// What the steps of one reconcile work with.
#[derive(Clone, Copy)]
struct Pass<'a> {
    deployment: &'a BundleDeployment,
    book: &'a Arc<Book>,
    context: &'a Arc<Context>,
    slot: &'a Slot,
}

/// One reconcile, as soon as there is a slot for it.
async fn reconcile(name: &str, context: &Arc<Context>) -> Result<Action, ReconcileError> {
    let pass = async |slot: &Slot| {
        // It may have changed, or gone, while there was no slot.
        match context.deployments.get(&ObjectRef::new(name)) {
            Some(newest) => within(&newest, slot, context).await,
            None => Ok(Action::await_change()),
        }
    };
    context.slots.within(pass).await.unwrap_or_else(|| Ok(Action::await_change()))
}

async fn within(guarded: &Guarded, slot: &Slot, context: &Arc<Context>) -> Result<Action, ReconcileError> {
    // The runtime reports one that does not decode, with the reconcile that its change triggers.
    let Ok(deployment) = &guarded.0 else { return Ok(Action::await_change()) };
    let intent = decide::decide(deployment);
    if intent == Intent::Leave {
        return Ok(Action::await_change());
    }
    if intent != Intent::Deploy {
        context.memory.preparing.end(&deployment.name_any());
    }
    let begun = context.memory.stalled.begin();
    let orphans = context.generations.is_orphaning(deployment);
    if intent == Intent::Deploy {
        let pause = context.memory.fights.breathe(&deployment.name_any(), asked(deployment));
        if !pause.is_zero() {
            return Ok(Action::requeue(pause));
        }
    }
    // What may not be installed, or is not to be yet, needs neither a finalizer nor a record.
    let account = service_account::account(deployment, &context.options.accounts);
    let installs = intent == Intent::Deploy && account.is_ok();
    if installs {
        departure::hold(deployment, context).await?;
    }
    let book = departure::book(deployment, installs, context).await?;
    let mut subject = Subject::new(deployment.clone(), book, begun);
    let found = match intent {
        Intent::Leave => return Ok(Action::await_change()),
        Intent::LetGo => return departure::let_go(&subject, departure::Objects::Stay, context).await,
        Intent::TearDown if orphans => return departure::let_go(&subject, departure::Objects::Stay, context).await,
        Intent::TearDown => match departure::tear_down(&subject, context).await? {
            Some(found) => found,
            None => return departure::let_go(&subject, departure::Objects::Gone, context).await,
        },
        Intent::Suspend => {
            let mut found = Assessment::early(Reached::Suspended);
            found.running = Box::pin(running::look_after(subject.pass(context, slot), &mut found)).await;
            found
        }
        Intent::Deploy => Box::pin(deploy(&mut subject, slot, context)).await,
    };
    finish(&mut subject, &found, context).await
}

/// Says what was found, and when to look again.
async fn finish(subject: &mut Subject, found: &Assessment, context: &Context) -> Result<Action, ReconcileError> {
    let name = subject.deployment.name_any();
    if found.reached == Reached::Superseded {
        return Ok(Action::requeue(Duration::ZERO));
    }
    if let Some(problem) = found.problem() {
        let is_told = !problem.is_hiccup() || context.backoff.failures(&name) >= HICCUPS;
        // What is being deleted is reported on by whoever has seen that.
        if !is_told || (problem.reason == Reason::Deleting && !matches!(found.reached, Reached::NotDeleted(_))) {
            return Err(ReconcileError::Hiccup(problem.message.clone()));
        }
    }
    report::report(subject, found, context).await?;
    if let Some(left) = found.stalled {
        return Ok(report::action(Some(left), found));
    }
    let pause = report::next(&subject.deployment, found, context);
    context.memory.stalled.note(&name, subject.begun, asked(&subject.deployment), pause, found);
    Ok(report::action(pause, found))
}

/// What stands for everything that the spec and the administrator ask of a pass.
fn asked(deployment: &BundleDeployment) -> Digest {
    let generation = deployment.metadata.generation.unwrap_or_default().to_string();
    let request = revisions::request(deployment).unwrap_or_default();
    let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
    Digest::of([generation.as_str(), request, uid].join(" ").as_bytes())
}

/// Both tracks: `source -> digest -> tree -> provisioner -> release -> rollout` for the candidate, and, where that did not
/// come to the cluster, what runs.
async fn deploy(subject: &mut Subject, slot: &Slot, context: &Arc<Context>) -> Assessment {
    let mut found = Assessment::early(Reached::Beginning);
    slot.carry(context.memory.sizes.of(&subject.deployment.name_any())).await;
    subject.book.open_revision(None);
    let stalled = context.memory.stalled.of(&subject.deployment.name_any(), &asked(&subject.deployment));
    match stalled {
        // Nothing has changed that could help, and it is not time to try again.
        Some(stalled) => found = stalled,
        None => match prepare(subject.pass(context, slot), &mut found).await {
            Ok(release) => {
                if running::comes_first(&subject.deployment, found.candidate.as_ref()) {
                    Box::pin(look_after(subject, &mut found, slot, context)).await;
                }
                if found.reached != Reached::Superseded {
                    bring(subject, &mut found, release, slot, context).await;
                }
            }
            Err(reached) => found.reached = reached,
        },
    }
    let history = subject.deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
    match running::is_left_alone(&found, history) {
        true if found.running.is_none() => Box::pin(look_after(subject, &mut found, slot, context)).await,
        true => {}
        // What was found of it is out of date: another one is on its way.
        false => found.running = None,
    }
    found
}

/// Looks after what runs, until a newer spec is seen.
async fn look_after(subject: &Subject, found: &mut Assessment, slot: &Slot, context: &Arc<Context>) {
    let looked = tokio::select! {
        running = running::look_after(subject.pass(context, slot), found) => Some(running),
        () = context.generations.newer_than(&subject.deployment) => None,
    };
    match looked {
        Some(running) => found.running = running,
        None => found.reached = Reached::Superseded,
    }
}

/// The release that is to run, with every approval that it needs.
async fn prepare(pass: Pass<'_>, found: &mut Assessment) -> Result<Arc<Release>, Reached> {
    // Before anything is fetched or read, and before anything is tried with it: no revision has failed for that.
    service_account::account(pass.deployment, &pass.context.options.accounts).map_err(Reached::NotRendered)?;
    drift::ignored(pass.deployment).map_err(Reached::NotRendered)?;
    let release = choose::choose(pass, found).await?;
    let described = bundle::facts(&release);
    found.bundle = Some(described.clone());
    let digest = release.digest().clone();
    let release = choose::approved(pass, found, release).await?;
    if found.candidate.as_ref().is_some_and(|candidate| matches!(candidate.cause, Cause::Waiting(_))) {
        found.bundle = Some(bundle::BundleFacts { warnings: described.warnings.clone(), ..bundle::facts(&release) });
        found.described = Some((described, digest));
    }
    Ok(release)
}

/// Brings a release to the cluster.
async fn bring(
    subject: &mut Subject,
    found: &mut Assessment,
    release: Arc<Release>,
    slot: &Slot,
    context: &Arc<Context>,
) {
    let Some(candidate) = found.candidate.clone() else { return };
    let history = subject.deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
    let route = decide::route(history, &candidate);
    let begins = revisions::begins(history, &candidate);
    let announced = Arc::default();
    if route == Route::Advance && (begins || candidate.approval.is_some()) {
        let opening = opening(subject, found, &release, Arc::clone(&announced), context);
        subject.book.open_revision(Some(opening));
    }
    let described = found.bundle.clone();
    let rolled_out = tokio::select! {
        rolled_out = rolling::roll_out(subject.pass(context, slot), found, release, route) => rolled_out.map_err(Reached::NotApplied),
        () = context.generations.newer_than(&subject.deployment) => Err(Reached::Superseded),
    };
    subject.book.open_revision(None);
    if let Some(status) = announced.lock().await.take() {
        subject.stored = Some(BundleDeploymentStatus::clone(&status));
        subject.deployment.status = Some(status);
    }
    subject.read_record();
    found.reached = rolled_out.unwrap_or_else(|reached| reached);
    let history = subject.deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
    if let (true, Some(described)) = (revisions::begins(history, &candidate), described) {
        found.described = Some((described, candidate.release.digest));
    }
}

/// A status that was written before the first write to the cluster.
type Announced = Arc<tokio::sync::Mutex<Option<BundleDeploymentStatus>>>;

/// What begins with the first write to the cluster. The status then says so, so that whoever sees the cluster change can see
/// why.
fn opening(
    subject: &Subject,
    found: &Assessment,
    release: &Arc<Release>,
    announced: Announced,
    context: &Arc<Context>,
) -> Opening {
    let (deployment, stored) = (subject.deployment.clone(), subject.stored.clone());
    let status = status::derive(&deployment, found, Timestamp::now());
    let history = status.history.clone();
    let context = Arc::clone(context);
    let announce = async move {
        match report::write(&deployment, stored.as_ref(), &status, &context).await {
            Ok(()) => *announced.lock().await = Some(status),
            Err(error) => {
                tracing::debug!(deployment = %deployment.name_any(), %error, "the beginning was not announced");
            }
        }
    };
    Opening { history, release: Arc::clone(release), announce: announce.boxed() }
}

impl From<&RecordError> for Problem {
    fn from(error: &RecordError) -> Self {
        Self::passing(Reason::RecordUnavailable, error.to_string())
    }
}

impl From<&RolloutError> for Problem {
    fn from(error: &RolloutError) -> Self {
        let reason = error.reason();
        let lasting = matches!(
            reason,
            Reason::InvalidOutput
                | Reason::InvalidConfiguration
                | Reason::ReservedObjects
                | Reason::CRDCheckLimitExceeded
        );
        let missing_permissions = match error {
            RolloutError::PermissionsMissing(found) => service_account::missing(found),
            _ => Vec::new(),
        };
        Self { terminal: lasting, missing_permissions, ..Self::passing(reason, error.to_string()) }
    }
}
