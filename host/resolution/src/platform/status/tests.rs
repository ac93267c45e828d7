use serde_json::{Value, json};

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn operator(spec: &Value, status: &Value) -> PlatformOperator {
    let object = json!({"apiVersion": "platform.openshift.io/v1alpha1", "kind": "PlatformOperator",
                        "metadata": {"name": "mine", "generation": 3}, "spec": spec, "status": status});
    serde_json::from_value(object).unwrap()
}

fn conditions(conditions: &[(&str, &str, &str)]) -> Value {
    let condition = |(kind, status, reason): &(&str, &str, &str)| {
        json!({"type": kind, "status": status, "reason": reason, "message": format!("it is {reason}"),
               "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    conditions.iter().map(condition).collect()
}

fn deployment(found: &[(&str, &str, &str)]) -> BundleDeployment {
    let spec = json!({"installNamespace": "x", "provisionerClassName": "core-rukpak-io-registry", "source": {"type": "image"}});
    serde_json::from_value(json!({"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
        "metadata": {"name": "x"}, "spec": spec, "status": {"conditions": conditions(found)}}))
    .unwrap()
}

/// A Resolution whose answer has these fields, beside the condition `Resolved`.
fn resolution(resolved: &str, answer: &Value) -> Resolution {
    let mut status =
        json!({"observedGeneration": 7, "conditions": conditions(&[("Resolved", resolved, "CatalogsNotReady")])});
    for (field, value) in answer.as_object().into_iter().flatten() {
        status[field] = value.clone();
    }
    serde_json::from_value(json!({"apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution",
        "metadata": {"name": "platform-operators", "generation": 7}, "spec": {"packages": [{"name": "x"}]}, "status": status}))
    .unwrap()
}

fn member(version: &str) -> Value {
    json!({"members": [{"package": "x", "bundle": "x.v1", "version": version, "image": "i", "bundleDeployment": "x"}]})
}

fn line(status: &PlatformOperatorStatus) -> String {
    let installed = status.conditions.iter().map(|it| format!("{}/{}: {}", it.status, it.reason, it.message));
    let active = status.active_bundle_deployment.as_ref().map_or("none", |it| it.name.as_str());
    let version = status.version.as_deref().unwrap_or("none");
    format!("{} [version {version}, active {active}]", installed.collect::<Vec<_>>().join(", "))
}

#[test]
fn the_status_says_what_became_of_the_wish() {
    let wish = operator(&json!({"package": {"name": "x"}, "version": "<2"}), &json!(null));
    let (chosen, none) = (resolution("True", &member("1.0.0")), resolution("True", &json!({})));
    let left_out =
        json!({"leftOut": [{"package": "x", "explanation": ["package x is required", "no catalog has package x"]}]});
    let refused_alone =
        json!({"leftOut": [{"package": "x", "reason": "PreflightFailed", "explanation": ["x: not found"]}]});
    let refused_upgrade = json!({"members": member("1.0.0")["members"], "leftOut": refused_alone["leftOut"]});
    let pending = json!({"members": member("1.0.0")["members"],
                         "pending": {"reason": "ApprovalRequired", "message": "the change waits for approval", "changes": []}});
    let refused =
        json!({"pending": {"reason": "PreflightFailed", "message": "x: the image cannot be fetched", "changes": []}});
    let forbidden = json!({"members": member("1.0.0")["members"],
                           "conditions": conditions(&[("Resolved", "True", "PackagesResolved"), ("Installed", "False", "InstallFailed")])});
    let asked = |resolution: &Resolution, found: Option<&BundleDeployment>| {
        line(&derive(
            &wish,
            &Outcome::Asked { resolution: Some(resolution), deployment: found, policy: &Ok(None) },
            NOW,
        ))
    };
    let unpacked = ("Unpacked", "True", "UnpackSuccessful");
    let valid = ("HasValidBundle", "True", "UnpackSuccessful");
    let cases = [
        ("refused", line(&derive(&wish, &Outcome::Refused("why".to_owned()), NOW))),
        ("failed", line(&derive(&wish, &Outcome::Failed("why".to_owned()), NOW))),
        ("new", line(&derive(&wish, &Outcome::Asked { resolution: None, deployment: None, policy: &Ok(None) }, NOW))),
        ("left out", asked(&resolution("True", &left_out), None)),
        ("left out by the checks", asked(&resolution("True", &refused_alone), None)),
        (
            "an upgrade left out by the checks",
            asked(&resolution("True", &refused_upgrade), Some(&deployment(&[("Installed", "True", "a")]))),
        ),
        (
            "an upgrade left out by the checks before the version is installed",
            asked(&resolution("True", &refused_upgrade), Some(&deployment(&[("Installed", "False", "a")]))),
        ),
        ("no answer", asked(&resolution("Unknown", &json!({})), None)),
        (
            "no answer, installed",
            asked(&resolution("Unknown", &member("1.0.0")), Some(&deployment(&[("Installed", "True", "a")]))),
        ),
        (
            "no answer, another version installed",
            asked(&resolution("Unknown", &member("2.0.0")), Some(&deployment(&[("Installed", "True", "a")]))),
        ),
        ("not chosen yet", asked(&none, None)),
        ("not created yet", asked(&chosen, None)),
        ("waits", asked(&resolution("True", &pending), None)),
        ("refused by the checks", asked(&resolution("True", &refused), None)),
        ("the set fails", asked(&resolution("True", &forbidden), None)),
        ("unpacking", asked(&chosen, Some(&deployment(&[("Unpacked", "False", "Unpacking")])))),
        ("unpack failed", asked(&chosen, Some(&deployment(&[("Unpacked", "False", "UnpackFailed")])))),
        ("invalid", asked(&chosen, Some(&deployment(&[unpacked, ("HasValidBundle", "False", "BundleLoadFailed")])))),
        ("installing", asked(&chosen, Some(&deployment(&[unpacked, valid])))),
        (
            "install failed",
            asked(&chosen, Some(&deployment(&[unpacked, valid, ("Installed", "False", "InstallFailed")]))),
        ),
        (
            "installed",
            asked(&chosen, Some(&deployment(&[unpacked, valid, ("Installed", "True", "InstallationSucceeded")]))),
        ),
        (
            "an upgrade that is invalid",
            asked(
                &chosen,
                Some(&deployment(&[("HasValidBundle", "False", "BundleLoadFailed"), ("Installed", "True", "a")])),
            ),
        ),
    ];
    let text: Vec<String> = cases.iter().map(|(case, line)| format!("{case}: {line}")).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    refused: False/SourceFailed: why [version none, active none]
    failed: False/InstallFailed: why [version none, active none]
    new: False/UnpackPending: Waiting for the bundle to be unpacked [version none, active none]
    left out: False/SourceFailed: failed to find candidate olm.bundles from the x package: package x is required; no catalog has package x [version none, active none]
    left out by the checks: False/InstallFailed: x: not found [version none, active none]
    an upgrade left out by the checks: True/InstallSuccessful: Successfully applied the x BundleDeployment resource; the checks refuse its upgrade: x: not found [version 1.0.0, active x]
    an upgrade left out by the checks before the version is installed: False/InstallFailed: x: not found [version 1.0.0, active x]
    no answer: False/SourceFailed: Resolution platform-operators has no answer: it is CatalogsNotReady [version none, active none]
    no answer, installed: True/InstallSuccessful: Successfully applied the x BundleDeployment resource [version 1.0.0, active x]
    no answer, another version installed: False/SourceFailed: Resolution platform-operators has no answer: it is CatalogsNotReady [version 2.0.0, active x]
    not chosen yet: False/UnpackPending: Waiting for the bundle to be unpacked [version none, active none]
    not created yet: False/UnpackPending: Waiting for the bundle to be unpacked [version 1.0.0, active none]
    waits: False/InstallPending: Waiting for the bundle to be installed: the change waits for approval [version 1.0.0, active none]
    refused by the checks: False/InstallFailed: x: the image cannot be fetched [version none, active none]
    the set fails: False/InstallFailed: it is InstallFailed [version 1.0.0, active none]
    unpacking: False/UnpackPending: Waiting for the bundle to be unpacked [version 1.0.0, active x]
    unpack failed: False/UnpackFailed: it is UnpackFailed [version 1.0.0, active x]
    invalid: False/BundleLoadFailed: it is BundleLoadFailed [version 1.0.0, active x]
    installing: False/InstallPending: Waiting for the bundle to be installed [version 1.0.0, active x]
    install failed: False/InstallFailed: it is InstallFailed [version 1.0.0, active x]
    installed: True/InstallSuccessful: Successfully applied the x BundleDeployment resource [version 1.0.0, active x]
    an upgrade that is invalid: True/InstallSuccessful: Successfully applied the x BundleDeployment resource [version 1.0.0, active x]
    ");
}

#[test]
fn a_transition_has_a_time_and_nothing_else_moves_it() {
    let installed = deployment(&[("Installed", "True", "InstallationSucceeded")]);
    let later = Timestamp::from_second(1_000).unwrap();
    let mut mine = operator(&json!({"package": {"name": "x"}}), &json!(null));
    let chosen = resolution("True", &member("1.0.0"));
    let asked = |deployment| Outcome::Asked { resolution: Some(&chosen), deployment, policy: &Ok(None) };
    mine.status = Some(derive(&mine, &asked(None), NOW));
    let time = |status: &PlatformOperatorStatus| status.conditions[0].last_transition_time.0;
    let same = derive(&mine, &asked(None), later);
    assert_eq!(Some(&same), mine.status.as_ref());
    let unpacked = deployment(&[("HasValidBundle", "True", "a")]);
    let waits = derive(&mine, &asked(Some(&unpacked)), later);
    assert_eq!((time(&waits), waits.conditions[0].reason.as_str()), (NOW, "InstallPending"));
    let done = derive(&mine, &asked(Some(&installed)), later);
    assert_eq!((time(&done), done.observed_generation), (later, Some(3)));
}

#[test]
fn until_there_is_an_answer_the_last_status_stands() {
    let mut mine = operator(&json!({"package": {"name": "x"}}), &json!(null));
    mine.status = Some(derive(&mine, &Outcome::Refused("why".to_owned()), NOW));
    mine.metadata.generation = Some(4);
    let mut stale = resolution("True", &member("1.0.0"));
    stale.metadata.generation = Some(8);
    for resolution in [None, Some(&stale)] {
        let status = derive(&mine, &Outcome::Asked { resolution, deployment: None, policy: &Ok(None) }, NOW);
        assert_eq!((Some(&status), status.observed_generation), (mine.status.as_ref(), Some(3)));
    }
}

#[test]
fn a_deletion_says_what_it_waits_for() {
    let mut mine = operator(&json!({"package": {"name": "x"}}), &json!(null));
    let chosen = resolution("True", &member("1.0.0"));
    let installed = deployment(&[("Installed", "True", "a"), ("Ready", "True", "Succeeded")]);
    mine.status = Some(derive(
        &mine,
        &Outcome::Asked { resolution: Some(&chosen), deployment: Some(&installed), policy: &Ok(None) },
        NOW,
    ));
    let waits = derive(&mine, &Outcome::Deleting { deployment: Some(&installed), invalid: None }, NOW);
    assert_eq!(Some(&waits), mine.status.as_ref());
    let blocked = deployment(&[("Ready", "False", "CustomResourcesExist")]);
    let waits = derive(&mine, &Outcome::Deleting { deployment: Some(&blocked), invalid: None }, NOW);
    assert_eq!(line(&waits), "False/CustomResourcesExist: it is CustomResourcesExist [version 1.0.0, active x]");
}

#[test]
fn what_is_installed_says_if_a_policy_stops_everything_new() {
    let mine = operator(&json!({"package": {"name": "x"}}), &json!(null));
    let deployment = deployment(&[("Installed", "True", "InstallationSucceeded")]);
    let policy = |spec: Value| {
        let policy = chandler_api::PlatformPolicy::new("limits", serde_json::from_value(spec).unwrap());
        crate::platform::Policy::read(&policy).map(Some)
    };
    let not = json!({"not": {"constraints": [{"package": {"packageName": "x", "versionRange": ">=1.0.0"}}]}});
    let constrained = policy(json!({"constraints": [{"type": "olm.constraint", "value": not}]}));
    let invalid = policy(json!({"packages": [{"name": "x", "version": "one"}]}));
    let said = |reason: &str, policy: &InForce| {
        let mut unresolved = resolution("False", &member("1.0.0"));
        unresolved.status.as_mut().unwrap().conditions[0].reason = reason.to_owned();
        let outcome = Outcome::Asked { resolution: Some(&unresolved), deployment: Some(&deployment), policy };
        line(&derive(&mine, &outcome, NOW))
    };
    let usual =
        "True/InstallSuccessful: Successfully applied the x BundleDeployment resource [version 1.0.0, active x]";
    assert_eq!(said("NotSatisfiable", &Ok(None)), usual);
    assert_eq!(said("CatalogsNotReady", &constrained), usual);
    assert_eq!(said("NotSatisfiable", &policy(json!({}))), usual);
    for (reason, policy) in [("NotSatisfiable", &constrained), ("InvalidPolicy", &invalid)] {
        assert!(said(reason, policy).contains("resource; nothing new is decided: it is CatalogsNotReady"), "{reason}");
    }
    let waits = derive(&mine, &Outcome::Deleting { deployment: None, invalid: invalid.as_ref().err() }, NOW);
    assert!(line(&waits).starts_with("False/InvalidPolicy: PlatformPolicy limits is invalid"), "{}", line(&waits));
}
