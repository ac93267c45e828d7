//! Ownership conflicts: objects that another client changes again after each repair. Pure: the clock comes in as an argument.
//!
//! If another controller wants other values, both would write forever, as fast as they can. Such an object is *contested*: the controller
//! still repairs it, but after cooldowns that grow, until the other client has not changed it for a while. All times are from one monotonic
//! clock.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use chandler_core::ObjectKey;
use chandler_rollout::{Drift, DriftKind, FieldDrift};

/// This many repairs of one object within [`WINDOW`] make it contested. A user who corrects a mistake by hand needs fewer.
pub const REPAIRS: usize = 4;
/// How long a repair counts.
pub const WINDOW: Duration = Duration::from_mins(2);
/// The first cooldown; each one is twice as long as the one before.
const FIRST_COOLDOWN: Duration = Duration::from_secs(10);
/// The longest cooldown.
const LONGEST_COOLDOWN: Duration = Duration::from_mins(10);
/// How long an object must stay unchanged before it is no longer contested: this, or its last cooldown if that is longer. A client that
/// writes that rarely must not be forgotten in between.
const CALM: Duration = Duration::from_mins(2);
/// How many changed fields of a contested object are remembered.
const FIELDS: usize = 10;

/// The objects of one BundleDeployment that were repaired lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contention(BTreeMap<ObjectKey, ObjectRepairs>);

/// The repairs of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ObjectRepairs {
    /// The times of its repairs within the last window, the oldest first; at most [`REPAIRS`].
    repairs: VecDeque<Duration>,
    conflict: Option<Conflict>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Conflict {
    cooldown: Duration,
    /// Until when it is not repaired.
    until: Duration,
    /// When it was last found changed or repaired.
    seen: Duration,
    /// The fields that were changed since it is contested.
    fields: BTreeSet<FieldDrift>,
    /// The last kind of drift that names no fields.
    otherwise: Option<DriftKind>,
}

impl Conflict {
    fn ends(&self) -> Duration {
        self.seen.saturating_add(self.cooldown.max(CALM))
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

/// An object that another client changes again after each repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContestedObject {
    /// The object.
    pub object: ObjectKey,
    /// How that client changes it.
    pub kind: DriftKind,
}

impl Contention {
    /// Notes which objects differ from the release, and forgets conflicts that are over.
    pub fn see(&mut self, drift: &[Drift], now: Duration) {
        for drift in drift.iter().filter(|drift| is_contestable(drift)) {
            if let Some(conflict) = self.0.get_mut(&drift.object).and_then(|known| known.conflict.as_mut()) {
                conflict.note(drift, now);
            }
        }
        self.0.retain(|_, object| match &object.conflict {
            Some(conflict) => now < conflict.ends(),
            None => object.repairs.back().is_some_and(|last| now < last.saturating_add(WINDOW)),
        });
    }

    /// Notes that an object was repaired. True for the first repair in a window, which an Event should report.
    pub fn repaired(&mut self, drift: &Drift, now: Duration) -> bool {
        if !is_contestable(drift) {
            return false;
        }
        let known = self.0.entry(drift.object.clone()).or_default();
        known.repairs.retain(|then| now < then.saturating_add(WINDOW));
        let first = known.repairs.is_empty() && known.conflict.is_none();
        known.repairs.push_back(now);
        if known.repairs.len() > REPAIRS {
            known.repairs.pop_front();
        }
        match &mut known.conflict {
            Some(conflict) => {
                conflict.cooldown = conflict.cooldown.saturating_mul(2).min(LONGEST_COOLDOWN);
                conflict.until = now.saturating_add(conflict.cooldown);
                conflict.note(drift, now);
            }
            None if known.repairs.len() >= REPAIRS => {
                let until = now.saturating_add(FIRST_COOLDOWN);
                let (fields, otherwise) = (BTreeSet::new(), None);
                let mut conflict = Conflict { cooldown: FIRST_COOLDOWN, until, seen: now, fields, otherwise };
                conflict.note(drift, now);
                known.conflict = Some(conflict);
            }
            None => {}
        }
        first
    }

    /// The objects in a cooldown.
    pub fn paused(&self, now: Duration) -> BTreeSet<ObjectKey> {
        let paused = |known: &ObjectRepairs| known.conflict.as_ref().is_some_and(|conflict| now < conflict.until);
        self.0.iter().filter(|(_, known)| paused(known)).map(|(object, _)| object.clone()).collect()
    }

    /// The contested objects, in a cooldown or not.
    pub fn contested(&self) -> Vec<ContestedObject> {
        let contested = self.0.iter().filter_map(|(object, known)| {
            let Conflict { fields, otherwise, .. } = known.conflict.as_ref()?;
            let changed = || DriftKind::Changed(fields.iter().cloned().collect());
            let kind = otherwise.clone().filter(|_| fields.is_empty()).unwrap_or_else(changed);
            Some(ContestedObject { object: object.clone(), kind })
        });
        contested.collect()
    }

