//! The resolver's answer. The resolver is asked again only if something changed.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_api::{CatalogInUse, Reason, Resolution, ResolutionSpec, ResolveSetOutput};
use chandler_catalog::{IndexCatalogs, Indexes};
use chandler_core::Digest;
use chandler_decisions::account::requester_of;
use chandler_monitoring::ResolverOutcome;
use chandler_resolution::{
    Allowance, Installation, Observed, PlannedMember, Question, Settled,
    alternatives::alternatives,
    observed::CATALOGS,
    optional::LINES,
    plan,
    platform::{InForce, Policy},
    question, settle_within,
    status::Answer,
};
use chandler_resolver::{Answer as Resolved, Cluster, Explanation, Kind, Problem, ResolveError, platform::OpenShift};
use chandler_turns::{Requester, on_background_thread};
use kube::ResourceExt as _;

use super::{
    decide::Round,
    decisions::{Decision, Decisions},
    missing::Missing,
    observed::ObserveError,
    reconciler::{Resolutions, set_output},
};
use crate::catalog::KnownCatalog;

/// The controller waits this many times as much processor time as the last answer took before it asks again because the cluster changed: at
/// most a tenth of the time is spent on answers. While a set is installed, each member changes the question, and hardly ever the answer.
const PACE: u32 = 9;
/// The longest such wait.
const LONGEST_PACE: Duration = Duration::from_mins(1);

/// How long the controller waits before it tries again to read a catalog that could not be read.
const RETRY: Duration = Duration::from_secs(30);

/// The answer to a question, kept until another one is asked.
pub(super) struct Answered {
    /// The question and the catalogs.
    key: Key,
    settled: Settled,
    /// What the answer meant when it was found.
    meant: Answer,
    /// Until when the answer also holds for questions that differ only by the state of the cluster.
    stands_until: Instant,
    /// What would be chosen if a part of the spec were different.
    pub(super) alternatives: Vec<String>,
}

/// Digests of a question.
#[derive(PartialEq)]
struct Key {
    /// What is wanted and offered.
    wanted: Digest,
    /// The state of the cluster.
    there: Digest,
}

/// What is known about a spec.
pub(super) struct Reply {
    pub(super) answer: Answer,
    /// The catalogs that were read.
    pub(super) catalogs: Vec<CatalogInUse>,
    /// When to ask again: the answer is for an earlier state of the cluster, or a catalog could not be read.
    pub(super) again: Option<Duration>,
}

impl Reply {
    /// An answer for which no catalog was read.
    pub(super) fn of(answer: Answer) -> Self {
        Self { answer, catalogs: Vec::new(), again: None }
    }
}

impl Resolutions {
    /// The answer for a spec. `current` is the decision that the set has, among those that are kept; `round` says what the checks of the
    /// members found.
    pub(super) async fn answer(
        &self,
        resolution: &Resolution,
        (current, decisions): (Option<&Decision>, &Decisions),
        round: &Round,
        memory: &mut Option<Arc<Answered>>,
    ) -> Reply {
        let policy = self.policy(resolution);
        let policy = match &*policy {
            Ok(policy) => policy.as_ref(),
            Err(invalid) => {
                return Reply::of(Answer::Failed { reason: Reason::InvalidPolicy, message: invalid.to_string() });
            }
        };
        let spec = &resolution.spec;
        let selects = question::selected(spec.catalogs.as_ref());
        let known = self.catalogs.known();
        let selected: Vec<KnownCatalog> =
            known.into_iter().filter(|it| selects.matches(&it.source.name, &it.source.labels)).collect();
        let missing = Missing::among(&selected);
        let read: Vec<&KnownCatalog> = selected.iter().filter(|it| it.digest.is_some()).collect();
        let catalogs = read.iter().filter_map(|it| {
            let digest = it.digest.as_ref()?.to_string();
            Some(CatalogInUse { name: it.source.name.clone(), digest, stale: it.is_stale })
        });
        let catalogs: Vec<CatalogInUse> = catalogs.collect();
        let sources: Vec<_> = read.iter().map(|it| it.source.clone()).collect();

        let taken_over = self.taken_over(resolution).await.map_err(ObserveError::from);
        let observed = self.observe(resolution, (current, decisions), &read).await;
        let observed = match observed.and_then(|observed| Ok((observed, taken_over?))) {
            Ok((mut observed, taken_over)) => {
                observed.take_over(&taken_over);
                observed
            }
            Err(error) => {
                let reason = match &error {
                    ObserveError::Record(_) => Reason::RecordUnavailable,
                    ObserveError::Catalog(_) => Reason::CatalogsNotReady,
                };
                let message = error.to_string();
                return Reply { answer: Answer::Failed { reason, message }, catalogs, again: Some(RETRY) };
            }
        };
        let limited = policy.map(|policy| within(policy, spec));
        let spec = limited.as_ref().unwrap_or(spec);
        let question = question::ask(spec, &observed.members, &observed.others, &sources, self.cluster().await);
        let question = match question {
            Ok(mut question) => {
                question.refused.clone_from(&round.refused);
                question.problem.excluded.clone_from(&round.excluded);
                question.hold(&round.held);
                if let Some(policy) = policy {
                    question.constrain(&format!("PlatformPolicy {}", policy.name), &policy.constraints);
                }
                question
            }
            Err(refused) => {
                let mut explanation: Vec<String> = refused.iter().map(ToString::to_string).collect();
                let message = explanation.join("; ");
                explanation.extend(observed.notes(&requested(resolution)));
                let answer = Answer::Refused { message, explanation };
                return Reply { answer, catalogs, again: None };
            }
        };
        // It is unknown what a catalog offers that is not ready: nothing is removed because of that.
        let may_remove = missing.names.is_empty();
        let key = Key::of(&question, resolution.metadata.generation, may_remove, &catalogs);
        if let Some(answered) = memory {
            if let Some(again) = answered.stands_for(&key, Instant::now()) {
                return Reply { answer: answered.meant.clone(), catalogs, again: Some(again) };
            }
            if answered.key == key {
                let answer = conclude(&question, &observed, current, (resolution, policy), answered, &missing);
                return Reply { answer, catalogs, again: None };
            }
        }
        let mut answered = self.ask(self.requester(resolution), key, (question.clone(), may_remove), &read).await;
        let answer = conclude(&question, &observed, current, (resolution, policy), &answered, &missing);
        answered.meant = answer.clone();
        // A catalog that cannot be read now may be readable in a moment.
        let again = matches!(answered.settled.answer, Err(ResolveError::Catalog(_))).then_some(RETRY);
        *memory = again.is_none().then(|| Arc::new(answered));
        Reply { answer, catalogs, again }
    }

