//! Who may do what in a Kubernetes API, as kube-apiserver decides it with `--authorization-mode=RBAC`.
//!
//! Everything in here is a pure function of what it is given: no store, no clock, no HTTP. The policy is read through the
//! trait [`Policies`]; [`PolicySet`] is one of plain objects.
//!
//! | module | holds |
//! |---|---|
//! | [`user`] | users, well-known names and groups, ServiceAccounts as users |
//! | [`attributes`] | what a request wants to do |
//! | [`rule`] | one rule of a role: what it allows, how messages show it |
//! | [`cover`] | whether rules contain other rules |
//! | [`policy`] | roles, bindings and how they are looked up |
//! | [`refusal`](mod@refusal) | how a refused request is answered |
//! | [`mod@authorize`] | the decision on a request, the rules of a user |
//! | [`escalation`] | nobody grants what they do not hold |
//! | [`aggregation`] | ClusterRoles that are made of others |
//! | [`impersonation`] | acting as somebody else |
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
