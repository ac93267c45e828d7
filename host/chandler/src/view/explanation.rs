//! The status of a BundleDeployment with suggested actions, for `chandler status`.

use std::fmt::Write as _;

use chandler_api::{
    BundleCandidate, BundleDeployment, BundleDescription, BundleSource, BundleWarning, ConditionType, Drifted,
    DriftedField, ProvisionerInUse, Reason, ReleaseInUse, find_condition, names::TEARDOWN_FINALIZER,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

use super::{
    advice::{advice, deployment_advice},
    conditions::{self, needs_attention},
    invocation::quoted,
    overview::{Decision, Health, HealthWord, Next, Overview},
    recreated::{self, Recreated},
    subject::Subject,
    summary,
    table::cut_middle,
    terminal::{Frame, Look, Tone},
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
    /// Whether the controller reports it as ready for its current generation.
    pub healthy: bool,
    /// The health of what runs, as the controller reports it; absent if nothing runs, and while it is being replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_health: Option<HealthWord>,
    /// What runs.
    pub runs: String,
    /// What waits, or what keeps the current spec from running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// Whether a user or an administrator has to act before the current spec is rolled out.
    pub needs_action: bool,
    /// What runs and what waits.
    #[serde(skip)]
    pub overview: Overview,
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
    /// Objects that were deleted by another client after the rollout, and created again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recreated: Vec<Recreated>,
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
        let overview = Overview::of(deployment);
        let mut explanation = Self {
            healthy: overview.is_ready(),
            running_health: overview.health().map(Health::word),
            runs: overview.runs(),
            waits: overview.waits(),
            needs_action: overview.needs_action(),
            up_to_date: status.observed_generation >= deployment.metadata.generation,
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
            recreated: recreated::recreated(deployment, &objects),
            objects,
            unreadable,
            next_steps: Vec::new(),
            name,
            overview,
        };
        explanation.next_steps = explanation.next_steps(deployment);
        explanation
    }

    fn next_steps(&self, deployment: &BundleDeployment) -> Vec<String> {
        if let Some(held) = held_by_others(deployment) {
            return vec![held];
        }
        let overview = &self.overview;
        let (mut steps, subject): (Vec<String>, _) = (Vec::new(), Subject::deployment(&self.name));
        let mut add = |step: Option<String>| {
            if let Some(step) = step.filter(|step| !steps.contains(step)) {
                steps.push(step);
            }
        };
        if overview.is_ready() {
            let drifted =
                find_condition(&self.conditions, ConditionType::Drifted).filter(|drifted| needs_attention(drifted));
            let reason = drifted.and_then(|drifted| Reason::from_name(&drifted.reason));
            add(reason.and_then(|reason| advice(reason, &subject)));
        } else {
            if !self.up_to_date || self.conditions.is_empty() {
                let check = "check that the controller is running: it has not observed the current generation";
                add(Some(check.to_owned()));
            }
            for reason in conditions::causes(&self.conditions) {
                add(deployment_advice(reason, overview));
            }
        }
        if overview.next == Next::Waits(Decision::Resume) {
            add(advice(Reason::Suspended, &subject));
        }
        if overview.pinned.is_some() {
            add(Some(format!("to roll out the spec again: `chandler rollback {} --cancel`", self.name)));
        }
        for object in self.objects.iter().filter(|object| object.health != ObjectHealth::Healthy).take(3) {
            add(Some(describe(object)));
        }
        if steps.is_empty() && !overview.is_ready() {
            steps.push(format!("wait: `chandler status {} --watch` follows the rollout", self.name));
        }
        steps
    }

    /// The last lines, and a line about objects that were not healthy when they were read.
    fn verdict_text(&self, look: Look) -> String {
        let mut lines: Vec<String> = verdict(&self.overview).iter().map(|line| one_line(line)).collect();
        // The first line is the only one about a healthy bundle; else the last one says what is missing.
        let state = if self.healthy { lines.first_mut() } else { lines.last_mut() };
        if let Some(line) = state {
            let tone = match (self.healthy, self.needs_action) {
                (true, _) => Tone::Good,
                (false, true) => Tone::Bad,
                (false, false) => Tone::Busy,
            };
            *line = look.paint(tone, line);
        }
        let (healthy, all) = tree::healthy(&self.objects, self.release.as_ref());
        // An object of a kind that could not be read may be healthy.
        let all = if self.unreadable.is_empty() { all } else { self.objects.len() };
        if self.running_health == Some(HealthWord::Healthy) && healthy < all {
            lines.push(format!(
                "{} not healthy at this moment; the controller reports a change that lasts",
                match all - healthy {
                    1 => "1 object is".to_owned(),
                    number => format!("{number} objects are"),
                }
            ));
        }
        lines.join("\n")
    }

    /// The status as text. In a width, long sources and digests are cut in the middle, so that each stays on its line.
    pub fn text(&self, frame: impl Into<Frame>) -> String {
        let Frame { width, look } = frame.into();
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
        self.write_recreated(&mut text);
        conditions::write(&mut text, &self.conditions, look);
        self.write_objects(&mut text, look);
        if !self.next_steps.is_empty() {
            text.push_str("\nsuggested actions\n");
            for step in &self.next_steps {
                let _ = writeln!(text, "  - {}", one_line(step));
            }
        }
        let _ = writeln!(text, "\n{}", self.verdict_text(look));
        text
    }

    fn write_warnings(&self, text: &mut String) {
        let of_release = self.release.iter().flat_map(|release| &release.warnings);
        let warnings: Vec<&BundleWarning> = self.warnings.iter().chain(of_release).collect();
        if !warnings.is_empty() {
            text.push_str("\nwarnings\n");
        }
        for BundleWarning { code, message } in warnings {
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

    fn write_recreated(&self, text: &mut String) {
        if !self.recreated.is_empty() {
            let _ = writeln!(text, "\ndeleted by another client and created again");
        }
        for line in recreated::lines(&self.recreated) {
            let _ = writeln!(text, "  {line}");
        }
    }

    fn write_objects(&self, text: &mut String, look: Look) {
        if self.objects.is_empty() && self.unreadable.is_empty() && self.release.is_none() {
            return;
        }
        let (healthy, total) = tree::healthy(&self.objects, self.release.as_ref());
        let present = self.objects.len();
        let _ = writeln!(text, "\nobjects ({healthy} of {total} healthy)");
        // The healthy ones would fill the screen.
        let unhealthy: Vec<ObjectStatus> =
            self.objects.iter().filter(|object| object.health != ObjectHealth::Healthy).cloned().collect();
        for line in tree::lines(&unhealthy, |health| look.sign(health)) {
            let _ = writeln!(text, "  {line}");
        }
        if present > 0 {
            let _ = writeln!(text, "  `chandler tree {}` shows every object", one_line(&self.name));
        }
        if total > present {
            let missing = total - present;
            let (is, was) = if missing == 1 { ("is", "was") } else { ("are", "were") };
            let objects = count(missing, "object");
            let _ = if self.unreadable.is_empty() {
                writeln!(text, "  {objects} of the release {is} not in the cluster")
            } else {
                writeln!(
                    text,
                    "  {objects} of the release {was} not found, and may be of a kind that could not be read"
                )
            };
        }
        for problem in &self.unreadable {
            let _ = writeln!(text, "  failed to read: {}", one_line(problem));
        }
    }
}

/// The last lines of the status: one word if the spec is rolled out and healthy, else what runs; and what waits.
fn verdict(overview: &Overview) -> Vec<String> {
    if overview.is_ready() {
        return std::iter::once("healthy".to_owned()).chain(overview.waits()).collect();
    }
    overview.brief_lines()
}

fn describe(object: &ObjectStatus) -> String {
    let key = &object.key;
    let dot = if key.group.is_empty() { "" } else { "." };
    let namespace = key.namespace.as_deref().map(|namespace| format!(" -n {}", quoted(namespace))).unwrap_or_default();
    let kind = format!("{}{dot}{}", key.kind.to_lowercase(), key.group);
    // Names of roles may have any character but `/` and `%`.
    format!("kubectl describe {} {}{namespace}", quoted(&kind), quoted(&key.name))
}

/// What to do about a deletion that the controller has completed, and that finalizers of other software hold.
fn held_by_others(deployment: &BundleDeployment) -> Option<String> {
    deployment.metadata.deletion_timestamp.as_ref()?;
    let finalizers = deployment.metadata.finalizers.as_deref().unwrap_or_default();
    if finalizers.is_empty() || finalizers.iter().any(|finalizer| finalizer == TEARDOWN_FINALIZER) {
        return None;
    }
    Some(format!(
        "the controller has deleted the objects; other software holds the BundleDeployment with its finalizers, and removes them: {}",
        finalizers.join(", ")
    ))
}

#[cfg(test)]
mod tests;
