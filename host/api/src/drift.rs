//! What is done about objects that are not as released, and what the status says of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many objects a status lists that are not as released.
pub const LISTED_OBJECTS: usize = 20;
/// How many fields of one object a status lists.
pub const LISTED_FIELDS: usize = 10;
/// The longest path of a field in a status, in bytes.
pub const PATH_BYTES: usize = 256;
/// The most entries of spec.ignoreDifferences.
pub const IGNORED: usize = 64;

/// What is done about objects of a complete release that are not as released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DriftPolicy {
    /// They are put right.
    #[default]
    Repair,
    /// They are reported and left as they are.
    Report,
    /// They are not even compared.
    Ignore,
}

impl crate::schema::Enumeration for DriftPolicy {
    const NAMES: &[&str] = &["Repair", "Report", "Ignore"];
}

/// Fields of objects of the release that are left to others. What is not set fits every object.
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
    /// The fields, as JSON pointers (RFC 6901) such as /spec/replicas. A part that is just * stands for every member and
    /// every item: /webhooks/*/clientConfig/caBundle. What says which object it is and whose cannot be ignored.
    #[schemars(length(min = 1, max = 64), inner(regex(pattern = "^(/([^~/]|~[01])*)+$"), length(max = 512)))]
    pub json_pointers: Vec<String>,
}

/// How an object is not as released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DriftState {
    /// Somebody changed fields of it.
    #[default]
    Changed,
    /// It does not exist.
    Missing,
    /// It was made by another release.
    Outdated,
    /// It is being deleted.
    Terminating,
    /// It belongs to somebody else.
    Foreign,
    /// It belongs to the BundleDeployment and not to the release.
    Stale,
}

impl DriftState {
    /// The name as it is written in the API.
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

/// The objects that are not as released.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drifted {
    /// How many there are.
    pub total: i64,
    /// The first twenty of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<DriftedObject>,
}

/// An object that is not as released.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftedObject {
    /// Its API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// In what way it is not as released.
    #[schemars(schema_with = "crate::schema::enumeration::<DriftState>")]
    pub state: DriftState,
    /// Whether others change it again and again, so that it is put right ever less often.
    #[serde(default, skip_serializing_if = "crate::schema::is_false")]
    pub contested: bool,
    /// The fields that are not as released. The first ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<DriftedField>,
    /// How many more fields there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_fields: Option<i64>,
}

/// A field that is not as released. Its value is not told, since it may be secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriftedField {
    /// Where, as in spec.template.spec.containers[name=manager].image.
    pub path: String,
    /// The field manager that wrote what stands there; none where nothing does or where nobody else is on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
}
