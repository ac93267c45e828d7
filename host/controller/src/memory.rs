//! What the controller remembers of BundleDeployments between reconciles. Losing it costs time and nothing else.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use chandler_api::ImageSource;
use chandler_content::ResolvedImage;
use chandler_core::{Digest, Questions, Target};
use chandler_releases::Made;

use crate::{
    bundle_deployment::{FailedCandidates, Preparations},
    cluster_info::ClusterInfo,
    contention::Contention,
};

/// Everything that is remembered.
#[derive(Default)]
pub(crate) struct Memory {
    /// The digests that tags were resolved to.
    pub(crate) resolutions: Resolutions,
    /// Which releases are in use.
    pub(crate) in_use: ReleasesInUse,
    /// How much memory releases take.
    pub(crate) sizes: Sizes,
    /// The facts about the cluster that a provisioner requested and then returned no release.
    pub(crate) refused: Refused,
    /// Since when the health of releases differs from the reported health.
    pub(crate) debounce: HealthDebounce,
    /// Objects that other clients change again after each repair.
    pub(crate) conflicts: OwnershipConflicts,
    /// Candidates that failed.
    pub(crate) failed: FailedCandidates,
    /// Candidates that are being fetched and rendered.
    pub(crate) preparing: Preparations,
}

impl Memory {
    /// Forgets a BundleDeployment.
    pub(crate) fn forget(&self, name: &str) {
        self.resolutions.forget(name);
        self.in_use.forget(name);
        self.sizes.forget(name);
        self.refused.forget(name);
        self.debounce.forget(name);
        self.conflicts.forget(name);
        self.try_again(name);
    }

    /// Has the candidate of a BundleDeployment tried at the next reconcile: something that it depends on changed.
    pub(crate) fn try_again(&self, name: &str) {
        self.failed.clear(name);
        self.preparing.end(name);
    }

    /// The same for those that a change of the cluster concerns: the facts that their provisioners requested have changed.
    pub(crate) fn cluster_changed(&self, cluster: &ClusterInfo) {
        self.failed.clear_those(&self.refused.concerned(cluster));
        // Preparations that are under way began with the old facts.
        self.preparing.end_all();
    }
}

/// The ownership conflicts of each BundleDeployment.
pub(crate) struct OwnershipConflicts {
    origin: Instant,
    all: Mutex<HashMap<String, Conflicts>>,
}

#[derive(Default)]
struct Conflicts {
    contention: Contention,
    /// When the last reconcile began, and what the user requested of it.
    reconcile: Option<(Duration, Digest)>,
}

impl Default for OwnershipConflicts {
    fn default() -> Self {
        Self { origin: Instant::now(), all: Mutex::default() }
    }
}

impl OwnershipConflicts {
    /// How often a BundleDeployment is reconciled while another client changes its objects all the time: without this, each of those
    /// changes would have everything compared.
    const COOLDOWN: Duration = Duration::from_secs(2);

    /// How long to wait with a reconcile of this request; zero where it may begin, and then it has begun.
    pub(crate) fn cooldown(&self, name: &str, requested: Digest) -> Duration {
        let now = self.origin.elapsed();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = all.get_mut(name).filter(|known| known.contention.next_check(now).is_some()) else {
            return Duration::ZERO;
        };
        if let Some((began, before)) = &known.reconcile
            && *before == requested
            && let Some(pause) = began.saturating_add(Self::COOLDOWN).checked_sub(now)
        {
            return pause;
        }
        known.reconcile = Some((now, requested));
        Duration::ZERO
    }

    /// Calls `act` with the contested objects of a BundleDeployment and the time.
    pub(crate) fn of<T>(&self, name: &str, act: impl FnOnce(&mut Contention, Duration) -> T) -> T {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut all.entry(name.to_owned()).or_default().contention, self.origin.elapsed());
        all.retain(|_, known| known.contention != Contention::default());
        result
    }

    fn forget(&self, name: &str) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// Since when the health of each BundleDeployment differs from the reported health.
pub(crate) struct HealthDebounce {
    origin: Instant,
    since: Mutex<HashMap<String, Duration>>,
}

impl Default for HealthDebounce {
    fn default() -> Self {
        Self { origin: Instant::now(), since: Mutex::default() }
    }
}

impl HealthDebounce {
    /// Now, by the clock of these times.
    pub(crate) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Since when it differs; none where it does not.
    pub(crate) fn since(&self, name: &str) -> Option<Duration> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    /// Notes since when it differs.
    pub(crate) fn note(&self, name: &str, since: Option<Duration>) {
        let mut all = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        match since {
            Some(since) => all.insert(name.to_owned(), since),
            None => all.remove(name),
        };
    }

    /// Forgets a BundleDeployment.
    pub(crate) fn forget(&self, name: &str) {
        self.note(name, None);
    }
}

/// The digest that each tag was last resolved to, by BundleDeployment.
#[derive(Default)]
pub(crate) struct Resolutions(Mutex<BTreeMap<String, Resolution>>);

