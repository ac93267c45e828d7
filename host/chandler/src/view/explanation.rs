//! The status of a BundleDeployment with suggested actions, for `chandler status`.

use std::fmt::Write as _;

use chandler_api::{
    BundleCandidate, BundleDeployment, BundleDescription, BundleSource, BundleWarning, ConditionType, Drifted,
    DriftedField, ProvisionerInUse, Reason, ReleaseInUse, find_condition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

use super::{
    advice::advice,
    conditions::{self, needs_attention},
    invocation::quoted,
    subject::Subject,
    summary,
    table::cut_middle,
    text::{count, one_line},
    tree::{self, ObjectHealth, ObjectStatus},
};

/// The width of the labels.
const LABEL: usize = 12;

/// The status of a BundleDeployment and its objects.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The name of the BundleDeployment.
    pub name: String,
    /// Whether it is ready for its current generation and all objects are healthy.
    pub healthy: bool,
    /// Whether a user or an administrator has to act, since retries will not help.
    pub needs_action: bool,
    /// Whether the controller has observed the current generation.
    pub up_to_date: bool,
    /// The namespace to install into.
    pub install_namespace: String,
    /// The provisioner class in the spec, if it names one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provisioner_class_name: String,
    /// The source in the spec.
    pub source: BundleSource,
    /// The source, pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_source: Option<BundleSource>,
    /// The digest of the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_digest: Option<String>,
    /// The description in the bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleDescription>,
    /// The bundle that the spec describes, if it is not installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<BundleCandidate>,
    /// Warnings about the bundle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<BundleWarning>,
    /// The provisioner that rendered the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioner: Option<ProvisionerInUse>,
    /// The release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseInUse>,
    /// The number of the revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Objects that differ from the release and are not repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drifted>,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// The objects with their current health.
    pub objects: Vec<ObjectStatus>,
    /// Kinds that could not be read, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
    /// Suggested actions.
    pub next_steps: Vec<String>,
}

impl Explanation {
    /// Explains a BundleDeployment with its objects and the kinds that could not be read.
    pub fn new(deployment: &BundleDeployment, objects: Vec<ObjectStatus>, unreadable: Vec<String>) -> Self {
        let name = deployment.metadata.name.clone().unwrap_or_default();
        let status = deployment.status.clone().unwrap_or_default();
        let up_to_date = status.observed_generation >= deployment.metadata.generation;
        let ready = find_condition(&status.conditions, ConditionType::Ready);
        let is_ready = up_to_date && ready.is_some_and(|ready| ready.status == "True");
        let all_exist = tree::healthy(&objects, status.release.as_ref()).1 == objects.len();
        let all_healthy =
            all_exist && objects.iter().all(|object| object.health == ObjectHealth::Healthy) && unreadable.is_empty();
        let mut explanation = Self {
            healthy: is_ready && all_healthy,
            needs_action: up_to_date && !(is_ready && all_healthy) && conditions::needs_action(&status.conditions),
            up_to_date,
            install_namespace: deployment.spec.install_namespace.clone(),
            provisioner_class_name: deployment.spec.provisioner_class_name.clone(),
            source: deployment.spec.source.clone(),
            resolved_source: status.resolved_source,
            content_digest: status.content_digest,
            bundle: status.bundle,
            candidate: status.candidate,
            warnings: status.warnings,
            provisioner: status.provisioner,
            release: status.release,
            revision: status.revision,
            drift: status.drift,
            conditions: status.conditions,
            objects,
            unreadable,
            next_steps: Vec::new(),
            name,
        };
        explanation.next_steps = explanation.next_steps();
        explanation
    }

    fn next_steps(&self) -> Vec<String> {
        let (mut steps, subject): (Vec<String>, _) = (Vec::new(), Subject::deployment(&self.name));
        if self.healthy {
            let drifted =
                find_condition(&self.conditions, ConditionType::Drifted).filter(|drifted| needs_attention(drifted));
            let reason = drifted.and_then(|drifted| Reason::from_name(&drifted.reason));
            steps.extend(reason.and_then(|reason| advice(reason, &subject)));
            if self.is_suspended() {
                steps.extend(advice(Reason::Suspended, &subject));
            }
            return steps;
        }
        if !self.up_to_date || self.conditions.is_empty() {
            steps.push("check that the controller is running: it has not observed the current generation".to_owned());
        }
        for reason in conditions::causes(&self.conditions) {
            steps.extend(advice(reason, &subject).filter(|step| !steps.contains(step)));
        }
        let unhealthy: Vec<&ObjectStatus> =
            self.objects.iter().filter(|object| object.health != ObjectHealth::Healthy).collect();
        steps.extend(unhealthy.iter().take(3).map(|object| describe(object)));
        if steps.is_empty() {
            steps.push(format!("wait: `chandler status {} --watch` follows the rollout", self.name));
        }
        steps
    }

    fn is_suspended(&self) -> bool {
        let progressing = find_condition(&self.conditions, ConditionType::Progressing);
        progressing.is_some_and(|progressing| progressing.reason == Reason::Suspended.as_str())
    }

