//! What the controller remembers about BundleDeployments between reconciles. Losing it only costs time.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use chandler_core::{Digest, RecordedFacts, Target};
use chandler_decisions::contention::Contention;
use chandler_releases::Made;
use chandler_runtime::ClusterInfo;
use chandler_source::Resolutions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use parking_lot::{Mutex, MutexGuard};

use crate::{
    bundle_deployment::{AskedPolls, Detections, FailedCandidates, FailedUpdates},
    collisions::Collisions,
    contents::Contents,
    grants::Grants,
    growth::Growth,
    provisioner_class::Calls,
    registries::Registries,
    targets::TargetInfo,
    values::ValuesWatches,
};

/// Everything that is remembered.
#[derive(Default)]
pub(crate) struct Memory {
    /// The BundleDeployments whose sources are to be polled at once.
    pub(crate) asked: AskedPolls,
    /// What sources that can move last resolved to.
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
    /// The rollouts in progress.
    pub(crate) announcements: Announcements,
    /// Candidates that failed.
    pub(crate) failed: FailedCandidates,
    /// Updates of provisioners that did not render.
    pub(crate) failed_updates: FailedUpdates,
    /// The calls of provisioners.
    pub(crate) calls: Calls,
    /// Which formats provisioners recognised.
    pub(crate) detections: Detections,
    /// The BundleDeployments that wait for a registry that does not answer.
    pub(crate) registries: Registries,
    /// The BundleDeployments that wait for a permission, an account or a namespace.
    pub(crate) grants: Grants,
    /// The objects of other owners that are watched.
    pub(crate) collisions: Collisions,
    /// The ConfigMaps and Secrets with values that are watched.
    pub(crate) values: ValuesWatches,
    /// Their content.
    pub(crate) contents: Contents,
    /// The facts about the other clusters that bundles are installed into.
    pub(crate) target_info: TargetInfo,
    /// How much content was added to the cache.
    pub(crate) growth: Growth,
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
        self.announcements.forget(name);
        self.detections.forget(name);
        self.calls.forget(name);
        self.registries.with(|waits, _| waits.forget(name));
        self.grants.note(name, false);
        self.collisions.end(name);
        self.values.forget(name);
        self.contents.forget(name);
        self.target_info.forget(name);
        self.failed.clear(name);
        self.failed_updates.forget(name);
    }

    /// Forgets that the candidate of a BundleDeployment failed: something that it depends on changed.
    pub(crate) fn try_again(&self, name: &str) {
        self.failed.clear(name);
        self.failed_updates.try_again(name);
    }

    /// Forgets the failures of the candidates whose provisioners requested facts about the cluster that changed.
    pub(crate) fn cluster_changed(&self, cluster: &ClusterInfo) {
        self.failed.clear_those(&self.refused.concerned(cluster));
    }

    /// Stops all watches: the controller stops.
    pub(crate) fn end_watches(&self) {
        self.collisions.end_all();
        self.values.end_all();
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
    /// When the last reconcile began, and what the user requested from it.
    reconcile: Option<(Duration, Digest)>,
}

impl Default for OwnershipConflicts {
    fn default() -> Self {
        Self { origin: Instant::now(), all: Mutex::default() }
    }
}

impl OwnershipConflicts {
    /// How often a BundleDeployment is reconciled while another client changes its objects all the time: without this, each of those
    /// changes would compare everything.
    const COOLDOWN: Duration = Duration::from_secs(2);

    /// How long to wait with a reconcile of this request; zero if it may begin, and then it has begun.
    pub(crate) fn cooldown(&self, name: &str, requested: Digest) -> Duration {
        let now = self.origin.elapsed();
        let mut all = self.all.lock();
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

    /// The number of contested objects.
    pub(crate) fn contested(&self) -> usize {
        self.all.lock().values().map(|known| known.contention.contested().len()).sum()
    }

    /// Calls `act` with the contested objects of a BundleDeployment and the time.
    pub(crate) fn of<T>(&self, name: &str, act: impl FnOnce(&mut Contention, Duration) -> T) -> T {
        let mut all = self.all.lock();
        let result = act(&mut all.entry(name.to_owned()).or_default().contention, self.origin.elapsed());
        all.retain(|_, known| known.contention != Contention::default());
        result
    }

    fn forget(&self, name: &str) {
        self.all.lock().remove(name);
    }
}

/// The rollouts in progress, by BundleDeployment, and when the status last announced or reported them.
#[derive(Default)]
pub(crate) struct Announcements(Mutex<HashMap<String, Announced>>);

/// The last announcement of a rollout, or report on it.
struct Announced {
    when: Instant,
    /// How long it suffices.
    lasts: Duration,
    /// The conditions before the announcement, while no Event is about it.
    deferred: Option<Vec<Condition>>,
}

impl Announcements {
    /// How long such a report suffices: many rollouts are complete by then, and others change what they wait for often.
    const SUFFICES: Duration = Duration::from_secs(2);

