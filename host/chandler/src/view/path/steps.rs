//! The steps of the path: its state, and the result of each step.

use chandler_api::{
    BundleDeployment, ConditionType, LeftOut, OutputType, PackageRequest, PlatformOperator, Reason, Resolution,
    find_condition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

use super::{
    super::{
        overview::{HealthWord, Next, Overview},
        text::count,
    },
    Found, Package,
};

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Its name: wish, decision, set, members, content, rollout or objects.
    pub step: &'static str,
    /// How far it is.
    pub state: StepState,
    /// What it found, or waits for.
    pub message: String,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StepState {
    /// It is done.
    Done,
    /// The controller works on it, or it waits.
    Working,
    /// It needs action.
    Failed,
    /// An earlier step comes first.
    NotReached,
}

impl StepState {
    /// A sign for it.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Done => "✓",
            Self::Working => "…",
            Self::Failed => "✗",
            Self::NotReached => "-",
        }
    }
}

fn step(step: &'static str, state: StepState, message: impl Into<String>) -> Step {
    Step { step, state, message: message.into() }
}

/// The steps, from the wish to the objects.
pub(super) fn steps(found: &Found, packages: &[Package]) -> Vec<Step> {
    let mut steps = Vec::new();
    if let Some(operator) = &found.operator {
        steps.push(operator_wish(operator));
    }
    if let Some(resolution) = &found.resolution {
        steps.push(wish(resolution));
        steps.push(match found.left_out() {
            Some(left_out) => without(resolution, left_out),
            None => decision(resolution),
        });
        if !is_installed(resolution) {
            return steps;
        }
        steps.push(set(resolution, found.set()));
        steps.push(members(packages));
    } else if let Some(deployment) = found.deployment.as_ref().and_then(|name| found.deployments.get(name)) {
        steps.push(step("wish", StepState::Done, chandler_source::describe(&deployment.spec.source)));
        steps.push(content(deployment));
        steps.extend(rollout(deployment));
    } else {
        return steps;
    }
    steps.push(objects(packages));
    steps
}

/// Whether the decision is installed, and not only reported.
fn is_installed(resolution: &Resolution) -> bool {
    resolution.spec.output.as_ref().is_some_and(|output| output.kind == OutputType::ResolveSet)
}

fn operator_wish(operator: &PlatformOperator) -> Step {
    let spec = &operator.spec;
    let request = PackageRequest {
        name: spec.package.name.clone(),
        version: spec.version.clone(),
        channels: spec.channels.clone(),
        ..PackageRequest::default()
    };
    let wanted = format!("PlatformOperator {}: {}", name(operator.metadata.name.as_ref()), asked(&request));
    let installed = operator.status.as_ref().and_then(|it| find_condition(&it.conditions, ConditionType::Installed));
    match installed {
        Some(it) if it.reason == Reason::SourceFailed.as_str() => {
            step("wish", StepState::Failed, format!("{wanted}; {}: {}", it.reason, it.message))
        }
        _ => step("wish", StepState::Done, wanted),
    }
}

fn wish(resolution: &Resolution) -> Step {
    let wanted: Vec<String> = resolution.spec.packages.iter().map(asked).collect();
    let wanted = if wanted.is_empty() { "no package".to_owned() } else { wanted.join(", ") };
    let wanted = format!("Resolution {}: {wanted}", name(resolution.metadata.name.as_ref()));
    let observed = resolution.status.as_ref().and_then(|status| status.observed_generation);
    if resolution.metadata.deletion_timestamp.is_some() {
        return step("wish", StepState::Working, format!("{wanted}; it is being deleted"));
    }
    if observed < resolution.metadata.generation {
        return step("wish", StepState::Working, format!("{wanted}; the controller has not observed it yet"));
    }
    step("wish", StepState::Done, wanted)
}

/// A package as it is asked for: `prometheus >=0.50, <1 in channel beta`.
fn asked(request: &PackageRequest) -> String {
    let version = request.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let channels = match request.channels.as_slice() {
        [] => String::new(),
        [one] => format!(" in channel {one}"),
        several => format!(" in channels {}", several.join(" or ")),
    };
    let optional = if request.optional { " (optional)" } else { "" };
    format!("{}{version}{channels}{optional}", request.name)
}

