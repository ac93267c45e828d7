use serde_json::{Value, json};

use super::*;

#[test]
fn a_subscription_is_at_the_latest_version_once_the_best_one_is_installed() {
    use Subscription::{AtLatestKnown, UpgradeAvailable, UpgradePending};
    let of = |installed, in_set, best, waits| {
        subscription(&Followed { installed, in_set, best, waits, ..Followed::default() })
    };
    for (installed, in_set, best, waits, state) in [
        (None, None, None, None, None),
        (None, Some("1"), None, None, Some(UpgradePending)),
        (Some("1"), Some("1"), None, None, Some(AtLatestKnown)),
        (Some("1"), Some("1"), Some("1"), None, Some(AtLatestKnown)),
        (Some("1"), Some("1"), Some("3"), None, Some(UpgradeAvailable)),
        (Some("1"), Some("2"), Some("3"), None, Some(UpgradePending)),
        (Some("1"), Some("1"), Some("1"), Some(Reason::OutsideMaintenanceWindow), Some(UpgradeAvailable)),
        (Some("1"), Some("1"), Some("1"), Some(Reason::PreflightFailed), Some(UpgradeAvailable)),
        (Some("1"), Some("1"), None, Some(Reason::ApprovalRequired), Some(UpgradePending)),
    ] {
        assert_eq!(of(installed, in_set, best, waits), state, "{installed:?} {in_set:?} {best:?} {waits:?}");
    }
}

#[test]
fn a_package_that_others_hold_back_is_not_at_the_latest_version() {
    use Subscription::{AtLatestKnown, UpgradeAvailable};
    let state = |member: Value, mut status: Value, to_decision: Option<i64>| {
        let member: ResolvedMember = serde_json::from_value(member).unwrap();
        if status["conditions"].is_null() {
            status["conditions"] = conditions(&[("Resolved", "True", "PackagesResolved")]);
        }
        let mut resolution = resolution(status);
        let set = resolution.spec.output.as_mut().and_then(|output| output.resolve_set.as_mut());
        set.unwrap().to_decision = to_decision;
        subscription(&followed(&member, Some("1"), &resolution))
    };
    let member = json!({"package": "app", "bundle": "app.v1", "version": "1", "bundleDeployment": "app"});
    let mut held = member.clone();
    held["heldBack"] = json!({"version": "2", "explanation": ["base 1 is installed and stays"]});
    assert_eq!(state(member.clone(), json!({}), None), Some(AtLatestKnown));
    assert_eq!(state(held.clone(), json!({}), None), Some(UpgradeAvailable));
    let left_out = json!({"leftOut": [{"package": "app", "reason": "NotSatisfiable"}]});
    assert_eq!(state(member.clone(), left_out, None), Some(UpgradeAvailable));
    // Nothing is known to be the latest version where nothing was decided.
    assert_eq!(state(member.clone(), json!({}), Some(3)), None);
    let refused = json!({"conditions": conditions(&[("Resolved", "False", "NotSatisfiable")])});
    assert_eq!(state(member, refused, None), None);
}

#[test]
fn a_change_that_waits_concerns_the_packages_that_it_names() {
    let member = |package: &str| ResolvedMember {
        package: package.to_owned(),
        version: "1.0.0".to_owned(),
        bundle_deployment: Some(package.to_owned()),
        ..ResolvedMember::default()
    };
    let of = |package: &str, change: &str| {
        let pending = json!({"reason": "OutsideMaintenanceWindow", "message": "", "changes": [change]});
        followed(&member(package), Some("1.0.0"), &resolution(json!({"pending": pending}))).waits.is_some()
    };
    for (package, change, concerns) in [
        ("app", "change app from 1.0.0 to 1.1.0", true),
        ("app", "install app 1.0.0", true),
        ("app", "change BundleDeployment.core.rukpak.io app", true),
        ("app", "change my-app from 1.0.0 to 1.1.0", false),
    ] {
        assert_eq!(of(package, change), concerns, "{change}");
    }
}

fn resolution(status: Value) -> Resolution {
    serde_json::from_value(json!({
        "apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution", "metadata": {"name": "shop"},
        "spec": {"packages": [], "output": {"type": "ResolveSet", "resolveSet": {"installNamespace": "n"}}},
        "status": status,
    }))
    .unwrap()
}

