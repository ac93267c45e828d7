//! What a call did, found and waits for.

use std::fmt;

use chandler_core::ObjectKey;
use chandler_health::Health;

use crate::pure::{deletion_plan::CrdInUse, existing_owner::ExistingOwner, fields::FieldDrift};

/// What was changed in the cluster, by one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Objects that did not exist.
    pub created: Vec<ObjectKey>,
    /// Objects that were somebody else's and were taken over.
    pub adopted: Vec<ObjectKey>,
    /// Objects that another release had made.
    pub updated: Vec<ObjectKey>,
    /// Objects of this release that somebody had changed.
    pub recovered: Vec<ObjectKey>,
    /// Objects that are no longer in the release and were deleted.
    pub pruned: Vec<ObjectKey>,
    /// CRDs that are no longer in the release and were left to themselves.
    pub orphaned: Vec<ObjectKey>,
    /// CRDs that are no longer in the release and stay members of the set while custom resources exist.
    pub kept: Vec<ObjectKey>,
    /// Objects that nothing had to be done about.
    pub unchanged: Vec<ObjectKey>,
    /// What was found to be unsafe before anything was written, and by configuration did not stop it.
    pub warnings: Vec<String>,
    /// Fields that others apply, too, and that were taken over from them.
    pub conflicts: Vec<Conflict>,
    /// What had been done to the objects that were recovered.
    pub repaired: Vec<Drift>,
    /// Objects that are not as released and were left so.
    pub unrepaired: Vec<Drift>,
}

/// Fields of an object that somebody else applies, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The object.
    pub object: ObjectKey,
    /// The fields, each with its manager.
    pub fields: Vec<FieldDrift>,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} had fields that others apply: {}", self.object, named(&self.fields))
    }
}

impl Changes {
    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.created.is_empty()
            && self.adopted.is_empty()
            && self.updated.is_empty()
            && self.recovered.is_empty()
            && self.pruned.is_empty()
    }
}

impl fmt::Display for Changes {
    /// One line for each object that changed, then how many did not.
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

/// An object that does not work, or not yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unhealthy {
    /// The object.
    pub object: ObjectKey,
    /// In what way.
    pub health: Health,
}

impl fmt::Display for Unhealthy {
    /// The predecessor's form: `(group/version, Kind=K)(namespace/name): message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectKey { group, version, kind, namespace, name } = &self.object;
        write!(f, "({group}/{version}, Kind={kind})(")?;
        if let Some(namespace) = namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{name}): {}", self.health)
    }
}

/// How far a release has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Something has to happen in the cluster first.
    Waiting {
        /// The stage that is being worked on, counted from 1.
        stage: usize,
        /// How many stages there are.
        stages: usize,
        /// Whether every object of the release is in the cluster as released.
        installed: bool,
        /// What is waited for: objects that are not healthy, not established or not gone yet.
        waiting: Vec<Unhealthy>,
        /// What was changed by this call.
        changes: Changes,
    },
    /// Everything is as released and healthy, and nothing of an earlier release is left.
    Complete {
        /// How many stages there are.
        stages: usize,
        /// What was changed by this call.
        changes: Changes,
    },
}

impl Progress {
    /// What was changed by the call.
    pub fn changes(&self) -> &Changes {
        match self {
            Self::Waiting { changes, .. } | Self::Complete { changes, .. } => changes,
        }
    }

    /// Whether everything is as released and healthy.
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
    /// It was made by another release.
    Outdated,
    /// These fields are not as released.
    Changed(Vec<FieldDrift>),
    /// It belongs to somebody else.
    Foreign(ExistingOwner),
    /// It is not in the release any more.
    Stale,
}

/// An object that is not as released.
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

/// How many fields one line names.
const NAMED: usize = 5;

/// The first fields, and how many more.
fn named(fields: &[FieldDrift]) -> String {
    let named: Vec<String> = fields.iter().take(NAMED).map(ToString::to_string).collect();
    match fields.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{}, and {more} more", named.join(", ")),
    }
}

/// What was found without changing anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Objects that are not as released.
    pub drift: Vec<Drift>,
    /// Objects that are not healthy.
    pub unhealthy: Vec<Unhealthy>,
    /// CRDs that are no longer in the release and stay while custom resources exist.
    pub kept: Vec<ObjectKey>,
    /// Whether the ApplySet's own annotations say what they should.
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

/// How far a deletion has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Teardown {
    /// Objects are not gone yet; those that others hold back are named with their finalizers.
    Waiting {
        /// What is waited for.
        waiting: Vec<Unhealthy>,
        /// What was deleted by this call.
        deleted: Vec<ObjectKey>,
        /// What was left to itself by this call.
        orphaned: Vec<ObjectKey>,
    },
    /// Nothing is deleted, since custom resources of others would go with their CRDs.
    Held {
        /// The CRDs.
        in_use: Vec<CrdInUse>,
    },
    /// No object of the owner is left.
    Complete {
        /// What was deleted by this call.
        deleted: Vec<ObjectKey>,
        /// What was left to itself by this call.
        orphaned: Vec<ObjectKey>,
    },
}
