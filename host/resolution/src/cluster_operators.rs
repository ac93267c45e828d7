//! What ClusterOperators report of PlatformOperators and of the controller.
//!
//! Pure: no client, and the clock comes in as an argument. The proxy (`host/controller`) observes, calls these steps in order, and writes
//! what they return.
//!
//! `PlatformOperator + BundleDeployment -> Package -> (with Memory) -> Derived`
//!
//! | module | contents |
//! |---|---|
//! | [`package`](mod@package) | what one PlatformOperator and its BundleDeployment mean for the platform |
//! | [`limits`] | what the installed bundles forbid the platform: the next minor version of OpenShift |
//! | [`memory`] | since when something is wrong |
//! | [`packages`] | the status of a ClusterOperator for one or many packages |
//! | [`controller`] | the status of the ClusterOperator for the controller |
//! | [`related`] | the objects that tools collect |
//! | [`names`] | the names of the ClusterOperators |
//! | [`judge`](mod@judge) | what the cluster-version operator makes of a ClusterOperator |
//! | `report` | the conditions of a status, with the times at which they last changed |
//!
//! The contract comes from the cluster-version operator: all conditions are always there, with a reason and a message; the times change
//! only with a status; Degraded does not flap, and is not set by a normal upgrade; a version is reported once all of it is rolled out.

pub mod controller;
pub mod judge;
pub mod limits;
pub mod memory;
pub mod names;
pub mod package;
pub mod packages;
pub mod related;
mod report;

use std::time::Duration;

use chandler_api::ClusterOperatorStatus;
use k8s_openapi::jiff::Timestamp;

pub use controller::Controller;
pub use judge::judge;
pub use limits::Platform;
pub use memory::Memory;
pub use names::Names;
pub use package::Package;
pub use packages::Packages;
pub use report::continued;

/// How long something is wrong until it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// How long the first installation of a package fails until that is reported as Available=False. Default: 30 seconds, since nothing of it
    /// works yet.
    pub installation: Duration,
    /// How long an installed package does not work, or the controller cannot read, until that is reported: as Available=False of a package,
    /// and as Degraded=True of the controller. Default: one minute.
    pub outage: Duration,
    /// How long a failure lasts until it is reported: as Degraded=True of a package, and as Available=False of the controller. Default:
    /// five minutes.
    pub failure: Duration,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { installation: Duration::from_secs(30), outage: Duration::from_mins(1), failure: Duration::from_mins(5) }
    }
}

/// A status to write, if it differs from the one before.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// The status.
    pub status: ClusterOperatorStatus,
    /// When to look again although nothing changed: something that is wrong is reported then.
    pub again: Option<Timestamp>,
}