/// The digest of a tag, and when the registry was asked.
#[derive(Clone, Debug)]
pub(crate) struct Resolution {
    pub(crate) source: ImageSource,
    pub(crate) resolved: ResolvedImage,
    when: Instant,
}

impl Resolutions {
    /// The digest of a tag, if the registry was asked within the interval.
    pub(crate) fn recent(&self, name: &str, source: &ImageSource, interval: Duration) -> Option<ResolvedImage> {
        let known = self.known();
        let known = known.get(name).filter(|known| known.source == *source && known.when.elapsed() < interval)?;
        Some(known.resolved.clone())
    }

    /// Remembers the digest of a tag.
    pub(crate) fn remember(&self, name: String, source: ImageSource, resolved: ResolvedImage) {
        self.known().insert(name, Resolution { source, resolved, when: Instant::now() });
    }

    /// Whether the digest of this source is known.
    pub(crate) fn knows(&self, name: &str, source: &ImageSource) -> bool {
        self.known().get(name).is_some_and(|known| known.source == *source)
    }

    /// The resolutions that are older than the interval, and how long it is until the next one is.
    pub(crate) fn due(&self, interval: Duration) -> (Vec<(String, Resolution)>, Duration) {
        let (mut due, mut next) = (Vec::new(), interval);
        for (name, resolution) in &*self.known() {
            match interval.checked_sub(resolution.when.elapsed()).filter(|left| !left.is_zero()) {
                Some(left) => next = next.min(left),
                None => due.push((name.clone(), resolution.clone())),
            }
        }
        (due, next)
    }

    /// Notes the answer to another request, unless a newer one was noted meanwhile. False where one was.
    pub(crate) fn renew(&self, name: &str, asked: &Resolution, now: Option<ResolvedImage>) -> bool {
        let mut known = self.known();
        let Some(place) = known.get_mut(name).filter(|known| known.when == asked.when) else { return false };
        match now {
            Some(resolved) => *place = Resolution { resolved, when: Instant::now(), ..place.clone() },
            None => drop(known.remove(name)),
        }
        true
    }

    fn forget(&self, name: &str) {
        self.known().remove(name);
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Resolution>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The cache keys of the last release of each BundleDeployment, and of that of an earlier revision while that one runs again: the
/// cache of releases must keep these.
#[derive(Default)]
pub(crate) struct ReleasesInUse(Mutex<HashMap<String, Vec<Made>>>);

/// How many releases of one BundleDeployment are in use at the most.
const IN_USE: usize = 2;

impl ReleasesInUse {
    /// Notes that a BundleDeployment uses a release.
    pub(crate) fn note(&self, name: &str, made: &Made) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let used = all.entry(name.to_owned()).or_default();
        used.retain(|known| known != made);
        used.insert(0, made.clone());
        used.truncate(IN_USE);
    }

    /// Notes that a BundleDeployment uses only this release any more.
    pub(crate) fn keep_only(&self, name: &str, made: &Made) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = all.get_mut(name) {
            used.retain(|known| known == made);
        }
    }

