//! The results of calls: what they changed, found and wait for. Pure.

use std::fmt;

use chandler_core::ObjectKey;
use chandler_health::Health;

use crate::pure::{deletion_plan::CrdInUse, existing_owner::ExistingOwner, fields::FieldDrift};

/// The changes of one call in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Objects that were created.
    pub created: Vec<ObjectKey>,
    /// Objects of other owners that were adopted.
    pub adopted: Vec<ObjectKey>,
    /// Objects of another release that were updated.
    pub updated: Vec<ObjectKey>,
    /// Objects of another release that were deleted, because this release changes their immutable fields, and created again. One
    /// that still terminates is created by a later call.
    pub recreated: Vec<ObjectKey>,
    /// Objects of this release that were repaired.
    pub recovered: Vec<ObjectKey>,
    /// Objects that are no longer in the release and were deleted.
    pub pruned: Vec<ObjectKey>,
    /// CRDs that are no longer in the release and were orphaned.
    pub orphaned: Vec<ObjectKey>,
    /// CRDs that are no longer in the release and stay members of the set while custom resources exist.
    pub kept: Vec<ObjectKey>,
    /// Objects that already matched the release.
    pub unchanged: Vec<ObjectKey>,
    /// Unsafe changes that the configuration allows, found before anything was written.
    pub warnings: Vec<String>,
    /// Fields of other field managers that were taken over by the apply.
    pub conflicts: Vec<Conflict>,
    /// The drift that was repaired.
    pub repaired: Vec<Drift>,
    /// Objects that differ from the release and were not repaired.
    pub unrepaired: Vec<Drift>,
}

/// Fields of an object that another field manager applies, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The object.
    pub object: ObjectKey,
    /// The fields, each with its field manager.
    pub fields: Vec<FieldDrift>,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} had fields that other field managers apply: {}", self.object, named(&self.fields))
    }
}

impl Changes {
    /// Whether no object was written.
    pub fn is_empty(&self) -> bool {
        self.created.is_empty()
            && self.adopted.is_empty()
            && self.updated.is_empty()
            && self.recreated.is_empty()
            && self.recovered.is_empty()
            && self.pruned.is_empty()
    }
}

impl fmt::Display for Changes {
    /// One line for each changed object, then the number of unchanged objects.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        for conflict in &self.conflicts {
            writeln!(f, "warning: {conflict}")?;
        }
        for (verb, objects) in [
            ("created", &self.created),
            ("adopted", &self.adopted),
            ("updated", &self.updated),
            ("recreated", &self.recreated),
            ("recovered", &self.recovered),
            ("pruned", &self.pruned),
            ("orphaned", &self.orphaned),
            ("kept", &self.kept),
        ] {
            for object in objects {
                writeln!(f, "{verb} {object}")?;
            }
        }
        write!(f, "unchanged: {}", self.unchanged.len())
    }
}

/// An object that is not healthy, or not yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unhealthy {
    /// The object.
    pub object: ObjectKey,
    /// Its health.
    pub health: Health,
}

impl fmt::Display for Unhealthy {
    /// The form that RukPak uses: `(group/version, Kind=K)(namespace/name): message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectKey { group, version, kind, namespace, name } = &self.object;
        write!(f, "({group}/{version}, Kind={kind})(")?;
        if let Some(namespace) = namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{name}): {}", self.health)
    }
}

/// The progress of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The rollout waits for the cluster.
    Waiting {
        /// The current stage, counted from 1.
        stage: usize,
        /// The number of stages.
        stages: usize,
        /// Whether every object of the release exists and matches it.
        installed: bool,
        /// Objects that are not healthy, not established or not deleted yet.
        waiting: Vec<Unhealthy>,
        /// The changes of this call.
        changes: Changes,
    },
    /// Every object matches the release and is healthy, and no object of an earlier release is left.
    Complete {
        /// The number of stages.
        stages: usize,
        /// The changes of this call.
        changes: Changes,
    },
}

impl Progress {
    /// The changes of the call.
    pub fn changes(&self) -> &Changes {
        match self {
            Self::Waiting { changes, .. } | Self::Complete { changes, .. } => changes,
        }
    }