    /// How long it is until a cooldown or a conflict is over; `None` if there is no conflict.
    pub fn next_check(&self, now: Duration) -> Option<Duration> {
        let conflicts = self.0.values().filter_map(|known| known.conflict.as_ref());
        let next =
            conflicts.map(|conflict| if now < conflict.until { conflict.until } else { conflict.ends() }).min()?;
        Some(next.saturating_sub(now))
    }
}

/// Whether the controller repairs it each time. A client that replaces a whole object removes the digest of what was applied, so that
/// the object looks as if another release had made it.
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
    fn the_fourth_repair_within_two_minutes_makes_an_object_contested() {
        let (mut contention, mine) = (Contention::default(), drift("a", "spec.replicas"));
        for second in [0, 1, 2] {
            assert_eq!(contention.repaired(&mine, at(second)), second == 0, "only the first one is news");
            assert!(contention.paused(at(second)).is_empty());
        }
        contention.repaired(&drift("b", "spec.replicas"), at(2));
        contention.repaired(&mine, at(3));
        assert_eq!(contention.paused(at(12)), [mine.object.clone()].into(), "the other object is not contested");
        assert!(contention.paused(at(13)).is_empty());
        assert_eq!(contention.next_check(at(5)), Some(at(8)));
    }

    #[test]
    fn a_client_that_writes_seldom_makes_no_conflict() {
        let (mut contention, mine) = (Contention::default(), drift("a", "spec.replicas"));
        for round in 0..20 {
            contention.see(std::slice::from_ref(&mine), at(round * 45));
            contention.repaired(&mine, at(round * 45));
        }
        assert_eq!((contention.contested(), contention.next_check(at(900))), (vec![], None));
    }

    #[test]
    fn cooldowns_grow_and_a_conflict_ends_when_no_client_writes_any_more() {
        let (mut contention, mine) = (Contention::default(), drift("a", "spec.replicas"));
        let mut now = at(0);
        for _ in 0..REPAIRS {
            contention.repaired(&mine, now);
        }
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let pause = contention.next_check(now).unwrap();
            pauses.push(pause.as_secs());
            now += pause;
            contention.see(&[drift("a", "spec.paused")], now);
            contention.repaired(&mine, now);
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600]);
        let DriftKind::Changed(fields) = &contention.contested()[0].kind else { panic!("fields were changed") };
        let paths: Vec<&str> = fields.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(paths, ["spec.paused", "spec.replicas"]);
        // The cooldown is over, and then the same time again without a change.
        let pause = contention.next_check(now).unwrap();
        contention.see(&[], (now + pause).saturating_sub(at(1)));
        assert_eq!(contention.contested().len(), 1);
        contention.see(&[], now + pause);
        assert_eq!(contention, Contention::default());
    }

    #[test]
    fn deleted_and_replaced_objects_are_contested_and_foreign_ones_are_not() {
        for (kind, contested_kind) in [
            (DriftKind::Missing, true),
            (DriftKind::Outdated, true),
            (DriftKind::Terminating, false),
            (DriftKind::Stale, false),
        ] {
            let (mut contention, drift) = (Contention::default(), Drift { kind: kind.clone(), ..drift("a", "") });
            for _ in 0..REPAIRS {
                contention.repaired(&drift, at(0));
            }
            let contested = contention.contested().pop();
            assert_eq!(contested.map(|contested| contested.kind), contested_kind.then_some(kind));
        }
    }

    proptest! {
        /// Whenever the other client writes, and however often the controller looks, repairs are bounded, and every conflict ends.
        #[test]
        fn repairs_are_bounded(steps in prop::collection::vec((0_u64..200, any::<bool>()), 1..200)) {
            let (mut contention, mine) = (Contention::default(), drift("a", "spec.replicas"));
            let (mut now, mut repairs): (u64, Vec<u64>) = (0, Vec::new());
            for (pause, changed) in steps {
                now += pause;
                let found = if changed { vec![mine.clone()] } else { Vec::new() };
                contention.see(&found, at(now));
                if changed && !contention.paused(at(now)).contains(&mine.object) {
                    contention.repaired(&mine, at(now));
                    repairs.push(now);
                }
            }
            // Any two minutes have at most the repairs that begin a conflict and the repairs between its first cooldowns.
            for begin in &repairs {
                let within = repairs.iter().filter(|then| (*begin..begin + WINDOW.as_secs()).contains(then)).count();
                prop_assert!(within <= REPAIRS + 3, "{repairs:?}");
            }
            while let Some(pause) = contention.next_check(at(now)) {
                prop_assert!(pause > Duration::ZERO, "a conflict that is over is forgotten");
                now += pause.as_secs();
                contention.see(&[], at(now));
            }
            prop_assert!(contention.contested().is_empty());
        }
    }
}