    /// Asks the resolver, which may take seconds, when it is the requester's turn.
    async fn ask(
        &self,
        requester: Requester,
        key: Key,
        (question, may_remove): (Question, bool),
        catalogs: &[&KnownCatalog],
    ) -> Answered {
        let indexes = self.indexes.clone();
        let opened: Vec<_> = catalogs.iter().map(|it| (it.source.clone(), it.digest.clone())).collect();
        let problem = question.problem.clone();
        let failed = move |catalog: String, message: String| {
            let error = ResolveError::Catalog(chandler_resolver::CatalogError { catalog, message });
            Settled { problem, staying: BTreeSet::new(), left_out: Vec::new(), answer: Err(error) }
        };
        let interrupted = failed.clone();
        let permit = self.turns.acquire(&requester).await;
        let work = move || {
            let _permit = permit;
            let mut catalogs = IndexCatalogs::new();
            for (source, digest) in opened {
                let Some(digest) = digest else { continue };
                match open(&indexes, &digest) {
                    Ok(index) => catalogs = catalogs.with(source, Arc::new(index)),
                    Err(message) => return (failed(source.name, message), Vec::new(), 0),
                }
            }
            let allowance = Allowance::new(&question.problem.budget);
            let ask = |problem: &Problem| allowance.resolve(problem, &catalogs);
            let settled = settle_within(&question, may_remove, ask);
            let alternatives = alternatives(&settled.problem, &settled.answer, ask);
            (settled, alternatives, allowance.taken())
        };
        let failed = |message: String| ((interrupted(String::new(), message), Vec::new(), 0), Duration::ZERO);
        let ((settled, alternatives, steps), taken) = match on_background_thread("resolver", work).await {
            Ok(Some(asked)) => asked,
            Ok(None) => failed("the resolver panicked: the controller's log says more".to_owned()),
            Err(error) => failed(format!("no thread for the resolver could be started: {error}")),
        };
        self.cluster.metrics.answered(outcome(&settled.answer), taken, steps);
        let stands_until = Instant::now() + (taken * PACE).min(LONGEST_PACE);
        Answered { key, settled, meant: Answer::None, stands_until, alternatives }
    }

    /// The policy for a Resolution: the one of PlatformOperators has a policy, also if a user created it.
    pub(super) fn policy(&self, resolution: &Resolution) -> Arc<InForce> {
        if resolution.name_any() == self.cluster.options.platform_resolution {
            return self.policies.in_force();
        }
        Arc::new(Ok(None))
    }

    /// On whose behalf the resolver works. All Resolutions that install nothing take one turn.
    pub(super) fn requester(&self, resolution: &Resolution) -> Requester {
        match set_output(resolution.spec.output.as_ref()) {
            Some(ResolveSetOutput { service_account, install_namespace, .. }) => {
                requester_of(service_account.as_ref(), install_namespace, &self.cluster.options.accounts)
            }
            None => Requester::new("", &resolution.name_any()),
        }
    }

