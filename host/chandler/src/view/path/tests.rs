use serde_json::{Value, json};

use super::*;

fn conditions(all: &[(&str, &str, &str, &str)]) -> Value {
    let one = |(kind, status, reason, message): &(&str, &str, &str, &str)| {
        json!({"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 1,
               "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    all.iter().map(one).collect()
}

fn resolution(status: Value) -> Resolution {
    let mut object = json!({
        "apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution", "metadata": {"name": "shop", "generation": 1},
        "spec": {
            "packages": [{"name": "app", "version": ">=1"}, {"name": "extra", "optional": true}],
            "output": {"type": "ResolveSet", "resolveSet": {"installNamespace": "n"}},
        },
        "status": {"observedGeneration": 1, "conditions": []},
    });
    for (key, value) in status.as_object().into_iter().flatten() {
        object["status"][key] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn deployment(name: &str, version: Option<&str>, conditions: Value) -> (String, BundleDeployment) {
    let revision = |version: &str| {
        json!({"number": 1, "outcome": "Succeeded", "version": version, "contentDigest": "sha256:1", "configDigest": "",
            "installNamespace": "n", "provisioner": {"class": "c", "digest": ""}, "releaseDigest": "",
            "source": {"type": "image"}})
    };
    let bundle =
        version.map(|version| json!({"name": format!("{name}.v{version}"), "package": name, "version": version}));
    let deployment = json!({
        "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
        "metadata": {"name": name, "generation": 1},
        "spec": {"installNamespace": "n", "provisionerClassName": "c",
            "source": {"type": "image", "image": {"ref": format!("example.com/{name}:v1")}}},
        "status": {"observedGeneration": 1, "conditions": conditions, "bundle": bundle,
            "release": {"digest": "sha256:1", "objects": 3, "stages": 1},
            "history": version.map(revision).into_iter().collect::<Vec<_>>()},
    });
    (name.to_owned(), serde_json::from_value(deployment).unwrap())
}

fn ready() -> Value {
    conditions(&[
        ("Installed", "True", "InstallationSucceeded", ""),
        ("Healthy", "True", "Healthy", ""),
        ("Progressing", "False", "Succeeded", ""),
        ("Ready", "True", "Succeeded", ""),
    ])
}

/// A member that lacks permissions.
fn refused() -> Value {
    let message = "deployer may not create Deployments";
    conditions(&[
        ("Installed", "False", "InstallFailed", message),
        ("Progressing", "True", "PermissionsMissing", message),
        ("Ready", "False", "PermissionsMissing", message),
    ])
}

fn members() -> Value {
    json!([
        {"package": "app", "bundle": "app.v1.0.0", "version": "1.0.0", "catalog": "ours", "channel": "stable",
         "path": ["1.0.0", "1.1.0", "2.0.0"], "reasons": ["requested >=1"], "bundleDeployment": "app"},
        {"package": "base", "bundle": "base.v1.0.0", "version": "1.0.0", "catalog": "ours", "channel": "stable",
         "reasons": ["app 1.0.0 needs package base >=1.0.0"], "bundleDeployment": "base", "deprecated": "use base2"},
    ])
}

/// A set of which one member waits.
fn under_way() -> Found {
    let status = json!({
        "decision": 2, "bundleDeployment": "resolveset-shop", "members": members(),
        "leftOut": [{"package": "extra", "explanation": ["extra 1.0.0 needs kind a/v1/A"]}],
        "alternatives": ["without the range of app: app 3.0.0"],
        "conditions": conditions(&[("Resolved", "True", "PackagesResolved", ""), ("Ready", "False", "RollingOut", "")]),
    });
    let set = conditions(&[("Ready", "False", "RollingOut", "stage 2 of 2 waits for BundleDeployment app")]);
    Found {
        resolution: Some(resolution(status)),
        deployments: [
            deployment("resolveset-shop", None, set),
            deployment("base", Some("1.0.0"), ready()),
            deployment("app", None, refused()),
        ]
        .into(),
        ..Found::default()
    }
}

#[test]
fn the_step_that_waits_names_the_member_and_what_helps() {
    let path = Path::new(&under_way());
    assert!(!path.complete);
    insta::assert_snapshot!(path.text(Some(100)));
}

#[test]
fn a_member_stands_in_the_path_of_its_resolution() {
    let path = Path::new(&Found { deployment: Some("base".to_owned()), ..under_way() });
    assert_eq!((path.kind, path.name.as_str()), ("BundleDeployment", "base"));
    let packages: Vec<&str> = path.packages.iter().map(|it| it.package.as_str()).collect();
    assert_eq!(packages, ["base"]);
    assert!(path.left_out.is_empty(), "another package is left out");
}

#[test]
fn a_package_that_is_left_out_has_its_reason_and_what_helps() {
    let operator = json!({
        "apiVersion": "platform.openshift.io/v1alpha1", "kind": "PlatformOperator", "metadata": {"name": "po"},
        "spec": {"package": {"name": "extra"}},
    });
    let mut found = Found { operator: Some(serde_json::from_value(operator).unwrap()), ..under_way() };
    assert_eq!(Path::new(&found).install_plan, None, "it does not fit");
    let status = found.resolution.as_mut().unwrap().status.as_mut().unwrap();
    status.left_out[0].reason = "PreflightFailed".to_owned();
    status.left_out[0].explanation = vec!["extra: the image is not found".to_owned()];
    insta::assert_snapshot!(Path::new(&found).text(Some(100)));
}

#[test]
fn packages_without_an_answer_have_reasons_and_no_set() {
    let message = "package app is required; no catalog has it";
    let status = json!({
        "explanation": ["package app is required", "no catalog has it"],
        "conditions": conditions(&[
            ("Resolved", "False", "NotSatisfiable", message),
            ("Ready", "False", "NotSatisfiable", message),
            ("Stalled", "True", "NotSatisfiable", message),
        ]),
    });
    let path = Path::new(&Found { resolution: Some(resolution(status)), ..Found::default() });
    insta::assert_snapshot!(path.text(None));
}

#[test]
fn a_change_that_waits_names_the_command_that_approves_it() {
    let status = json!({
        "decision": 2, "bundleDeployment": "resolveset-shop", "members": members(),
        "pending": {"reason": "ApprovalRequired", "message": "BundleDeployment resolveset-shop waits for an approval",
            "changes": ["change app from 1.0.0 to 1.1.0"]},
    });
    let deployments = [deployment("base", Some("1.0.0"), ready()), deployment("app", Some("1.0.0"), ready())].into();
    let path = Path::new(&Found { resolution: Some(resolution(status)), deployments, ..Found::default() });
    assert!(path.next_steps.iter().any(|step| step.contains("`chandler approve resolveset-shop`")), "{path:?}");
    assert_eq!(path.install_plan, Some(InstallPlan::RequiresApproval));
}

#[test]
fn a_platform_operator_is_the_first_step_and_has_its_package_only() {
    let operator = serde_json::from_value(json!({
        "apiVersion": "platform.openshift.io/v1alpha1", "kind": "PlatformOperator", "metadata": {"name": "basis"},
        "spec": {"package": {"name": "base"}},
    }))
    .unwrap();
    let path = Path::new(&Found { operator: Some(operator), ..under_way() });
    assert_eq!((path.kind, path.packages.len()), ("PlatformOperator", 1));
    assert_eq!(path.steps.first().map(|step| step.message.as_str()), Some("PlatformOperator basis: base"));
}

#[test]
fn a_deployment_without_a_resolution_begins_with_its_spec() {
    let deployments = [deployment("base", Some("1.0.0"), ready())].into();
    let path = Path::new(&Found { deployment: Some("base".to_owned()), deployments, ..Found::default() });
    insta::assert_snapshot!(path.text(Some(100)));
}

#[test]
fn reported_drift_is_beside_the_state_with_what_helps() {
    let mut conditions = ready();
    let drifted = json!({"type": "Drifted", "status": "True", "reason": "DriftReported", "message": "1 object is different",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    conditions.as_array_mut().unwrap().push(drifted);
    let deployments = [deployment("base", Some("1.0.0"), conditions)].into();
    let path = Path::new(&Found { deployment: Some("base".to_owned()), deployments, ..Found::default() });
    insta::assert_snapshot!(path.text(Some(100)));
}

#[test]
fn a_version_that_a_rollback_keeps_is_not_the_choice_of_the_spec() {
    let (name, mut deployment) = deployment("base", Some("1.0.0"), ready());
    deployment.spec.rollout = serde_json::from_value(json!({"toRevision": 1})).unwrap();
    let found = Found { deployment: Some(name.clone()), deployments: [(name, deployment)].into(), ..Found::default() };
    let path = Path::new(&found);
    insta::assert_snapshot!(path.text(Some(100)));
}
