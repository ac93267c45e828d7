//! All members of a decision are fetched, rendered and checked before the first of them is written.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use chandler_api::BundleDeployment;
use chandler_core::{Digest, ObjectKey, Release};
use chandler_resolution::{Manifests, checks::Refusal, installation::is_ready, manifests};
use chandler_rollout::ChangeKind;
use chandler_runtime::Jobs;
use futures::StreamExt as _;
use kube::ResourceExt as _;

use crate::{
    bundle_deployment::{Planned, changes},
    context::Context,
};

/// How many members are fetched and rendered at once.
const AT_ONCE: usize = 4;
/// The most refusals of one member, and the most objects that several members would create.
const REPORTED: usize = 20;
/// The most rounds of a reconcile. One or two are usually enough: a round finds all refusals of its members.
pub(super) const ROUNDS: usize = 10;
/// How long members that were refused wait for the next check. A permission that is granted and an image that is pushed change no object
/// that the controller watches.
const CHECK_AGAIN: Duration = Duration::from_secs(30);

/// The checks of the Resolutions: a job for each round of each.
#[derive(Default)]
pub(super) struct Preflights {
    jobs: Jobs<Vec<Refusal>>,
    /// What was refused, by the name of the job.
    refused: Mutex<HashMap<String, Refused>>,
}

/// What was refused, and when.
#[derive(Clone)]
struct Refused {
    inputs: Digest,
    refusals: Vec<Refusal>,
    at: Instant,
}

/// The decision that is checked.
#[derive(Clone, Copy)]
pub(super) struct Check<'a> {
    pub(super) resolution: &'a str,
    pub(super) round: usize,
    pub(super) manifests: &'a Manifests,
}

/// What is known of the checks of a decision.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Preflight {
    /// Nothing refuses the members.
    Passed,
    /// They are being fetched, rendered and checked.
    Running,
    /// Why members would be refused.
    Refused {
        /// At least one.
        refusals: Vec<Refusal>,
        /// When they are checked again.
        again: Duration,
    },
}

impl Preflights {
    /// Checks the members of a decision that are new or changed. While that takes longer, `wake` is called when it ends. What was
    /// refused stays refused until a later check says otherwise.
    pub(super) async fn check(
        &self,
        context: &Arc<Context>,
        check: Check<'_>,
        wake: impl FnOnce() + Send + 'static,
    ) -> Preflight {
        let members = unsettled(context, check.manifests);
        let job = job(check.resolution, check.round);
        if members.is_empty() {
            self.refused().remove(&job);
            return Preflight::Passed;
        }
        let inputs = inputs(context, check.manifests, &members);
        let known = self.known(&job, &inputs);
        if let Some(known) = &known
            && let Some(again) = CHECK_AGAIN.checked_sub(known.at.elapsed())
        {
            return Preflight::Refused { refusals: known.refusals.clone(), again };
        }
        let context = Arc::clone(context);
        let refusals = match self.jobs.outcome(&job, &inputs, move || refusals(context, members), wake).await {
            Some(Ok(refusals)) => refusals,
            Some(Err(_)) => vec![Refusal {
                packages: Vec::new(),
                message: "the controller panicked while it checked the members: its log says more".to_owned(),
            }],
            None => {
                let refused = |known: Refused| Preflight::Refused { refusals: known.refusals, again: CHECK_AGAIN };
                return known.map_or(Preflight::Running, refused);
            }
        };
        if refusals.is_empty() {
            self.refused().remove(&job);
            return Preflight::Passed;
        }
        let refused = Refused { inputs, refusals: refusals.clone(), at: Instant::now() };
        self.refused().insert(job, refused);
        Preflight::Refused { refusals, again: CHECK_AGAIN }
    }

    /// Whether the last check of the same decision refused members.
    pub(super) fn is_refused(&self, context: &Context, check: Check<'_>) -> bool {
        let members = unsettled(context, check.manifests);
        !members.is_empty()
            && self.known(&job(check.resolution, check.round), &inputs(context, check.manifests, &members)).is_some()
    }

    /// Ends the checks of the rounds after this one.
    pub(super) fn forget_after(&self, resolution: &str, round: usize) {
        for later in round + 1..ROUNDS {
            let job = job(resolution, later);
            self.jobs.end(&job);
            self.refused().remove(&job);
        }
    }

    /// Ends the checks of a Resolution.
    pub(super) fn end(&self, resolution: &str) {
        for round in 0..ROUNDS {
            self.refused().remove(&job(resolution, round));
        }
        self.jobs.end(resolution);
    }

    /// What was refused for the same inputs.
    fn known(&self, job: &str, inputs: &Digest) -> Option<Refused> {
        self.refused().get(job).filter(|known| known.inputs == *inputs).cloned()
    }