    /// Everything that is in use.
    pub(crate) fn all(&self) -> BTreeSet<Digest> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().flatten().flat_map(|made| [made.inputs.clone(), made.key.clone()]).collect()
    }

    fn forget(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// How much memory the last release of each BundleDeployment took, in bytes, so that the next reconcile waits for memory before it loads
/// the release and not afterwards.
#[derive(Default)]
pub(crate) struct Sizes(Mutex<HashMap<String, usize>>);

impl Sizes {
    /// That of this BundleDeployment; 0 where none is known.
    pub(crate) fn of(&self, name: &str) -> usize {
        self.all().get(name).copied().unwrap_or_default()
    }

    /// Notes it.
    pub(crate) fn note(&self, name: &str, bytes: usize) {
        self.all().insert(name.to_owned(), bytes);
    }

    fn forget(&self, name: &str) {
        self.all().remove(name);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The facts about the cluster that provisioners requested when they returned no release, by BundleDeployment.
#[derive(Default)]
pub(crate) struct Refused(Mutex<HashMap<String, Refusal>>);

struct Refusal {
    asked: Questions,
    /// The target, without the facts about the cluster.
    target: Target,
    /// The questions with the answers that the provisioner got.
    answered: Digest,
}

impl Refused {
    /// Notes that a provisioner returned no release for a target, after it had requested these facts.
    pub(crate) fn note(&self, name: &str, asked: Questions, target: &Target) {
        let answered = Digest::of_json(&asked.answered(target));
        let target = Target { name: target.name.clone(), namespace: target.namespace.clone(), ..Target::default() };
        self.all().insert(name.to_owned(), Refusal { asked, target, answered });
    }

    /// The BundleDeployments whose provisioners would get other answers now.
    fn concerned(&self, cluster: &ClusterInfo) -> Vec<String> {
        let mut now = Target {
            kubernetes_version: cluster.kubernetes_version.clone(),
            api_kinds: cluster.api_kinds.clone(),
            ..Target::default()
        };
        let all = self.all();
        let concerned = all.iter().filter(|(_, refusal)| {
            now.name.clone_from(&refusal.target.name);
            now.namespace.clone_from(&refusal.target.namespace);
            Digest::of_json(&refusal.asked.answered(&now)) != refusal.answered
        });
        concerned.map(|(name, _)| name.clone()).collect()
    }

    /// Forgets a BundleDeployment, or that its provisioner returned no release.
    pub(crate) fn forget(&self, name: &str) {
        self.all().remove(name);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Refusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::Question;

    use super::*;

    fn source(reference: &str) -> ImageSource {
        ImageSource { reference: reference.to_owned(), ..ImageSource::default() }
    }

    fn image(digest: &str) -> ResolvedImage {
        ResolvedImage::new("example.com/a:v1".parse().unwrap(), Digest::of(digest.as_bytes()))
    }

    #[test]
    fn tags_are_due_after_the_interval_and_not_before() {
        let (hour, source) = (Duration::from_hours(1), source("example.com/a:v1"));
        let resolutions = Resolutions::default();
        assert_eq!(resolutions.due(hour).1, hour);
        resolutions.remember("one".to_owned(), source.clone(), image("x"));
        let (due, next) = resolutions.due(hour);
        assert!(due.is_empty() && next <= hour);
        assert_eq!(resolutions.recent("one", &source, hour), Some(image("x")));
        let (due, _) = resolutions.due(Duration::ZERO);
        assert_eq!(due.len(), 1);
        assert_eq!(resolutions.recent("one", &source, Duration::ZERO), None);
        assert!(resolutions.knows("one", &source) && !resolutions.knows("two", &source));
    }

    #[test]
    fn an_answer_that_comes_too_late_changes_nothing() {
        let (hour, old, new) = (Duration::from_hours(1), source("example.com/a:v1"), source("example.com/b:v1"));
        let resolutions = Resolutions::default();
        resolutions.remember("one".to_owned(), old.clone(), image("x"));
        let asked = resolutions.due(Duration::ZERO).0.remove(0).1;
        assert!(resolutions.renew("one", &asked, Some(image("y"))));
        assert_eq!(resolutions.recent("one", &old, hour), Some(image("y")));
        resolutions.remember("one".to_owned(), new.clone(), image("z"));
        assert!(!resolutions.renew("one", &asked, Some(image("y"))));
        assert!(!resolutions.renew("one", &asked, None));
        assert_eq!(resolutions.recent("one", &new, hour), Some(image("z")));
        let asked = resolutions.due(Duration::ZERO).0.remove(0).1;
        assert!(resolutions.renew("one", &asked, None));
        assert!(!resolutions.knows("one", &new));
    }

    #[test]
    fn the_last_two_releases_of_each_are_in_use() {
        let key = |name: &str| Digest::of(name.as_bytes());
        let made = |name: &str| Made { inputs: key("inputs"), key: key(name) };
        let in_use = ReleasesInUse::default();
        for name in ["a", "b", "a", "c"] {
            in_use.note("one", &made(name));
        }
        in_use.note("two", &made("d"));
        assert_eq!(in_use.all(), [key("inputs"), key("a"), key("c"), key("d")].into());
        in_use.keep_only("one", &made("a"));
        in_use.forget("two");
        assert_eq!(in_use.all(), [key("inputs"), key("a")].into());
    }

    #[test]
    fn a_change_of_the_cluster_concerns_those_who_asked() {
        let cluster = |version: &str, kinds: &[&str]| ClusterInfo {
            kubernetes_version: version.to_owned(),
            api_kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        };
        let before = Target {
            namespace: "n".into(),
            kubernetes_version: "v1.35.0".into(),
            api_kinds: vec!["v1/Pod".into()],
            ..Target::default()
        };
        let refused = Refused::default();
        let ox = Question::Serves { api_version: "example.com/v1".into(), kind: "Ox".into() };
        for (name, question) in [
            ("place", Question::Namespace),
            ("ox", ox),
            ("all", Question::ApiKinds),
            ("version", Question::KubernetesVersion),
        ] {
            refused.note(name, [question].into_iter().collect(), &Target { name: name.into(), ..before.clone() });
        }
        refused.note("nothing", Questions::default(), &before);
        let concerned = |cluster: &ClusterInfo| {
            let mut names = refused.concerned(cluster);
            names.sort();
            names
        };
        assert_eq!(concerned(&cluster("v1.35.0", &["v1/Pod"])), [""; 0]);
        assert_eq!(concerned(&cluster("v1.36.0", &["v1/Pod"])), ["version"]);
        assert_eq!(concerned(&cluster("v1.35.0", &["example.com/v1/Goat", "v1/Pod"])), ["all"]);
        assert_eq!(concerned(&cluster("v1.35.0", &["example.com/v1/Ox", "v1/Pod"])), ["all", "ox"]);
        refused.forget("all");
        assert_eq!(concerned(&cluster("v1.35.0", &["example.com/v1/Goat"])), [""; 0]);
    }
}
