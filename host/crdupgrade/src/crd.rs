//! Reads the parts of a CustomResourceDefinition that matter for upgrades.
//!
//! Nothing is refused here: the API server refuses invalid CRDs, and a missing value reads as its default.

use serde_json::{Map, Value};

/// A CustomResourceDefinition (`apiextensions.k8s.io/v1`).
#[derive(Clone, Debug)]
pub(crate) struct Crd<'a> {
    pub(crate) name: &'a str,
    pub(crate) spec: &'a Value,
    pub(crate) versions: Vec<Version<'a>>,
    /// The versions that may be in etcd, according to the API server.
    pub(crate) stored_versions: Vec<&'a str>,
}

/// A version of a CRD.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<'a> {
    pub(crate) name: &'a str,
    /// Its index in `spec.versions`.
    pub(crate) index: usize,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    /// The whole version.
    pub(crate) value: &'a Value,
    pub(crate) schema: Option<&'a Map<String, Value>>,
}

impl<'a> Crd<'a> {
    pub(crate) fn read(crd: &'a Value) -> Self {
        let flag = |version: &Value, name: &str| version.get(name).and_then(Value::as_bool).unwrap_or(false);
        let versions = list(crd, "/spec/versions").iter().enumerate().map(|(index, version)| Version {
            name: text(version, "/name"),
            index,
            served: flag(version, "served"),
            storage: flag(version, "storage"),
            value: version,
            schema: version.pointer("/schema/openAPIV3Schema").and_then(Value::as_object),
        });
        Self {
            name: text(crd, "/metadata/name"),
            spec: crd.get("spec").unwrap_or(&Value::Null),
            versions: versions.collect(),
            stored_versions: list(crd, "/status/storedVersions").iter().filter_map(Value::as_str).collect(),
        }
    }

    pub(crate) fn version(&self, name: &str) -> Option<Version<'a>> {
        self.versions.iter().find(|version| version.name == name).copied()
    }

    pub(crate) fn converts_by_webhook(&self) -> bool {
        text(self.spec, "/conversion/strategy") == "Webhook"
    }
}

impl Version<'_> {
    /// The JSON pointer of the root of the schema.
    pub(crate) fn schema_pointer(&self) -> String {
        format!("/spec/versions/{}/schema/openAPIV3Schema", self.index)
    }
}

/// The string at a pointer; empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
