//! What the set of a Resolution should now contain.
//!
//! A round asks the resolver and checks the members. If the checks find bundles that are not possible on this cluster, although their
//! catalog does not say so, the next round asks without these bundles. If the checks refuse members that only optional packages need, the
//! next round asks without these packages, so that the others are installed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use chandler_api::{
    CatalogInUse, PendingDecision, Reason, Resolution, ResolveSetOutput,
    maintenance::{Allowed, Windows},
    names::REQUESTED_AT_ANNOTATION,
};
use chandler_core::Digest;
use chandler_resolution::{
    Manifests, Plan, PlannedMember,
    checks::{self, Refusal},
    plan::changes,
    status::Answer,
};
use chandler_resolver::Excluded;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;

use super::{
    answer::{Reply, digest},
    decisions::{Decision, Decisions},
    handover::{Awaited, LOOK_AGAIN},
    membership::{self, Membership},
    preflight::{CHECK_AGAIN, Check, Occasion, Preflight, ROUNDS},
    reconciler::{Memory, ReconcileError, Resolutions, noting},
    set,
};

/// The longest wait for the next maintenance window: clocks drift.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// What was decided.
pub(super) struct Decided {
    pub(super) answer: Answer,
    pub(super) catalogs: Vec<CatalogInUse>,
    pub(super) target: Target,
}

/// What the set should contain.
#[derive(Default)]
pub(super) struct Target {
    /// The number of the decision; `None` if nothing was decided yet.
    pub(super) number: Option<i64>,
    pub(super) pending: Option<PendingDecision>,
    /// When to look again.
    pub(super) again: Option<Duration>,
    /// Why the checks refuse members.
    refusals: Vec<Refusal>,
    /// Members that stay until others have taken them over.
    awaited: Vec<Awaited>,
}

/// What earlier rounds found.
#[derive(Default)]
pub(super) struct Round {
    number: usize,
    /// The optional packages that are left out, with the reasons of the checks.
    pub(super) refused: BTreeMap<String, Vec<String>>,
    /// The bundles that are not possible on this cluster.
    pub(super) excluded: Vec<Excluded>,
    /// The members whose new versions the checks refused, and that only omitted packages need.
    pub(super) held: BTreeSet<String>,
}

/// What one Resolution has, and what it should install.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) resolution: &'a Resolution,
    pub(super) output: &'a ResolveSetOutput,
    /// The decision that the set has.
    pub(super) current: Option<&'a Decision>,
}

impl Resolutions {
    /// Decides. A new decision is stored.
    pub(super) async fn decide(
        &self,
        subject: Subject<'_>,
        decisions: &mut Decisions,
        memory: &mut Memory,
    ) -> Result<Decided, ReconcileError> {
        let (mut round, mut again) = (Round::default(), None);
        loop {
            let Reply { answer, catalogs, again: paced } = self.chosen(subject, &round, decisions, memory).await;
            let handovers = &self.states.handovers;
            handovers.answered(&subject.resolution.name_any(), &answer);
            if let Some(current) = subject.current {
                let rests_on = || self.rests_on(subject.resolution, &current.members());
                handovers.presumed(&subject.resolution.name_any(), rests_on);
            }
            let mut target = match &answer {
                // A set has members.
                Answer::Plan(plan) if plan.set().next().is_none() => Target::default(),
                Answer::Plan(plan) => match self.verdict(subject, &round, plan, decisions).await? {
                    Verdict::Install { number, awaited } => {
                        let again = (!awaited.is_empty()).then_some(LOOK_AGAIN);
                        Target { number: Some(number), again, awaited, ..Target::default() }
                    }
                    Verdict::Wait { cause, awaited } => {
                        let Waits { reason, message, again, refusals } = cause;
                        let changes = difference(subject.current, plan);
                        let pending = Some(PendingDecision { reason: reason.to_string(), message, changes });
                        Target { pending, again, refusals, awaited, ..stays(subject, decisions) }
                    }
                    Verdict::Refuse(answer) => {
                        let target =
                            Target { again: [again, paced].into_iter().flatten().min(), ..stays(subject, decisions) };
                        return Ok(Decided { answer, catalogs, target });
                    }
                },
                Answer::RolledBack(number) => Target { number: Some(*number), ..Target::default() },
                _ => stays(subject, decisions),
            };
            again = [again, target.again, paced].into_iter().flatten().min();
            let (left_out, held, mut excluded) = match &answer {
                Answer::Plan(plan) => {
                    let (refusals, requests) = (&target.refusals, &subject.resolution.spec.packages);
                    let left_out = checks::left_out(refusals, plan, requests);
                    let held = checks::held(refusals, plan, requests, &left_out);
                    (left_out, held, checks::excluded(refusals, plan))
                }
                _ => (BTreeMap::new(), BTreeSet::new(), Vec::new()),
            };
            excluded.retain(|it| !round.excluded.contains(it));
            let is_known = left_out.keys().all(|it| round.refused.contains_key(it)) && held.is_subset(&round.held);
            let finds_nothing = excluded.is_empty() && is_known;
            if finds_nothing || round.number + 1 == ROUNDS {
                target.again = again;
                if matches!(answer, Answer::Plan(_)) {
                    self.preflights.forget_after(&subject.resolution.name_any(), round.number);
                    memory.forget_after(round.number);
                }
                let answer = noting(answer, &target.awaited);
                return Ok(Decided { answer, catalogs, target });
            }
            round.number += 1;
            round.refused.extend(left_out);
            round.held.extend(held);
            round.excluded.extend(excluded);
        }
    }

