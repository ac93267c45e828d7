//! The causes that were found below unhealthy objects, and when to look again. Pure: the time is an argument.

use std::{collections::HashMap, time::Duration};

use chandler_core::{Digest, ObjectKey};
use chandler_health::cause::has_causes;

use crate::pure::report::Unhealthy;

/// How long after a look an object is looked at again, at the earliest. It doubles while nothing changes.
const PAUSE: Duration = Duration::from_secs(10);
/// How long an object is not looked at, at the longest. A cause that has changed is reported that late at worst.
const LONGEST: Duration = Duration::from_mins(1);
/// How long nothing is looked at for an owner whose account may not read Pods.
const FORBIDDEN: Duration = Duration::from_mins(1);
/// How many objects of an owner are explained: as many as a message names.
const EXPLAINED: usize = 5;
/// How many of them one call looks at.
pub(crate) const LOOKS: usize = 3;
/// How many owners are remembered.
const OWNERS: usize = 4096;

/// What was found, by the UID of the owner.
#[derive(Debug, Default)]
pub(crate) struct Causes(HashMap<String, OfOwner>);

#[derive(Debug)]
struct OfOwner {
    release: Digest,
    /// When to look again although the account may not read Pods.
    forbidden_until: Duration,
    found: HashMap<ObjectKey, Found>,
    /// When the owner was asked about last.
    used: Duration,
}

#[derive(Debug)]
struct Found {
    /// What the object itself reported.
    message: String,
    cause: Option<String>,
    looked: Duration,
    pause: Duration,
}

impl Found {
    /// When to look again.
    fn due(&self, message: &str) -> Duration {
        let pause = if self.message == message { self.pause } else { PAUSE };
        self.looked.saturating_add(pause)
    }
}

impl Causes {
    /// The objects to look at now. Causes of other objects or of another release of the owner are dropped.
    pub(crate) fn due(
        &mut self,
        owner: &str,
        release: &Digest,
        unhealthy: &[Unhealthy],
        now: Duration,
    ) -> Vec<ObjectKey> {
        if self.0.get(owner).is_some_and(|known| known.release != *release) {
            self.0.remove(owner);
        }
        self.make_room(owner);
        let known = self.0.entry(owner.to_owned()).or_insert_with(|| OfOwner {
            release: release.clone(),
            forbidden_until: Duration::ZERO,
            found: HashMap::new(),
            used: now,
        });
        known.used = now;
        known.found.retain(|key, _| unhealthy.iter().any(|unhealthy| unhealthy.object == *key));
        if now < known.forbidden_until {
            return Vec::new();
        }
        let is_due = |unhealthy: &&Unhealthy| {
            let found = known.found.get(&unhealthy.object);
            found.is_none_or(|found| found.due(&unhealthy.health.message) <= now)
        };
        explained(unhealthy).filter(is_due).take(LOOKS).map(|unhealthy| unhealthy.object.clone()).collect()
    }

    fn make_room(&mut self, owner: &str) {
        if self.0.len() < OWNERS || self.0.contains_key(owner) {
            return;
        }
        let oldest = self.0.iter().min_by_key(|(_, known)| known.used).map(|(owner, _)| owner.clone());
        oldest.and_then(|oldest| self.0.remove(&oldest));
    }

    /// Notes what was found below an object that reported this message.
    pub(crate) fn note(&mut self, owner: &str, unhealthy: &Unhealthy, cause: Option<String>, now: Duration) {
        let Some(known) = self.0.get_mut(owner) else { return };
        let message = unhealthy.health.message.clone();
        let before = known.found.get(&unhealthy.object).filter(|it| it.cause == cause && it.message == message);
        let pause = before.map_or(PAUSE, |before| (before.pause * 2).min(LONGEST));
        known.found.insert(unhealthy.object.clone(), Found { message, cause, looked: now, pause });
    }

    /// Notes that the account of an owner may not read what is below its objects.
    pub(crate) fn forbid(&mut self, owner: &str, now: Duration) {
        if let Some(known) = self.0.get_mut(owner) {
            known.forbidden_until = now.saturating_add(FORBIDDEN);
            known.found.clear();
        }
    }

    /// Adds the known causes to the health of the objects.
    pub(crate) fn explain(&self, owner: &str, release: &Digest, unhealthy: &mut [Unhealthy]) {
        let Some(known) = self.0.get(owner).filter(|known| known.release == *release) else { return };
        for unhealthy in unhealthy {
            let found = known.found.get(&unhealthy.object);
            if let Some(cause) = found.and_then(|found| found.cause.as_deref()) {
                unhealthy.health = unhealthy.health.clone().because(cause);
            }
        }
    }

    /// How long it is until one of these objects is looked at again, or `None` if none of them is.
    pub(crate) fn next(&self, owner: &str, unhealthy: &[Unhealthy], now: Duration) -> Option<Duration> {
        let known = self.0.get(owner)?;
        let of = |unhealthy: &Unhealthy| {
            known.found.get(&unhealthy.object).map_or(now + PAUSE, |found| found.due(&unhealthy.health.message))
        };
        let next = explained(unhealthy).map(of).min()?.max(known.forbidden_until);
        // Even if it is due now, its turn is in a later call.
        Some(next.saturating_sub(now).max(Duration::from_secs(1)))
    }
}