    /// Whether every object matches the release and is healthy.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Complete { .. })
    }
}

/// How an object differs from the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriftKind {
    /// It does not exist.
    Missing,
    /// It is being deleted.
    Terminating,
    /// Another release was the last to apply it.
    Outdated,
    /// These fields differ from the release.
    Changed(Vec<FieldDrift>),
    /// It belongs to another owner.
    Foreign(ExistingOwner),
    /// It is no longer in the release.
    Stale,
}

/// An object that differs from the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The object.
    pub object: ObjectKey,
    /// How it differs.
    pub kind: DriftKind,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = &self.object;
        match &self.kind {
            DriftKind::Missing => write!(f, "{object} does not exist"),
            DriftKind::Terminating => write!(f, "{object} is being deleted"),
            DriftKind::Outdated => write!(f, "{object} is from another release"),
            DriftKind::Changed(fields) if fields.is_empty() => write!(f, "{object} was changed"),
            DriftKind::Changed(fields) => write!(f, "{object}: {}", named(fields)),
            DriftKind::Foreign(owner) => write!(f, "{object} exists and {owner}"),
            DriftKind::Stale => write!(f, "{object} is not in the release"),
        }
    }
}

/// The number of fields that one line names.
const NAMED: usize = 5;

/// The first fields, and the number of further ones.
fn named(fields: &[FieldDrift]) -> String {
    let named: Vec<String> = fields.iter().take(NAMED).map(ToString::to_string).collect();
    match fields.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{}, and {more} more", named.join(", ")),
    }
}

/// The result of an observation, which changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Objects that differ from the release.
    pub drift: Vec<Drift>,
    /// Objects that are not healthy.
    pub unhealthy: Vec<Unhealthy>,
    /// CRDs that are no longer in the release and stay while custom resources exist.
    pub kept: Vec<ObjectKey>,
    /// Whether the annotations of the ApplySet's parent are current.
    pub parent_current: bool,
}

impl Observation {
    /// Whether [`Rollout::advance`](crate::Rollout::advance) would find nothing to change.
    pub fn matches_release(&self) -> bool {
        self.drift.is_empty() && self.parent_current
    }

    /// Whether every object is healthy.
    pub fn is_healthy(&self) -> bool {
        self.unhealthy.is_empty()
    }
}