    /// The answer of the resolver, unless the spec names an earlier decision or suspends decisions.
    async fn chosen(&self, subject: Subject<'_>, round: &Round, decisions: &Decisions, memory: &mut Memory) -> Reply {
        let Subject { resolution, output, current } = subject;
        if let Some(number) = output.to_decision {
            let answer = if decisions.find(number).is_some() {
                Answer::RolledBack(number)
            } else {
                let kept: Vec<String> = decisions.numbers().iter().map(ToString::to_string).collect();
                let message = format!("decision {number} is not kept; kept are: {}", kept.join(", "));
                Answer::Failed { reason: Reason::DecisionUnavailable, message }
            };
            return Reply::of(answer);
        }
        if resolution.spec.suspend {
            return Reply::of(Answer::Suspended);
        }
        self.answer(resolution, (current, decisions), round, memory.answered_in(round.number)).await
    }

    /// Whether the set gets a plan now. The plan becomes a decision if it does.
    async fn verdict(
        &self,
        subject: Subject<'_>,
        round: &Round,
        plan: &Plan,
        decisions: &mut Decisions,
    ) -> Result<Verdict, ReconcileError> {
        let Subject { resolution, output, current } = subject;
        let before = current.or_else(|| decisions.newest()).map(|decision| &decision.manifests);
        let others = membership::members_of_others(&self.deployments, &set::deployment_name(&resolution.name_any()));
        let mut manifests = match Manifests::of(plan.set(), output, resolution.labels(), before, &others) {
            Ok(manifests) => manifests,
            Err(error) => {
                let reason = Reason::ContentLimitExceeded;
                return Ok(Verdict::Refuse(Answer::Failed { reason, message: error.to_string() }));
            }
        };
        let mut awaited = Vec::new();
        if let Some(current) = current {
            keep_refused(&mut manifests, plan, round, current);
            awaited = self.keep_given_up(resolution, current, &mut manifests).await?;
        }
        if current.is_none_or(|current| current.manifests != manifests) {
            let waiting = match current.map(|_| window(resolution)).transpose() {
                Ok(waiting) => waiting.flatten(),
                Err(message) => {
                    return Ok(Verdict::Refuse(Answer::Failed { reason: Reason::InvalidSpec, message }));
                }
            };
            if let Some(cause) = self.waits(subject, round, waiting, &manifests).await? {
                return Ok(Verdict::Wait { cause, awaited });
            }
        }
        let generation = resolution.metadata.generation.unwrap_or_default();
        let (maps, policy) = (self.config_maps(), digest(&self.policy(resolution)));
        let number = match decisions.newest().filter(|newest| newest.manifests == manifests) {
            Some(newest) => {
                let number = newest.number;
                decisions.confirm(&maps, generation, policy).await?;
                number
            }
            None => decisions.add(&maps, resolution, (manifests, policy)).await?,
        };
        Ok(Verdict::Install { number, awaited })
    }

    /// Members that the decision no longer has stay until others that need them have taken them over.
    async fn keep_given_up(
        &self,
        resolution: &Resolution,
        current: &Decision,
        manifests: &mut Manifests,
    ) -> Result<Vec<Awaited>, ReconcileError> {
        let kept: BTreeSet<String> = manifests.deployments().iter().map(kube::ResourceExt::name_any).collect();
        let members = current.members();
        let gone = members.iter().map(|member| (member.deployment_name(), &member.package));
        let gone: BTreeMap<String, &String> = gone.filter(|(name, _)| !kept.contains(name)).collect();
        let awaited = self.hand_over(resolution, |deployment| gone.contains_key(deployment)).await?;
        // With everything that they need: whether their new set needs that, too, is known once it has them.
        let awaited_packages = awaited.iter().filter_map(|it| gone.get(&it.deployment).copied());
        let dropped: BTreeSet<&String> = gone.values().copied().collect();
        for package in chandler_resolution::plan::with_needs(&members, awaited_packages) {
            if dropped.contains(&package) {
                manifests.keep(&package, &current.manifests);
            }
        }
        Ok(awaited)
    }

