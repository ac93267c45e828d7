//! What one PlatformOperator and its BundleDeployment mean for the platform.

use chandler_api::{
    BundleDeployment, BundleDeploymentStatus, ConditionType as Type, Outcome, PlatformOperator, Reason, find_condition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::limits::Limits;

/// What one PlatformOperator wants, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    /// The name of the PlatformOperator.
    pub operator: String,
    /// The name of its package.
    pub name: String,
    /// The BundleDeployment that has the package.
    pub deployment: Option<String>,
    /// The namespace that the package is installed in.
    pub namespace: Option<String>,
    /// The version that is installed.
    pub version: Option<String>,
    /// How far the package is.
    pub state: State,
    /// Whether a release of the package was complete and healthy once.
    pub is_installed: bool,
    /// Why the installed package does not work, or `None` if it works or is not installed yet.
    pub outage: Option<String>,
    /// What the installed bundle forbids.
    pub limits: Limits,
}

/// How far a package is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is what the PlatformOperator wants.
    Settled,
    /// It is on the way from one state to another.
    Moving {
        /// Where to.
        to: Way,
        /// How far it is.
        message: String,
    },
    /// It waits for a user or for a time: an approval, a maintenance window.
    Waiting {
        /// What it waits for.
        message: String,
    },
    /// Something that was tried does not succeed.
    Failed {
        /// The reason of the condition that reports the failure.
        reason: String,
        /// Whether the failure stops the package on the way to another state, so that trying again is progress.
        is_under_way: bool,
        /// Why.
        message: String,
    },
}

/// The way of a package from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Another release replaces the installed one.
    Upgrade,
    /// There is none so far.
    Installation,
    /// It is being removed.
    Removal,
}

impl Package {
    /// What a PlatformOperator wants, and what became of it. `deployment` is the BundleDeployment that its status names, if it exists;
    /// `deprecated` is the catalog's message if the installed bundle is deprecated.
    pub fn of(operator: &PlatformOperator, deployment: Option<&BundleDeployment>, deprecated: Option<&str>) -> Self {
        let status = deployment.and_then(|it| it.status.as_ref());
        let bundle = status.and_then(|it| it.bundle.as_ref());
        let is_installed = status.is_some_and(was_complete);
        let state = state(operator, deployment, is_installed);
        Self {
            operator: operator.name_any(),
            name: operator.spec.package.name.clone(),
            deployment: deployment.map(ResourceExt::name_any),
            namespace: deployment.map(|it| it.spec.install_namespace.clone()),
            version: bundle.filter(|_| is_installed).and_then(|it| it.version.clone()),
            outage: status.filter(|_| is_installed && !state.is_moving()).and_then(outage),
            limits: Limits::of(bundle.filter(|_| is_installed), deprecated),
            state,
            is_installed,
        }
    }

    /// A PlatformOperator that cannot be decoded.
    pub fn undecodable(operator: &str, error: &str) -> Self {
        let (reason, message) = ("InvalidSpec".to_owned(), format!("cannot be decoded: {error}"));
        Self {
            operator: operator.to_owned(),
            name: operator.to_owned(),
            deployment: None,
            namespace: None,
            version: None,
            state: State::Failed { reason, is_under_way: false, message },
            is_installed: false,
            outage: None,
            limits: Limits::default(),
        }
    }

    /// A PlatformOperator that is expected and does not exist.
    pub fn absent(operator: &str) -> Self {
        let message = "waits: no PlatformOperator has this name, and the controller expects one".to_owned();
        Self { state: State::Waiting { message }, ..Self::undecodable(operator, "") }
    }

    /// Whether what is wanted is installed and works.
    pub(crate) fn is_rolled_out(&self) -> bool {
        let has_arrived = matches!(self.state, State::Settled | State::Waiting { .. });
        has_arrived && self.is_installed && self.outage.is_none()
    }
}

impl State {
    pub(crate) fn is_moving(&self) -> bool {
        matches!(self, Self::Moving { .. })
    }

    /// The reason of the condition that reports a failure.
    pub(crate) fn failure_reason(&self) -> Option<&str> {
        match self {
            Self::Failed { reason, .. } => Some(reason),
            _ => None,
        }
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        match self {
            Self::Failed { message, .. } => Some(message),
            _ => None,
        }
    }
}

/// Whether a release was complete and healthy once. The history has it, unless something else installed the BundleDeployment.
fn was_complete(status: &BundleDeploymentStatus) -> bool {
    status.history.iter().any(|revision| revision.outcome == Outcome::Succeeded)
        || condition(status, Type::Ready).is_some_and(|ready| ready.status == "True")
}

fn condition(status: &BundleDeploymentStatus, kind: Type) -> Option<&Condition> {
    find_condition(&status.conditions, kind)
}

/// Why the release that is installed does not work.
fn outage(status: &BundleDeploymentStatus) -> Option<String> {
    let unhealthy = condition(status, Type::Healthy)?;
    let is_known = unhealthy.status == "False" && unhealthy.reason == Reason::Unhealthy.as_str();
    is_known.then(|| format!("does not work: {}", unhealthy.message))
}

