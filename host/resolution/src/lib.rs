//! What a Resolution asks, and the set of BundleDeployments that its decision makes; PlatformOperators, which are answered by one
//! Resolution; and the ClusterOperators that report them.
//!
//! Pure: no client, no clock. The reconciler (`host/controller`) observes, calls these steps in order, and writes what they return.
//!
//! `Resolution + Installations -> Question -> (resolver) -> Plan -> Manifests -> Status`
//!
//! | module | contents |
//! |---|---|
//! | [`installation`] | the bundles that BundleDeployments have, and what they call themselves |
//! | [`evidence`](mod@evidence) | which bundle of a catalog a BundleDeployment has, whatever it calls itself |
//! | [`observed`](mod@observed) | what is installed: members of the set, and what others have of the catalogs |
//! | [`question`] | the question for the resolver |
//! | [`optional`](mod@optional) | which optional packages are left out |
//! | [`invariants`](mod@invariants) | constraints of an administrator, which uninstall nothing |
//! | [`checks`] | which of them are left out because the checks of the members refuse them |
//! | [`allowance`] | how much work one answer may take |
//! | [`alternatives`](mod@alternatives) | what would be chosen if a part of the spec were different |
//! | [`names`](mod@names) | the names of the BundleDeployments of a set |
//! | [`plan`] | which bundle each package gets now, and what waits |
//! | [`manifests`] | the members of the set as BundleDeployments, and back |
//! | [`status`] | the status of the Resolution |
//! | [`platform`] | from PlatformOperators to their Resolution, and back to the status of each |
//! | [`cluster_operators`] | what ClusterOperators report of PlatformOperators and of the controller |

pub mod allowance;
pub mod alternatives;
pub mod checks;
pub mod cluster_operators;
pub mod evidence;
pub mod installation;
pub mod invariants;
pub mod manifests;
pub mod names;
pub mod observed;
pub mod optional;
pub mod plan;
pub mod platform;
pub mod question;
mod shown;
pub mod status;

pub use allowance::Allowance;
pub use evidence::InstalledImage;
pub use installation::{Claim, Installation};
pub use invariants::{Invariants, settle_within};
pub use manifests::{Manifests, SetError};
pub use observed::Observed;
pub use optional::{Settled, settle};
pub use plan::{Plan, PlannedMember};
pub use question::{Question, Refused};
