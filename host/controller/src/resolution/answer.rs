//! What the resolver says, asked again only if something changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_api::{BundleDeployment, CatalogInUse, Reason, Resolution, names::OWNER_NAME_LABEL};
use chandler_catalog::Indexes;
use chandler_catalogs::IndexCatalogs;
use chandler_core::Digest;
use chandler_resolution::{
    Installation, Question, Settled, alternatives::alternatives, optional::LINES, plan, question, settle,
    status::Answer,
};
use chandler_resolver::{
    Answer as Resolved, Catalogs as _, Cluster, Decision as Chosen, Explanation, Kind, Problem, ResolveError,
    platform::OpenShift, resolve,
};
use kube::ResourceExt as _;

use super::{decisions::Decision, reconciler::Resolutions, set};
use crate::catalog::KnownCatalog;

/// The controller waits this many times as long as the last answer took before it asks again because of what the cluster has: at most a
/// tenth of the time goes to asking. While a set is installed, each member changes the question, and hardly ever the answer.
const PACE: u32 = 9;
/// The longest such wait.
const LONGEST_PACE: Duration = Duration::from_mins(1);

/// How long the controller waits before it reads a catalog again that could not be read.
const RETRY: Duration = Duration::from_secs(30);

/// The answer to a question, kept until another one is asked.
pub(super) struct Answered {
    /// The question and the catalogs.
    key: Key,
    settled: Settled,
    /// What the answer meant when it was found.
    meant: Answer,
    /// Until when the answer also stands for questions that differ only by what the cluster has.
    stands_until: Instant,
    /// The images of the first steps of upgrades, by package and bundle.
    images: BTreeMap<(String, String), String>,
    /// What would be chosen if a part of the spec were different.
    pub(super) alternatives: Vec<String>,
}

/// Digests of a question.
#[derive(PartialEq)]
struct Key {
    /// What is wanted and offered.
    wanted: Digest,
    /// What the cluster has.
    there: Digest,
}

/// What is known for a spec.
pub(super) struct Reply {
    pub(super) answer: Answer,
    /// The catalogs that were read.
    pub(super) catalogs: Vec<CatalogInUse>,
    /// When to ask again: the answer is for what the cluster had a moment ago, or a catalog could not be read.
    pub(super) again: Option<Duration>,
}

impl Reply {
    /// An answer that no catalog was read for.
    pub(super) fn of(answer: Answer) -> Self {
        Self { answer, catalogs: Vec::new(), again: None }
    }
}

/// What is installed, as one Resolution sees it.
#[derive(Debug, Default)]
struct Observed {
    members: Vec<Installation>,
    others: Vec<Installation>,
}

impl Resolutions {
    /// The answer for a spec. `current` is the decision that the set has, `refused` are the optional packages that the checks of the members
    /// refused.
    pub(super) async fn answer(
        &self,
        resolution: &Resolution,
        current: Option<&Decision>,
        refused: &BTreeMap<String, Vec<String>>,
        memory: &mut Option<Arc<Answered>>,
    ) -> Reply {
        let spec = &resolution.spec;
        let selects = question::selected(spec.catalogs.as_ref());
        let known = self.context.catalogs.known();
        let selected: Vec<KnownCatalog> =
            known.into_iter().filter(|it| selects.matches(&it.source.name, &it.source.labels)).collect();
        let missing: Vec<&str> =
            selected.iter().filter(|it| it.digest.is_none()).map(|it| it.source.name.as_str()).collect();
        let read: Vec<&KnownCatalog> = selected.iter().filter(|it| it.digest.is_some()).collect();
        let catalogs = read.iter().filter_map(|it| {
            let digest = it.digest.as_ref()?.to_string();
            Some(CatalogInUse { name: it.source.name.clone(), digest, stale: it.is_stale })
        });
        let catalogs: Vec<CatalogInUse> = catalogs.collect();
        let sources: Vec<_> = read.iter().map(|it| it.source.clone()).collect();

        let observed = self.observe(resolution, current);
        let question = question::ask(spec, &observed.members, &observed.others, &sources, self.cluster().await);
        let question = match question {
            Ok(question) => Question { refused: refused.clone(), ..question },
            Err(refused) => {
                let explanation: Vec<String> = refused.iter().map(ToString::to_string).collect();
                let answer = Answer::Refused { message: explanation.join("; "), explanation };
                return Reply { answer, catalogs, again: None };
            }
        };
        // What a catalog offers that is not ready is unknown: nothing is removed for want of it.
        let may_remove = missing.is_empty();
        let key = Key::of(&question, resolution.metadata.generation, may_remove, &catalogs);
        if let Some(answered) = memory {
            if let Some(again) = answered.stands_for(&key, Instant::now()) {
                return Reply { answer: answered.meant.clone(), catalogs, again: Some(again) };
            }
            if answered.key == key {
                let answer = conclude(&question, &observed, current, resolution, answered, &missing);
                return Reply { answer, catalogs, again: None };
            }
        }
        let mut answered = self.ask(key, question.clone(), may_remove, &read).await;
        let answer = conclude(&question, &observed, current, resolution, &answered, &missing);
        answered.meant = answer.clone();
        // What cannot be read now may be there in a moment.
        let again = matches!(answered.settled.answer, Err(ResolveError::Catalog(_))).then_some(RETRY);
        *memory = again.is_none().then(|| Arc::new(answered));
        Reply { answer, catalogs, again }
    }