    fn refused(&self) -> MutexGuard<'_, HashMap<String, Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of the job of a round.
fn job(resolution: &str, round: usize) -> String {
    format!("{resolution}/{round}")
}

/// A member that is not installed as its manifest says.
struct Unsettled {
    member: BundleDeployment,
    /// Whether its BundleDeployment has to be written. One that has been written and is not ready yet is only rendered: what it brings
    /// counts as served.
    is_changed: bool,
}

/// The members that are not installed as their manifests say; none if nothing has to be written.
fn unsettled(context: &Context, manifests: &Manifests) -> Vec<Unsettled> {
    let unsettled = |member: BundleDeployment| match context.deployment(&member.name_any()) {
        Some(stored) if !changes(&member, &stored) => {
            (!is_ready(&stored)).then_some(Unsettled { member, is_changed: false })
        }
        _ => Some(Unsettled { member, is_changed: true }),
    };
    let members: Vec<Unsettled> = manifests.deployments().into_iter().filter_map(unsettled).collect();
    if members.iter().any(|it| it.is_changed) { members } else { Vec::new() }
}

/// What the checks depend on, but for the objects of the cluster. The state of the members is not part of it: it changes all the time
/// while they are installed.
fn inputs(context: &Context, manifests: &Manifests, members: &[Unsettled]) -> Digest {
    let approved = members.iter().map(|Unsettled { member, .. }| {
        let stored = context.deployment(&member.name_any())?;
        Some(context.approvals.upgrades(&stored)).filter(|approved| !approved.is_empty())
    });
    Digest::of_json(&(&manifests.0, approved.flatten().collect::<Vec<_>>()))
}

/// Why members would be refused.
async fn refusals(context: Arc<Context>, members: Vec<Unsettled>) -> Vec<Refusal> {
    let rendered = futures::stream::iter(members).map(|Unsettled { member, is_changed }| {
        let (name, package, context) = (member.name_any(), manifests::package(&member), Arc::clone(&context));
        async move { (Member { name, package, is_changed }, Box::pin(Planned::render(&context, member)).await) }
    });
    let rendered: Vec<(Member, Result<Planned, String>)> = rendered.buffered(AT_ONCE).collect().await;
    let (mut refusals, mut created) = (Vec::new(), Vec::new());
    let mut planned = Vec::new();
    for (member, result) in rendered {
        match result {
            Ok(one) => planned.push((member, one)),
            Err(message) if member.is_changed => refusals.push(member.refused(&message)),
            Err(_) => {}
        }
    }
    let releases: Vec<Arc<Release>> = planned.iter().map(|(_, one)| Arc::clone(&one.release)).collect();
    for (member, one) in planned.iter().filter(|(member, _)| member.is_changed) {
        // The kinds of all members count as served: whichever needs another one is installed after it.
        match one.preview(&context, &releases).await {
            Ok(preview) => {
                refusals.extend(preview.refusals.into_iter().take(REPORTED).map(|refusal| member.refused(&refusal)));
                let new = preview.changes.into_iter().filter(|change| change.kind == ChangeKind::Create);
                created.push((member, new.map(|change| change.object).collect::<Vec<ObjectKey>>()));
            }
            Err(message) => refusals.push(member.refused(&message)),
        }
    }
    refusals.extend(shared(&created));
    refusals
}

/// A member of the set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    /// The name of its BundleDeployment.
    name: String,
    package: String,
    /// Whether it has to be written.
    is_changed: bool,
}

impl Member {
    fn refused(&self, message: &impl std::fmt::Display) -> Refusal {
        Refusal { packages: vec![self.package.clone()], message: format!("{}: {message}", self.name) }
    }
}

/// Objects that several members would create: only one of them can own each.
fn shared(created: &[(&Member, Vec<ObjectKey>)]) -> Vec<Refusal> {
    let mut owners: BTreeMap<&ObjectKey, BTreeSet<&Member>> = BTreeMap::new();
    for (member, object) in created.iter().flat_map(|(it, objects)| objects.iter().map(move |object| (it, object))) {
        owners.entry(object).or_default().insert(member);
    }
    let several = owners.into_iter().filter(|(_, members)| members.len() > 1);
    let refusal = |(object, members): (&ObjectKey, BTreeSet<&Member>)| {
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        let message = format!("{object} is in {}, and can belong to one only", names.join(" and "));
        Refusal { packages: members.into_iter().map(|member| member.package.clone()).collect(), message }
    };
    several.map(refusal).take(REPORTED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checks_of_later_rounds_and_of_gone_resolutions_are_forgotten() {
        let preflights = Preflights::default();
        let inputs = Digest::of(b"decision");
        for name in ["shop/0", "shop/1", "shop/2", "shop-two/1"] {
            let refused = Refused { inputs: inputs.clone(), refusals: Vec::new(), at: Instant::now() };
            preflights.refused().insert(name.to_owned(), refused);
        }
        let known = |name: &str, inputs: &Digest| preflights.known(name, inputs).is_some();
        preflights.forget_after("shop", 0);
        let left = ["shop/0", "shop/1", "shop/2", "shop-two/1"].map(|name| known(name, &inputs));
        assert_eq!(left, [true, false, false, true]);
        assert!(!known("shop/0", &Digest::of(b"another decision")));
        preflights.end("shop");
        assert_eq!(["shop/0", "shop-two/1"].map(|name| known(name, &inputs)), [false, true]);
    }

    #[test]
    fn an_object_of_two_members_is_refused() {
        let key = |name: &str| ObjectKey {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
        };
        let member =
            |name: &str| Member { name: name.to_owned(), package: format!("package-{name}"), is_changed: true };
        let (one, two) = (member("one"), member("two"));
        let created = [(&one, vec![key("a"), key("b")]), (&two, vec![key("c"), key("b")])];
        let message = "ConfigMap shop/b is in one and two, and can belong to one only".to_owned();
        let packages = vec!["package-one".to_owned(), "package-two".to_owned()];
        assert_eq!(shared(&created), [Refusal { packages, message }]);
    }
}
