use chandler_api::{
    BundleDeploymentSpec, BundleDeploymentStatus, ConditionStatus, DriftState, DriftedObject, ImageSource,
    NewCondition, PendingChange, conditions::set_condition,
};
use chandler_core::ObjectKey;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::*;

fn deployment(conditions: &[(ConditionType, ConditionStatus, Reason, &str)]) -> BundleDeployment {
    let image =
        |reference: &str| BundleSource::image(ImageSource { reference: reference.into(), ..ImageSource::default() });
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
    ObjectStatus { key, health, message: message.map(Into::into), created: None }
}

#[test]
fn advice_about_a_deletion_does_not_speak_of_the_rollout_or_of_the_controller_that_is_done() {
    use {ConditionStatus::*, ConditionType as Type};
    let mut lost = deployment(&[(Type::Progressing, False, Reason::PermissionsMissing, "no")]);
    lost.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    lost.metadata.finalizers = Some(vec![TEARDOWN_FINALIZER.to_owned(), "example.com/mine".to_owned()]);
    let steps =
        |deployment: &BundleDeployment| Explanation::new(deployment, Vec::new(), Vec::new()).next_steps.join("\n");
    insta::assert_snapshot!(steps(&lost), @"grant the missing permissions: `chandler rbac harbour | kubectl apply -f -`; the deletion then continues");
    lost.metadata.finalizers = Some(vec!["example.com/mine".to_owned()]);
    insta::assert_snapshot!(steps(&lost), @"the controller has deleted the objects; other software holds the BundleDeployment with its finalizers, and removes them: example.com/mine");
}

#[test]
fn a_change_that_would_be_refused_is_not_approved_without_force() {
    use {ConditionStatus::*, ConditionType as Type};
    let mut waits = deployment(&[
        (Type::Installed, True, Reason::InstallationSucceeded, "installed"),
        (Type::Progressing, False, Reason::ApprovalRequired, "a change waits for approval"),
    ]);
    let steps =
        |deployment: &BundleDeployment| Explanation::new(deployment, Vec::new(), Vec::new()).next_steps.join("\n");
    let change = PendingChange { refusals: vec!["no".to_owned()], ..PendingChange::default() };
    waits.status.as_mut().unwrap().pending_change = Some(change);
    assert!(steps(&waits).contains("`chandler approve harbour --force`"), "{}", steps(&waits));
    waits.status.as_mut().unwrap().pending_change = Some(PendingChange::default());
    assert!(!steps(&waits).contains("--force"), "{}", steps(&waits));
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
      1 object of the release was not found, and may be of a kind that could not be read
      failed to read: widgets.example.com: not served

    suggested actions
      - inspect the unhealthy objects: `chandler events harbour --objects`, and `kubectl describe` in their namespace
      - kubectl describe deployment.apps pilot -n harbour-system

    the release runs and is not healthy
    the current spec needs action: ProgressDeadlineExceeded
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
    let kept = BundleWarning { code: "UnsafeCRDUpgrade".into(), message: "berths keeps additions".into() };
    status.release.get_or_insert_default().warnings = vec![kept];
    let text = Explanation::new(&deployment, vec![], vec![]).text(None);
    assert!(text.contains("\nbundle        harbour 1.2.3\n"), "{text}");
    assert!(text.contains("\nwarnings\n  RequiredApiMissing: needs"), "{text}");
    assert!(text.contains("\n  UnsafeCRDUpgrade: berths keeps additions\n"), "{text}");
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
fn the_controller_decides_what_is_healthy_and_the_objects_may_differ_for_a_moment() {
    use {ConditionStatus::*, ConditionType as Type};
    let ready = (Type::Ready, True, Reason::Succeeded, "");
    let healthy = || vec![object("Service", "metrics", ObjectHealth::Healthy, None)];
    let mut deployment = deployment(&[ready]);
    deployment.status.as_mut().unwrap().release.as_mut().unwrap().objects = 1;
    let explanation = Explanation::new(&deployment, healthy(), vec![]);
    assert!(explanation.healthy && explanation.next_steps.is_empty());
    assert!(explanation.text(None).ends_with("\nhealthy\n"));
    let progressing = vec![object("Service", "metrics", ObjectHealth::Progressing, None)];
    for objects in [vec![], progressing] {
        let explanation = Explanation::new(&deployment, objects, vec![]);
        assert!(explanation.healthy, "`chandler list` and `chandler status --watch` report the same");
        let last = "\nhealthy\n1 object is not healthy at this moment; the controller reports a change that lasts\n";
        assert!(explanation.text(None).ends_with(last), "{}", explanation.text(None));
    }
    deployment.metadata.generation = Some(4);
    let stale = Explanation::new(&deployment, healthy(), vec![]);
    assert!(!stale.healthy);
    assert_eq!(stale.next_steps, ["check that the controller is running: it has not observed the current generation"]);
}

#[test]
fn a_change_that_waits_for_approval_is_not_a_failure() {
    use {ConditionStatus::*, ConditionType as Type};
    let waits = "a change waits for approval: 0 to create, 1 to change, 0 to remove";
    let mut deployment = deployment(&[
        (Type::Installed, True, Reason::InstallationSucceeded, ""),
        (Type::Healthy, True, Reason::Healthy, "BundleDeployment is healthy"),
        (Type::Progressing, False, Reason::ApprovalRequired, waits),
        (Type::Ready, False, Reason::ApprovalRequired, waits),
    ]);
    let status = deployment.status.as_mut().unwrap();
    status.release.as_mut().unwrap().objects = 1;
    status.bundle = Some(BundleDescription { version: Some("0.1.0".into()), ..BundleDescription::default() });
    status.candidate = Some(BundleCandidate { version: Some("0.2.0".into()), ..BundleCandidate::default() });
    let objects = vec![object("Service", "metrics", ObjectHealth::Healthy, None)];
    let explanation = Explanation::new(&deployment, objects, vec![]);
    assert!(explanation.overview.only_waits() && explanation.needs_action && !explanation.healthy);
    let text = explanation.text(None);
    let (_, end) = text.split_once("\nobjects").unwrap();
    insta::assert_snapshot!(end, @r"
     (1 of 1 healthy)
      `chandler tree harbour` shows every object

    suggested actions
      - `chandler diff harbour` shows the change, `chandler approve harbour` approves it

    0.1.0 runs and is healthy
    0.2.0 waits for your approval: `chandler approve harbour`
    ");
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
