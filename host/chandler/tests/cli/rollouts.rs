//! Commands about rollouts, with a running control plane.

use serde_json::{Value, json};

use crate::{
    dev::Kept,
    support::{self, Outcome, chandler},
};

const OLD: &str = "./tests/fixtures/registry/harbour-operator.v0.1.0";
const NEW: &str = "./tests/fixtures/registry/harbour-operator.v0.2.0";

#[test]
fn a_rollout_is_followed_previewed_and_rolled_back() {
    let kept = Kept::start(&["--bundle", OLD]);
    let run = |arguments: &[&str]| -> Outcome {
        chandler(arguments.iter().copied().chain(["--kubeconfig", kept.kubeconfig.as_str()]), "")
    };
    let followed = run(&["status", "harbour-operator", "--watch", "--timeout", "1m"]).data();
    assert!(followed.contains("\nrevision      1, `chandler history"), "{followed}");
    assert!(followed.ends_with("\nhealthy\n"), "{followed}");

    let history = run(&["history", "harbour-operator"]).data();
    assert!(history.lines().nth(1).unwrap().starts_with("1         0.1.0    Succeeded  "), "{history}");
    let json: Value = serde_json::from_str(&run(&["history", "harbour-operator", "-o", "json"]).data()).unwrap();
    assert_eq!((json[0]["number"].as_i64(), json.as_array().unwrap().len()), (Some(1), 1));
    let tree = run(&["tree", "harbour-operator"]).data();
    assert!(tree.contains("Deployment.apps\n"), "{tree}");

    let same = run(&["diff", OLD, "--name", "harbour-operator"]);
    assert_eq!((same.code, same.stdout.as_str()), (Some(0), ""), "{}", same.stderr);
    let new = run(&["diff", "harbour-operator", NEW]);
    assert_eq!(new.code, Some(4), "{}", new.stderr);
    let url = format!("http://{}/harbour-v0.2.0.tgz", support::web_server(support::packed(NEW)));
    let from_url = run(&["diff", "harbour-operator", &url]);
    assert_eq!((from_url.code, &from_url.stdout), (new.code, &new.stdout), "{}", from_url.stderr);
    for line in [
        "~ change Deployment.apps harbour-operator-system/harbour-operator",
        "    spec.template.spec.containers[name=manager].env[name=OPERATOR_VERSION].value",
        "      - \"v0.1.0\"",
        "      + \"v0.2.0\"",
        "+ create ClusterRole.rbac.authorization.k8s.io harbour-viewer",
        "- remove ConfigMap harbour-operator-system/harbour-operator-tides",
    ] {
        assert!(new.stdout.lines().any(|it| it == line), "no line {line:?}: {}", new.stdout);
    }
    let json: Value =
        serde_json::from_str(&run(&["diff", NEW, "--name", "harbour-operator", "-o", "json"]).stdout).unwrap();
    assert!(json["changes"].as_array().unwrap().iter().any(|change| change["kind"] == "remove"), "{json}");
    let unowned = run(&["diff", NEW, "--name", "unowned", "--namespace", "default"]);
    assert_eq!(unowned.code, Some(8), "{}", unowned.stderr);
    assert!(
        unowned.stdout.contains("it exists and is controlled by BundleDeployment harbour-operator"),
        "{}",
        unowned.stdout
    );

    let refusal =
        "would be refused: CustomResourceDefinition.apiextensions.k8s.io berths.harbour.example.com already exists";
    assert!(unowned.stderr.starts_with(refusal), "{}", unowned.stderr);
    let json = run(&["diff", NEW, "--name", "unowned", "--namespace", "default", "-o", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["refusals"][0].as_str().unwrap().contains("already exists and is controlled by"), "{json}");

    let refused = run(&["approve", "harbour-operator"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("no change of BundleDeployment harbour-operator is pending"), "{}", refused.stderr);
    let refused = run(&["rollback", "harbour-operator"]);
    assert_eq!(refused.code, Some(7));
    assert!(refused.stderr.contains("`chandler history harbour-operator` shows"), "{}", refused.stderr);
    run(&["rollback", "harbour-operator", "--to", "1"]).data();
    let pinned = run(&["status", "harbour-operator", "--watch", "--timeout", "1m"]).data();
    assert!(pinned.contains("spec.rollout.toRevision keeps it at revision 1"), "{pinned}");
    run(&["rollback", "harbour-operator", "--cancel"]).data();
}

#[test]
fn adoption_lists_objects_and_deletion_has_a_preview() {
    let kept = Kept::start(&["--bundle", OLD]);
    let run = |arguments: &[&str]| -> Outcome {
        chandler(arguments.iter().copied().chain(["--kubeconfig", kept.kubeconfig.as_str()]), "")
    };
    run(&["status", "harbour-operator", "--watch", "--timeout", "1m"]).data();
    let nothing = run(&["adopt", "harbour-operator", "--bundle", OLD, "--yes"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), ""), "{}", nothing.stderr);
    assert!(nothing.stderr.contains("no object to adopt for harbour-operator"), "{}", nothing.stderr);
    let unknown = run(&["adopt", "harbour-operator", "ConfigMap/nothing", "--bundle", OLD, "--yes"]);
    assert_eq!(unknown.code, Some(7));
    assert!(unknown.stderr.contains("ConfigMap nothing is not among the objects"), "{}", unknown.stderr);

    let shown = run(&["delete", "harbour-operator", "--dry-run"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(
        shown.stdout.contains("- delete Deployment.apps harbour-operator-system/harbour-operator\n"),
        "{}",
        shown.stdout
    );
    assert!(shown.stderr.contains("nothing was deleted"), "{}", shown.stderr);
    let kept_crds = run(&["delete", "harbour-operator", "--dry-run", "--crds", "Keep"]).data();
    assert!(kept_crds.contains("  keep CustomResourceDefinition.apiextensions.k8s.io "), "{kept_crds}");
    let json: Value =
        serde_json::from_str(&run(&["delete", "harbour-operator", "--dry-run", "--orphan", "-o", "json"]).data())
            .unwrap();
    assert_eq!((json["held"].as_bool(), json["deleted"].as_array().map(Vec::len)), (Some(false), Some(0)), "{json}");
    assert!(json["orphaned"].as_array().is_some_and(|orphaned| orphaned.len() > 3), "{json}");

    let unconfirmed = run(&["delete", "harbour-operator"]);
    assert_eq!(unconfirmed.code, Some(2), "{}", unconfirmed.stderr);
    assert!(unconfirmed.stderr.contains("--yes"), "{}", unconfirmed.stderr);
    let deleted = run(&["delete", "harbour-operator", "--yes", "--timeout", "1m"]);
    assert_eq!(deleted.code, Some(0), "{}", deleted.stderr);
    assert!(deleted.stderr.contains("deleted: harbour-operator"), "{}", deleted.stderr);
    assert_eq!(run(&["status", "harbour-operator"]).code, Some(7));
}

#[test]
fn generated_certificates_are_part_of_roles_and_previews() {
    let bundle = tempfile::tempdir().unwrap();
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "gate", "annotations": {"certificates.chandler.dev/serving-secret": "gate-certificate"}},
        "spec": {"ports": [{"port": 443}]},
    });
    std::fs::create_dir(bundle.path().join("manifests")).unwrap();
    std::fs::write(bundle.path().join("manifests/service.yaml"), service.to_string()).unwrap();
    let path = bundle.path().to_str().unwrap();

    let roles = chandler(["rbac", path, "--namespace", "shop", "--service-account", "deployer"], "").data();
    assert!(roles.contains("gate-certificate"), "{roles}");

    let kept = Kept::start(&["--bundle", path, "--name", "gate"]);
    let run = |arguments: &[&str]| -> Outcome {
        chandler(arguments.iter().copied().chain(["--kubeconfig", kept.kubeconfig.as_str()]), "")
    };
    run(&["status", "gate", "--watch", "--timeout", "1m"]).data();
    let same = run(&["diff", path, "--name", "gate"]);
    assert_eq!((same.code, same.stdout.as_str()), (Some(0), ""), "{}", same.stderr);
    let another = run(&["diff", path, "--name", "another", "--namespace", "default"]);
    assert!(another.stdout.contains("+ create Secret default/gate-certificate\n"), "{}", another.stdout);
}