    /// The status as text. In `width` columns, long sources and digests are cut in the middle, so that each stays on its line.
    pub fn text(&self, width: Option<usize>) -> String {
        let mut text = String::new();
        let keep = width.map_or(usize::MAX, |width| width.saturating_sub(LABEL + 2).max(LABEL));
        // Writing to a string cannot fail.
        let mut row = |label: &str, value: &str| {
            let _ = writeln!(text, "{label:<LABEL$}  {}", cut_middle(&one_line(value), keep));
        };
        row("name", &self.name);
        row("namespace", &self.install_namespace);
        row("source", &chandler_source::describe(self.resolved_source.as_ref().unwrap_or(&self.source)));
        if let Some(digest) = &self.content_digest {
            row("content", digest);
        }
        if let Some(bundle) = self.bundle.as_ref().and_then(summary::bundle) {
            row("bundle", &bundle);
        }
        if let Some(version) = self.candidate.as_ref().and_then(summary::candidate) {
            row("pending", &version);
        }
        row(
            "provisioner",
            &match &self.provisioner {
                Some(provisioner) => summary::provisioner(provisioner),
                None if self.provisioner_class_name.is_empty() => "not detected yet".to_owned(),
                None => self.provisioner_class_name.clone(),
            },
        );
        if let Some(release) = &self.release {
            row("release", &summary::release(release));
        }
        if let Some(revision) = self.revision {
            row("revision", &format!("{revision}, `chandler history {}` lists all revisions", self.name));
        }
        self.write_warnings(&mut text);
        self.write_drift(&mut text);
        conditions::write(&mut text, &self.conditions);
        self.write_objects(&mut text);
        if !self.next_steps.is_empty() {
            text.push_str("\nsuggested actions\n");
            for step in &self.next_steps {
                let _ = writeln!(text, "  - {}", one_line(step));
            }
        }
        let health = match (self.healthy, self.needs_action) {
            (true, _) => "healthy",
            (false, true) => "not healthy, needs action",
            (false, false) => "not healthy",
        };
        let suspended = if self.is_suspended() { ", and suspended: a newer spec is not rolled out" } else { "" };
        let _ = writeln!(text, "\n{health}{suspended}");
        text
    }

    fn write_warnings(&self, text: &mut String) {
        if self.warnings.is_empty() {
            return;
        }
        text.push_str("\nwarnings\n");
        for BundleWarning { code, message } in &self.warnings {
            let _ = writeln!(text, "  {}: {}", one_line(code), one_line(message));
        }
    }

    fn write_drift(&self, text: &mut String) {
        let Some(drift) = &self.drift else { return };
        let _ = writeln!(text, "\ndrift ({})", count(usize::try_from(drift.total).unwrap_or_default(), "object"));
        for object in &drift.objects {
            let dot = if object.group.is_empty() { "" } else { "." };
            let place = object.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
            let key = format!("{}{dot}{} {place}{}", object.kind, object.group, object.name);
            let contested = if object.contested { ", ownership conflict" } else { "" };
            let _ = writeln!(text, "  {}: {}{contested}", one_line(&key), object.state.as_str());
            for DriftedField { path, manager } in &object.fields {
                let manager = manager.as_ref().map(|manager| format!(", set by {manager}")).unwrap_or_default();
                let _ = writeln!(text, "      {}", one_line(&format!("{path}{manager}")));
            }
            if let Some(more) = object.omitted_fields {
                let _ = writeln!(text, "      and {more} more");
            }
        }
        let listed = i64::try_from(drift.objects.len()).unwrap_or(i64::MAX);
        if drift.total > listed {
            let _ = writeln!(text, "  and {} more", drift.total - listed);
        }
    }

    fn write_objects(&self, text: &mut String) {
        if self.objects.is_empty() && self.unreadable.is_empty() && self.release.is_none() {
            return;
        }
        let (healthy, total) = tree::healthy(&self.objects, self.release.as_ref());
        let present = self.objects.len();
        let _ = writeln!(text, "\nobjects ({healthy} of {total} healthy)");
        // The healthy ones would fill the screen.
        let unhealthy: Vec<ObjectStatus> =
            self.objects.iter().filter(|object| object.health != ObjectHealth::Healthy).cloned().collect();
        for line in tree::lines(&unhealthy, ObjectHealth::sign) {
            let _ = writeln!(text, "  {line}");
        }
        if present > 0 {
            let _ = writeln!(text, "  `chandler tree {}` shows every object", one_line(&self.name));
        }
        if total > present {
            let missing = total - present;
            let is = if missing == 1 { "is" } else { "are" };
            let _ = writeln!(text, "  {} of the release {is} not in the cluster", count(missing, "object"));
        }
        for problem in &self.unreadable {
            let _ = writeln!(text, "  failed to read: {}", one_line(problem));
        }
    }
}

fn describe(object: &ObjectStatus) -> String {
    let key = &object.key;
    let dot = if key.group.is_empty() { "" } else { "." };
    let namespace = key.namespace.as_deref().map(|namespace| format!(" -n {}", quoted(namespace))).unwrap_or_default();
    let kind = format!("{}{dot}{}", key.kind.to_lowercase(), key.group);
    // Names of roles may have any character but `/` and `%`.
    format!("kubectl describe {} {}{namespace}", quoted(&kind), quoted(&key.name))
}

#[cfg(test)]
mod tests;
