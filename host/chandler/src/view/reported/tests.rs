use serde_json::{Value, json};

use super::*;

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn object(api: &str, kind: &str, name: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "generation": 1}, "spec": spec, "status": status})
}

fn status<K: Reported + serde::de::DeserializeOwned>(object: Value) -> ReportedStatus {
    ReportedStatus::new(&serde_json::from_value::<K>(object).unwrap())
}

fn catalog(conditions: Value) -> ReportedStatus {
    let reference = |text: &str| json!({"type": "image", "image": {"ref": text}});
    status::<Catalog>(object(
        "chandler.dev/v1alpha1",
        "Catalog",
        "ours",
        json!({"source": reference("quay.io/ours/catalog:v1"), "priority": 5, "pollInterval": "30m"}),
        json!({
            "observedGeneration": 1, "conditions": conditions, "digest": "sha256:2",
            "resolvedSource": reference("quay.io/ours/catalog@sha256:1"),
            "contents": {"packages": 1, "channels": 2, "bundles": 3}, "lastUnpacked": "2026-01-01T00:00:00Z",
        }),
    ))
}

fn class(conditions: Value, component: Value) -> ReportedStatus {
    status::<ProvisionerClass>(object(
        "chandler.dev/v1alpha1",
        "ProvisionerClass",
        "helm",
        json!({"image": "quay.io/ours/helm:v1"}),
        json!({"observedGeneration": 1, "conditions": conditions, "component": component}),
    ))
}

fn operator(reason: &str, message: &str) -> ReportedStatus {
    let is_installed = if reason == "InstallSuccessful" { "True" } else { "False" };
    status::<PlatformOperator>(object(
        "platform.openshift.io/v1alpha1",
        "PlatformOperator",
        "mesh",
        json!({"package": {"name": "service-mesh"}, "version": ">=1"}),
        json!({
            "observedGeneration": 1, "conditions": [condition("Installed", is_installed, reason, message)],
            "version": "1.2.0", "namespace": "mesh", "activeBundleDeployment": {"name": "mesh"},
        }),
    ))
}

fn policy(status_of: &str, reason: &str) -> ReportedStatus {
    status::<PlatformPolicy>(object(
        "chandler.dev/v1alpha1",
        "PlatformPolicy",
        "platform-operators",
        json!({"packages": [{"name": "service-mesh"}, {"name": "certificates"}], "requirePlatformProperty": true}),
        json!({"observedGeneration": 1, "conditions": [condition("Accepted", status_of, reason, "a message")]}),
    ))
}

#[test]
fn a_status_shows_fields_conditions_and_what_helps() {
    let stale = json!([
        condition("Resolved", "False", "SourceNotResolved", "no answer"),
        condition("Unpacked", "Unknown", "SourceNotResolved", "an earlier step failed"),
        condition("Ready", "True", "CatalogStale", "the earlier index stays in use: no answer"),
    ]);
    let invalid = json!([
        condition("Valid", "False", "CatalogInvalid", "a.yaml:1: no"),
        condition("Ready", "False", "CatalogInvalid", "a.yaml:1: no"),
        condition("Stalled", "True", "CatalogInvalid", "a.yaml:1: no"),
    ]);
    let component = json!({"image": "quay.io/ours/helm@sha256:1", "digest": "sha256:2", "name": "helm", "version": "1.0.0",
        "contractVersion": "0.1.0", "formats": ["helm+v3"]});
    let compiled = json!([
        condition("Verified", "False", "NotRequired", "nothing was verified"),
        condition("Ready", "True", "ProvisionerReady", "the class can be used"),
    ]);
    let shown = [
        catalog(stale),
        catalog(invalid),
        catalog(json!([condition("Ready", "True", "Suspended", "spec.suspend is true")])),
        class(compiled, component),
        class(
            json!([
                condition("Ready", "False", "CompileFailed", "too large"),
                condition("Stalled", "True", "CompileFailed", "too large")
            ]),
            Value::Null,
        ),
        operator("InstallSuccessful", "installed mesh"),
        operator("SourceFailed", "no version fits"),
        operator("PermissionsMissing", "deployer may not create Deployments"),
        policy("True", "PolicyAccepted"),
        policy("False", "PolicyNotUsed"),
    ];
    let texts: Vec<String> = shown.iter().map(|status| status.text(Some(120))).collect();
    insta::assert_snapshot!(texts.join("\n----\n"));
}

#[test]
fn the_state_of_an_object_follows_from_its_conditions() {
    use RolloutState::{Failed, Healthy, Waiting};
    assert_eq!(operator("InstallSuccessful", "").state(), Healthy);
    assert!(matches!(operator("InstallPending", "m").state(), Waiting { reason: Some(_), .. }));
    assert!(matches!(operator("PermissionsMissing", "m").state(), Waiting { .. }), "it may be granted at any moment");
    assert!(matches!(operator("SourceFailed", "m").state(), Failed { .. }));
    assert!(matches!(policy("False", "InvalidPolicy").state(), Failed { .. }));
    let stalled = json!([
        condition("Ready", "False", "SourceNotResolved", "m"),
        condition("Stalled", "True", "SourceNotResolved", "m")
    ]);
    assert!(matches!(catalog(stalled).state(), Failed { .. }), "the server refuses");
    let retried = json!([
        condition("Ready", "False", "SourceNotResolved", "m"),
        condition("Reconciling", "True", "SourceNotResolved", "m")
    ]);
    assert!(matches!(catalog(retried).state(), Waiting { .. }));
}

#[test]
fn a_catalog_with_earlier_content_is_ready_and_not_current() {
    let of = |reason: &str| catalog(json!([condition("Ready", "True", reason, "m")]));
    for (reason, is_current) in [("CatalogReady", true), ("Suspended", true), ("CatalogStale", false)] {
        let status = of(reason);
        assert_eq!((status.healthy, status.is_current()), (true, is_current), "{reason}");
    }
}

#[test]
fn an_object_that_the_controller_has_not_observed_is_not_ready() {
    let mut object = object(
        "chandler.dev/v1alpha1",
        "PlatformPolicy",
        "platform-operators",
        json!({}),
        json!({"observedGeneration": -1}),
    );
    for generation in [1, 2] {
        object["metadata"]["generation"] = json!(generation);
        let found = status::<PlatformPolicy>(object.clone());
        assert!(!found.healthy && !found.up_to_date && !found.needs_action);
        assert!(found.next_steps[0].starts_with("check that the controller is running"), "{:?}", found.next_steps);
        object["status"] =
            json!({"observedGeneration": 1, "conditions": [condition("Accepted", "True", "PolicyAccepted", "")]});
    }
}

#[test]
fn the_fields_of_a_kind_are_in_the_json() {
    let json = serde_json::to_value(operator("InstallSuccessful", "")).unwrap();
    assert_eq!(
        (&json["kind"], &json["package"], &json["bundleDeployment"], &json["healthy"]),
        (&json!("PlatformOperator"), &json!("service-mesh"), &json!("mesh"), &json!(true))
    );
    let json = serde_json::to_value(catalog(json!([]))).unwrap();
    assert_eq!(
        (&json["resolvedSource"]["image"]["ref"], &json["contents"]["bundles"]),
        (&json!("quay.io/ours/catalog@sha256:1"), &json!(3))
    );
}