fn decision(resolution: &Resolution) -> Step {
    let Some(status) = &resolution.status else {
        return step("decision", StepState::NotReached, "there is none yet");
    };
    let resolved = find_condition(&status.conditions, ConditionType::Resolved);
    let pinned = resolution.spec.output.as_ref().and_then(|it| it.resolve_set.as_ref()).and_then(|it| it.to_decision);
    let chosen: Vec<String> = status.members.iter().map(|it| format!("{} {}", it.package, it.version)).collect();
    let number = status.decision.map(|number| format!("{number}: ")).unwrap_or_default();
    let chosen = format!("{number}{}", if chosen.is_empty() { "no package".to_owned() } else { chosen.join(", ") });
    if let Some(pending) = &status.pending {
        let state = state_of(&pending.reason);
        return step(
            "decision",
            state,
            format!("{chosen}; the next one waits: {}: {}", pending.reason, pending.message),
        );
    }
    let held = match (pinned, resolution.spec.suspend) {
        (Some(number), _) => format!("; spec.output.resolveSet.toDecision is {number}: nothing new is decided"),
        (None, true) => "; spec.suspend is true: nothing new is decided".to_owned(),
        (None, false) => String::new(),
    };
    match resolved {
        Some(resolved) if resolved.status != "True" && held.is_empty() => {
            let before = if status.members.is_empty() { String::new() } else { format!("; installed stays {chosen}") };
            step("decision", state_of(&resolved.reason), format!("{}: {}{before}", resolved.reason, resolved.message))
        }
        None if status.members.is_empty() => step("decision", StepState::Working, format!("there is none yet{held}")),
        _ => step("decision", StepState::Done, format!("{chosen}{held}")),
    }
}

/// The decision, if it is without the package that the question is about.
fn without(resolution: &Resolution, left_out: &LeftOut) -> Step {
    let LeftOut { package, reason, .. } = left_out;
    let decision = decision(resolution);
    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    step("decision", StepState::Failed, format!("{}; {package} is left out{reason}", decision.message))
}

fn set(resolution: &Resolution, set: Option<&BundleDeployment>) -> Step {
    let status = resolution.status.as_ref();
    let Some(name) = status.and_then(|status| status.bundle_deployment.as_ref()) else {
        return step("set", StepState::NotReached, "there is none yet");
    };
    let Some(set) = set else {
        return step("set", StepState::Working, format!("BundleDeployment {name} does not exist yet"));
    };
    let (state, message) = standing(set);
    step("set", state, format!("BundleDeployment {name}: {message}"))
}

/// What waits, or keeps the current spec from running.
fn rollout(deployment: &BundleDeployment) -> Option<Step> {
    let overview = Overview::of(deployment);
    let message = overview.waits()?;
    let state = match overview.next {
        Next::Done => StepState::Done,
        Next::Blocked { .. } | Next::Deleting { needs_action: true, .. } => StepState::Failed,
        Next::Deleting { .. } | Next::Unobserved | Next::Working { .. } | Next::Waits(_) => StepState::Working,
    };
    Some(step("rollout", state, message))
}

/// How far a BundleDeployment is.
fn standing(deployment: &BundleDeployment) -> (StepState, String) {
    let overview = Overview::of(deployment);
    if let (Next::Waits(_), Some(waits)) = (&overview.next, overview.waits()) {
        return (StepState::Working, waits);
    }
    let conditions = deployment.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    match find_condition(conditions, ConditionType::Ready) {
        Some(ready) if ready.observed_generation < deployment.metadata.generation => {
            (StepState::Working, "the controller has not observed its current spec".to_owned())
        }
        Some(ready) if ready.status == "True" => (StepState::Done, "installed and healthy".to_owned()),
        Some(ready) => (state_of(&ready.reason), described(ready)),
        None => (StepState::Working, "the controller has not observed it yet".to_owned()),
    }
}

