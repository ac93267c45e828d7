//! How objects that differ from the release are treated. Pure.

use std::collections::BTreeSet;

use chandler_core::ObjectKey;

use crate::pure::{
    desired::Desired,
    report::{Drift, DriftKind},
    situation::{Action, Situation},
};

/// How objects of the release that a user changed are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriftPolicy {
    /// They are repaired.
    #[default]
    Repair,
    /// They are reported and not repaired.
    Report,
    /// They are not compared.
    Ignore,
}

/// Which objects are not repaired although they differ from the release. Bringing an object of another release to this one is a
/// rollout and not a repair, unless the object is in an ownership conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriftOptions {
    /// How objects that a user changed are treated.
    pub drift: DriftPolicy,
    /// Whether the release was complete once. From then on, missing objects and objects that are not in the release count as
    /// drift, too.
    pub complete: bool,
    /// Objects in an ownership conflict that are not repaired during their cooldown.
    pub cooldown: BTreeSet<ObjectKey>,
    /// Objects that cannot be written now and are skipped, so that they do not block the others.
    pub skipped: BTreeSet<ObjectKey>,
    /// Objects that did not exist when they were read a moment ago. They are not read again: the create shows whether they exist by now.
    pub missing: BTreeSet<ObjectKey>,
}

impl From<DriftPolicy> for DriftOptions {
    fn from(drift: DriftPolicy) -> Self {
        Self { drift, ..Self::default() }
    }
}

impl DriftOptions {
    /// Whether the only write is the create of an object that was found missing: it needs no dry run, because nothing else would have been
    /// written when the API server refuses it.
    pub(crate) fn creates_one(&self, desired: &[Desired], situations: &[Situation]) -> bool {
        let mut writes = desired
            .iter()
            .zip(situations)
            .filter(|(_, situation)| !matches!(situation.action(), Action::Keep | Action::Wait));
        let only = writes.next().filter(|_| writes.next().is_none());
        self.complete
            && only.is_some_and(|(desired, situation)| {
                *situation == Situation::Absent && self.missing.contains(&desired.key)
            })
    }

    /// Whether objects that are not in the release are kept.
    pub(crate) fn keeps_stale(&self) -> bool {
        self.complete && self.drift != DriftPolicy::Repair
    }

    fn tolerates(&self, key: &ObjectKey, situation: &Situation) -> bool {
        let left = self.drift != DriftPolicy::Repair || self.cooldown.contains(key);
        match situation {
            Situation::SeemsChanged(_) | Situation::Changed(_) => left,
            Situation::Absent => left && self.complete,
            // Another field manager that replaces an object as a whole makes it look like an object of another release.
            Situation::Outdated => self.complete && self.cooldown.contains(key),
            _ => false,
        }
    }

    /// Marks the objects that are not repaired, and returns how they differ, as far as they were compared.
    pub(crate) fn apply_to(&self, desired: &[Desired], situations: &mut [Situation]) -> Vec<Drift> {
        let mut held = Vec::new();
        for (desired, situation) in desired.iter().zip(situations) {
            if self.skipped.contains(&desired.key) && situation.action() != Action::Keep {
                *situation = Situation::Skipped;
            } else if self.tolerates(&desired.key, situation) {
                held.extend(drift(&desired.key, situation));
                *situation = Situation::Tolerated;
            }
        }
        held
    }
}

/// How an object differs from the release, if known.
pub(crate) fn drift(key: &ObjectKey, situation: &Situation) -> Option<Drift> {
    let kind = match situation {
        // Objects that only look changed were not compared.
        Situation::Equal | Situation::Tolerated | Situation::Skipped | Situation::SeemsChanged(_) => return None,
        Situation::Absent => DriftKind::Missing,
        Situation::Changed(fields) => DriftKind::Changed(fields.clone()),
        Situation::Outdated => DriftKind::Outdated,
        Situation::Terminating => DriftKind::Terminating,
        Situation::Foreign(existing_owner) | Situation::Adoptable(existing_owner) => {
            DriftKind::Foreign(existing_owner.clone())
        }
    };
    Some(Drift { object: key.clone(), kind })
}

/// The drift of the objects that were repaired.
pub(crate) fn repaired(desired: &[Desired], situations: &[Situation], recovered: &[ObjectKey]) -> Vec<Drift> {
    let recovered: BTreeSet<&ObjectKey> = recovered.iter().collect();
    let objects = desired.iter().zip(situations).filter(|(desired, _)| recovered.contains(&desired.key));
    objects.filter_map(|(desired, situation)| drift(&desired.key, situation)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("n".into()),
            name: name.into(),
        }
    }

    #[test]
    fn a_policy_alone_makes_options() {
        for drift in [DriftPolicy::Repair, DriftPolicy::Report, DriftPolicy::Ignore] {
            assert_eq!(DriftOptions::from(drift).drift, drift);
        }
    }

    #[test]
    fn drift_that_is_not_repaired() {
        use DriftPolicy::{Ignore, Repair, Report};
        let (changed, absent) = (Situation::Changed(vec![]), Situation::Absent);
        for (drift, complete, name, situation, left) in [
            (Repair, true, "x", &changed, false),
            (Repair, true, "cooldown", &changed, true),
            (Repair, true, "cooldown", &absent, true),
            // A rollout creates objects in an ownership conflict.
            (Repair, false, "cooldown", &absent, false),
            (Report, false, "x", &changed, true),
            (Report, false, "x", &absent, false),
            (Report, true, "x", &absent, true),
            (Ignore, true, "x", &Situation::SeemsChanged("/a".into()), true),
            (Report, true, "x", &Situation::Outdated, false),
            (Repair, true, "cooldown", &Situation::Outdated, true),
            (Repair, false, "cooldown", &Situation::Outdated, false),
            (Report, true, "x", &Situation::Terminating, false),
        ] {
            let drift_options =
                DriftOptions { drift, complete, cooldown: [key("cooldown")].into(), ..DriftOptions::default() };
            assert_eq!(
                drift_options.tolerates(&key(name), situation),
                left,
                "{drift:?} {complete} {name} {situation:?}"
            );
        }
        assert!(!DriftOptions { complete: true, ..DriftOptions::default() }.keeps_stale());
        assert!(DriftOptions { complete: true, drift: Report, ..DriftOptions::default() }.keeps_stale());
    }
}
