//! RBAC authorization for a Kubernetes API, as kube-apiserver decides with `--authorization-mode=RBAC`.
//!
//! Everything here is a pure function of its arguments: no store, no clock, no HTTP. The policy is read through the
//! trait [`Policies`]; [`PolicySet`] is one of plain objects.
//!
//! | module | holds |
//! |---|---|
//! | [`user`] | users, well-known names and groups, ServiceAccounts as users |
//! | [`attributes`] | the access that a request needs |
//! | [`rule`] | one rule of a role: what it allows, how messages show it |
//! | [`cover`] | whether rules contain other rules |
//! | [`policy`] | roles, bindings and how they are looked up |
//! | [`refusal`](mod@refusal) | the response to a denied request |
//! | [`mod@authorize`] | the decision on a request, the rules of a user |
//! | [`escalation`] | users cannot grant permissions that they do not hold |
//! | [`aggregation`] | aggregated ClusterRoles |
//! | [`impersonation`] | impersonation |
//! | [`bootstrap`] | the roles and bindings that every cluster has |
//!
//! [`quote`] writes text as messages of Kubernetes do.

pub mod authorize;
pub mod bootstrap;
pub mod escalation;
pub mod impersonation;
pub mod policy;
pub mod refusal;
pub mod user;

pub use chandler_permissions::{aggregation, attributes, cover, quote, rule};

pub use attributes::{Attributes, NonResourceAttributes, ResourceAttributes};
pub use authorize::{Decision, authorize};
pub use escalation::EscalationError;
pub use policy::{Policies, PolicySet};
pub use rule::PolicyRule;
pub use user::User;
