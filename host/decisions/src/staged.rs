//! Which BundleDeployments may have the newer component of a class with the policy `Staged`.
//!
//! The decision follows from the records of those that use the class: a controller that restarts decides the same again. Only that one was
//! refused, or was unhealthy before it went back, is kept in memory, so that a restart tries it once more. A few are updated at once, those with
//! the labels of `spec.staged` first. The first failure ends the update: no further one begins, and what was updated goes back. It continues
//! once the one that failed succeeded with the component after all, and begins anew with another component.
//!
//! Only what the update did counts: a new installation that fails, new content, and a BundleDeployment that becomes unhealthy after the update
//! is complete, or an hour after its own update, say nothing about the component, and must not take it away from others. One that cannot begin
//! does not keep an update from being complete.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chandler_api::{Outcome, Revision, StagedUpdate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::updates;

/// How many percent are updated at once by default.
const PERCENT: i32 = 10;
/// How long one that may be updated keeps others waiting without beginning: its source may be gone, or its account.
const PATIENCE: Duration = Duration::from_mins(10);
/// How long after its update a BundleDeployment that becomes unhealthy stops the update of the others. The record has the time of its update, so that
/// a restart of the controller decides the same.
const OBSERVED: Duration = Duration::from_hours(1);

/// Where a user of a class is on its way to a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Another component rendered what it runs.
    Earlier,
    /// The component renders it, and its rollout is not complete.
    Updating,
    /// It runs what the component rendered.
    Updated,
    /// The update succeeded there less than an hour ago, and its objects are not healthy now. That is a failure until the update is complete.
    Unhealthy,
    /// The component does not render it, or what it rendered failed.
    Failed,
}

/// A user of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Whether it has the labels of those that come first.
    pub is_first: bool,
    /// Where it is.
    pub progress: Progress,
}

/// How far a staged update is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// The digest of the component.
    pub component: String,
    /// Those that may have it now, and since when: the time since any fixed beginning. Those that have it already need no permission.
    pub admitted: BTreeMap<String, Duration>,
    /// Those that failed. If any did, the update is stopped.
    pub failed: BTreeSet<String>,
    /// Whether all that could begin had the component once. What fails later does not take it away from the others.
    pub is_complete: bool,
}

impl Stage {
    /// Whether the update to this component is stopped.
    pub fn is_stopped(&self, component: &str) -> bool {
        self.component == component && !self.failed.is_empty()
    }

    /// Whether this BundleDeployment failed with this component. One that went back looks as before the update, and must not be tried again
    /// and again.
    pub fn has_failed(&self, name: &str, component: &str) -> bool {
        self.component == component && self.failed.contains(name)
    }

    /// Whether this BundleDeployment may have this component now.
    pub fn admits(&self, name: &str, component: &str) -> bool {
        self.component == component && self.failed.is_empty() && self.admitted.contains_key(name)
    }

    /// Whether this BundleDeployment goes back from this component: all do that were updated, unless the update was complete before it failed.
    pub fn goes_back(&self, name: &str, component: &str) -> bool {
        self.is_stopped(component) && (!self.is_complete || self.failed.contains(name))
    }
}

/// Where a BundleDeployment with this history is on its way to a component. `is_refused`: the component does not render its bundle, or the
/// update failed before; `is_unhealthy`: its objects are not healthy now. One that was unhealthy soon after its update stays so until it is
/// healthy, since it counts as refused.
pub fn progress(history: &[Revision], component: &str, is_refused: bool, is_unhealthy: bool, now: &Time) -> Progress {
    let is_observed = |at: usize| is_refused || history.get(at).is_some_and(|revision| is_recent(revision, now));
    let with_it = history.iter().rposition(|revision| revision.provisioner.digest == component);
    let is_current = with_it.is_some_and(|at| at + 1 == history.len());
    match with_it.and_then(|at| Some((history.get(at)?.outcome, is_update(history, at)))) {
        Some((Outcome::Failed, true)) => Progress::Failed,
        Some((Outcome::Succeeded, true)) if is_current && is_unhealthy && with_it.is_some_and(is_observed) => {
            Progress::Unhealthy
        }
        Some((Outcome::RollingOut, true)) if is_current => Progress::Updating,
        // What its author changed says nothing about the component.
        Some(_) if is_current => Progress::Updated,
        _ if is_refused => Progress::Failed,
        _ => Progress::Earlier,
    }
}

