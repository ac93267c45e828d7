//! Types of Kubernetes objects: what a kube-apiserver does with an object before it stores it.
//!
//! * [`Schema`] is the one in-memory form of a type, whether it comes from the built-in table or from a CRD.
//! * [`Builtins`] is the table of built-in resources of Kubernetes 1.36: names, scope, subresources, schema.
//! * [`CustomResourceDefinition`] reads and checks `apiextensions.k8s.io/v1` objects.
//! * [`prune()`], [`default()`], [`validate()`] and [`canonicalize()`] work on [`serde_json::Value`] along a [`Schema`].
//! * [`metadata`] checks `ObjectMeta`; [`builtin`] holds the defaults and the rules of built-in kinds beyond types.
//! * [`openapi`] renders the `/openapi/v3` documents.
//!
//! Everything here is a pure function: no clock, no network, no state but the decoded table.

pub mod builtin;
pub mod canonical;
mod crd;
mod default;
mod error;
mod expression;
mod fields;
pub mod metadata;
mod model;
pub mod names;
pub mod openapi;
mod parse;
mod path;
mod presence;
mod prune;
pub mod quantity;
mod registry;
mod resources;
mod selector;
mod table;
mod validate;
mod webhook;

pub use canonical::canonicalize;
pub use crd::{CustomResourceDefinition, CustomResourceVersion, PrinterColumn, validate_crd};
pub use default::default;
pub use error::{ErrorType, FieldError, invalid_message};
pub use model::{
    Combinations, ListType, MapType, Node, PatchStrategy, Pattern, Presence, Range, Rule, Scalar, Schema, Shape,
};
pub use parse::SchemaError;
pub use path::FieldPath;
pub use prune::{prune, unknown_field_messages};
pub use registry::Builtins;
pub use resources::{GroupVersionKind, ResourceType, Scale};
pub use validate::validate;