fn members(packages: &[Package]) -> Step {
    let installed: Vec<&Package> = packages.iter().filter(|it| it.bundle_deployment.is_some()).collect();
    let ready = installed.iter().filter(|it| it.ready).count();
    let others: Vec<String> =
        installed.iter().filter(|it| !it.ready).map(|it| format!("{} {}", it.package, it.state)).collect();
    let message = format!("{ready} of {} ready", count(installed.len(), "member"));
    let message = if others.is_empty() { message } else { format!("{message}; {}", others.join(", ")) };
    let is_complete = !installed.is_empty() && others.is_empty() && installed.iter().all(|it| it.path.is_empty());
    let state = match (installed.is_empty(), is_complete) {
        (true, _) => StepState::NotReached,
        (_, true) => StepState::Done,
        _ if installed.iter().any(|it| it.state.starts_with("Failed")) => StepState::Failed,
        _ => StepState::Working,
    };
    let to_come: usize = installed.iter().map(|it| it.path.len()).sum();
    let to_come = if to_come == 0 { String::new() } else { format!("; {} to come", count(to_come, "upgrade")) };
    step("members", state, format!("{message}{to_come}"))
}

fn content(deployment: &BundleDeployment) -> Step {
    let conditions = deployment.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let unpacked = find_condition(conditions, ConditionType::Unpacked);
    // What an earlier spec had says nothing about the current one.
    let unpacked = unpacked.filter(|unpacked| unpacked.observed_generation >= deployment.metadata.generation);
    match unpacked {
        Some(unpacked) if unpacked.status == "True" => {
            let digest = deployment.status.as_ref().and_then(|status| status.content_digest.clone());
            step("content", StepState::Done, digest.unwrap_or_else(|| "unpacked".to_owned()))
        }
        Some(unpacked) if matches!(Overview::of(deployment).next, Next::Blocked { .. }) => {
            step("content", StepState::Failed, described(unpacked))
        }
        Some(unpacked) => step("content", state_of(&unpacked.reason), described(unpacked)),
        None => step("content", StepState::NotReached, "it is not fetched yet"),
    }
}

fn objects(packages: &[Package]) -> Step {
    let objects: i64 = packages.iter().map(|it| it.objects).sum();
    let objects = count(usize::try_from(objects).unwrap_or_default(), "object");
    let is_healthy = |package: &&Package| package.ready || package.health == Some(HealthWord::Healthy);
    let broken: Vec<&Package> = packages.iter().filter(|package| !is_healthy(package)).collect();
    let cause = broken.iter().find_map(|package| package.runs.as_ref().or(package.message.as_ref()));
    match (packages.iter().any(|it| it.installed.is_some() || it.objects > 0), cause) {
        (false, _) => step("objects", StepState::NotReached, "there are none yet"),
        (true, None) if broken.is_empty() => {
            step("objects", StepState::Done, format!("{objects}, installed and healthy"))
        }
        (true, cause) => {
            let is_failed = broken.iter().any(|package| package.state.starts_with("Failed"));
            let state = if is_failed { StepState::Failed } else { StepState::Working };
            let cause = cause.map(|cause| format!("; {cause}")).unwrap_or_default();
            step("objects", state, format!("{objects}{cause}"))
        }
    }
}

/// Whether a reason needs action: what waits for a decision does not.
fn state_of(reason: &str) -> StepState {
    match Reason::from_name(reason) {
        // Nothing is wrong: a user decides when it continues.
        Some(Reason::ApprovalRequired | Reason::Suspended | Reason::UploadPending) => StepState::Working,
        Some(reason) if !reason.remedy().time_may_help() => StepState::Failed,
        _ => StepState::Working,
    }
}

fn described(condition: &Condition) -> String {
    if condition.message.is_empty() {
        return condition.reason.clone();
    }
    format!("{}: {}", condition.reason, condition.message)
}

fn name(name: Option<&String>) -> &str {
    name.map(String::as_str).unwrap_or_default()
}
