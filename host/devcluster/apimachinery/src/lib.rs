//! What a kube-apiserver knows about objects and requests, without the server.
//!
//! Everything in this crate is a pure function of its arguments: no store, no clock, no HTTP. `host/devcluster` is the server.
//!
//! | module | contents |
//! |---|---|
//! | [`schema`] | types of objects: built-in schemas, CRDs, pruning, defaulting, validation |
//! | [`apply`] | server-side apply, field ownership, JSON patch, merge patch and strategic merge patch |
//! | [`protobuf`] | objects in protobuf, decoded to JSON |
//! | [`access`] | users, RBAC, privilege escalation, impersonation, the bootstrap policy |
//! | [`policies`] | ValidatingAdmissionPolicies: what they match, evaluate and deny |

pub mod access;
pub mod apply;
pub mod policies;
pub mod protobuf;
pub mod schema;
