//! BundleDeployments and Resolutions that the controller cannot decode: the schema allows a value that this version does not know, or the object
//! takes too much memory.
//!
//! The controller does nothing for such an object, and its status reports why, with the JSON path of the value.

use std::{borrow::Cow, fmt::Debug, marker::PhantomData};

use chandler_api::{
    BundleDeployment, BundleDeploymentSpec, BundleDeploymentStatus, ConditionType, NewCondition, Reason, Resolution,
    ResolutionSpec, ResolutionStatus,
    conditions::{remove_condition, whole_seconds},
    set_condition,
};
use chandler_runtime::{Events, Guarded, status_patch};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time},
    jiff::Timestamp,
};
use kube::{Api, Client, Resource, ResourceExt as _, core::error_boundary::InvalidObject};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use crate::events;

/// The members of a status that are written although the rest of the object cannot be decoded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PartialStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    conditions: Vec<Condition>,
}

/// A kind whose objects are reported.
pub(crate) trait Reported: Resource<DynamicType = ()> + Debug + 'static {
    type Spec: DeserializeOwned;
    type Status: DeserializeOwned;
}

impl Reported for BundleDeployment {
    type Spec = BundleDeploymentSpec;
    type Status = BundleDeploymentStatus;
}

impl Reported for Resolution {
    type Spec = ResolutionSpec;
    type Status = ResolutionStatus;
}

/// An object whose spec and status are text, which takes no more memory than in the answer of the API server.
#[derive(Debug, Deserialize)]
#[serde(bound = "")]
struct Undecoded<K> {
    /// Only the generation.
    #[serde(deserialize_with = "generation")]
    metadata: ObjectMeta,
    spec: Option<Box<RawValue>>,
    status: Option<Box<RawValue>>,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Undecoded<K> {
    fn clone(&self) -> Self {
        let Self { metadata, spec, status, kind } = self;
        Self { metadata: metadata.clone(), spec: spec.clone(), status: status.clone(), kind: *kind }
    }
}

fn generation<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    struct Metadata {
        generation: Option<i64>,
    }
    let Metadata { generation } = Metadata::deserialize(deserializer)?;
    Ok(ObjectMeta { generation, ..ObjectMeta::default() })
}

impl<K: Reported> Resource for Undecoded<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// How many of them are read at once: any number may be too large, and all are reported when the controller starts.
static READS: Semaphore = Semaphore::const_new(2);

/// Writes to the status, and as an Event, which value of the object cannot be decoded.
pub(crate) async fn report<K: Reported>(
    client: &Client,
    recorder: &Events,
    guarded: &Guarded<K>,
    invalid: &InvalidObject,
) -> Result<(), kube::Error> {
    let name = guarded.name_any();
    // An error would mean that the semaphore is closed, and it never is.
    let _turn = READS.acquire().await;
    let api = Api::<Undecoded<K>>::all(client.clone());
    let Some(object) = api.get_opt(&name).await? else { return Ok(()) };
    let cause = if guarded.is_too_large() { None } else { cause(&object) };
    let cause = cause.unwrap_or_else(|| invalid.error.clone());
    let old = stored(&object);
    let new = status(&K::kind(&()), &old, object.metadata.generation, &cause, whole_seconds(Timestamp::now()));
    if status_patch::write(&api, &name, Some(&old), &new).await?.is_some() {
        events::publish(recorder, guarded, Some(&old.conditions), &new.conditions).await;
    }
    Ok(())
}

/// The first value that cannot be decoded, with its JSON path; `None` if all of the object's content can be decoded. The object must not
/// be too large.
fn cause<K: Reported>(object: &Undecoded<K>) -> Option<String> {
    let text = |raw: &Option<Box<RawValue>>| raw.as_deref().map_or("null", RawValue::get).to_owned();
    error::<K::Spec>("spec", &text(&object.spec))
        .or_else(|| error::<Option<K::Status>>("status", &text(&object.status)))
}

/// Why a text is not such a value, with the JSON path within the member.
fn error<T: DeserializeOwned>(member: &str, text: &str) -> Option<String> {
    let mut decoder = serde_json::Deserializer::from_str(text);
    let error = serde_path_to_error::deserialize::<_, T>(&mut decoder).err()?;
    let path = error.path().to_string();
    let message = error.inner().to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    Some(if path == "." { format!("{member}: {message}") } else { format!("{member}.{path}: {message}") })
}

fn stored<K>(object: &Undecoded<K>) -> PartialStatus {
    object.status.as_ref().and_then(|status| serde_json::from_str(status.get()).ok()).unwrap_or_default()
}

/// The status with the cause in it. Only a change of the object, or another version of the controller, helps.
fn status(kind: &str, old: &PartialStatus, generation: Option<i64>, cause: &str, now: Time) -> PartialStatus {
    let mut status = PartialStatus { observed_generation: generation, ..old.clone() };
    let message = format!("the {kind} cannot be decoded: {cause}");
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
    use serde_json::{Value, json};

    use super::*;

    fn object(status: &Value) -> Undecoded<BundleDeployment> {
        object_with(&json!("many"), status)
    }

    fn object_with(limit: &Value, status: &Value) -> Undecoded<BundleDeployment> {
        let object = json!({
            "metadata": {"name": "a"},
            "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"},
                     "rollout": {"historyLimit": limit}},
            "status": status,
        });
        serde_json::from_str(&object.to_string()).expect("an object")
    }

    #[test]
    fn the_status_names_the_path_of_a_value_that_cannot_be_decoded() {
        let object = object(&json!(null));
        let cause = cause(&object).expect("a cause");
        insta::assert_snapshot!(cause, @"spec.rollout.historyLimit: invalid type: string \"many\", expected i32");
        let status = status("BundleDeployment", &stored(&object), Some(2), &cause, Time(Timestamp::UNIX_EPOCH));
        let kinds: Vec<String> =
            status.conditions.iter().map(|it| format!("{}={}/{}", it.type_, it.status, it.reason)).collect();
        assert_eq!(kinds, ["Progressing=False/InvalidSpec", "Stalled=True/InvalidSpec", "Ready=False/InvalidSpec"]);
        assert!(status.conditions[0].message.contains("spec.rollout.historyLimit"), "{status:?}");
    }

    #[test]
    fn a_status_that_reports_it_already_stays_as_it_is() {
        let object = object(&json!({"conditions": [], "observedGeneration": 2, "history": "odd"}));
        let cause = cause(&object).expect("a cause");
        let once = status("BundleDeployment", &stored(&object), Some(2), &cause, Time(Timestamp::UNIX_EPOCH));
        let later = Time(Timestamp::from_second(9).unwrap());
        assert_eq!(status("BundleDeployment", &once, Some(2), &cause, later), once);
    }

    #[test]
    fn an_object_that_can_be_decoded_has_no_cause() {
        assert_eq!(cause(&object_with(&json!(3), &json!(null))), None);
        let odd = object_with(&json!(3), &json!({"conditions": "none"}));
        assert_eq!(
            cause(&odd).as_deref(),
            Some("status.conditions: invalid type: string \"none\", expected a sequence")
        );
        assert_eq!(stored(&odd), PartialStatus::default());
    }
}
