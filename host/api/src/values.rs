//! References to values of a configuration in ConfigMaps and Secrets.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The key of an object whose values are used, unless a reference names one.
pub const DEFAULT_VALUES_KEY: &str = "values.yaml";

/// The kind of an object with values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ValuesKind {
    /// A ConfigMap.
    #[default]
    ConfigMap,
    /// A Secret.
    Secret,
}

impl schema::Enumeration for ValuesKind {
    const NAMES: &[&str] = &["ConfigMap", "Secret"];
}

impl ValuesKind {
    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// The resource.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }
}

impl fmt::Display for ValuesKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A reference to values in a ConfigMap or Secret of the install namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValuesReference {
    /// The kind of the object: ConfigMap or Secret.
    #[schemars(schema_with = "schema::enumeration::<ValuesKind>")]
    pub kind: ValuesKind,
    /// The name of the object.
    #[schemars(regex(pattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"), length(min = 1, max = 253))]
    pub name: String,
    /// The key whose text has the values, in YAML or JSON. Default: values.yaml.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[-._a-zA-Z0-9]+$"), length(max = 253))]
    pub values_key: Option<String>,
    /// The place of a single value in the configuration, such as database.password or `hosts[0].name`. The text of the key is then
    /// that value, and not YAML: true, false, null and integers have their type unless they are quoted, everything else is a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^([-._a-zA-Z0-9/\\\\]|\\[[0-9]{1,5}\\])+$"), length(max = 250))]
    pub target_path: Option<String>,
    /// Whether the object or the key may be missing. Invalid values are refused in any case.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub optional: bool,
}

/// The version of an object whose values a revision was rendered with. UID and resource version are absent if it did not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValuesInUse {
    /// The kind of the object.
    #[schemars(schema_with = "schema::enumeration::<ValuesKind>")]
    pub kind: ValuesKind,
    /// The name of the object, in the install namespace.
    pub name: String,
    /// The UID of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The resource version of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
}