    /// Why a decision is not installed now: because of the checks of its members, or until the next maintenance window.
    async fn waits(
        &self,
        subject: Subject<'_>,
        round: &Round,
        window: Option<Waits>,
        manifests: &Manifests,
    ) -> Result<Option<Waits>, ReconcileError> {
        let membership = Membership::read(&self.sets, subject.resolution).await?;
        let taken_over = self.taken_over(subject.resolution).await?;
        let refusals = membership.taken(&self.deployments, manifests, &taken_over);
        if !refusals.is_empty() {
            let (reason, message) = (Reason::PreflightFailed, checks::summary(&refusals));
            return Ok(Some(Waits { reason, message, again: Some(CHECK_AGAIN), refusals }));
        }
        let (name, states) = (subject.resolution.name_any(), Arc::clone(&self.states));
        let occasion = Occasion {
            requested: subject.resolution.annotations().get(REQUESTED_AT_ANNOTATION).cloned(),
            kinds: Some(Digest::of_json(&self.cluster.info.get().await.api_kinds)),
        };
        let check =
            Check { resolution: &name, round: round.number, manifests, occasion: &occasion, taken_over: &taken_over };
        let handovers = &self.states.handovers;
        // Outside of the windows, a decision is checked only if members were refused before, so that they stay omitted, or if members are
        // taken over, since other Resolutions wait for that.
        if window.is_some() && taken_over.is_empty() && !self.preflights.is_refused(&self.installer, check) {
            return Ok(window);
        }
        let wake = {
            let name = name.clone();
            move || states.wake(&name)
        };
        Ok(match self.preflights.check(&self.installer, check, wake).await {
            Preflight::Passed => {
                handovers.checked(&name, taken_over.keys(), |_| false);
                window
            }
            Preflight::Running => {
                let message = "the members are being fetched and checked".to_owned();
                Some(Waits { reason: Reason::Preflighting, message, again: None, refusals: Vec::new() })
            }
            Preflight::Refused { refusals, again } => {
                let packages: BTreeSet<&String> = refusals.iter().flat_map(|refusal| &refusal.packages).collect();
                let members = manifests.members();
                let refused = members.iter().filter(|member| packages.contains(&member.package));
                let refused: BTreeSet<String> = refused.map(PlannedMember::deployment_name).collect();
                handovers.checked(&name, taken_over.keys(), |it| refused.contains(it));
                let message = checks::summary(&refusals);
                Some(Waits { reason: Reason::PreflightFailed, message, again: Some(again), refusals })
            }
        })
    }
}

/// What becomes of a plan.
enum Verdict {
    /// The set gets it.
    Install {
        /// The number of its decision.
        number: i64,
        /// Members that stay until others have taken them over.
        awaited: Vec<Awaited>,
    },
    /// The set stays as it is for now.
    Wait {
        cause: Waits,
        /// Members that would stay until others have taken them over.
        awaited: Vec<Awaited>,
    },
    /// It cannot be put into effect: the answer for the status.
    Refuse(Answer),
}

/// Why a decision is not installed now.
struct Waits {
    reason: Reason,
    message: String,
    /// When to look again.
    again: Option<Duration>,
    refusals: Vec<Refusal>,
}

/// What the set has, if nothing new is decided.
fn stays(subject: Subject<'_>, decisions: &Decisions) -> Target {
    let number = subject.current.map(|it| it.number).or_else(|| decisions.newest().map(|it| it.number));
    Target { number, ..Target::default() }
}

/// Optional members that the checks refused stay exactly as they are.
fn keep_refused(manifests: &mut Manifests, plan: &Plan, round: &Round, current: &Decision) {
    let before = current.members();
    let is_same =
        |one: &PlannedMember, other: &PlannedMember| (&one.package, &one.bundle) == (&other.package, &other.bundle);
    for member in plan.set().filter(|member| round.refused.contains_key(&member.package)) {
        if before.iter().any(|it| is_same(it, member)) {
            manifests.keep(&member.package, &current.manifests);
        }
    }
}

/// Whether a change waits for a maintenance window. The error is the message for the user.
fn window(resolution: &Resolution) -> Result<Option<Waits>, String> {
    let now = Timestamp::now();
    let windows = Windows::parse(&resolution.spec.maintenance_windows).map_err(|error| error.to_string())?;
    let (message, again) = match windows.at(now) {
        Allowed::Always | Allowed::Until(_) => return Ok(None),
        Allowed::From(start) => {
            let wait = Duration::try_from(start.duration_since(now)).unwrap_or_default().min(LONGEST_WAIT);
            // A second later, so that the window has begun by this clock.
            (format!("the next maintenance window begins at {start}"), Some(wait + Duration::from_secs(1)))
        }
        Allowed::Never => ("no maintenance window begins within two weeks".to_owned(), None),
    };
    Ok(Some(Waits { reason: Reason::OutsideMaintenanceWindow, message, again, refusals: Vec::new() }))
}

/// What a plan changes: a line for each package.
fn difference(current: Option<&Decision>, plan: &Plan) -> Vec<String> {
    let before = current.map(Decision::members).unwrap_or_default();
    let after: Vec<PlannedMember> = plan.set().cloned().collect();
    changes(&before, &after)
}