/// Whether a revision succeeded less than [`OBSERVED`] ago.
fn is_recent(revision: &Revision, now: &Time) -> bool {
    let since = revision.completion_time.as_ref().map(|completed| now.0.duration_since(completed.0));
    // A clock that was set back makes no update older.
    since.is_some_and(|since| Duration::try_from(since).unwrap_or_default() < OBSERVED)
}

/// Whether an update of the class made a revision: another component rendered the same content with the same configuration before.
fn is_update(history: &[Revision], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| history.get(before));
    before.zip(history.get(at)).is_some_and(|(before, revision)| updates::is_of_class(before, revision))
}

/// Whether a BundleDeployment with these labels comes first.
pub fn is_first(settings: &StagedUpdate, labels: &BTreeMap<String, String>) -> bool {
    !settings.match_labels.is_empty() && settings.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// How many may be updated at once.
fn at_once(settings: &StagedUpdate, total: usize) -> usize {
    let percent = usize::try_from(settings.percent.unwrap_or(PERCENT).clamp(1, 100)).unwrap_or(1);
    total.saturating_mul(percent).div_ceil(100).max(1)
}

/// The stage of an update to this component, after this earlier stage. `now` is the time since the beginning that its times have.
pub fn decide(
    settings: &StagedUpdate,
    component: &str,
    members: &[Member],
    before: Option<&Stage>,
    now: Duration,
) -> Stage {
    let before = before.filter(|before| before.component == component);
    let with = |progress: Progress| members.iter().filter(move |member| member.progress == progress);
    let since = |member: &Member| before.and_then(|before| before.admitted.get(&member.name)).copied().unwrap_or(now);
    // It may still be updated, and others no longer wait for it.
    let is_stuck =
        |member: &Member| member.progress == Progress::Earlier && now.saturating_sub(since(member)) >= PATIENCE;
    let has_it = |member: &Member| matches!(member.progress, Progress::Updated | Progress::Unhealthy);
    let is_left = |member: &Member| !has_it(member);
    let is_done = members.iter().any(has_it) && members.iter().all(|member| has_it(member) || is_stuck(member));
    let is_complete = before.is_some_and(|before| before.is_complete) || is_done;
    let unhealthy = with(Progress::Unhealthy).filter(|_| !is_complete);
    let failed = with(Progress::Failed).chain(unhealthy).map(|member| member.name.clone()).collect();
    let stage = Stage { component: component.to_owned(), failed, is_complete, ..Stage::default() };
    if !stage.failed.is_empty() {
        return stage;
    }
    let first_left = members.iter().any(|member| member.is_first && is_left(member) && !is_stuck(member));
    let (stuck, mut next): (Vec<&Member>, Vec<&Member>) =
        with(Progress::Earlier).filter(|member| member.is_first || !first_left).partition(|member| is_stuck(member));
    next.sort_by(|one, other| (!one.is_first, &one.name).cmp(&(!other.is_first, &other.name)));
    let free = at_once(settings, members.len()).saturating_sub(with(Progress::Updating).count());
    let admitted =
        next.into_iter().take(free).chain(stuck).map(|member| (member.name.clone(), since(member))).collect();
    Stage { admitted, ..stage }
}

#[cfg(test)]
mod tests {
    use chandler_api::ProvisionerInUse;
    use k8s_openapi::jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn revision(component: &str, outcome: Outcome) -> Revision {
        let provisioner = ProvisionerInUse { digest: component.into(), ..ProvisionerInUse::default() };
        let completion_time = (outcome != Outcome::RollingOut).then(|| at(0));
        Revision { provisioner, outcome, completion_time, ..Revision::default() }
    }

    /// The progress soon after the last update.
    fn progress(history: &[Revision], component: &str, is_refused: bool, is_unhealthy: bool) -> Progress {
        super::progress(history, component, is_refused, is_unhealthy, &at(60))
    }

    fn member(name: &str, is_first: bool, progress: Progress) -> Member {
        Member { name: name.into(), is_first, progress }
    }

    #[test]
    fn a_failure_counts_until_the_component_succeeded_there() {
        use Outcome::{Failed, RollingOut, Succeeded};
        let old = revision("old", Succeeded);
        let of = |more: &[Revision], is_refused, is_unhealthy| {
            progress(&[std::slice::from_ref(&old), more].concat(), "new", is_refused, is_unhealthy)
        };
        let new = |outcome| revision("new", outcome);
        assert_eq!(of(&[], false, true), Progress::Earlier, "what was unhealthy before is not its doing");
        assert_eq!(of(&[], true, false), Progress::Failed);
        assert_eq!(of(&[new(RollingOut)], false, true), Progress::Updating);
        assert_eq!(of(&[new(Succeeded)], true, false), Progress::Updated);
        assert_eq!(of(&[new(Succeeded)], false, true), Progress::Unhealthy);
        assert_eq!(of(&[new(Failed)], false, false), Progress::Failed);
        assert_eq!(of(&[new(Failed), old.clone()], false, false), Progress::Failed, "it went back");
        assert_eq!(of(&[new(Succeeded), old.clone()], false, false), Progress::Earlier);
        assert_eq!(of(&[new(Failed), old.clone(), new(Succeeded)], false, false), Progress::Updated);
        assert_eq!(progress(&[], "new", false, false), Progress::Earlier);
    }

    #[test]
    fn ill_health_counts_for_an_hour_after_the_update() {
        let history = [revision("old", Outcome::Succeeded), revision("new", Outcome::Succeeded)];
        for (second, is_refused, expected) in [
            (-5, false, Progress::Unhealthy),
            (3599, false, Progress::Unhealthy),
            (3600, false, Progress::Updated),
            (1_209_600, false, Progress::Updated),
            // It was unhealthy before the hour was over, and the update stopped.
            (3600, true, Progress::Unhealthy),
        ] {
            assert_eq!(super::progress(&history, "new", is_refused, true, &at(second)), expected, "{second}");
            assert_eq!(super::progress(&history, "new", is_refused, false, &at(second)), Progress::Updated);
        }
    }

    /// Its source or its account is gone: it keeps a release that is healthy.
    #[test]
    fn one_that_cannot_begin_keeps_no_update_incomplete() {
        let (settings, now) = (StagedUpdate { percent: Some(100), ..StagedUpdate::default() }, Duration::ZERO);
        let mut members = [
            member("a", false, Progress::Earlier),
            member("b", false, Progress::Updated),
            member("c", false, Progress::Updated),
        ];
        let begun = decide(&settings, "new", &members, None, now);
        assert!(!begun.is_complete && begun.admits("a", "new"));
        members[2].progress = Progress::Unhealthy;
        let early = decide(&settings, "new", &members, Some(&begun), now + PATIENCE / 2);
        assert!(early.goes_back("b", "new"), "the update is under way");
        let late = decide(&settings, "new", &members, Some(&begun), now + PATIENCE);
        assert!(late.is_complete && !late.is_stopped("new") && late.admits("a", "new"), "{late:?}");
        // It begins after all, and fails.
        members[0].progress = Progress::Failed;
        let failed = decide(&settings, "new", &members, Some(&late), now + 2 * PATIENCE);
        assert!(failed.goes_back("a", "new") && !failed.goes_back("b", "new"));

        // After a restart, the history of the one that is unhealthy says that its update is long over.
        let history = [revision("old", Outcome::Succeeded), revision("new", Outcome::Succeeded)];
        members[0].progress = Progress::Earlier;
        members[2].progress = super::progress(&history, "new", false, true, &at(1_209_600));
        assert!(!decide(&settings, "new", &members, None, now).is_stopped("new"));

        // Where none was updated, the update is not complete.
        let stuck = [member("a", false, Progress::Earlier)];
        let begun = decide(&settings, "new", &stuck, None, now);
        assert!(!decide(&settings, "new", &stuck, Some(&begun), now + PATIENCE).is_complete);
    }

    #[test]
    fn what_its_author_did_says_nothing_about_the_component() {
        let (old, new) = (revision("old", Outcome::Succeeded), |outcome| revision("new", outcome));
        let installed = [new(Outcome::Failed)];
        assert_eq!(progress(&installed, "new", false, true), Progress::Updated, "a new installation");
        let changed = [old.clone(), Revision { content_digest: "other".into(), ..new(Outcome::Failed) }];
        assert_eq!(progress(&changed, "new", false, true), Progress::Updated, "new content");
        let configured = [old, Revision { own_config_digest: Some("other".into()), ..new(Outcome::RollingOut) }];
        assert_eq!(progress(&configured, "new", false, false), Progress::Updated, "another configuration");
    }

    #[test]
    fn a_failure_after_the_update_takes_nothing_away_from_others() {
        let (settings, now) = (StagedUpdate::default(), Duration::ZERO);
        let mut members = [
            member("a", false, Progress::Updated),
            member("b", false, Progress::Earlier),
            member("c", false, Progress::Unhealthy),
        ];
        let early = decide(&settings, "new", &members, None, now);
        assert!(early.is_stopped("new") && early.goes_back("a", "new") && early.has_failed("c", "new"));
        members[1].progress = Progress::Updated;
        let complete = decide(&settings, "new", &members, None, now);
        assert!(complete.is_complete && !complete.is_stopped("new"), "it became unhealthy after the update");
        // One that takes part later may fail, and goes back by itself.
        members[1].progress = Progress::Failed;
        let late = decide(&settings, "new", &members, Some(&complete), now);
        assert!(late.is_stopped("new") && late.goes_back("b", "new"));
        assert!(!late.goes_back("a", "new") && !late.goes_back("c", "new"));
        let newer = decide(&settings, "newer", &members, Some(&late), now);
        assert!(!newer.is_complete, "another component begins anew");
    }

    #[test]
    fn one_that_does_not_begin_keeps_others_waiting_for_ten_minutes() {
        let (settings, now) = (StagedUpdate { percent: Some(1), ..StagedUpdate::default() }, Duration::ZERO);
        let members = [member("a", true, Progress::Earlier), member("b", false, Progress::Earlier)];
        let names = |stage: &Stage| stage.admitted.keys().cloned().collect::<String>();
        let first = decide(&settings, "new", &members, None, now);
        assert_eq!(names(&first), "a");
        let later = decide(&settings, "new", &members, Some(&first), now + PATIENCE / 2);
        assert_eq!(later, first);
        let stuck = decide(&settings, "new", &members, Some(&later), now + PATIENCE);
        assert_eq!(names(&stuck), "ab", "it may still be updated");
    }

    #[test]
    fn the_first_ones_come_first_and_the_others_once_they_succeeded() {
        let settings = StagedUpdate { percent: Some(50), ..StagedUpdate::default() };
        let now = Duration::ZERO;
        let admitted =
            |members: &[Member]| decide(&settings, "new", members, None, now).admitted.into_keys().collect::<String>();
        let mut members = [
            member("a", false, Progress::Earlier),
            member("b", false, Progress::Earlier),
            member("y", true, Progress::Earlier),
            member("z", true, Progress::Earlier),
        ];
        assert_eq!(admitted(&members), "yz");
        members[2].progress = Progress::Updating;
        assert_eq!(admitted(&members), "z");
        (members[2].progress, members[3].progress) = (Progress::Updated, Progress::Updating);
        assert_eq!(admitted(&members), "");
        members[3].progress = Progress::Updated;
        assert_eq!(admitted(&members), "ab");
        members[3].progress = Progress::Failed;
        let stopped = decide(&settings, "new", &members, None, now);
        assert_eq!((stopped.admitted.len(), stopped.is_stopped("new")), (0, true));
        assert!(stopped.has_failed("z", "new") && !stopped.has_failed("y", "new") && !stopped.has_failed("z", "newer"));
        assert!(!stopped.is_stopped("newer") && !stopped.admits("a", "new"));
    }

    #[test]
    fn labels_select_only_if_there_are_some() {
        let labels = |list: &[(&str, &str)]| -> BTreeMap<String, String> {
            list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let settings = |match_labels| StagedUpdate { match_labels, percent: None };
        let tier = settings(labels(&[("tier", "canary")]));
        assert!(is_first(&tier, &labels(&[("tier", "canary"), ("x", "y")])));
        assert!(!is_first(&tier, &labels(&[("tier", "gold")])) && !is_first(&tier, &labels(&[])));
        assert!(!is_first(&settings(labels(&[])), &labels(&[("tier", "canary")])));
    }

    fn members() -> impl Strategy<Value = Vec<Member>> {
        let progress = prop_oneof![
            6 => Just(Progress::Earlier),
            2 => Just(Progress::Updating),
            4 => Just(Progress::Updated),
            1 => Just(Progress::Unhealthy),
            1 => Just(Progress::Failed),
        ];
        prop::collection::vec((any::<bool>(), progress), 0..60).prop_map(|all| {
            all.into_iter()
                .enumerate()
                .map(|(at, (first, progress))| member(&format!("{at:03}"), first, progress))
                .collect()
        })
    }

    proptest! {
        /// Never more at once than the settings allow, none after a failure, and no deadlock: while some are left, one is updated or may be.
        #[test]
        fn a_stage_is_bounded_and_proceeds(members in members(), percent in 1..101_i32) {
            let settings = StagedUpdate { percent: Some(percent), ..StagedUpdate::default() };
            let stage = decide(&settings, "new", &members, None, Duration::ZERO);
            let count = |progress| members.iter().filter(|member| member.progress == progress).count();
            let (updating, earlier) = (count(Progress::Updating), count(Progress::Earlier));
            let is_left = earlier + updating + count(Progress::Failed) > 0;
            if count(Progress::Failed) > 0 || count(Progress::Unhealthy) > 0 && is_left {
                prop_assert!(stage.admitted.is_empty() && stage.is_stopped("new"));
            } else {
                prop_assert!(stage.admitted.is_empty() || stage.admitted.len() + updating <= at_once(&settings, members.len()));
                prop_assert!(earlier == 0 || !stage.admitted.is_empty() || updating > 0);
            }
            prop_assert!(stage.admitted.keys().all(|name| members.iter().any(|member| member.name == *name && member.progress == Progress::Earlier)));
        }

        /// One that was admitted and has not begun is admitted again while others proceed, so that none is taken back half-way.
        #[test]
        fn an_admitted_one_stays_admitted(members in members(), percent in 1..101_i32, index in any::<prop::sample::Index>()) {
            let settings = StagedUpdate { percent: Some(percent), ..StagedUpdate::default() };
            // A failure admits none.
            let members: Vec<Member> = members.into_iter().filter(|member| member.progress != Progress::Failed).collect();
            let now = Duration::ZERO;
            let before = decide(&settings, "new", &members, None, now);
            if before.admitted.is_empty() {
                return Ok(());
            }
            let begins = before.admitted.keys().nth(index.index(before.admitted.len())).cloned().unwrap_or_default();
            let mut later = members.clone();
            for member in &mut later {
                if member.name == begins {
                    member.progress = Progress::Updating;
                }
            }
            let after = decide(&settings, "new", &later, Some(&before), now);
            prop_assert!(before.admitted.keys().all(|name| *name == begins || after.admitted.contains_key(name)));
        }
    }
}
