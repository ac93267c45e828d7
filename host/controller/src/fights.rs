//! Objects that somebody else changes again and again. Pure: the clock comes in as an argument.
//!
//! What is put right is changed again by a controller that wants it otherwise, and both would go on for ever, as fast as they
//! can. Such an object is *contested*: it is still put right, but with pauses that grow, until nobody has changed it for a
//! while. All times are of one clock that does not go back.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use chandler_core::ObjectKey;
use chandler_rollout::{Drift, DriftKind, FieldDrift};

/// So many repairs of one object within [`SPELL`] make a fight. Who corrects a mistake by hand stays below.
pub(crate) const REPAIRS: usize = 4;
/// How long a repair counts.
pub(crate) const SPELL: Duration = Duration::from_mins(2);
/// The first pause; each one is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);
/// For how long nobody must have changed an object before it is no longer contested. As long as its last pause, where that is
/// longer: who comes that seldom must not be forgotten in between.
const CALM: Duration = Duration::from_mins(2);
/// How many fields are remembered of a contested object.
const FIELDS: usize = 10;

/// The objects of one BundleDeployment that were put right lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fights(BTreeMap<ObjectKey, Fight>);

/// What happened to one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Fight {
    /// When it was put right within the last spell, the oldest first; at most [`REPAIRS`].
    repairs: VecDeque<Duration>,
    contest: Option<Contest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Contest {
    pause: Duration,
    /// Until when it is left alone.
    until: Duration,
    /// When it was last found changed or put right.
    seen: Duration,
    /// What was changed since it is contested.
    fields: BTreeSet<FieldDrift>,
    /// How it was found last where no field was named.
    otherwise: Option<DriftKind>,
}

impl Contest {
    fn ends(&self) -> Duration {
        self.seen.saturating_add(self.pause.max(CALM))
    }

    fn note(&mut self, drift: &Drift, now: Duration) {
        self.seen = now;
        let DriftKind::Changed(fields) = &drift.kind else {
            self.otherwise = Some(drift.kind.clone());
            return;
        };
        let room = FIELDS.saturating_sub(self.fields.len());
        let news: Vec<&FieldDrift> = fields.iter().filter(|field| !self.fields.contains(field)).take(room).collect();
        self.fields.extend(news.into_iter().cloned());
    }
}

/// An object that others change again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contested {
    pub(crate) object: ObjectKey,
    /// What they do to it.
    pub(crate) kind: DriftKind,
}

impl Fights {
    /// Takes note of what is not as released, and forgets what is over.
    pub(crate) fn see(&mut self, drift: &[Drift], now: Duration) {
        for drift in drift.iter().filter(|drift| is_contestable(drift)) {
            if let Some(contest) = self.0.get_mut(&drift.object).and_then(|fight| fight.contest.as_mut()) {
                contest.note(drift, now);
            }
        }
        self.0.retain(|_, fight| match &fight.contest {
            Some(contest) => now < contest.ends(),
            None => fight.repairs.back().is_some_and(|last| now < last.saturating_add(SPELL)),
        });
    }

    /// Takes note that an object was put right. Tells whether that is news: the first time in a spell.
    pub(crate) fn repaired(&mut self, drift: &Drift, now: Duration) -> bool {
        if !is_contestable(drift) {
            return false;
        }
        let fight = self.0.entry(drift.object.clone()).or_default();
        fight.repairs.retain(|then| now < then.saturating_add(SPELL));
        let first = fight.repairs.is_empty() && fight.contest.is_none();
        fight.repairs.push_back(now);
        if fight.repairs.len() > REPAIRS {
            fight.repairs.pop_front();
        }
        match &mut fight.contest {
            Some(contest) => {
                contest.pause = contest.pause.saturating_mul(2).min(LONGEST_PAUSE);
                contest.until = now.saturating_add(contest.pause);
                contest.note(drift, now);
            }
            None if fight.repairs.len() >= REPAIRS => {
                let until = now.saturating_add(FIRST_PAUSE);
                let (fields, otherwise) = (BTreeSet::new(), None);
                let mut contest = Contest { pause: FIRST_PAUSE, until, seen: now, fields, otherwise };
                contest.note(drift, now);
                fight.contest = Some(contest);
            }
            None => {}
        }
        first
    }

    /// The objects that are left alone for now.
    pub(crate) fn paused(&self, now: Duration) -> BTreeSet<ObjectKey> {
        let paused = |fight: &Fight| fight.contest.as_ref().is_some_and(|contest| now < contest.until);
        self.0.iter().filter(|(_, fight)| paused(fight)).map(|(object, _)| object.clone()).collect()
    }

    /// The contested objects, those that are left alone for now and the others.
    pub(crate) fn contested(&self) -> Vec<Contested> {
        let contested = self.0.iter().filter_map(|(object, fight)| {
            let Contest { fields, otherwise, .. } = fight.contest.as_ref()?;
            let changed = || DriftKind::Changed(fields.iter().cloned().collect());
            let kind = otherwise.clone().filter(|_| fields.is_empty()).unwrap_or_else(changed);
            Some(Contested { object: object.clone(), kind })
        });
        contested.collect()
    }

