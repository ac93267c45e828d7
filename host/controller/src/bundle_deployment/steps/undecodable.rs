//! A BundleDeployment that the controller cannot decode: its schema allows a value that this version does not know.
//!
//! The controller does nothing for such an object, and its status reports why, with the JSON path of the value.

use chandler_api::{
    BundleDeployment, ConditionType, NewCondition, Reason,
    conditions::{remove_condition, whole_seconds},
    set_condition,
};
use chandler_runtime::status_patch;
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DynamicObject},
    core::error_boundary::InvalidObject,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::{Guarded, ReconcileError, handles::StatusHandles};
use crate::events;

/// The members of a status that are written although the rest of the object cannot be decoded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PartialStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    conditions: Vec<Condition>,
}

/// Writes to the status, and as an Event, which value of the object cannot be decoded.
pub(in super::super) async fn report(
    handles: StatusHandles<'_>,
    guarded: &Guarded,
    invalid: &InvalidObject,
) -> Result<(), ReconcileError> {
    let name = guarded.name_any();
    let resource = ApiResource::erase::<BundleDeployment>(&());
    let api: Api<DynamicObject> = Api::all_with(handles.client.clone(), &resource);
    let Some(object) = api.get_opt(&name).await.map_err(ReconcileError::Status)? else { return Ok(()) };
    let cause = cause(&object.data).unwrap_or_else(|| invalid.error.clone());
    let old = stored(&object.data);
    let new = status(&old, object.metadata.generation, &cause, whole_seconds(Timestamp::now()));
    let written = status_patch::write_as(&api, &resource.kind, &name, Some(&old), &new).await;
    if written.map_err(ReconcileError::Status)?.is_some() {
        events::publish(handles.events, guarded, Some(&old.conditions), &new.conditions).await;
    }
    Ok(())
}

/// The first value that cannot be decoded, with its JSON path; `None` if all of the object's content can be decoded.
fn cause(content: &Value) -> Option<String> {
    /// Everything of a BundleDeployment except its metadata, which has been decoded.
    #[derive(Deserialize)]
    struct Content {
        #[serde(rename = "spec")]
        _spec: chandler_api::BundleDeploymentSpec,
        #[serde(rename = "status", default)]
        _status: Option<chandler_api::BundleDeploymentStatus>,
    }
    let error = serde_path_to_error::deserialize::<_, Content>(content).err()?;
    Some(format!("{}: {}", error.path(), error.inner()))
}

fn stored(content: &Value) -> PartialStatus {
    content.get("status").and_then(|status| PartialStatus::deserialize(status).ok()).unwrap_or_default()
}

/// The status with the cause in it. Only a change of the object, or another version of the controller, helps.
fn status(old: &PartialStatus, generation: Option<i64>, cause: &str, now: Time) -> PartialStatus {
    let mut status = PartialStatus { observed_generation: generation, ..old.clone() };
    let message = format!("the BundleDeployment cannot be decoded: {cause}");
    for condition in [
        NewCondition::is_false(ConditionType::Progressing, Reason::InvalidSpec, &*message),
        NewCondition::is_true(ConditionType::Stalled, Reason::InvalidSpec, &*message),
        NewCondition::is_false(ConditionType::Ready, Reason::InvalidSpec, &*message),
    ] {
        set_condition(&mut status.conditions, condition, generation, now.clone());
    }
    remove_condition(&mut status.conditions, ConditionType::Reconciling);
    status
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(status: &Value) -> Value {
        json!({
            "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"},
                     "rollout": {"historyLimit": "many"}},
            "status": status,
        })
    }

    #[test]
    fn the_status_names_the_path_of_a_value_that_cannot_be_decoded() {
        let object = object(&json!(null));
        let cause = cause(&object).expect("a cause");
        insta::assert_snapshot!(cause, @"spec.rollout.historyLimit: invalid type: string \"many\", expected i32");
        let status = status(&stored(&object), Some(2), &cause, Time(Timestamp::UNIX_EPOCH));
        let kinds: Vec<String> =
            status.conditions.iter().map(|it| format!("{}={}/{}", it.type_, it.status, it.reason)).collect();
        assert_eq!(kinds, ["Progressing=False/InvalidSpec", "Stalled=True/InvalidSpec", "Ready=False/InvalidSpec"]);
        assert!(status.conditions[0].message.contains("spec.rollout.historyLimit"), "{status:?}");
    }

    #[test]
    fn a_status_that_reports_it_already_stays_as_it_is() {
        let object = object(&json!({"conditions": [], "observedGeneration": 2, "history": "odd"}));
        let cause = cause(&object).expect("a cause");
        let once = status(&stored(&object), Some(2), &cause, Time(Timestamp::UNIX_EPOCH));
        let later = Time(Timestamp::from_second(9).unwrap());
        assert_eq!(status(&once, Some(2), &cause, later), once);
    }

    #[test]
    fn an_object_that_can_be_decoded_has_no_cause() {
        let mut object = object(&json!(null));
        object["spec"]["rollout"] = json!({"historyLimit": 3});
        assert_eq!(cause(&object), None);
    }
}