    async fn cluster(&self) -> Cluster {
        let info = self.cluster.info.get().await;
        let kubernetes = Some(info.kubernetes_version.clone()).filter(|version| !version.is_empty());
        // A version that cannot be read limits nothing; the resolver would refuse the question.
        let openshift = info.openshift_version.clone().filter(|version| OpenShift::parse(version).is_some());
        Cluster { kubernetes, openshift, kinds: info.api_kinds.iter().filter_map(|it| Kind::parse(it)).collect() }
    }
}

impl Key {
    /// The generation is the spec's.
    fn of(question: &Question, generation: Option<i64>, may_remove: bool, catalogs: &[CatalogInUse]) -> Self {
        let Question { problem, optional, refused, taken_over, held, invariants, .. } = question;
        let invariants = invariants.as_ref().map(|it| it.count);
        let Problem { mode, required, constraints, installed, catalogs: sources, cluster, policy, .. } = problem;
        let Problem { contents, excluded, budget, .. } = problem;
        let Cluster { kubernetes, openshift, kinds } = cluster;
        let wanted = (mode, required, constraints, sources, policy, contents, excluded, budget);
        let digests: Vec<&String> = catalogs.iter().map(|it| &it.digest).collect();
        let asked =
            (generation, optional, refused, (taken_over, held, invariants), may_remove, digests, kubernetes, openshift);
        // Installed bundles add kinds.
        Self { wanted: Digest::of_json(&(wanted, asked)), there: Digest::of_json(&(installed, kinds)) }
    }
}

