//! A PlatformOperator and its BundleDeployment, as their reconcilers report them.

use chandler_api::{
    ActiveBundleDeployment, BundleDeployment, BundleDeploymentSpec, BundleDeploymentStatus, BundleDescription,
    BundleProperty, Outcome, PlatformOperator, PlatformOperatorSpec, PlatformOperatorStatus, PlatformPackage, Revision,
};
use chandler_resolution::cluster_operators::Package;
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use kube::core::ObjectMeta;
use serde_json::json;

/// How far a PlatformOperator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Fresh,
    Resolving,
    /// No bundle fits.
    Unresolved,
    Installing,
    InstallFailed,
    Running,
    Unhealthy,
    Upgrading,
    UpgradeFailed,
    /// An upgrade waits for approval.
    Waiting,
    Deleting,
    Gone,
}

/// A PlatformOperator.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    name: String,
    pub(crate) life: Life,
    /// Whether a release was complete once.
    is_installed: bool,
    version: u32,
    /// The highest minor version of OpenShift; an error is a value that cannot be read.
    pub(crate) limit: Option<Result<i64, ()>>,
}

impl Operator {
    pub(crate) fn new(which: u8) -> Self {
        Self { name: format!("po-{which}"), life: Life::Fresh, is_installed: false, version: 1, limit: None }
    }

    pub(crate) fn advance(&mut self) {
        self.life = match self.life {
            Life::Fresh => Life::Resolving,
            Life::Resolving => Life::Installing,
            Life::Installing | Life::Upgrading => Life::Running,
            Life::Waiting => Life::Upgrading,
            Life::Deleting => Life::Gone,
            other => other,
        };
        self.is_installed |= self.life == Life::Running;
    }

    pub(crate) fn fail(&mut self) {
        self.life = match self.life {
            Life::Fresh | Life::Resolving => Life::Unresolved,
            Life::Installing => Life::InstallFailed,
            Life::Upgrading => Life::UpgradeFailed,
            other => other,
        };
    }

    pub(crate) fn recover(&mut self) {
        self.life = match self.life {
            Life::Unresolved => Life::Resolving,
            Life::InstallFailed => Life::Installing,
            Life::Unhealthy => Life::Running,
            Life::UpgradeFailed => Life::Upgrading,
            other => other,
        };
    }

    pub(crate) fn sicken(&mut self) {
        if self.life == Life::Running {
            self.life = Life::Unhealthy;
        }
    }

    pub(crate) fn upgrade(&mut self) {
        if matches!(self.life, Life::Running | Life::Unhealthy) {
            (self.life, self.version) = (Life::Upgrading, self.version + 1);
        }
    }

    pub(crate) fn wait(&mut self) {
        if self.life == Life::Running {
            self.life = Life::Waiting;
        }
    }

    pub(crate) fn delete(&mut self) {
        self.life = Life::Deleting;
    }

