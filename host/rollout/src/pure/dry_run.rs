//! Which dry runs are meaningful, and what their answers mean. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::pure::{
    desired::Desired,
    error::{ApiError, ObjectFailure, object_failure},
    fields::{self, FieldDrift},
    report::Conflict,
    situation::Action,
};

/// Whether a dry run of this object is meaningful.
pub(crate) fn can_be_dry_run(desired: &Desired, redefined: &BTreeSet<(&str, &str)>) -> bool {
    desired.served && !redefined.contains(&(desired.key.group.as_str(), desired.key.kind.as_str()))
}

/// The failure that a failed dry run predicts; none if the dry run itself may have caused it.
pub(crate) fn refused(desired: &Desired, action: Action, error: &ApiError) -> Option<ObjectFailure> {
    matches!(error, ApiError::Invalid(_)).then(|| object_failure(&desired.key, verb(action))(error.clone()))
}

pub(crate) fn verb(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Adopt => "adopt",
        _ => "update",
    }
}

/// The fields that an apply takes over from other field managers that apply them, too. It would be refused if it were not
/// forced.
pub(crate) fn conflict(desired: &Desired, live: &Value, applied: &Value) -> Option<Conflict> {
    let fields: Vec<FieldDrift> = fields::drift(live, applied)
        .into_iter()
        .filter(|field| field.manager.as_ref().is_some_and(|manager| manager.applies))
        .collect();
    (!fields.is_empty()).then(|| Conflict { object: desired.key.clone(), fields })
}
