//! The packages of a Resolution, each with its state and those that OLM would report.

use chandler_api::{
    BundleDeployment, ConditionType, HeldBack, Outcome, Reason, Resolution, ResolvedMember, find_condition,
};
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::{
    super::{
        listing::{Row, State},
        olm_states::{self, CsvState, Subscription},
        overview::{HealthWord, Next, Overview},
        text::joined_lines,
    },
    Found,
};

/// A package.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// The package; for a BundleDeployment whose bundle names none, the BundleDeployment.
    pub package: String,
    /// The version that is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// The version that the set has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// The versions that are still to come, the best one last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// The state, as in `chandler list`.
    pub state: String,
    /// What runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<String>,
    /// The health of what runs, as the controller reports it; absent if nothing runs, and while it is being replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthWord>,
    /// How the objects differ from the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<String>,
    /// What it waits for, or what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The catalog that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// The channel that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Why it was chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The message of its deprecation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// A newer version that does not fit with other packages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
    /// The BundleDeployment that installs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle_deployment: Option<String>,
    /// The state of the Subscription that OLM v0 would have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription: Option<Subscription>,
    /// The ClusterServiceVersions that OLM v0 would have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cluster_service_versions: Vec<CsvState>,
    /// Whether it is installed and healthy, as the current spec says.
    pub ready: bool,
    /// The number of objects of its release.
    pub objects: i64,
    /// Whether its BundleDeployment exists.
    #[serde(skip)]
    pub exists: bool,
}

/// The packages that the question is about.
pub(super) fn packages(found: &Found) -> Vec<Package> {
    let Some(resolution) = &found.resolution else {
        let deployment = found.deployment.as_ref().and_then(|name| found.deployments.get(name));
        return deployment.map(alone).into_iter().collect();
    };
    let members = resolution.status.iter().flat_map(|status| &status.members);
    let is_about = |member: &&ResolvedMember| found.focus().is_none_or(|focus| focus == member.package);
    members.filter(is_about).map(|member| package(member, resolution, found)).collect()
}

fn package(member: &ResolvedMember, resolution: &Resolution, found: &Found) -> Package {
    let deployment = member.bundle_deployment.as_ref().and_then(|name| found.deployments.get(name));
    let row = deployment.map(row);
    let installed = row.as_ref().and_then(|row| row.installed_version.clone());
    let followed = olm_states::followed(member, installed.as_deref(), resolution);
    let is_installed = member.bundle_deployment.is_some();
    let state = match &row {
        Some(row) => row.state_text(),
        None if is_installed => "Pending".to_owned(),
        None => "not to be installed".to_owned(),
    };
    let missing = "its BundleDeployment does not exist yet: it is created once all that it needs is healthy".to_owned();
    // The first of them is what the set has now.
    let path = member.path.iter().filter(|version| **version != member.version).cloned().collect();
    Package {
        package: member.package.clone(),
        chosen: Some(member.version.clone()),
        path,
        state,
        runs: deployment.and_then(runs),
        health: row.as_ref().and_then(|row| row.health),
        drift: deployment.and_then(drift),
        message: match &row {
            Some(row) => message(row),
            None => is_installed.then_some(missing),
        },
        catalog: member.catalog.clone(),
        channel: member.channel.clone(),
        reasons: match deployment.and_then(|deployment| Overview::of(deployment).pinned_text()) {
            Some(pinned) => vec![pinned],
            None => member.reasons.clone(),
        },
        deprecated: member.deprecated.clone(),
        held_back: member.held_back.clone(),
        bundle_deployment: member.bundle_deployment.clone(),
        subscription: olm_states::subscription(&followed),
        cluster_service_versions: if is_installed { olm_states::csvs(deployment, &member.bundle) } else { Vec::new() },
        ready: row.as_ref().is_some_and(|row| row.state == State::Ready),
        objects: deployment.map(objects).unwrap_or_default(),
        exists: deployment.is_some(),
        installed,
    }
}

/// A BundleDeployment that no Resolution chose: its spec names the version, and no catalog is followed.
fn alone(deployment: &BundleDeployment) -> Package {
    let row = row(deployment);
    let bundle = deployment.status.as_ref().and_then(|status| status.bundle.clone()).unwrap_or_default();
    let package = bundle.package.unwrap_or_else(|| row.name.clone());
    Package {
        cluster_service_versions: olm_states::csvs(Some(deployment), &package),
        package,
        installed: row.installed_version.clone(),
        chosen: row.pending_version.clone(),
        path: Vec::new(),
        state: row.state_text(),
        runs: runs(deployment),
        health: row.health,
        drift: drift(deployment),
        message: message(&row),
        catalog: None,
        channel: None,
        reasons: vec![reason(deployment)],
        deprecated: None,
        held_back: None,
        bundle_deployment: Some(row.name.clone()),
        subscription: None,
        ready: row.state == State::Ready,
        objects: objects(deployment),
        exists: true,
    }
}

fn row(deployment: &BundleDeployment) -> Row {
    // The age is not shown.
    Row::new(deployment, Timestamp::UNIX_EPOCH)
}

/// Why a BundleDeployment has the version that runs, or that is to run.
fn reason(deployment: &BundleDeployment) -> String {
    let overview = Overview::of(deployment);
    if let Some(pinned) = overview.pinned_text() {
        return pinned;
    }
    let current = deployment.status.as_ref().and_then(|status| status.history.last());
    let again = current.and_then(|current| Some((current, current.rollback_to?)));
    let conditions = deployment.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let progressing = find_condition(conditions, ConditionType::Progressing);
    let rolled_back = progressing.is_some_and(|it| it.reason == Reason::RolledBack.as_str());
    match again {
        Some((_, number)) if rolled_back => {
            format!("the controller rolled back to revision {number}, since the rollout of the spec failed")
        }
        Some((current, number)) if current.outcome == Outcome::RollingOut => {
            format!("the controller rolls back to revision {number}, since the rollout of the spec failed")
        }
        Some((current, number)) if overview.next != Next::Done && overview.pending.is_none() => {
            format!("revision {number} runs again as revision {}, after a rollback", current.number)
        }
        None if overview.next != Next::Done && overview.pending.is_none() && overview.health().is_some() => {
            "the spec of the BundleDeployment named it when it was rolled out".to_owned()
        }
        _ => "the spec of the BundleDeployment names it".to_owned(),
    }
}

/// What runs, where the state is about something else.
fn runs(deployment: &BundleDeployment) -> Option<String> {
    let overview = Overview::of(deployment);
    (overview.health().is_some() && !overview.is_ready()).then(|| overview.runs())
}

/// How the objects differ from the release, if they do.
fn drift(deployment: &BundleDeployment) -> Option<String> {
    let drifted = find_condition(&deployment.status.as_ref()?.conditions, ConditionType::Drifted)?;
    (drifted.status == "True").then(|| format!("{}: {}", drifted.reason, drifted.message))
}

/// What waits and the command that helps; of a change that is worked on or refused, the message of the controller.
fn message(row: &Row) -> Option<String> {
    match row.state {
        State::Failed | State::Progressing => row.message.as_deref().map(joined_lines).or_else(|| row.waits.clone()),
        // The reasons have it.
        State::Ready if row.pinned_to.is_some() => None,
        _ => row.waits.clone(),
    }
}

fn objects(deployment: &BundleDeployment) -> i64 {
    let release = deployment.status.as_ref().and_then(|status| status.release.as_ref());
    release.map(|release| release.objects).unwrap_or_default()
}
