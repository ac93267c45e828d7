//! The command as a user runs it. What can be tested in the library is tested there; here is that the parts are connected.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests may panic as well")]

mod approvals;
mod dev;
mod golden;
mod lint;
mod rbac;
mod render;
mod rollouts;
mod support;