fn conditions(all: &[(&str, &str, &str)]) -> Value {
    let one = |(kind, status, reason): &(&str, &str, &str)| {
        json!({"type": kind, "status": status, "reason": reason, "message": "", "observedGeneration": 1,
               "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    all.iter().map(one).collect()
}

#[test]
fn an_install_plan_is_the_decision_on_its_way_into_the_cluster() {
    use InstallPlan::{Complete, Failed, Installing, Planning, RequiresApproval};
    let pending = |reason: &str| json!({"reason": reason, "message": ""});
    let installed = conditions(&[("Installed", "True", "InstallationSucceeded")]);
    for (what, status, phase) in [
        ("nothing is reported", Value::Null, Some(Planning)),
        (
            "no answer yet",
            json!({"conditions": conditions(&[("Resolved", "Unknown", "CatalogsNotReady")])}),
            Some(Planning),
        ),
        ("nothing fits", json!({"conditions": conditions(&[("Resolved", "False", "NotSatisfiable")])}), None),
        ("checks", json!({"decision": 1, "pending": pending("Preflighting")}), Some(Planning)),
        ("checks that refuse", json!({"decision": 1, "pending": pending("PreflightFailed")}), Some(Failed)),
        ("an approval", json!({"decision": 1, "pending": pending("ApprovalRequired")}), Some(RequiresApproval)),
        ("a set that is created", json!({"decision": 1}), Some(Installing)),
        (
            "a member that cannot be fetched",
            json!({"decision": 1, "members": [{"package": "a", "bundle": "a.v1", "version": "1", "state": "UnpackFailed"}]}),
            Some(Failed),
        ),
        (
            "a member on its way",
            json!({"decision": 1, "members": [{"package": "a", "bundle": "a.v1", "version": "1", "state": "RollingOut"}]}),
            Some(Installing),
        ),
        ("a complete set", json!({"decision": 1, "conditions": installed}), Some(Complete)),
        (
            "a complete set, and a window for the next",
            json!({"decision": 1, "conditions": installed, "pending": pending("OutsideMaintenanceWindow")}),
            Some(Complete),
        ),
    ] {
        assert_eq!(install_plan(&resolution(status)), phase, "{what}");
    }
    let mut reported = resolution(json!({"decision": 1}));
    reported.spec.output = None;
    assert_eq!(install_plan(&reported), None, "a decision that is only reported installs nothing");
}

fn deployment(progressing: &str, installed: bool, healthy: bool, more: Value) -> BundleDeployment {
    let status = |is: bool| if is { "True" } else { "False" };
    let mut all = vec![("Installed", status(installed), "x"), ("Healthy", status(healthy), "x")];
    if !progressing.is_empty() {
        all.push(("Progressing", "True", progressing));
    }
    let mut reported = json!({"conditions": conditions(&all), "observedGeneration": 1});
    for (key, value) in more.as_object().into_iter().flatten() {
        reported[key] = value.clone();
    }
    serde_json::from_value(json!({
        "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "app", "generation": 1},
        "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"}},
        "status": reported,
    }))
    .unwrap()
}

#[test]
fn a_cluster_service_version_has_the_phase_of_its_bundle_deployment() {
    for (progressing, installed, healthy, phase, plan) in [
        ("", false, false, Csv::Pending, InstallPlan::Planning),
        ("Unpacking", false, false, Csv::Pending, InstallPlan::Planning),
        ("Retrying", false, false, Csv::Pending, InstallPlan::Planning),
        ("UnpackFailed", false, false, Csv::Failed, InstallPlan::Failed),
        ("PermissionsMissing", false, false, Csv::Pending, InstallPlan::Failed),
        ("InstallNamespaceNotFound", false, false, Csv::Pending, InstallPlan::Failed),
        ("ObjectCollision", false, false, Csv::Failed, InstallPlan::Failed),
        ("ApprovalRequired", false, false, Csv::InstallReady, InstallPlan::RequiresApproval),
        ("RollingOut", false, false, Csv::Installing, InstallPlan::Installing),
        ("Succeeded", true, true, Csv::Succeeded, InstallPlan::Complete),
        ("Succeeded", true, false, Csv::Failed, InstallPlan::Complete),
        ("ProgressDeadlineExceeded", false, false, Csv::Failed, InstallPlan::Failed),
        ("Suspended", true, true, Csv::Succeeded, InstallPlan::Complete),
        ("Deleting", true, true, Csv::Deleting, InstallPlan::Complete),
    ] {
        let deployment = deployment(progressing, installed, healthy, Value::Null);
        let expected = CsvState { name: "app.v1".to_owned(), phase };
        assert_eq!(csvs(Some(&deployment), "app.v1"), [expected], "{progressing}");
        assert_eq!(install_plan_of(&deployment), plan, "{progressing}");
    }
    assert_eq!(csvs(None, "app.v1"), [CsvState { name: "app.v1".to_owned(), phase: Csv::Pending }]);
}

#[test]
fn what_runs_keeps_its_phase_until_the_next_version_is_known() {
    let revision = json!({"number": 3, "rollbackTo": 1, "outcome": "Succeeded", "version": "1.0.0", "contentDigest": "", "configDigest": "",
        "installNamespace": "n", "provisioner": {"class": "c", "digest": ""}, "releaseDigest": "", "source": {"type": "image"}});
    let runs = json!({"bundle": {"name": "app.v1.0.0", "version": "1.0.0"}, "history": [revision]});
    let succeeded = [CsvState { name: "app.v1.0.0".to_owned(), phase: Csv::Succeeded }];
    for progressing in ["", "Unpacking", "Retrying", "UnpackFailed", "Succeeded"] {
        assert_eq!(csvs(Some(&deployment(progressing, true, true, runs.clone())), "app"), succeeded, "{progressing}");
    }
    // A rollback is cancelled, and the controller has not observed it.
    let mut cancelled = deployment("Succeeded", true, true, runs);
    cancelled.metadata.generation = Some(2);
    assert_eq!(csvs(Some(&cancelled), "app"), succeeded);
}

#[test]
fn an_upgrade_has_two_cluster_service_versions() {
    let revision = json!({"number": 1, "outcome": "Succeeded", "contentDigest": "", "configDigest": "", "installNamespace": "n",
        "provisioner": {"class": "c", "digest": ""}, "releaseDigest": "", "source": {"type": "image"}});
    let more = json!({"bundle": {"name": "app.v1", "version": "1"}, "candidate": {"name": "app.v2", "releaseDigest": ""},
        "history": [revision]});
    for (progressing, old, new) in [
        ("RollingOut", Csv::Replacing, Csv::Installing),
        ("ApprovalRequired", Csv::Succeeded, Csv::InstallReady),
        ("PermissionsMissing", Csv::Succeeded, Csv::Pending),
        ("ObjectCollision", Csv::Succeeded, Csv::Failed),
    ] {
        let found = csvs(Some(&deployment(progressing, true, true, more.clone())), "app.v2");
        let phases: Vec<(&str, Csv)> = found.iter().map(|it| (it.name.as_str(), it.phase)).collect();
        assert_eq!(phases, [("app.v1", old), ("app.v2", new)], "{progressing}");
    }
    // Once objects are written, the status has the new bundle.
    let revision = |number: i64, version: &str, outcome: &str| {
        json!({"number": number, "outcome": outcome, "version": version, "contentDigest": "", "configDigest": "",
            "installNamespace": "n", "provisioner": {"class": "c", "digest": ""}, "releaseDigest": "", "source": {"type": "image"}})
    };
    for (before, outcome, expected) in [
        ("Succeeded", "RollingOut", vec![("app.v1.0.0", Csv::Replacing), ("app.v2.0.0", Csv::Installing)]),
        ("Failed", "RollingOut", vec![("app.v2.0.0", Csv::Installing)]),
        ("Succeeded", "Succeeded", vec![("app.v2.0.0", Csv::Installing)]),
    ] {
        let history = [revision(1, "1.0.0", before), revision(2, "2.0.0", outcome)];
        let written = json!({"bundle": {"name": "app.v2.0.0", "version": "2.0.0"}, "history": history});
        let found = csvs(Some(&deployment("RollingOut", true, false, written)), "app.v2.0.0");
        let phases: Vec<(&str, Csv)> = found.iter().map(|it| (it.name.as_str(), it.phase)).collect();
        assert_eq!(phases, expected, "{before} {outcome}");
    }
    // Until then it has the old one, whether the version goes up or, as after a rollback, down.
    for (old, new) in [("1.0.0", "2.0.0"), ("2.0.0", "1.0.0")] {
        let history = [revision(1, old, "Succeeded"), revision(2, new, "RollingOut")];
        let begins = json!({"bundle": {"name": format!("app.v{old}"), "version": old}, "history": history});
        let found = csvs(Some(&deployment("RollingOut", true, true, begins)), "app");
        let phases: Vec<(&str, Csv)> = found.iter().map(|it| (it.name.as_str(), it.phase)).collect();
        let (old, new) = (format!("app.v{old}"), format!("app.v{new}"));
        assert_eq!(phases, [(old.as_str(), Csv::Replacing), (new.as_str(), Csv::Installing)]);
    }
    let mut deleted = deployment("RollingOut", true, true, more);
    deleted.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert_eq!(csvs(Some(&deleted), "app.v2"), [CsvState { name: "app.v1".to_owned(), phase: Csv::Deleting }]);
}
