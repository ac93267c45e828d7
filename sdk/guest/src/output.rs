//! Where objects and findings go.

use chandler_yaml::Node;
use serde_json::Value;

use crate::{Diagnostic, Failure, Location};

/// Why the host refused an object. The whole call fails with the host's own reason; a provisioner may return at once, and
/// `?` does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The object is larger than the host allows.
    #[error("the object is too large")]
    TooLarge,
    /// More objects, probes or bytes than the host allows.
    #[error("too many objects")]
    TooMany,
    /// Not a Kubernetes object.
    #[error("not a Kubernetes object")]
    Malformed,
    /// An object with this identity was already emitted.
    #[error("emitted twice")]
    Duplicate,
}

impl From<EmitError> for Failure {
    fn from(error: EmitError) -> Self {
        Self::Internal(format!("the host refused an object: {error}"))
    }
}

/// A condition that objects of the release must meet before the rollout goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The apiVersion of the objects that it is about.
    pub api_version: String,
    /// Their kind.
    pub kind: String,
    /// The namespace of the one object that it is about; none for all.
    pub namespace: Option<String>,
    /// The name of the one object that it is about; none for all.
    pub name: Option<String>,
    /// A CEL expression over `self`, the live object, that must be true.
    pub rule: String,
    /// What to say while it is not.
    pub message: String,
}

/// What the bundle is, as far as its content says so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// The name of this version of it, for example `argocd-operator.v0.6.0`.
    pub name: Option<String>,
    /// The package that it is a version of.
    pub package: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// What it provides and needs, the most important first: the host keeps a bounded number.
    pub properties: Vec<Property>,
}

/// Something that the bundle provides or needs, in the form of OLM's file-based catalogs.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// The type, for example `olm.gvk.required`; it says what the value means.
    pub kind: String,
    /// The value.
    pub value: Value,
}

/// The release that is being put together.
pub trait Output {
    /// Adds one Kubernetes object, as UTF-8 JSON.
    ///
    /// `stage` is a run level: stages are rolled out one after the other. Objects without one are in stage 0; within a stage
    /// the host orders by kind. `origin` says where in the content the object comes from.
    ///
    /// # Errors
    /// See [`EmitError`].
    fn emit(&mut self, object: &[u8], stage: Option<u32>, origin: Option<Location>) -> Result<(), EmitError>;

    /// Adds a probe.
    ///
    /// # Errors
    /// See [`EmitError`].
    fn probe(&mut self, probe: &Probe) -> Result<(), EmitError>;

    /// Reports a finding that does not stop the release.
    fn report(&mut self, finding: &Diagnostic);

    /// Describes the bundle, for the administrator and for whoever resolves dependencies; it does not become part of the
    /// release. The last description counts. An output that shows nothing need not keep it.
    fn describe(&mut self, _bundle: &Description) {}
}

impl dyn Output + '_ {
    /// Adds an object that is a JSON value.
    ///
    /// # Errors
    /// See [`EmitError`].
    pub fn emit_value(
        &mut self,
        object: &Value,
        stage: Option<u32>,
        origin: Option<Location>,
    ) -> Result<(), EmitError> {
        self.emit(object.to_string().as_bytes(), stage, origin)
    }

    /// Adds an object as it stands in a file of the bundle; its origin is the place of the node.
    ///
    /// # Errors
    /// See [`EmitError`].
    pub fn emit_node(&mut self, object: &Node, stage: Option<u32>, path: &str) -> Result<(), EmitError> {
        let mut json = Vec::new();
        object.write_json(&mut json);
        self.emit(&json, stage, Some(Location::of(path, object)))
    }
}