    /// How long it suffices at most.
    const LONGEST: Duration = Duration::from_secs(10);

    /// Notes that the status announced a revision, or reports on its rollout. A slow API server, whose writes took this long, gets fewer
    /// reports.
    pub(crate) fn note(&self, name: &str, took: Duration) {
        let mut all = self.all();
        let deferred = all.remove(name).and_then(|known| known.deferred);
        all.insert(name.to_owned(), Announced { when: Instant::now(), lasts: Self::lasts(took), deferred });
    }

    /// Notes that the status announces a revision without an Event: the next status has it, if the rollout is not complete by then. Before
    /// the announcement the status had these conditions.
    pub(crate) fn defer(&self, name: &str, before: &[Condition]) {
        let mut all = self.all();
        let now = || Announced { when: Instant::now(), lasts: Self::SUFFICES, deferred: None };
        all.entry(name.to_owned()).or_insert_with(now).deferred.get_or_insert_with(|| before.to_vec());
    }

    /// The conditions before an announcement that no Event is about, once.
    pub(crate) fn take_deferred(&self, name: &str) -> Option<Vec<Condition>> {
        self.all().get_mut(name)?.deferred.take()
    }

    /// How long a report suffices whose writes took this long.
    fn lasts(took: Duration) -> Duration {
        Self::SUFFICES.max(Self::LONGEST.min(took.saturating_mul(2)))
    }

    /// How much longer the report suffices; `None` if the status must report the progress of the rollout.
    pub(crate) fn suffices(&self, name: &str) -> Option<Duration> {
        let all = self.all();
        let Announced { when, lasts, .. } = all.get(name)?;
        lasts.checked_sub(when.elapsed()).filter(|left| !left.is_zero())
    }

    /// Whether a rollout is in progress, as far as this controller has seen.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all().contains_key(name)
    }

