//! Which objects that differ from the release are repaired, and how the status reports the others.

use std::collections::BTreeSet;

use chandler_api::{
    BundleDeployment, BundleDeploymentSpec, DriftPolicy, DriftState, Drifted, DriftedField, DriftedObject, Reason,
    drift::{LISTED_FIELDS, LISTED_OBJECTS, PATH_BYTES},
    names::REPAIR_AT_ANNOTATION,
};
use chandler_core::{
    ObjectKey,
    order::{self, Phase},
};
use chandler_rollout::{
    Drift, DriftKind, DriftOptions, FieldDrift, Ignored, IgnoredFields, IgnoredFieldsError, Observation,
};
use kube_core::ResourceExt as _;

use super::revisions;
use crate::contention::{ContestedObject, REPAIRS, WINDOW};

/// The objects that differ from the release and are left so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriftFound {
    /// What the status lists.
    pub drifted: Drifted,
    /// One line for each object.
    pub lines: Vec<String>,
    /// Whether other clients change them again after each repair.
    pub contested: bool,
    /// Whether repairing them failed.
    pub failed: bool,
}

impl DriftFound {
    /// Objects that are reported and left.
    pub fn reported(drift: &[Drift]) -> Self {
        let lines = drift.iter().map(ToString::to_string).collect();
        let objects = drift.iter().take(LISTED_OBJECTS).map(object).collect();
        Self { drifted: Drifted { total: count(drift.len()), objects }, lines, contested: false, failed: false }
    }

    /// Objects that could not be repaired.
    pub fn not_repaired(drift: &[Drift]) -> Self {
        Self { failed: !drift.is_empty(), ..Self::reported(drift) }
    }

    /// Objects that are repaired less and less often.
    pub fn contested(contested: &[ContestedObject]) -> Self {
        let drift = contested.iter().cloned().map(|ContestedObject { object, kind }| Drift { object, kind });
        let drift: Vec<Drift> = drift.collect();
        let mut found = Self { contested: !drift.is_empty(), ..Self::reported(&drift) };
        found.drifted.objects.iter_mut().for_each(|object| object.contested = true);
        found.lines = drift.iter().map(line_of_contested).collect();
        found
    }

    /// The reason and the message of the condition; `list` shortens the lines.
    pub fn summary(&self, list: impl Fn(&[String]) -> String) -> (Reason, String) {
        let objects = match self.lines.len() {
            1 => "1 object is".to_owned(),
            number => format!("{number} objects are"),
        };
        let lines = list(&self.lines);
        match (self.lines.is_empty(), self.contested) {
            (true, _) => (Reason::AsReleased, "every object matches the release".to_owned()),
            (false, true) => {
                let minutes = WINDOW.as_secs() / 60;
                let message = format!(
                    "{objects} changed again by other clients after each repair, {REPAIRS} times within {minutes} minutes or \
                     more often; Chandler repairs less and less often: {lines}"
                );
                (Reason::Contested, message)
            }
            (false, false) if self.failed => {
                (Reason::RepairFailed, format!("{objects} different from the release, and the repair failed: {lines}"))
            }
            (false, false) => (
                Reason::DriftReported,
                format!("{objects} different from the release, and the policy does not repair: {lines}"),
            ),
        }
    }
}

fn line_of_contested(drift: &Drift) -> String {
    match drift.kind {
        DriftKind::Outdated => format!("{} was replaced, without its annotation chandler.dev/applied", drift.object),
        DriftKind::Missing => format!("{} was deleted", drift.object),
        _ => drift.to_string(),
    }
}

fn object(drift: &Drift) -> DriftedObject {
    let ObjectKey { group, kind, namespace, name, .. } = drift.object.clone();
    let (state, fields): (DriftState, &[FieldDrift]) = match &drift.kind {
        DriftKind::Changed(fields) => (DriftState::Changed, fields),
        DriftKind::Missing => (DriftState::Missing, &[]),
        DriftKind::Outdated => (DriftState::Outdated, &[]),
        DriftKind::Terminating => (DriftState::Terminating, &[]),
        DriftKind::Foreign(_) => (DriftState::Foreign, &[]),
        DriftKind::Stale => (DriftState::Stale, &[]),
    };
    let omitted = fields.len().saturating_sub(LISTED_FIELDS);
    DriftedObject {
        group,
        kind,
        namespace,
        name,
        state,
        contested: false,
        fields: fields.iter().take(LISTED_FIELDS).map(field).collect(),
        omitted_fields: (omitted > 0).then(|| count(omitted)),
    }
}

