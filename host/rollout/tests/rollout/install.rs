//! Installing a release, and doing nothing once it is installed.

use crate::support::{Stage, config_map, config_map_key, deployment, key, ox, oxen, release};
use chandler_rollout::{Progress, RolloutError};
use serde_json::{Value, json};

fn objects() -> Vec<(u32, Value)> {
    vec![
        (0, config_map("settings", json!({"a": "1"}))),
        (0, deployment("web", "example.com/web:v1")),
        (
            0,
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
        ),
        (
            0,
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"t": "secret"}}),
        ),
        (
            0,
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "web", "namespace": "lost"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        ),
        (0, oxen(json!({"legs": {"type": "integer", "default": 4}}))),
        (0, ox("one", json!({}))),
    ]
}

#[tokio::test]
async fn a_release_is_installed_and_then_left_alone() {
    let mut stage = Stage::set().await;
    let release = release(&objects());
    let changes = stage.complete(&release).await;
    insta::assert_snapshot!(changes, @"");

    let parent = stage.parent().await;
    let annotations = parent.metadata.annotations.unwrap();
    assert_eq!(
        annotations["applyset.kubernetes.io/contains-group-kinds"],
        "ClusterRole.rbac.authorization.k8s.io,ConfigMap,CustomResourceDefinition.apiextensions.k8s.io,Deployment.apps,\
         Ox.example.com,Secret,Service"
    );
    assert_eq!(annotations["applyset.kubernetes.io/additional-namespaces"], "install");
    assert_eq!(annotations["applyset.kubernetes.io/tooling"], "chandler/v0.1");
    assert_eq!(parent.metadata.labels.unwrap()["applyset.kubernetes.io/id"], stage.owner.set_id());

    let web = stage.live(&key("apps/v1", "Deployment", Some("install"), "web")).await.unwrap();
    assert_eq!(web["metadata"]["labels"]["applyset.kubernetes.io/part-of"], stage.owner.set_id());
    assert_eq!(web["metadata"]["labels"]["core.rukpak.io/owner-name"], "demo");
    assert_eq!(web["metadata"]["ownerReferences"][0]["uid"], stage.owner.uid);
    let role = stage.live(&key("rbac.authorization.k8s.io/v1", "ClusterRole", None, "web")).await.unwrap();
    assert_eq!(role["metadata"]["namespace"], Value::Null);

    // Neither a second look nor one by a controller that remembers nothing writes anything, although the API server writes
    // quantities in another way than the release.
    stage.writes();
    for restarted in [false, true] {
        if restarted {
            stage.restart().await;
        }
        let observed = stage.rollout.observe(&stage.owner, &release).await.unwrap();
        assert!(observed.is_as_released() && observed.is_healthy(), "{observed:?}");
        let again = stage.advance(&release).await.unwrap();
        assert!(again.is_complete() && again.changes().is_empty(), "{again:?}");
        assert_eq!(stage.writes(), [""; 0]);
    }
    let kinds: Vec<String> = stage.rollout.managed_kinds(&release).into_iter().map(|kind| kind.plural).collect();
    assert_eq!(
        kinds,
        ["configmaps", "secrets", "services", "customresourcedefinitions", "deployments", "oxen", "clusterroles"]
    );
}

#[tokio::test]
async fn what_cannot_be_installed_is_refused_before_anything_is_written() {
    let stage = Stage::set().await;
    stage.writes();
    let elsewhere = |namespace: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": namespace}});
    for (broken, message) in [
        (
            vec![(0, ox("one", json!({})))],
            "required resource not found: no matches for kind \"Ox\" in version \"example.com/v1\" (Ox.example.com one)",
        ),
        (
            // The CRD comes in a later stage than what needs it.
            vec![(0, ox("one", json!({}))), (1, oxen(json!({})))],
            "required resource not found: no matches for kind \"Ox\" in version \"example.com/v1\" (Ox.example.com one)",
        ),
        (vec![(0, elsewhere("nowhere"))], "required resource not found: namespaces \"nowhere\" not found"),
        (
            vec![(0, config_map("x", json!({}))), (1, elsewhere("install"))],
            "ConfigMap install/x and ConfigMap install/x of the release are one object in the cluster",
        ),
    ] {
        let objects: Vec<(u32, Value)> = [(0, config_map("first", json!({})))].into_iter().chain(broken).collect();
        assert_eq!(stage.advance(&release(&objects)).await.unwrap_err().to_string(), message);
    }
    let mut invalid = deployment("web", "example.com/web:v1");
    invalid["spec"]["selector"] = json!({"matchLabels": {"app": "other"}});
    let refused = stage.advance(&release(&[(0, config_map("first", json!({}))), (0, invalid)])).await.unwrap_err();
    assert!(matches!(&refused, RolloutError::Objects(failures) if failures.len() == 1), "{refused}");
    assert!(refused.to_string().starts_with("cannot create Deployment.apps install/web: "), "{refused}");

    assert_eq!(stage.writes(), [""; 0]);
    assert_eq!(stage.live(&config_map_key("first")).await, None);
}

#[tokio::test]
async fn a_stage_begins_when_the_one_before_is_healthy() {
    let stage = Stage::set().await;
    let gate = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "gate"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}});
    let release = release(&[(0, gate), (7, config_map("later", json!({})))]);
    let claim = key("v1", "PersistentVolumeClaim", Some("install"), "gate");
    let status = |phase: &str| json!({"status": {"phase": phase}});
    for _ in 0..2 {
        let Progress::Waiting { stage: number, stages, installed, waiting, .. } =
            stage.advance(&release).await.unwrap()
        else {
            panic!("it waits for the claim");
        };
        assert_eq!((number, stages, installed, waiting.len()), (1, 2, false, 1));
        assert!(
            waiting[0].to_string().starts_with("(/v1, Kind=PersistentVolumeClaim)(install/gate): object InProgress: ")
        );
        assert_eq!(stage.live(&config_map_key("later")).await, None);
        stage.bind(&claim, status("Pending")).await;
    }
    stage.bind(&claim, status("Bound")).await;
    let done = stage.advance(&release).await.unwrap();
    assert!(done.is_complete(), "{done:?}");
    insta::assert_snapshot!(done.changes(), @"");
}
