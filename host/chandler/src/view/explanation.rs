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
    /// Whether time alone will not help: a user or an administrator has to act.
    pub needs_action: bool,
    /// Whether the controller has observed the current generation.
    pub up_to_date: bool,
    /// The namespace to install into.
    pub install_namespace: String,
    /// The provisioner class in the spec.
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
        let mut steps: Vec<String> = Vec::new();
        if self.healthy {
            let drifted =
                find_condition(&self.conditions, ConditionType::Drifted).filter(|drifted| needs_attention(drifted));
            let reason = drifted.and_then(|drifted| Reason::from_name(&drifted.reason));
            steps.extend(reason.and_then(|reason| advice(reason, &self.name)));
            if self.is_suspended() {
                steps.extend(advice(Reason::Suspended, &self.name));
            }
            return steps;
        }
        if !self.up_to_date || self.conditions.is_empty() {
            steps.push("check that the controller is running: it has not observed the current generation".to_owned());
        }
        for reason in conditions::causes(&self.conditions) {
            steps.extend(advice(reason, &self.name).filter(|step| !steps.contains(step)));
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
            &self.provisioner.as_ref().map_or_else(|| self.provisioner_class_name.clone(), summary::provisioner),
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
            (false, true) => "not healthy, and time alone will not help",
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
    let namespace = key.namespace.as_deref().map(|namespace| format!(" -n {namespace}")).unwrap_or_default();
    format!("kubectl describe {}{dot}{} {}{namespace}", key.kind.to_lowercase(), key.group, key.name)
}

#[cfg(test)]
mod tests {
    use chandler_api::{
        BundleDeploymentSpec, BundleDeploymentStatus, ConditionStatus, DriftState, DriftedObject, ImageSource,
        NewCondition, conditions::set_condition,
    };
    use chandler_core::ObjectKey;
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    fn deployment(conditions: &[(ConditionType, ConditionStatus, Reason, &str)]) -> BundleDeployment {
        let image = |reference: &str| {
            BundleSource::image(ImageSource { reference: reference.into(), ..ImageSource::default() })
        };
        let mut deployment = BundleDeployment::new(
            "harbour",
            BundleDeploymentSpec {
                install_namespace: "harbour-system".into(),
                provisioner_class_name: "core-rukpak-io-registry".into(),
                source: image("quay.io/example/harbour:v1"),
                ..BundleDeploymentSpec::default()
            },
        );
        deployment.metadata.generation = Some(3);
        let mut status = BundleDeploymentStatus {
            observed_generation: Some(3),
            resolved_source: Some(image("quay.io/example/harbour@sha256:00")),
            release: Some(ReleaseInUse {
                digest: "sha256:22".into(),
                objects: 3,
                stages: 1,
                start_time: None,
                ..ReleaseInUse::default()
            }),
            ..BundleDeploymentStatus::default()
        };
        for (kind, status_, reason, message) in conditions {
            let new = NewCondition { kind: *kind, status: *status_, reason: *reason, message: (*message).into() };
            set_condition(&mut status.conditions, new, Some(3), Time(Timestamp::UNIX_EPOCH));
        }
        deployment.status = Some(status);
        deployment
    }

    fn object(kind: &str, name: &str, health: ObjectHealth, message: Option<&str>) -> ObjectStatus {
        let key = ObjectKey {
            group: if kind == "Deployment" { "apps".into() } else { String::new() },
            kind: kind.into(),
            namespace: Some("harbour-system".into()),
            name: name.into(),
            version: "v1".into(),
        };
        ObjectStatus { key, health, message: message.map(Into::into) }
    }