/// The progress of a teardown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Teardown {
    /// Objects are not deleted yet. Objects with finalizers are reported with them.
    Waiting {
        /// The objects that are not deleted yet.
        waiting: Vec<Unhealthy>,
        /// The objects that this call deleted.
        deleted: Vec<ObjectKey>,
        /// The objects that this call orphaned.
        orphaned: Vec<ObjectKey>,
    },
    /// Nothing is deleted, because custom resources of other users would be deleted with their CRDs.
    Held {
        /// The CRDs.
        in_use: Vec<CrdInUse>,
    },
    /// No object of the owner is left.
    Complete {
        /// The objects that this call deleted.
        deleted: Vec<ObjectKey>,
        /// The objects that this call orphaned.
        orphaned: Vec<ObjectKey>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::ownership::Manager;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            group: "apps".into(),
            version: "v1".into(),
            kind: "Deployment".into(),
            namespace: Some("n".into()),
            name: name.into(),
        }
    }

    fn fields(count: usize) -> Vec<FieldDrift> {
        let manager = || Some(Manager { name: "gitops".into(), applies: true });
        (0..count)
            .map(|number| FieldDrift { path: format!("spec.f{number}"), removed: false, manager: manager() })
            .collect()
    }

    #[test]
    fn changes_are_told_line_by_line() {
        let changes = Changes {
            created: vec![key("a")],
            adopted: vec![key("b")],
            updated: vec![key("c")],
            recreated: vec![key("r")],
            recovered: vec![key("d")],
            pruned: vec![key("e")],
            orphaned: vec![key("f")],
            kept: vec![key("g")],
            unchanged: vec![key("h"), key("i")],
            warnings: vec!["careful".into()],
            conflicts: vec![Conflict { object: key("c"), fields: fields(6) }],
            ..Changes::default()
        };
        insta::assert_snapshot!(changes, @r"
        warning: careful
        warning: Deployment.apps n/c had fields that other field managers apply: spec.f0 was applied by gitops, spec.f1 was applied by gitops, spec.f2 was applied by gitops, spec.f3 was applied by gitops, spec.f4 was applied by gitops, and 1 more
        created Deployment.apps n/a
        adopted Deployment.apps n/b
        updated Deployment.apps n/c
        recreated Deployment.apps n/r
        recovered Deployment.apps n/d
        pruned Deployment.apps n/e
        orphaned Deployment.apps n/f
        kept Deployment.apps n/g
        unchanged: 2
        ");
    }

    #[test]
    fn a_call_that_wrote_an_object_changed_something() {
        let one = || vec![key("a")];
        let unchanged = Changes { unchanged: one(), kept: one(), ..Changes::default() };
        assert!(unchanged.is_empty());
        for changes in [
            Changes { created: one(), ..Changes::default() },
            Changes { adopted: one(), ..Changes::default() },
            Changes { updated: one(), ..Changes::default() },
            Changes { recreated: one(), ..Changes::default() },
            Changes { recovered: one(), ..Changes::default() },
            Changes { pruned: one(), ..Changes::default() },
        ] {
            assert!(!changes.is_empty(), "{changes}");
        }
    }

    #[test]
    fn drift_is_reported_in_one_line() {
        let lines: Vec<String> = [
            DriftKind::Missing,
            DriftKind::Terminating,
            DriftKind::Outdated,
            DriftKind::Changed(vec![]),
            DriftKind::Changed(fields(1)),
            DriftKind::Changed(fields(5)),
            DriftKind::Foreign(ExistingOwner::Unknown),
            DriftKind::Stale,
        ]
        .into_iter()
        .map(|kind| Drift { object: key("a"), kind }.to_string())
        .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        Deployment.apps n/a does not exist
        Deployment.apps n/a is being deleted
        Deployment.apps n/a is from another release
        Deployment.apps n/a was changed
        Deployment.apps n/a: spec.f0 was applied by gitops
        Deployment.apps n/a: spec.f0 was applied by gitops, spec.f1 was applied by gitops, spec.f2 was applied by gitops, spec.f3 was applied by gitops, spec.f4 was applied by gitops
        Deployment.apps n/a exists and was not created by Chandler
        Deployment.apps n/a is not in the release
        ");
    }

    #[test]
    fn unhealthy_objects_are_told_as_rukpak_does() {
        let unhealthy = |namespace: Option<&str>| {
            let object = ObjectKey { namespace: namespace.map(Into::into), ..key("a") };
            Unhealthy { object, health: Health::failed("has failed") }.to_string()
        };
        assert_eq!(unhealthy(Some("n")), "(apps/v1, Kind=Deployment)(n/a): has failed");
        assert_eq!(unhealthy(None), "(apps/v1, Kind=Deployment)(a): has failed");
    }

    #[test]
    fn an_observation_matches_only_without_drift_and_with_a_current_parent() {
        let drift = || vec![Drift { object: key("a"), kind: DriftKind::Missing }];
        for (drift, parent_current, matches) in [(vec![], true, true), (vec![], false, false), (drift(), true, false)] {
            let observation = Observation { drift, parent_current, ..Observation::default() };
            assert_eq!((observation.matches_release(), observation.is_healthy()), (matches, true), "{observation:?}");
        }
        let unhealthy = vec![Unhealthy { object: key("a"), health: Health::failed("has failed") }];
        assert!(!Observation { unhealthy, ..Observation::default() }.is_healthy());
    }

    #[test]
    fn only_a_complete_rollout_is_complete() {
        let changes = Changes { created: vec![key("a")], ..Changes::default() };
        let waiting =
            Progress::Waiting { stage: 1, stages: 1, installed: false, waiting: vec![], changes: changes.clone() };
        let complete = Progress::Complete { stages: 1, changes: changes.clone() };
        assert_eq!((waiting.is_complete(), complete.is_complete()), (false, true));
        assert_eq!((waiting.changes(), complete.changes()), (&changes, &changes));
    }
}
