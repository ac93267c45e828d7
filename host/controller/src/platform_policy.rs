//! The reconciler of PlatformPolicies: which one is in force, and what is wrong with the others.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `policies` | the policy that is in force, read once for each version | no |
//! | `reconciler` | the status of a PlatformPolicy, and which objects its changes concern | yes |
//!
//! What a policy means for the plan and for the question to the resolver is decided in `host/resolution`.

mod policies;
mod reconciler;

pub(crate) use self::{policies::Policies, reconciler::PlatformPolicies};
