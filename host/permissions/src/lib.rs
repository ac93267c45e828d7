//! Which permissions a release needs, which of them are missing, and the roles that grant them.
//!
//! Everything in here is a pure function of what it is given: no client, no clock. What somebody holds comes in as rules
//! ([`Held`]), what a release needs is computed from its objects ([`Requirements`]), what is missing ([`Missing`]) goes out
//! as text and as roles.
//!
//! | module | holds |
//! |---|---|
//! | [`requirements`](mod@requirements) | what a release needs, and why |
//! | [`delegation`] | what objects have Chandler do, for which their writer may lack the rights |
//! | [`grants`] | what roles and bindings pass on, which their writer must hold |
//! | [`account`] | ServiceAccounts, and on behalf of which one a BundleDeployment is installed |
//! | [`missing`](mod@missing) | what of it somebody does not hold |
//! | [`merge`](mod@merge) | many small rules as few large ones |
//! | [`roles`](mod@roles) | rules as roles and bindings that can be applied |
//! | [`kinds`] | how the built-in kinds are addressed, where no API server can be asked |
//! | [`rule`] | one rule of a role: what it allows, how messages show it |
//! | [`cover`] | whether rules contain other rules |
//! | [`role`] | roles, and how bindings name them |
//! | [`aggregation`] | ClusterRoles that are made of others |
//! | [`attributes`] | what a request wants to do |
//! | [`quote`] | text as messages of Kubernetes show it |

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
pub mod role;
pub mod roles;
pub mod rule;

pub use account::{Account, AccountPolicy, AccountRequired, DefaultAccount, NamedAccount};
pub use attributes::{Attributes, NonResourceAttributes, ResourceAttributes};
pub use delegation::{Delegation, Installation};
pub use grants::{Escalation, ExistingRoles, RoleKey};
pub use merge::merge;
pub use missing::{Held, Missing, missing};
pub use requirements::{Item, Listed, Need, Parent, Requirements, Scope, Why, requirements};
pub use roles::roles;
pub use rule::PolicyRule;