impl Answered {
    /// How long this still answers a question that differs only by the state of the cluster.
    fn stands_for(&self, key: &Key, now: Instant) -> Option<Duration> {
        let differs = self.key.wanted == key.wanted && self.key.there != key.there;
        differs.then(|| self.stands_until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }
}

pub(super) fn open(indexes: &Indexes, digest: &Digest) -> Result<chandler_catalog::Index, String> {
    match indexes.get(digest) {
        Ok(Some(index)) => Ok(index),
        Ok(None) => Err("its index is gone from the cache; the controller builds it anew".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A spec within the limits of a policy.
fn within(policy: &Policy, spec: &ResolutionSpec) -> ResolutionSpec {
    ResolutionSpec { packages: policy.limited(&spec.packages), ..spec.clone() }
}

/// An answer in metrics.
fn outcome(answer: &Result<Resolved, ResolveError>) -> ResolverOutcome {
    match answer {
        Ok(Resolved::Decision(_)) => ResolverOutcome::Decided,
        Ok(Resolved::Refusal(_)) => ResolverOutcome::Refused,
        Err(ResolveError::BudgetExceeded(_)) => ResolverOutcome::BudgetExceeded,
        Err(_) => ResolverOutcome::Failed,
    }
}

/// The digest of the policy in force.
pub(super) fn digest(policy: &InForce) -> Option<String> {
    policy.as_ref().ok()?.as_ref().map(digest_of)
}

fn digest_of(policy: &Policy) -> String {
    policy.digest().to_string()
}

/// What an answer means for the set.
fn conclude(
    question: &Question,
    observed: &Observed,
    current: Option<&Decision>,
    (resolution, policy): (&Resolution, Option<&Policy>),
    answered: &Answered,
    missing: &Missing<'_>,
) -> Answer {
    let mut question = answered.settled.question(question);
    if !missing.names.is_empty() {
        let note = missing.to_string();
        for left_out in &mut question.left_out {
            left_out.explanation.truncate(LINES - 1);
            left_out.explanation.push(note.clone());
        }
    }
    for left_out in &mut question.left_out {
        let limits = policy.and_then(|policy| policy.limits(&left_out.package));
        if let Some(limits) = limits.filter(|_| left_out.reason == Reason::NotSatisfiable.as_str()) {
            left_out.explanation.truncate(LINES - 1);
            left_out.explanation.push(limits);
        }
    }
    match &answered.settled.answer {
        Ok(Resolved::Decision(decision)) => {
            let members = current.map(Decision::members).unwrap_or_default();
            let is_of_this_spec = current.is_some_and(|it| {
                Some(it.generation) == resolution.metadata.generation && it.policy == policy.map(digest_of)
            });
            let current = plan::Current { members: &members, is_of_this_spec };
            let installed: Vec<Installation> = observed.members.iter().chain(&observed.others).cloned().collect();
            match plan::plan(decision, &question, &installed, &current) {
                Ok(plan) => planned(plan, observed, current.members, resolution, missing),
                Err(error) => Answer::Failed { reason: Reason::CatalogInvalid, message: error.to_string() },
            }
        }
        Ok(Resolved::Refusal(explanation)) if !missing.names.is_empty() => not_ready(&explanation.message, missing),
        Ok(Resolved::Refusal(explanation)) => refused(explanation, observed, resolution),
        Err(error) => {
            let reason = match error {
                ResolveError::Catalog(_) => Reason::CatalogsNotReady,
                ResolveError::Ambiguous { .. } => Reason::NotSatisfiable,
                ResolveError::BudgetExceeded(_) => Reason::ContentLimitExceeded,
                _ => Reason::InvalidSpec,
            };
            Answer::Failed { reason, message: error.to_string() }
        }
    }
}

/// The plan, with notes for users about objects that do not count.
fn planned(
    mut plan: plan::Plan,
    observed: &Observed,
    before: &[PlannedMember],
    resolution: &Resolution,
    missing: &Missing<'_>,
) -> Answer {
    if !missing.names.is_empty() {
        let is_new = |package: &str| !before.iter().any(|member| member.package == package);
        let claim = plan.set().filter(|it| is_new(&it.package)).find_map(|it| observed.claim(&it.package));
        // Whether it counts is known only when all catalogs are.
        if let Some(claim) = claim {
            return not_ready(&claim.does_not_count(CATALOGS), missing);
        }
        if let Some(why) = missing.hold_back(&mut plan, before) {
            return not_ready(&why, missing);
        }
    }
    let mut packages = requested(resolution);
    packages.extend(plan.members.iter().map(|member| member.package.as_str()));
    let notes = observed.notes(&packages);
    plan.notes.extend(notes);
    Answer::Plan(plan)
}

/// The packages that the spec names.
fn requested(resolution: &Resolution) -> BTreeSet<&str> {
    resolution.spec.packages.iter().map(|request| request.name.as_str()).collect()
}

fn not_ready(message: &str, missing: &Missing<'_>) -> Answer {
    let message = format!("{message}; {missing}");
    Answer::Failed { reason: Reason::CatalogsNotReady, message }
}

fn refused(explanation: &Explanation, observed: &Observed, resolution: &Resolution) -> Answer {
    let lines = explanation.lines.iter().map(ToString::to_string).chain(explanation.near_misses.iter().cloned());
    let mut lines: Vec<String> = lines.collect();
    let words: BTreeSet<&str> = lines.iter().flat_map(|line| words(line)).collect();
    let named = observed.claims.iter().map(|claim| claim.package.as_str()).filter(|package| words.contains(package));
    let notes = observed.notes(&requested(resolution).into_iter().chain(named).collect());
    lines.extend(notes);
    Answer::Refused { message: explanation.message.clone(), explanation: lines }
}

/// The words of a line; some of them are names of packages.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '.' | '_')).map(|word| word.trim_matches('.'))
}

#[cfg(test)]
mod tests {
    use chandler_resolver::Installed;

    use super::*;

    #[test]
    fn an_answer_stands_for_a_while_if_only_what_the_cluster_has_is_different() {
        let now = Instant::now();
        let asked = Question::default();
        let key = |question: &Question, generation: i64| Key::of(question, Some(generation), true, &[]);
        let answered = Answered {
            key: key(&asked, 1),
            settled: Settled {
                problem: Problem::default(),
                staying: BTreeSet::new(),
                left_out: Vec::new(),
                answer: Ok(Resolved::Refusal(Explanation::default())),
            },
            meant: Answer::None,
            stands_until: now + Duration::from_secs(3),
            alternatives: Vec::new(),
        };
        let mut installed = asked.clone();
        installed.problem.installed.push(Installed { package: "app".into(), ..Installed::default() });
        let mut served = asked.clone();
        served.problem.cluster.kinds.extend(Kind::parse("example.com/v1/Widget"));
        assert_eq!(served.problem.cluster.kinds.len(), 1);
        for other in [&installed, &served] {
            assert_eq!(answered.stands_for(&key(other, 1), now), Some(Duration::from_secs(3)));
            assert_eq!(
                answered.stands_for(&key(other, 1), now + Duration::from_secs(3)),
                None,
                "it is time to ask again"
            );
            assert_eq!(answered.stands_for(&key(other, 2), now), None, "the spec is another one");
        }
        assert_eq!(answered.stands_for(&key(&asked, 1), now), None, "the same question needs no wait");
        let mut wanted = installed.clone();
        wanted.optional.push("app".into());
        let mut upgraded = installed.clone();
        upgraded.problem.cluster.kubernetes = Some("1.36.0".into());
        for other in [&wanted, &upgraded] {
            assert_eq!(answered.stands_for(&key(other, 1), now), None, "the question is another one");
        }
    }
}
