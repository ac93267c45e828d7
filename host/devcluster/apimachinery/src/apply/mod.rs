//! Server-side apply, field ownership and patches, as pure functions over JSON and a [`Schema`](crate::schema::Schema).
//!
//! * [`apply()`] merges the fields that a manager declares into the stored object, with the semantics that Kubernetes documents for
//!   server-side apply.
//! * [`managed`] updates `metadata.managedFields` for all other writes.
//! * [`patch`] holds the three other patch formats: JSON patch, JSON merge patch, strategic merge patch.
//! * [`FieldSet`] is a set of field paths, with its `FieldsV1` form.
//!
//! This module uses no clock: the time of a write is part of the request.

mod conflict;
mod conform;
mod element;
mod field_set;
mod last_applied;
pub mod managed;
mod managers;
pub mod patch;
mod server_side;
mod structure;
mod typed;

pub use conflict::Conflict;
pub use element::{Json, PathElement};
pub use field_set::{FieldSet, FieldsError, display_path};
pub use managers::Operation;
pub use server_side::{ApplyError, ApplyOutcome, ApplyRequest, apply};