/// The objects that are explained.
fn explained(unhealthy: &[Unhealthy]) -> impl Iterator<Item = &Unhealthy> {
    unhealthy.iter().filter(|it| has_causes(&it.object.group, &it.object.kind)).take(EXPLAINED)
}

#[cfg(test)]
mod tests {
    use chandler_health::Health;

    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn unhealthy(name: &str, message: &str) -> Unhealthy {
        let object = ObjectKey {
            group: "apps".into(),
            version: "v1".into(),
            kind: "Deployment".into(),
            namespace: Some("n".into()),
            name: name.into(),
        };
        Unhealthy { object, health: Health::progressing(message) }
    }

    fn release() -> Digest {
        Digest::of(b"a")
    }

    #[test]
    fn an_object_is_looked_at_less_and_less_often_while_nothing_changes() {
        let mut causes = Causes::default();
        let one = [unhealthy("a", "0 of 1 replica is available")];
        let mut looks = Vec::new();
        for second in 0..200 {
            let now = seconds(second);
            if !causes.due("o", &release(), &one, now).is_empty() {
                looks.push(second);
                causes.note("o", &one[0], Some("cause".into()), now);
            }
        }
        assert_eq!(looks, [0, 10, 30, 70, 130, 190]);
        // The status of the object has changed, and so has the cause.
        let other = [unhealthy("a", "0 of 1 replica is updated")];
        assert_eq!(causes.due("o", &release(), &other, seconds(199)).len(), 0, "not more often than every ten seconds");
        assert_eq!(causes.due("o", &release(), &other, seconds(200)).len(), 1);
        causes.note("o", &other[0], None, seconds(200));
        assert_eq!(causes.next("o", &other, seconds(203)), Some(seconds(7)));
    }

    #[test]
    fn a_known_cause_replaces_the_message_until_the_object_is_healthy_or_the_release_another_one() {
        let mut causes = Causes::default();
        let both = || vec![unhealthy("a", "x"), unhealthy("b", "y")];
        assert_eq!(causes.due("o", &release(), &both(), seconds(0)).len(), 2);
        for one in both() {
            causes.note("o", &one, (one.object.name == "a").then(|| "cause".into()), seconds(0));
        }
        let messages = |causes: &Causes, release: &Digest| -> Vec<String> {
            let mut both = both();
            causes.explain("o", release, &mut both);
            both.into_iter().map(|unhealthy| unhealthy.health.message).collect()
        };
        assert_eq!(messages(&causes, &release()), ["cause", "y"]);
        assert_eq!(messages(&causes, &Digest::of(b"b")), ["x", "y"]);
        assert!(causes.due("o", &release(), &both()[1..], seconds(1)).is_empty());
        assert_eq!(messages(&causes, &release()), ["x", "y"], "it was healthy in between");
        assert_eq!(causes.due("o", &Digest::of(b"b"), &both(), seconds(1)).len(), 2);
    }

    #[test]
    fn looks_are_bounded_and_every_object_has_its_turn() {
        let mut causes = Causes::default();
        let many: Vec<Unhealthy> = (0..9).map(|number| unhealthy(&number.to_string(), "x")).collect();
        let mut seen = Vec::new();
        for second in 0..3 {
            for key in causes.due("o", &release(), &many, seconds(second)) {
                let one = many.iter().find(|one| one.object == key).unwrap();
                causes.note("o", one, None, seconds(second));
                seen.push((second, key.name));
            }
        }
        let seen: Vec<(u64, &str)> = seen.iter().map(|(second, name)| (*second, name.as_str())).collect();
        assert_eq!(seen, [(0, "0"), (0, "1"), (0, "2"), (1, "3"), (1, "4")]);
        for owner in 0..=OWNERS {
            causes.due(&owner.to_string(), &release(), &many, seconds(9));
        }
        assert_eq!(causes.0.len(), OWNERS);
    }

    #[test]
    fn a_refusal_is_not_asked_for_again_at_once() {
        let mut causes = Causes::default();
        let one = [unhealthy("a", "x")];
        assert_eq!(causes.due("o", &release(), &one, seconds(0)).len(), 1);
        causes.forbid("o", seconds(0));
        assert!(causes.due("o", &release(), &one, seconds(59)).is_empty());
        assert_eq!(causes.next("o", &one, seconds(20)), Some(seconds(40)));
        assert_eq!(causes.due("o", &release(), &one, seconds(60)).len(), 1);
    }

    #[test]
    fn only_kinds_with_objects_below_are_looked_at() {
        let mut causes = Causes::default();
        let mut beacon = unhealthy("a", "x");
        beacon.object.group = "example.com".into();
        assert!(causes.due("o", &release(), &[beacon.clone()], seconds(0)).is_empty());
        assert_eq!(causes.next("o", &[beacon], seconds(0)), None);
    }
}
