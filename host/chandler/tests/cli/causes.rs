//! `chandler tree` and `chandler status` look below the objects.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    dev::Kept,
    support::{Outcome, chandler},
};

/// What the Pod reports, and what its Events add.
const OWN: &str = "ImagePullBackOff: registry.invalid/keeper:1 cannot be pulled";
const CAUSE: &str = "ImagePullBackOff: registry.invalid/keeper:1: no such host";

#[test]
fn pods_are_shown_and_explain_their_workload() {
    let bundle = tempfile::tempdir().unwrap();
    let keeper = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "keeper"},
        "spec": {
            "selector": {"matchLabels": {"app": "keeper"}},
            "template": {"metadata": {"labels": {"app": "keeper"}},
                         "spec": {"containers": [{"name": "main", "image": "registry.invalid/keeper:1"}]}},
        },
    });
    std::fs::create_dir(bundle.path().join("manifests")).unwrap();
    std::fs::write(bundle.path().join("manifests/keeper.yaml"), keeper.to_string()).unwrap();
    let kept = Kept::start(&["--bundle", bundle.path().to_str().unwrap(), "--name", "keeper"]);
    let run = |arguments: &[&str]| -> Outcome {
        chandler(arguments.iter().copied().chain(["--kubeconfig", kept.kubeconfig.as_str()]), "")
    };

    let started = Instant::now();
    let mut tree = run(&["tree", "keeper"]);
    while !tree.stdout.contains("Pod keeper-") || !tree.stdout.contains(CAUSE) {
        assert!(started.elapsed() < Duration::from_mins(5), "{}{}", tree.stdout, tree.stderr);
        tree = run(&["tree", "keeper"]);
    }
    let lines: Vec<&str> = tree.stdout.lines().map(|line| line.trim_start_matches([' ', '└', '─'])).collect();
    let [.., kind, deployment, set, pod] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((*kind, *deployment), ("Deployment.apps", &*format!("… keeper  {CAUSE}")));
    assert!(set.starts_with("… ReplicaSet keeper-"), "{set}");
    assert!(pod.starts_with("✗ Pod keeper-") && pod.ends_with(OWN), "{pod}");

    let json: Value = serde_json::from_str(&run(&["tree", "keeper", "-o", "json"]).data()).unwrap();
    let deployment = json.as_array().unwrap().iter().find(|object| object["kind"] == "Deployment").unwrap();
    assert_eq!(deployment["dependents"][0]["dependents"][0]["message"], OWN);
    for (format, beginning) in [("mermaid", "flowchart LR\n"), ("svg", "<svg xmlns="), ("html", "<!doctype html>\n")] {
        let picture = run(&["tree", "keeper", "-o", format]).data();
        assert!(picture.starts_with(beginning) && picture.contains("Pod keeper-"), "{picture}");
    }
    assert_eq!(deployment["message"], CAUSE);
    let status = run(&["status", "keeper"]);
    assert_eq!(status.code, Some(1), "{}", status.stderr);
    assert!(status.stdout.contains(&format!("… keeper  {CAUSE}")), "{}", status.stdout);
}