    /// Whether it is to be installed and never was.
    pub(crate) fn is_pending(&self) -> bool {
        !self.is_installed && self.life != Life::Deleting
    }

    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.life, Life::Running | Life::Waiting)
    }

    pub(crate) fn is_moving(&self) -> bool {
        matches!(self.life, Life::Fresh | Life::Resolving | Life::Installing | Life::Upgrading | Life::Deleting)
    }

    pub(crate) fn is_out(&self) -> bool {
        matches!(self.life, Life::Unhealthy | Life::Unresolved | Life::InstallFailed)
    }

    pub(crate) fn is_bad(&self) -> bool {
        self.is_out() || self.life == Life::UpgradeFailed
    }

    pub(crate) fn permits(&self, minor: i64) -> bool {
        !self.is_installed || self.limit.is_none_or(|limit| limit.is_ok_and(|most| most >= minor))
    }

    /// What the proxy makes of it.
    pub(crate) fn package(&self) -> Package {
        Package::of(&self.platform_operator(), self.deployment().as_ref(), None)
    }

    fn platform_operator(&self) -> PlatformOperator {
        let installed = match self.life {
            Life::Fresh => None,
            Life::Resolving => Some(("False", "UnpackPending", "Waiting for the bundle to be unpacked")),
            Life::Unresolved => Some(("False", "SourceFailed", "no bundle fits")),
            Life::Installing => Some(("False", "Installing", "1 of 3 objects")),
            Life::InstallFailed => Some(("False", "InstallFailed", "an object was refused")),
            Life::UpgradeFailed => Some(("False", "UpgradeFailed", "an object was refused")),
            _ => Some(("True", "InstallSuccessful", "Successfully applied the BundleDeployment resource")),
        };
        let conditions = installed.map(|(status, reason, message)| condition("Installed", status, reason, message));
        let active = self.deployment().map(|_| ActiveBundleDeployment { name: self.name.clone() });
        PlatformOperator {
            metadata: self.metadata(),
            spec: PlatformOperatorSpec {
                package: PlatformPackage { name: self.name.clone() },
                ..PlatformOperatorSpec::default()
            },
            status: Some(PlatformOperatorStatus {
                conditions: conditions.into_iter().collect(),
                active_bundle_deployment: active,
                ..PlatformOperatorStatus::default()
            }),
        }
    }

    fn metadata(&self) -> ObjectMeta {
        let deleted = (self.life == Life::Deleting).then_some(Time(Timestamp::UNIX_EPOCH));
        ObjectMeta { name: Some(self.name.clone()), deletion_timestamp: deleted, ..ObjectMeta::default() }
    }

    fn deployment(&self) -> Option<BundleDeployment> {
        let (installed, healthy, ready) = match self.life {
            Life::Fresh | Life::Resolving | Life::Unresolved | Life::Gone => return None,
            Life::Deleting if !self.is_installed => return None,
            Life::Installing => (("False", "Installing"), ("False", "Unhealthy"), ("False", "RollingOut")),
            Life::InstallFailed => {
                (("False", "InstallFailed"), ("False", "InstallationStatusFalse"), ("False", "ObjectRefused"))
            }
            Life::Running => (APPLIED, HEALTHY, ("True", "Succeeded")),
            Life::Unhealthy => (APPLIED, ("False", "Unhealthy"), ("False", "Unhealthy")),
            Life::Upgrading => (APPLIED, ("False", "Unhealthy"), ("False", "RollingOut")),
            Life::UpgradeFailed => (("False", "UpgradeFailed"), HEALTHY, ("False", "ObjectRefused")),
            Life::Waiting => (APPLIED, HEALTHY, ("False", "ApprovalRequired")),
            Life::Deleting => (APPLIED, HEALTHY, ("False", "Deleting")),
        };
        let message = match self.life {
            Life::InstallFailed | Life::UpgradeFailed => "an object was refused",
            _ => "1 of 3 objects",
        };
        let conditions = [("Installed", installed), ("Healthy", healthy), ("Ready", ready)];
        let conditions = conditions.map(|(kind, (status, reason))| condition(kind, status, reason, message));
        let complete = self.is_installed.then(|| Revision { outcome: Outcome::Succeeded, ..Revision::default() });
        let limit = self.limit.map(|limit| match limit {
            Ok(most) => json!(format!("4.{most}")),
            Err(()) => json!(4.2),
        });
        let properties = limit.map(|value| BundleProperty { kind: "olm.maxOpenShiftVersion".to_owned(), value });
        let bundle = BundleDescription {
            version: Some(format!("{}.0.0", self.version)),
            properties: properties.into_iter().collect(),
            ..BundleDescription::default()
        };
        Some(BundleDeployment {
            metadata: self.metadata(),
            spec: BundleDeploymentSpec { install_namespace: self.name.clone(), ..BundleDeploymentSpec::default() },
            status: Some(BundleDeploymentStatus {
                conditions: conditions.to_vec(),
                history: complete.into_iter().collect(),
                bundle: Some(bundle),
                ..BundleDeploymentStatus::default()
            }),
        })
    }
}

const APPLIED: (&str, &str) = ("True", "InstallationSucceeded");
const HEALTHY: (&str, &str) = ("True", "Healthy");

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        message: message.to_owned(),
        observed_generation: Some(1),
        reason: reason.to_owned(),
        status: status.to_owned(),
        type_: kind.to_owned(),
    }
}