    /// How long until a pause or a fight is over; none where there is no fight.
    pub(crate) fn look_again(&self, now: Duration) -> Option<Duration> {
        let contests = self.0.values().filter_map(|fight| fight.contest.as_ref());
        let next = contests.map(|contest| if now < contest.until { contest.until } else { contest.ends() }).min()?;
        Some(next.saturating_sub(now))
    }
}

/// Whether it is put right each time. Who replaces an object whole takes off the digest of what was applied, so that it looks as
/// if another release had made it.
fn is_contestable(drift: &Drift) -> bool {
    matches!(drift.kind, DriftKind::Changed(_) | DriftKind::Missing | DriftKind::Outdated)
}

#[cfg(test)]
mod tests {
    use chandler_rollout::Manager;
    use proptest::prelude::*;

    use super::*;

    fn drift(name: &str, path: &str) -> Drift {
        let object = ObjectKey {
            group: "apps".into(),
            kind: "Deployment".into(),
            namespace: Some("n".into()),
            name: name.into(),
            version: "v1".into(),
        };
        let manager = Some(Manager { name: "other".into(), applies: true });
        let field = FieldDrift { path: path.into(), removed: false, manager };
        Drift { object, kind: DriftKind::Changed(vec![field]) }
    }

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_fourth_repair_within_two_minutes_begins_a_fight() {
        let (mut fights, mine) = (Fights::default(), drift("a", "spec.replicas"));
        for second in [0, 1, 2] {
            assert_eq!(fights.repaired(&mine, at(second)), second == 0, "only the first one is news");
            assert!(fights.paused(at(second)).is_empty());
        }
        fights.repaired(&drift("b", "spec.replicas"), at(2));
        fights.repaired(&mine, at(3));
        assert_eq!(fights.paused(at(12)), [mine.object.clone()].into(), "the other object is none of it");
        assert!(fights.paused(at(13)).is_empty());
        assert_eq!(fights.look_again(at(5)), Some(at(8)));
    }

    #[test]
    fn who_is_slow_does_not_fight() {
        let (mut fights, mine) = (Fights::default(), drift("a", "spec.replicas"));
        for round in 0..20 {
            fights.see(std::slice::from_ref(&mine), at(round * 45));
            fights.repaired(&mine, at(round * 45));
        }
        assert_eq!((fights.contested(), fights.look_again(at(900))), (vec![], None));
    }

    #[test]
    fn pauses_grow_and_a_fight_ends_when_nobody_comes_any_more() {
        let (mut fights, mine) = (Fights::default(), drift("a", "spec.replicas"));
        let mut now = at(0);
        for _ in 0..REPAIRS {
            fights.repaired(&mine, now);
        }
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let pause = fights.look_again(now).unwrap();
            pauses.push(pause.as_secs());
            now += pause;
            fights.see(&[drift("a", "spec.paused")], now);
            fights.repaired(&mine, now);
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600]);
        let DriftKind::Changed(fields) = &fights.contested()[0].kind else { panic!("fields were changed") };
        let told: Vec<&str> = fields.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(told, ["spec.paused", "spec.replicas"]);
        // The pause is over, and then as much time again without a change.
        let pause = fights.look_again(now).unwrap();
        fights.see(&[], (now + pause).saturating_sub(at(1)));
        assert_eq!(fights.contested().len(), 1);
        fights.see(&[], now + pause);
        assert_eq!(fights, Fights::default());
    }

    #[test]
    fn who_deletes_or_replaces_fights_too_and_who_is_in_the_way_does_not() {
        for (kind, fight) in [
            (DriftKind::Missing, true),
            (DriftKind::Outdated, true),
            (DriftKind::Terminating, false),
            (DriftKind::Stale, false),
        ] {
            let (mut fights, drift) = (Fights::default(), Drift { kind: kind.clone(), ..drift("a", "") });
            for _ in 0..REPAIRS {
                fights.repaired(&drift, at(0));
            }
            let contested = fights.contested().pop();
            assert_eq!(contested.map(|contested| contested.kind), fight.then_some(kind));
        }
    }

    proptest! {
        /// Whatever comes when, and however often it is looked at: repairs are bounded, and every fight ends.
        #[test]
        fn repairs_are_bounded(steps in prop::collection::vec((0_u64..200, any::<bool>()), 1..200)) {
            let (mut fights, mine) = (Fights::default(), drift("a", "spec.replicas"));
            let (mut now, mut repairs): (u64, Vec<u64>) = (0, Vec::new());
            for (pause, changed) in steps {
                now += pause;
                let found = if changed { vec![mine.clone()] } else { Vec::new() };
                fights.see(&found, at(now));
                if changed && !fights.paused(at(now)).contains(&mine.object) {
                    fights.repaired(&mine, at(now));
                    repairs.push(now);
                }
            }
            // No two minutes hold more than the repairs that begin a fight and those of its first pauses.
            for begin in &repairs {
                let within = repairs.iter().filter(|then| (*begin..begin + SPELL.as_secs()).contains(then)).count();
                prop_assert!(within <= REPAIRS + 3, "{repairs:?}");
            }
            while let Some(pause) = fights.look_again(at(now)) {
                prop_assert!(pause > Duration::ZERO, "a fight that is over is forgotten");
                now += pause.as_secs();
                fights.see(&[], at(now));
            }
            prop_assert!(fights.contested().is_empty());
        }
    }
}