/// What the reason of a condition that is not True means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Moving,
    Waiting,
    /// The release is complete, and its objects do not work: `outage` reports it.
    Unhealthy,
    Failed,
}

fn meaning(reason: &str) -> Meaning {
    match Reason::from_name(reason) {
        Some(
            Reason::UnpackPending
            | Reason::Unpacking
            | Reason::Installing
            | Reason::InstallationStatusFalse
            | Reason::RollingOut
            | Reason::Deleting,
        ) => Meaning::Moving,
        Some(
            Reason::ApprovalRequired
            | Reason::OutsideMaintenanceWindow
            | Reason::MembersNotHealthy
            | Reason::Suspended
            | Reason::UploadPending,
        ) => Meaning::Waiting,
        Some(Reason::Unhealthy) => Meaning::Unhealthy,
        // A reason of PlatformOperators alone.
        _ if reason == "InstallPending" => Meaning::Moving,
        _ => Meaning::Failed,
    }
}

fn state(operator: &PlatformOperator, deployment: Option<&BundleDeployment>, is_installed: bool) -> State {
    let wanted = operator.status.as_ref().and_then(|status| find_condition(&status.conditions, Type::Installed));
    let ready = deployment.and_then(|it| it.status.as_ref()).and_then(|status| condition(status, Type::Ready));
    let ready = ready.filter(|ready| ready.status != "True");
    let is_deleted = deployment.is_some_and(|it| it.metadata.deletion_timestamp.is_some());
    let to = if is_installed && !is_deleted { Way::Upgrade } else { Way::Installation };

    if operator.metadata.deletion_timestamp.is_some() {
        let stuck = ready.filter(|ready| is_deleted && meaning(&ready.reason) == Meaning::Failed);
        return match stuck {
            Some(stuck) => failed(&stuck.reason, format!("cannot be removed: {}", stuck.message), false),
            None => moving(Way::Removal, "is being removed"),
        };
    }
    let Some(wanted) = wanted else { return moving(to, "has not been looked at yet") };
    // What the PlatformOperator copies from its BundleDeployment is reported by that.
    let copied = ready.is_some_and(|ready| ready.reason == wanted.reason || ready.message == wanted.message);
    if wanted.status != "True" && meaning(&wanted.reason) == Meaning::Failed && !copied {
        let is_under_way = !is_installed || ready.is_some_and(|ready| meaning(&ready.reason) == Meaning::Moving);
        return failed(&wanted.reason, problem(&wanted.reason, &wanted.message), is_under_way);
    }
    if is_deleted || deployment.is_none() {
        let message = if wanted.status == "True" { "is to be installed again" } else { "is to be installed" };
        return match meaning(&wanted.reason) {
            Meaning::Waiting if wanted.status != "True" => waiting(&wanted.message),
            Meaning::Moving if wanted.status != "True" => moving(to, &progress(&wanted.message)),
            _ => moving(to, message),
        };
    }
    match ready {
        Some(ready) => unready(ready, to, is_installed),
        None if deployment.and_then(|it| it.status.as_ref()).is_none_or(|status| status.conditions.is_empty()) => {
            moving(to, "has not been looked at yet")
        }
        // The BundleDeployment is complete; the PlatformOperator says so in a moment, or asks for something else.
        None if wanted.status != "True" => match meaning(&wanted.reason) {
            Meaning::Waiting => waiting(&wanted.message),
            _ => moving(to, &progress(&wanted.message)),
        },
        None => State::Settled,
    }
}

/// The state of a package whose BundleDeployment is not ready.
fn unready(ready: &Condition, to: Way, is_installed: bool) -> State {
    match meaning(&ready.reason) {
        Meaning::Moving => moving(to, &progress(&ready.message)),
        Meaning::Waiting => waiting(&ready.message),
        Meaning::Unhealthy if is_installed => State::Settled,
        Meaning::Unhealthy | Meaning::Failed => {
            let is_repair = [Reason::ReconcileFailed, Reason::ObjectLookupFailure, Reason::RolledBack];
            let is_under_way = !is_repair.iter().any(|reason| reason.as_str() == ready.reason);
            failed(&ready.reason, problem(&ready.reason, &ready.message), is_under_way)
        }
    }
}

fn moving(to: Way, message: &str) -> State {
    State::Moving { to, message: message.to_owned() }
}

fn waiting(message: &str) -> State {
    State::Waiting { message: format!("waits: {message}") }
}

fn failed(reason: &str, message: String, is_under_way: bool) -> State {
    State::Failed { reason: reason.to_owned(), is_under_way, message }
}

fn progress(message: &str) -> String {
    format!("is on the way: {message}")
}

fn problem(reason: &str, message: &str) -> String {
    format!("failed ({reason}): {message}")
}

#[cfg(test)]
mod tests;