    /// Forgets the report: no rollout is in progress.
    pub(crate) fn forget(&self, name: &str) {
        self.all().remove(name);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Announced>> {
        self.0.lock()
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

    /// Since when it differs; `None` if it does not.
    pub(crate) fn since(&self, name: &str) -> Option<Duration> {
        self.since.lock().get(name).copied()
    }

    /// Notes since when it differs.
    pub(crate) fn note(&self, name: &str, since: Option<Duration>) {
        let mut all = self.since.lock();
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

/// The cache keys of the last release of each BundleDeployment, and of an earlier revision's release while it runs again: the cache of
/// releases must keep these.
#[derive(Default)]
pub(crate) struct ReleasesInUse(Mutex<HashMap<String, Vec<Made>>>);

/// The maximum number of releases of one BundleDeployment that are in use.
const IN_USE: usize = 2;

impl ReleasesInUse {
    /// Notes that a BundleDeployment uses a release.
    pub(crate) fn note(&self, name: &str, made: &Made) {
        let mut all = self.0.lock();
        let used = all.entry(name.to_owned()).or_default();
        used.retain(|known| known != made);
        used.insert(0, made.clone());
        used.truncate(IN_USE);
    }

    /// Notes that a BundleDeployment now uses only this release.
    pub(crate) fn keep_only(&self, name: &str, made: &Made) {
        let mut all = self.0.lock();
        if let Some(used) = all.get_mut(name) {
            used.retain(|known| known == made);
        }
    }

    /// Everything that is in use.
    pub(crate) fn all(&self) -> BTreeSet<Digest> {
        let all = self.0.lock();
        all.values().flatten().flat_map(|made| [made.inputs.clone(), made.key.clone()]).collect()
    }

    fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

/// How much memory the last release of each BundleDeployment took, in bytes, so that the next reconcile waits for memory before it loads
/// the release, not afterwards.
#[derive(Default)]
pub(crate) struct Sizes(Mutex<HashMap<String, usize>>);

impl Sizes {
    /// The memory of this BundleDeployment's last release; 0 if it is unknown.
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
        self.0.lock()
    }
}

/// The facts about the cluster that provisioners requested when they returned no release, by BundleDeployment.
#[derive(Default)]
pub(crate) struct Refused(Mutex<HashMap<String, Refusal>>);

struct Refusal {
    asked: RecordedFacts,
    /// The target, without the facts about the cluster.
    target: Target,
    /// The digest of the facts with their values for that target.
    answered: Digest,
}

impl Refused {
    /// Notes that a provisioner returned no release for a target, after it had requested these facts.
    pub(crate) fn note(&self, name: &str, asked: RecordedFacts, target: &Target) {
        let answered = Digest::of_json(&asked.values(target));
        let target = Target { name: target.name.clone(), namespace: target.namespace.clone(), ..Target::default() };
        self.all().insert(name.to_owned(), Refusal { asked, target, answered });
    }

    /// The BundleDeployments whose provisioners would now get other answers.
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
            Digest::of_json(&refusal.asked.values(&now)) != refusal.answered
        });
        concerned.map(|(name, _)| name.clone()).collect()
    }

    /// Forgets a BundleDeployment, or that its provisioner returned no release.
    pub(crate) fn forget(&self, name: &str) {
        self.all().remove(name);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Refusal>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::Fact;
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    #[test]
    fn an_announcement_suffices_for_a_moment() {
        let announcements = Announcements::default();
        assert_eq!(announcements.suffices("a"), None);
        announcements.note("a", Duration::ZERO);
        assert!(announcements.suffices("a").is_some_and(|left| left <= Announcements::SUFFICES));
        assert!(announcements.has("a") && !announcements.has("b"));
        announcements.forget("a");
        assert_eq!((announcements.suffices("a"), announcements.has("a")), (None, false));
    }

    #[test]
    fn the_conditions_before_an_announcement_are_kept_until_an_event_is_about_it() {
        let announcements = Announcements::default();
        let named = |type_: &str| {
            let last_transition_time = Time(Timestamp::UNIX_EPOCH);
            let (status, reason, message) = (String::new(), String::new(), String::new());
            Condition { type_: type_.into(), status, reason, message, observed_generation: None, last_transition_time }
        };
        announcements.defer("a", &[named("First")]);
        // Of a newer spec, before any report.
        announcements.defer("a", &[named("Second")]);
        announcements.note("a", Duration::ZERO);
        assert_eq!(announcements.take_deferred("a"), Some(vec![named("First")]));
        assert_eq!((announcements.take_deferred("a"), announcements.take_deferred("b")), (None, None));
        announcements.defer("a", &[]);
        announcements.forget("a");
        assert_eq!(announcements.take_deferred("a"), None);
    }

    #[test]
    fn a_slow_api_server_gets_fewer_reports() {
        let lasts = [0, 1, 3, 60].map(|seconds| Announcements::lasts(Duration::from_secs(seconds)).as_secs());
        assert_eq!(lasts, [2, 2, 6, 10]);
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
            openshift_version: None,
        };
        let before = Target {
            namespace: "n".into(),
            kubernetes_version: "v1.35.0".into(),
            api_kinds: vec!["v1/Pod".into()],
            ..Target::default()
        };
        let refused = Refused::default();
        let ox = Fact::Serves { api_version: "example.com/v1".into(), kind: "Ox".into() };
        for (name, fact) in
            [("place", Fact::Namespace), ("ox", ox), ("all", Fact::ApiKinds), ("version", Fact::KubernetesVersion)]
        {
            refused.note(name, [fact].into_iter().collect(), &Target { name: name.into(), ..before.clone() });
        }
        refused.note("nothing", RecordedFacts::default(), &before);
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

    #[test]
    fn a_size_is_known_until_it_is_forgotten() {
        let memory = Memory::default();
        memory.sizes.note("a", 5);
        memory.sizes.note("a", 7);
        memory.sizes.note("b", 3);
        assert_eq!((memory.sizes.of("a"), memory.sizes.of("b"), memory.sizes.of("c")), (7, 3, 0));
        memory.forget("a");
        assert_eq!((memory.sizes.of("a"), memory.sizes.of("b")), (0, 3));
    }
}
