//! The permissions that a release requires, which of them are missing, and the roles that grant them.
//!
//! Everything here is a pure function: no client, no clock. The permissions of an account come in as rules ([`Held`]);
//! those that a release requires are computed from its objects ([`Requirements`]); those that are missing ([`Missing`])
//! are returned as text and as roles.
//!
//! | module | holds |
//! |---|---|
//! | [`requirements`](mod@requirements) | the permissions that a release requires, and why |
//! | [`delegation`] | objects that make Chandler act for a writer who may lack the permissions |
//! | [`grants`] | the permissions that roles and bindings grant, which their writer must hold |
//! | [`account`] | ServiceAccounts, and which one a BundleDeployment is installed on behalf of |
//! | [`missing`](mod@missing) | the required permissions that an account does not hold |
//! | [`review`] | rules reviews: the request, and the rules in its answer |
//! | [`merge`](mod@merge) | merges many small rules into few large ones |
//! | [`roles`](mod@roles) | roles and bindings for rules |
//! | [`kinds`] | the resources of the built-in kinds, for use without an API server |
//! | [`rule`] | one rule of a role: what it allows, how messages show it |
//! | [`cover`] | checks whether rules contain other rules |
//! | [`role`] | roles and role references |
//! | [`aggregation`] | aggregated ClusterRoles |
//! | [`attributes`] | the attributes of a request |
//! | [`quote`] | quotes text as Kubernetes messages do |

pub mod account;
pub mod aggregation;
pub mod attributes;
pub mod cover;
pub mod delegation;
pub mod grants;
pub mod kinds;
pub mod merge;
pub mod missing;
pub mod quote;
pub mod requirements;
pub mod review;
pub mod role;
pub mod roles;
pub mod rule;

pub use account::{Account, AccountPolicy, AccountRefused, DefaultAccount, DefaultRefused, NamedAccount, Unnamed};
pub use attributes::{Attributes, NonResourceAttributes, ResourceAttributes};
pub use delegation::{Delegation, Installation};
pub use grants::{Escalation, ExistingRoles, RoleKey};
pub use merge::merge;
pub use missing::{Held, Missing, missing};
pub use requirements::{Item, Listed, Need, Parent, Requirements, Scope, Why, requirements};
pub use review::ReviewedRules;
pub use roles::roles;
pub use rule::PolicyRule;
