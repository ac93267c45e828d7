//! Server-side apply, field ownership and patches, as pure functions over JSON and a [`Schema`](chandler_devcluster_schema::Schema).
//!
//! * [`apply()`] merges what a manager declares into what is stored, with the semantics of `sigs.k8s.io/structured-merge-diff`.
//! * [`managed`] keeps `metadata.managedFields` of all other writes.
//! * [`patch`] holds the three other patch formats: JSON patch, JSON merge patch, strategic merge patch.
//!
//! Neither function knows a clock: the time of a write is part of the request.

mod apply;
pub mod managed;
pub mod patch;

pub use apply::{ApplyError, ApplyOutcome, ApplyRequest, Conflict, apply};