    /// Asks the resolver, which may take a second.
    async fn ask(&self, key: Key, question: Question, may_remove: bool, catalogs: &[&KnownCatalog]) -> Answered {
        let began = Instant::now();
        let indexes = self.indexes.clone();
        let opened: Vec<_> = catalogs.iter().map(|it| (it.source.clone(), it.digest.clone())).collect();
        let problem = question.problem.clone();
        let failed = move |catalog: String, message: String| {
            let error = ResolveError::Catalog(chandler_resolver::CatalogError { catalog, message });
            Settled { problem, staying: BTreeSet::new(), left_out: Vec::new(), answer: Err(error) }
        };
        let interrupted = failed.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let mut catalogs = IndexCatalogs::new();
            for (source, digest) in opened {
                let Some(digest) = digest else { continue };
                match open(&indexes, &digest) {
                    Ok(index) => catalogs = catalogs.with(source, Arc::new(index)),
                    Err(message) => return (failed(source.name, message), BTreeMap::new(), Vec::new()),
                }
            }
            let settled = settle(&question, may_remove, |problem| resolve(problem, &catalogs));
            let images = settled.answer.as_ref().ok().and_then(Resolved::decision).map(|it| images(it, &catalogs));
            let ask = |problem: &Problem| resolve(problem, &catalogs);
            let alternatives = alternatives(&settled.problem, &settled.answer, ask);
            (settled, images.unwrap_or_default(), alternatives)
        });
        let (settled, images, alternatives) = match asked.await {
            Ok(asked) => asked,
            Err(error) => {
                let settled = interrupted(String::new(), format!("the resolver was interrupted: {error}"));
                (settled, BTreeMap::new(), Vec::new())
            }
        };
        let now = Instant::now();
        let stands_until = now + ((now - began) * PACE).min(LONGEST_PACE);
        Answered { key, settled, meant: Answer::None, stands_until, images, alternatives }
    }

    /// What the BundleDeployments of the cluster have.
    fn observe(&self, resolution: &Resolution, current: Option<&Decision>) -> Observed {
        let set = set::deployment_name(&resolution.name_any());
        let of_set: BTreeMap<String, _> = current
            .iter()
            .flat_map(|decision| decision.members())
            .map(|member| (chandler_resolution::manifests::deployment_name(&member.package), member))
            .collect();
        let mut observed = Observed::default();
        let is_live = |deployment: &&BundleDeployment| deployment.metadata.deletion_timestamp.is_none();
        let all = self.context.deployments.state();
        for deployment in all.iter().filter_map(|guarded| guarded.0.as_ref().ok()).filter(is_live) {
            let Some(mut installation) = Installation::of(deployment) else { continue };
            if deployment.labels().get(OWNER_NAME_LABEL) != Some(&set) {
                observed.others.push(installation);
            } else if let Some(member) = of_set.get(&installation.deployment) {
                // The set knows which bundle of a catalog it installed, whatever the bundle calls itself.
                if installation.bundle.version == member.version || installation.bundle.package != member.package {
                    installation.bundle.package.clone_from(&member.package);
                    installation.bundle.name.clone_from(&member.bundle);
                    installation.bundle.version.clone_from(&member.version);
                }
                installation.bundle.catalog.clone_from(&member.catalog);
                observed.members.push(installation);
            }
        }
        observed.others.sort_by(|one, other| one.deployment.cmp(&other.deployment));
        observed.members.sort_by(|one, other| one.deployment.cmp(&other.deployment));
        observed
    }

    async fn cluster(&self) -> Cluster {
        let info = self.context.cluster_info.get().await;
        let kubernetes = Some(info.kubernetes_version.clone()).filter(|version| !version.is_empty());
        // A version that cannot be read limits nothing; the resolver would refuse the question.
        let openshift = info.openshift_version.clone().filter(|version| OpenShift::parse(version).is_some());
        Cluster { kubernetes, openshift, kinds: info.api_kinds.iter().filter_map(|it| Kind::parse(it)).collect() }
    }
}

