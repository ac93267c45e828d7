//! The output of a provisioner: objects, probes and findings.

use std::collections::BTreeMap;

use chandler_yaml::Node;
use serde_json::Value;

use crate::{Diagnostic, Failure, Location};

/// Why the host refused an object or a probe. The whole call fails with the host's own reason. A provisioner may return
/// at once, as with `?`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It is larger than the host allows.
    #[error("it is too large")]
    TooLarge,
    /// More objects, probes or bytes than the host allows.
    #[error("there are too many")]
    TooMany,
    /// Not a Kubernetes object, or not a probe.
    #[error("it is malformed")]
    Malformed,
    /// An object with this identity was already emitted.
    #[error("it was already emitted")]
    Duplicate,
    /// Another reason, as text.
    #[error("{0}")]
    Other(String),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::internal(format!("the host refused an object or a probe: {refusal}"))
    }
}

/// The id of an emitted object: 0 for the first one, 1 for the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u32);

/// A condition that objects of the release must meet before the rollout continues, in addition to the host's checks of
/// well-known kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// The objects that it checks.
    pub selector: Selector,
    /// A CEL expression over `self`, the live object, that must be true. The CEL extensions of Kubernetes are
    /// available.
    pub rule: String,
    /// The status message while it is not true. None for the text of the rule.
    pub message: Option<String>,
    /// A CEL expression over `self` that yields this message. `message` is used if it yields none.
    pub message_expression: Option<String>,
}

/// Selects objects of the release for a probe. Every field that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The API group. Empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace. None for all.
    pub namespace: Option<String>,
    /// The name. None for all.
    pub name: Option<String>,
    /// Labels of the live object.
    pub labels: BTreeMap<String, String>,
}

/// The metadata of the bundle, as far as its content has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// The name of this version of the bundle, for example `argocd-operator.v0.6.0`.
    pub name: Option<String>,
    /// The package of the bundle.
    pub package: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// What the bundle provides and requires, the most important first: the host keeps a bounded number.
    pub properties: Vec<Property>,
}

/// Something that the bundle provides or requires, in the form of OLM's file-based catalogs.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// The type, for example `olm.gvk.required`; it defines the meaning of the value.
    pub kind: String,
    /// The value.
    pub value: Value,
}

/// The release that a provisioner builds.
pub trait Output {
    /// Adds one Kubernetes object, as UTF-8 JSON.
    ///
    /// `stage` is a run level: stages are rolled out one after the other. Objects without one are in stage 0; within a
    /// stage the host orders by kind. `origin` is the location of the object in the content.
    ///
    /// # Errors
    /// See [`Refusal`].
    fn emit(&mut self, object: &[u8], stage: Option<u32>, origin: Option<Location>) -> Result<ObjectId, Refusal>;

    /// Adds a probe.
    ///
    /// # Errors
    /// See [`Refusal`].
    fn probe(&mut self, probe: &Probe) -> Result<(), Refusal>;

    /// Reports a finding that does not block the release.
    fn report(&mut self, finding: &Diagnostic);

    /// Describes the bundle, for the administrator and for dependency resolution; the description does not become part
    /// of the release. The last call wins. The default implementation ignores it.
    fn describe(&mut self, _bundle: &Description) {}
}

impl dyn Output + '_ {
    /// Adds an object from a JSON value.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn emit_value(
        &mut self,
        object: &Value,
        stage: Option<u32>,
        origin: Option<Location>,
    ) -> Result<ObjectId, Refusal> {
        self.emit(object.to_string().as_bytes(), stage, origin)
    }

    /// Adds an object from a node of a file of the bundle; its origin is the location of the node.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn emit_node(&mut self, object: &Node, stage: Option<u32>, path: &str) -> Result<ObjectId, Refusal> {
        let mut json = Vec::new();
        object.write_json(&mut json);
        self.emit(&json, stage, Some(Location::of(path, object)))
    }
}
