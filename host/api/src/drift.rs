//! What the controller does about objects that differ from the release, and how the status lists them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most drifted objects that a status lists.
pub const LISTED_OBJECTS: usize = 20;
/// The most fields of one object that a status lists.
pub const LISTED_FIELDS: usize = 10;
/// The longest path of a field in a status, in bytes.
pub const PATH_BYTES: usize = 256;
/// The most entries of spec.ignoreDifferences.
pub const IGNORED: usize = 64;

/// What the controller does about objects of a complete release that differ from the release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DriftPolicy {
    /// It repairs them.
    #[default]
    Repair,
    /// It reports them and leaves them unchanged.
    Report,
    /// It does not compare them.
    Ignore,
}

impl crate::schema::Enumeration for DriftPolicy {
    const NAMES: &[&str] = &["Repair", "Report", "Ignore"];
}

/// Fields of objects of the release that other field managers own. A selector field that is not set matches every object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IgnoredDifference {
    /// The API group of the objects; empty for the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub group: Option<String>,
    /// The kind of the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub kind: Option<String>,
    /// The namespace that the objects have in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// The name of the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// The fields, as JSON pointers (RFC 6901) such as /spec/replicas. A part * matches every member and every item, as in
    /// /webhooks/*/clientConfig/caBundle. Fields that identify the object or its owner cannot be ignored.
    #[schemars(length(min = 1, max = 64), inner(regex(pattern = "^(/([^~/]|~[01])*)+$"), length(max = 512)))]
    pub json_pointers: Vec<String>,
}

/// How an object differs from the release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DriftState {
    /// Another field manager changed fields of the object.
    #[default]
    Changed,
    /// The object does not exist.
    Missing,
    /// The object was applied by another release.
    Outdated,
    /// The object is being deleted.
    Terminating,
    /// The object belongs to another owner.
    Foreign,
    /// The object belongs to the BundleDeployment but is not in the release.
    Stale,
}

impl DriftState {
    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "Changed",
            Self::Missing => "Missing",
            Self::Outdated => "Outdated",
            Self::Terminating => "Terminating",
            Self::Foreign => "Foreign",
            Self::Stale => "Stale",
        }
    }
}

impl crate::schema::Enumeration for DriftState {
    const NAMES: &[&str] = &["Changed", "Missing", "Outdated", "Terminating", "Foreign", "Stale"];
}

/// The objects that differ from the release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drifted {
    /// The number of objects.
    pub total: i64,
    /// The objects. At most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<DriftedObject>,
}

/// An object that differs from the release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftedObject {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// How the object differs: Changed, Missing, Outdated, Terminating, Foreign or Stale.
    #[schemars(schema_with = "crate::schema::enumeration::<DriftState>")]
    pub state: DriftState,
    /// Whether another field manager keeps changing the object, so that the controller repairs it less and less often.
    #[serde(default, skip_serializing_if = "crate::schema::is_false")]
    pub contested: bool,
    /// The fields that differ. At most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<DriftedField>,
    /// The number of fields that are not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_fields: Option<i64>,
}

/// A field that differs from the release. Its value is not reported because it may be secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriftedField {
    /// The path, such as spec.template.spec.containers[name=manager].image.
    pub path: String,
    /// The field manager that set the live value. Absent if the field is not set, or if no other manager is on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
}
