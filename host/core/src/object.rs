//! A Kubernetes object and its identity.

mod name;

use std::fmt;

use chandler_yaml::unique_json::{self, JsonError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Location, text::is_deceptive};

/// The identity of an object: group, kind, namespace and name. The version is needed to address the object, but two keys that
/// differ only in the version identify the same object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; none for cluster-scoped objects, and for objects that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The version of the object.
    pub version: String,
}

/// Whether the kinds of a group come from CustomResourceDefinitions, as far as its name shows.
pub fn is_custom_group(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}

impl ObjectKey {
    /// `group/version`, or `version` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether it is a Namespace.
    pub fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.kind == "Namespace"
    }

    /// Whether both identify the same object, in any version.
    pub fn same_object(&self, other: &Self) -> bool {
        self.group == other.group
            && self.kind == other.kind
            && self.namespace == other.namespace
            && self.name == other.name
    }
}

impl fmt::Display for ObjectKey {
    /// `Deployment.apps ns/name`, the form that messages use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        f.write_str(" ")?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// Why a value is not an object that Chandler can apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// Not JSON, or with a key that occurs twice. Parsers differ in which of the values they keep, so the object would not be what others read.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// JSON, but not an object.
    #[error("is not a JSON object")]
    NotAnObject,
    /// A field that identifies the object is missing, empty or not a string.
    #[error("has no {0}")]
    Missing(&'static str),
    /// A field that identifies the object has a value that no API server accepts.
    #[error("has an illegal {field}: {value:?}")]
    Illegal {
        /// The field.
        field: &'static str,
        /// The value.
        value: String,
    },
}

/// One object of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The identity of the object.
    pub key: ObjectKey,
    /// The stage. Stages are rolled out one after the other.
    pub stage: u32,
    /// The location in the bundle that the object comes from.
    pub origin: Option<Location>,
    /// The object without `status`.
    pub value: Map<String, Value>,
}

impl Object {
    /// Parses an object from JSON text. It drops `status`, which only controllers write, and the fields of the metadata that
    /// the API server owns.
    ///
    /// # Errors
    /// It is not JSON, has a duplicate key anywhere, or does not identify an object.
    pub fn parse(json: &[u8], stage: u32, origin: Option<Location>) -> Result<Self, ObjectError> {
        match unique_json::from_slice(json)? {
            Value::Object(value) => Self::from_value(value, stage, origin),
            _ => Err(ObjectError::NotAnObject),
        }
    }

    /// Converts a JSON value, with the same rules.
    pub fn from_value(
        mut value: Map<String, Value>,
        stage: u32,
        origin: Option<Location>,
    ) -> Result<Self, ObjectError> {
        value.remove("status");
        let key = key_of(&value)?;
        if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
            for field in SERVER_OWNED {
                metadata.remove(*field);
            }
        }
        Ok(Self { key, stage, origin, value })
    }

    /// `metadata.annotations[name]`.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.value.get("metadata")?.get("annotations")?.get(name)?.as_str()
    }
}

/// Fields of the metadata that the API server owns.
const SERVER_OWNED: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

fn key_of(value: &Map<String, Value>) -> Result<ObjectKey, ObjectError> {
    fn text<'a>(value: Option<&'a Value>, field: &'static str) -> Result<&'a str, ObjectError> {
        match value {
            Some(Value::String(text)) if !text.is_empty() => Ok(text),
            _ => Err(ObjectError::Missing(field)),
        }
    }
    let api_version = text(value.get("apiVersion"), "apiVersion")?;
    let kind = text(value.get("kind"), "kind")?;
    let metadata = value.get("metadata").and_then(Value::as_object).ok_or(ObjectError::Missing("metadata"))?;
    let name = text(metadata.get("name"), "metadata.name")?;
    let namespace = match metadata.get("namespace") {
        None | Some(Value::Null) => None,
        Some(Value::String(namespace)) if namespace.is_empty() => None,
        Some(namespace) => Some(text(Some(namespace), "metadata.namespace that is a string")?),
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let illegal = |field, value: &str| ObjectError::Illegal { field, value: value.to_owned() };
    if !is_path_segment(version) || !is_path_segment(group) && !group.is_empty() {
        return Err(illegal("apiVersion", api_version));
    }
    if !kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(illegal("kind", kind));
    }
    if !is_path_segment(name) {
        return Err(illegal("metadata.name", name));
    }
    if namespace.is_some_and(|namespace| !is_path_segment(namespace)) {
        return Err(illegal("metadata.namespace", namespace.unwrap_or_default()));
    }
    Ok(ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        version: version.to_owned(),
    })
}

/// The rule of `IsValidPathSegmentName` in `k8s.io/apimachinery/pkg/api/validation/path`: a name that is valid in a URL. It
/// prevents a hostile plugin from addressing another resource with a crafted name. In addition, names with characters that hide
/// or reorder text are refused, since they look like the names of other objects.
fn is_path_segment(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 253
        && name != "."
        && name != ".."
        && !name.contains(['/', '%'])
        && !name.contains(is_deceptive)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: &Value) -> Result<Object, ObjectError> {
        Object::parse(value.to_string().as_bytes(), 0, None)
    }

    #[test]
    fn server_owned_fields_are_dropped() {
        let object = parse(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 1},
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1", "creationTimestamp": null}
        }))
        .unwrap();
        assert_eq!(object.key.to_string(), "Deployment.apps n/a");
        assert_eq!(object.key.api_version(), "apps/v1");
        assert_eq!(
            Value::Object(object.value),
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "n"}
            })
        );
    }

    #[test]
    fn an_object_with_a_duplicate_key_is_refused() {
        let text = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"containers": [{"image": "good", "name": "a", "image": "bad"}]}}"#;
        let message = Object::parse(text.as_bytes(), 0, None).unwrap_err().to_string();
        assert_eq!(message, r#"has the key "image" twice, at "/spec/containers/0/image""#);
    }

    #[test]
    fn values_that_are_not_objects_are_refused() {
        let named = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}});
        for (value, message) in [
            (json!([]), "is not a JSON object"),
            (json!({"kind": "Pod"}), "has no apiVersion"),
            (json!({"apiVersion": "v1", "kind": ""}), "has no kind"),
            (json!({"apiVersion": "v1", "kind": "Pod"}), "has no metadata"),
            (json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 1}}), "has no metadata.name"),
            (named("../pods"), "has an illegal metadata.name: \"../pods\""),
            (named("a%2fb"), "has an illegal metadata.name: \"a%2fb\""),
            (named(".."), "has an illegal metadata.name: \"..\""),
            (named("admin\u{200b}"), "has an illegal metadata.name: \"admin\\u{200b}\""),
            (
                json!({"apiVersion": "a/b/c", "kind": "Pod", "metadata": {"name": "a"}}),
                "has an illegal apiVersion: \"a/b/c\"",
            ),
            (
                json!({"apiVersion": "..", "kind": "Pod", "metadata": {"name": "a"}}),
                "has an illegal apiVersion: \"..\"",
            ),
        ] {
            assert_eq!(parse(&value).unwrap_err().to_string(), message, "{value}");
        }
    }
}
