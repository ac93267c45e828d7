//! What a Resolution asks, and the set of BundleDeployments that its decision makes.
//!
//! Pure: no client, no clock. The reconciler (`host/controller`) observes, calls these steps in order, and writes what they return.
//!
//! `Resolution + Installations -> Question -> (resolver) -> Plan -> Manifests -> Status`
//!
//! | module | contents |
//! |---|---|
//! | [`installation`] | the bundles that BundleDeployments have |
//! | [`question`] | the question for the resolver |
//! | [`optional`](mod@optional) | which optional packages are left out |
//! | [`plan`] | which bundle each package gets now, and what waits |
//! | [`manifests`] | the members of the set as BundleDeployments, and back |
//! | [`status`] | the status of the Resolution |

pub mod installation;
pub mod manifests;
pub mod optional;
pub mod plan;
pub mod question;
pub mod status;

pub use installation::Installation;
pub use manifests::{Manifests, SetError};
pub use optional::{Settled, settle};
pub use plan::{Plan, PlannedMember};
pub use question::{Question, Refused};