    #[test]
    fn an_unhealthy_deployment_is_shown_with_suggested_actions() {
        use {ConditionStatus::*, ConditionType as Type};
        let deployment = deployment(&[
            (Type::Unpacked, True, Reason::UnpackSuccessful, ""),
            (Type::Installed, True, Reason::InstallationSucceeded, "Instantiated bundle harbour successfully"),
            (Type::Healthy, False, Reason::Unhealthy, "Deployment.apps harbour-system/pilot:\n0 of 1 available"),
            (Type::Progressing, False, Reason::ProgressDeadlineExceeded, "not healthy within 60 s"),
            (Type::Ready, False, Reason::Unhealthy, "see Healthy"),
        ]);
        let objects = vec![
            object("Service", "metrics", ObjectHealth::Healthy, None),
            object("Deployment", "pilot", ObjectHealth::Unhealthy, Some("ImagePullBackOff")),
        ];
        let explanation = Explanation::new(&deployment, objects, vec!["widgets.example.com: not served".into()]);
        insta::assert_snapshot!(explanation.text(None), @r"
        name          harbour
        namespace     harbour-system
        source        image quay.io/example/harbour@sha256:00
        provisioner   core-rukpak-io-registry
        release       3 objects in 1 stage, sha256:22

        conditions
          Unpacked       True     UnpackSuccessful  (since 1970-01-01T00:00:00Z)
          Installed      True     InstallationSucceeded  (since 1970-01-01T00:00:00Z)
              Instantiated bundle harbour successfully
          Healthy        False    Unhealthy  (since 1970-01-01T00:00:00Z)
              Deployment.apps harbour-system/pilot:
              0 of 1 available
          Progressing    False    ProgressDeadlineExceeded  (since 1970-01-01T00:00:00Z)
              not healthy within 60 s
          Ready          False    Unhealthy  (since 1970-01-01T00:00:00Z)
              see Healthy

        objects (1 of 3 healthy)
          namespace harbour-system
          └─ Deployment.apps
             └─ ✗ pilot  ImagePullBackOff
          `chandler tree harbour` shows every object
          1 object of the release is not in the cluster
          failed to read: widgets.example.com: not served

        suggested actions
          - inspect the unhealthy objects: `kubectl describe` and `kubectl get events` in their namespace
          - kubectl describe deployment.apps pilot -n harbour-system

        not healthy
        ");
    }

    #[test]
    fn the_bundle_and_its_warnings_are_shown() {
        let mut deployment = deployment(&[]);
        let status = deployment.status.as_mut().unwrap();
        status.bundle = Some(BundleDescription {
            name: Some("harbour.v1.2.3".into()),
            package: Some("harbour".into()),
            version: Some("1.2.3".into()),
            ..BundleDescription::default()
        });
        status.warnings = vec![BundleWarning { code: "RequiredApiMissing".into(), message: "needs\nferries".into() }];
        let text = Explanation::new(&deployment, vec![], vec![]).text(None);
        assert!(text.contains("\nbundle        harbour 1.2.3\n"), "{text}");
        assert!(text.contains("\nwarnings\n  RequiredApiMissing: needs"), "{text}");
    }

    #[test]
    fn drift_is_shown_and_is_healthy() {
        use {ConditionStatus::*, ConditionType as Type};
        let mut deployment = deployment(&[
            (Type::Drifted, True, Reason::DriftReported, "2 objects differ from the release"),
            (Type::Ready, True, Reason::Succeeded, ""),
        ]);
        let field =
            |path: &str, manager: Option<&str>| DriftedField { path: path.into(), manager: manager.map(Into::into) };
        deployment.status.as_mut().unwrap().drift = Some(Drifted {
            total: 3,
            objects: vec![
                DriftedObject {
                    group: "apps".into(),
                    kind: "Deployment".into(),
                    namespace: Some("harbour-system".into()),
                    name: "pilot".into(),
                    contested: true,
                    fields: vec![field("spec.replicas", Some("kubectl-edit")), field("spec.paused", None)],
                    omitted_fields: Some(2),
                    ..DriftedObject::default()
                },
                DriftedObject {
                    kind: "Namespace".into(),
                    name: "harbour\u{1b}".into(),
                    state: DriftState::Missing,
                    ..DriftedObject::default()
                },
            ],
        });
        deployment.status.as_mut().unwrap().release.as_mut().unwrap().objects = 1;
        let explanation =
            Explanation::new(&deployment, vec![object("Service", "metrics", ObjectHealth::Healthy, None)], vec![]);
        assert!(explanation.healthy);
        let text = explanation.text(None);
        let (_, shown) = text.split_once("\ndrift").unwrap();
        let (shown, rest) = shown.split_once("\nconditions").unwrap();
        insta::assert_snapshot!(shown, @r"
         (3 objects)
          Deployment.apps harbour-system/pilot: Changed, ownership conflict
              spec.replicas, set by kubectl-edit
              spec.paused
              and 2 more
          Namespace harbour\u{001B}: Missing
          and 1 more
        ");
        assert!(
            rest.contains("suggested actions\n  - revert the change, or let the controller repair the objects once"),
            "{rest}"
        );
        deployment.status.as_mut().unwrap().conditions[0].status = "False".into();
        deployment.status.as_mut().unwrap().conditions[0].reason = "AsReleased".into();
        let healthy = vec![object("Service", "metrics", ObjectHealth::Healthy, None)];
        assert!(Explanation::new(&deployment, healthy, vec![]).next_steps.is_empty());
    }

    #[test]
    fn healthy_requires_ready_for_the_current_generation_and_all_objects_healthy() {
        use {ConditionStatus::*, ConditionType as Type};
        let ready = (Type::Ready, True, Reason::Succeeded, "");
        let healthy = || vec![object("Service", "metrics", ObjectHealth::Healthy, None)];
        let mut deployment = deployment(&[ready]);
        deployment.status.as_mut().unwrap().release.as_mut().unwrap().objects = 1;
        assert!(!Explanation::new(&deployment, vec![], vec![]).healthy, "an object of the release does not exist");
        let explanation = Explanation::new(&deployment, healthy(), vec![]);
        assert!(explanation.healthy && explanation.next_steps.is_empty());
        assert!(explanation.text(None).ends_with("\nhealthy\n"));
        let progressing = vec![object("Service", "metrics", ObjectHealth::Progressing, None)];
        assert!(!Explanation::new(&deployment, progressing, vec![]).healthy);
        assert!(!Explanation::new(&deployment, healthy(), vec!["x".into()]).healthy);
        deployment.metadata.generation = Some(4);
        let stale = Explanation::new(&deployment, healthy(), vec![]);
        assert!(!stale.healthy);
        assert_eq!(
            stale.next_steps,
            ["check that the controller is running: it has not observed the current generation"]
        );
    }

    #[test]
    fn the_status_of_a_normal_bundle_fits_one_screen() {
        use {ConditionStatus::*, ConditionType as Type};
        let mut deployment = deployment(&[
            (Type::Unpacked, True, Reason::UnpackSuccessful, ""),
            (Type::Installed, True, Reason::InstallationSucceeded, "Instantiated bundle harbour successfully"),
            (Type::Healthy, True, Reason::Healthy, ""),
            (Type::Drifted, False, Reason::AsReleased, ""),
            (Type::Progressing, True, Reason::Succeeded, ""),
            (Type::Ready, True, Reason::Succeeded, ""),
        ]);
        let status = deployment.status.as_mut().unwrap();
        let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
        status.content_digest = Some(digest.clone());
        status.revision = Some(3);
        status.resolved_source.as_mut().unwrap().image.as_mut().unwrap().reference =
            format!("quay.io/example/harbour@{digest}");
        status.release.as_mut().unwrap().digest = digest;
        let objects: Vec<ObjectStatus> = ["metrics", "pilot", "crane"]
            .map(|name| object("Service", name, ObjectHealth::Healthy, None))
            .into_iter()
            .collect();
        let explanation = Explanation::new(&deployment, objects, vec![]);
        for width in [80, 140] {
            let text = explanation.text(Some(width));
            let rows: usize = text.lines().map(|line| line.chars().count().div_ceil(width).max(1)).sum();
            assert!(rows <= 24, "{width}: {rows}\n{text}");
        }
        let source = explanation.text(Some(80)).lines().nth(2).unwrap().to_owned();
        assert!(source.starts_with("source        image quay.io/example/harbour@"), "{source}");
        assert!(source.ends_with("cdef") && source.chars().count() == 80, "{source}");
    }

    #[test]
    fn the_json_output_uses_the_field_names_of_the_api() {
        let deployment = deployment(&[]);
        let objects = vec![object("Service", "metrics", ObjectHealth::Healthy, None)];
        let json = serde_json::to_value(Explanation::new(&deployment, objects, vec![])).unwrap();
        assert_eq!(json["resolvedSource"]["image"]["ref"], "quay.io/example/harbour@sha256:00");
        assert_eq!(json["objects"][0]["kind"], "Service");
        assert_eq!(json["objects"][0]["health"], "healthy");
        assert_eq!(json["healthy"], false);
    }
}