impl Key {
    /// The generation is that of the spec.
    fn of(question: &Question, generation: Option<i64>, may_remove: bool, catalogs: &[CatalogInUse]) -> Self {
        let Question { problem, optional, refused, .. } = question;
        let Problem { mode, required, constraints, installed, catalogs: sources, cluster, policy, contents, budget } =
            problem;
        let Cluster { kubernetes, openshift, kinds } = cluster;
        let wanted = (mode, required, constraints, sources, policy, contents, budget);
        let digests: Vec<&String> = catalogs.iter().map(|it| &it.digest).collect();
        let asked = (generation, optional, refused, may_remove, digests, kubernetes, openshift);
        // What is installed brings kinds.
        Self { wanted: Digest::of_json(&(wanted, asked)), there: Digest::of_json(&(installed, kinds)) }
    }
}

impl Answered {
    /// How long this is still the answer to a question that differs only by what the cluster has.
    fn stands_for(&self, key: &Key, now: Instant) -> Option<Duration> {
        let differs = self.key.wanted == key.wanted && self.key.there != key.there;
        differs.then(|| self.stands_until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }
}

fn open(indexes: &Indexes, digest: &Digest) -> Result<chandler_catalog::Index, String> {
    match indexes.get(digest) {
        Ok(Some(index)) => Ok(index),
        Ok(None) => Err("its index is gone from the cache; the controller builds it anew".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The images of the first steps of upgrades.
fn images(decision: &Chosen, catalogs: &IndexCatalogs) -> BTreeMap<(String, String), String> {
    let mut images = BTreeMap::new();
    for member in &decision.members {
        let Some(step) = member.steps.first().filter(|step| step.name != member.name) else { continue };
        let read = |source: chandler_resolver::Source| catalogs.package(&source.name, &member.package).ok().flatten();
        let image = |package: Arc<chandler_resolver::Package>| {
            package.bundles.get(&step.name).map(|bundle| bundle.image.clone()).filter(|image| !image.is_empty())
        };
        if let Some(image) = catalogs.sources().into_iter().filter_map(read).find_map(image) {
            images.insert((member.package.clone(), step.name.clone()), image);
        }
    }
    images
}

/// What an answer means for the set.
fn conclude(
    question: &Question,
    observed: &Observed,
    current: Option<&Decision>,
    resolution: &Resolution,
    answered: &Answered,
    missing: &[&str],
) -> Answer {
    let not_ready = |message: &str| Answer::Failed {
        reason: Reason::CatalogsNotReady,
        message: format!("{message}; catalogs that are not ready: {}", missing.join(", ")),
    };
    let mut question = answered.settled.question(question);
    if !missing.is_empty() {
        let note = format!("catalogs that are not ready: {}", missing.join(", "));
        for left_out in &mut question.left_out {
            left_out.explanation.truncate(LINES - 1);
            left_out.explanation.push(note.clone());
        }
    }
    match &answered.settled.answer {
        Ok(Resolved::Decision(decision)) => {
            let members = current.map(Decision::members).unwrap_or_default();
            let is_of_this_spec = current.is_some_and(|it| Some(it.generation) == resolution.metadata.generation);
            let current = plan::Current { members: &members, is_of_this_spec };
            let installed: Vec<Installation> = observed.members.iter().chain(&observed.others).cloned().collect();
            let image =
                |package: &str, bundle: &str| answered.images.get(&(package.to_owned(), bundle.to_owned())).cloned();
            match plan::plan(decision, &question, &installed, &current, image) {
                Ok(plan) => Answer::Plan(plan),
                Err(error) => Answer::Failed { reason: Reason::CatalogInvalid, message: error.to_string() },
            }
        }
        Ok(Resolved::Refusal(explanation)) if !missing.is_empty() => not_ready(&explanation.message),
        Ok(Resolved::Refusal(explanation)) => refused(explanation),
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

fn refused(explanation: &Explanation) -> Answer {
    let lines = explanation.lines.iter().map(ToString::to_string).chain(explanation.near_misses.iter().cloned());
    Answer::Refused { message: explanation.message.clone(), explanation: lines.collect() }
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
            images: BTreeMap::new(),
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