fn field(field: &FieldDrift) -> DriftedField {
    let path = field.path.get(..field.path.floor_char_boundary(PATH_BYTES)).unwrap_or_default().to_owned();
    DriftedField { path, manager: field.manager.as_ref().map(|manager| manager.name.clone()) }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The policy of `spec.drift`.
pub fn policy(deployment: &BundleDeployment) -> DriftPolicy {
    deployment.spec.drift.unwrap_or_default()
}

/// The policy of this reconcile: the user may have requested one repair.
pub fn policy_now(deployment: &BundleDeployment) -> chandler_rollout::DriftPolicy {
    let requested = revisions::request(deployment)
        .is_some_and(|request| deployment.annotations().get(REPAIR_AT_ANNOTATION).is_some_and(|at| at == request));
    match policy(deployment) {
        _ if requested => chandler_rollout::DriftPolicy::Repair,
        policy => of_rollout(policy),
    }
}

/// The same policy as a type of the rollout.
pub fn of_rollout(policy: DriftPolicy) -> chandler_rollout::DriftPolicy {
    match policy {
        DriftPolicy::Repair => chandler_rollout::DriftPolicy::Repair,
        DriftPolicy::Report => chandler_rollout::DriftPolicy::Report,
        DriftPolicy::Ignore => chandler_rollout::DriftPolicy::Ignore,
    }
}

/// The fields that `spec.ignoreDifferences` leaves to other field managers.
pub fn ignored_fields(spec: &BundleDeploymentSpec) -> Result<Ignored, IgnoredFieldsError> {
    Ignored::new(spec.ignore_differences.iter().cloned().map(|ignored| IgnoredFields {
        group: ignored.group,
        kind: ignored.kind,
        namespace: ignored.namespace,
        name: ignored.name,
        json_pointers: ignored.json_pointers,
    }))
}

/// Whether the controller must write objects of a release that was complete.
///
/// Where the policy leaves drift, objects of an older release are still updated to this one, such as renewed certificates.
pub fn needs_repair(observed: &Observation, drift_options: &DriftOptions) -> bool {
    if drift_options.drift == chandler_rollout::DriftPolicy::Repair {
        return !observed.parent_current
            || observed.drift.iter().any(|drift| !drift_options.cooldown.contains(&drift.object));
    }
    let outdated = observed.drift.iter().any(|drift| drift.kind == DriftKind::Outdated);
    let stale = observed.drift.iter().any(|drift| drift.kind == DriftKind::Stale);
    outdated || (!observed.parent_current && !stale)
}

/// The drift of a complete release that a reconcile leaves.
pub fn unrepaired(found: &[Drift], drift_options: &DriftOptions) -> Vec<Drift> {
    let repairs = drift_options.drift == chandler_rollout::DriftPolicy::Repair;
    let left = |drift: &&Drift| match drift.kind {
        DriftKind::Outdated => false,
        _ => !repairs || drift_options.cooldown.contains(&drift.object),
    };
    found.iter().filter(left).cloned().collect()
}

/// The drift that was repaired: the drift of the objects that were written.
pub fn repaired<'a>(
    found: &'a [Drift],
    changes: &chandler_rollout::Changes,
) -> impl Iterator<Item = &'a Drift> + use<'a> {
    let written = [&changes.created, &changes.updated, &changes.recovered].into_iter().flatten();
    let written: BTreeSet<ObjectKey> = written.cloned().collect();
    found.iter().filter(move |drift| written.contains(&drift.object))
}

/// Whether this is a CRD that was deleted: its custom resources were deleted with it, and a repair does not bring them back.
pub fn is_deleted_crd(drift: &Drift) -> bool {
    drift.kind == DriftKind::Missing && order::phase_of(&drift.object) == Phase::CustomResourceDefinitions
}

#[cfg(test)]
mod tests;
