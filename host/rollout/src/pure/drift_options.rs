//! What is left as it is although it is not as released. Pure.

use std::collections::BTreeSet;

use chandler_core::ObjectKey;

use crate::pure::{
    desired::Desired,
    report::{Drift, DriftKind},
    situation::{Action, Situation},
};

/// What is done about objects of the release that somebody changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriftPolicy {
    /// They are put right.
    #[default]
    Repair,
    /// They are found out and left as they are.
    Report,
    /// They are not even compared.
    Ignore,
}

/// What is left as it is although it is not as released. What another release made is brought to this one: that is no drift,
/// unless it happens again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriftOptions {
    /// What is done about objects that somebody changed.
    pub drift: DriftPolicy,
    /// Whether the release was complete once. From then on what does not exist, and what does not belong to the release, is
    /// somebody's doing, too.
    pub complete: bool,
    /// Objects that others change again and again, and that are left to them for now.
    pub cooldown: BTreeSet<ObjectKey>,
    /// Objects about which nothing can be done now, so that they do not stand in the way of the others.
    pub skipped: BTreeSet<ObjectKey>,
}

impl From<DriftPolicy> for DriftOptions {
    fn from(drift: DriftPolicy) -> Self {
        Self { drift, ..Self::default() }
    }
}

impl DriftOptions {
    /// Whether objects that are not in the release are left where they are.
    pub(crate) fn keeps_stale(&self) -> bool {
        self.complete && self.drift != DriftPolicy::Repair
    }

    fn tolerates(&self, key: &ObjectKey, situation: &Situation) -> bool {
        let left = self.drift != DriftPolicy::Repair || self.cooldown.contains(key);
        match situation {
            Situation::SeemsChanged(_) | Situation::Changed(_) => left,
            Situation::Absent => left && self.complete,
            // Who replaces an object whole makes it look like one of another release.
            Situation::Outdated => self.complete && self.cooldown.contains(key),
            _ => false,
        }
    }

    /// Takes out of the situations what is left alone; how that differs, as far as it was compared.
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

/// How an object of the release differs from it, where that is known.
pub(crate) fn drift(key: &ObjectKey, situation: &Situation) -> Option<Drift> {
    let kind = match situation {
        // What only seems changed was not compared.
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

/// What had been done to the objects that were recovered.
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
    fn what_is_left_alone() {
        use DriftPolicy::{Ignore, Repair, Report};
        let (changed, absent) = (Situation::Changed(vec![]), Situation::Absent);
        for (drift, complete, name, situation, left) in [
            (Repair, true, "x", &changed, false),
            (Repair, true, "cooldown", &changed, true),
            (Repair, true, "cooldown", &absent, true),
            // A rollout creates what is cooldown.
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
