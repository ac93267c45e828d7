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

/// The failure that a failed dry run predicts, or `None` if the dry run itself may have caused it.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pure::desired::tests::desired;

    fn config_map() -> Desired {
        desired(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1"}}), true)
    }

    #[test]
    fn a_kind_that_the_release_defines_or_changes_is_not_tried() {
        let object = config_map();
        assert!(can_be_dry_run(&object, &BTreeSet::from([("a.b", "ConfigMap"), ("", "Secret")])));
        assert!(!can_be_dry_run(&object, &BTreeSet::from([("", "ConfigMap")])));
        assert!(!can_be_dry_run(&Desired { served: false, ..object }, &BTreeSet::new()));
    }

    #[test]
    fn only_an_invalid_object_is_refused() {
        let message =
            |action, error: &ApiError| refused(&config_map(), action, error).map(|failure| failure.to_string());
        let invalid = ApiError::Invalid("no".into());
        for (action, want) in [
            (Action::Create, "cannot create ConfigMap install/x: no"),
            (Action::Adopt, "cannot adopt ConfigMap install/x: no"),
            (Action::Update, "cannot update ConfigMap install/x: no"),
            (Action::Recover, "cannot update ConfigMap install/x: no"),
        ] {
            assert_eq!(message(action, &invalid).as_deref(), Some(want));
        }
        for error in
            [ApiError::Forbidden("no".into()), ApiError::NotFound("no".into()), ApiError::Conflict("no".into())]
        {
            assert_eq!(message(Action::Create, &error), None, "{error:?}");
        }
    }

    #[test]
    fn fields_that_another_manager_applies_conflict() {
        let live = |operation: &str| {
            json!({"data": {"a": "2"}, "metadata": {"managedFields": [
                {"manager": "gitops", "operation": operation, "fieldsV1": {"f:data": {"f:a": {}}}}]}})
        };
        let applied = json!({"data": {"a": "1"}});
        let found = conflict(&config_map(), &live("Apply"), &applied).unwrap();
        assert_eq!(found.object, config_map().key);
        assert_eq!(found.fields.iter().map(|field| field.path.as_str()).collect::<Vec<_>>(), ["data.a"]);
        assert_eq!(conflict(&config_map(), &live("Update"), &applied), None, "an update takes nothing over");
        assert_eq!(conflict(&config_map(), &live("Apply"), &live("Apply")), None, "nothing differs");
    }
}
