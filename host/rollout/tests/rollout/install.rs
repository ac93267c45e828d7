//! Installing a release, and doing nothing once it is installed.

use super::support::{
    Stage, config_map, config_map_key, deployment, gate_probe, key, ox, oxen, release, release_with_probes,
};
use chandler_rollout::{Progress, RolloutError, RolloutRequest};
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
async fn an_installed_release_causes_no_writes() {
    let mut stage = Stage::set().await;
    let release = release(&objects());
    let changes = stage.complete(&release).await;
    insta::assert_snapshot!(changes, @r"
    created ConfigMap install/settings
    created Secret install/token
    created CustomResourceDefinition.apiextensions.k8s.io oxen.example.com
    created ClusterRole.rbac.authorization.k8s.io web
    created Service install/web
    created Deployment.apps install/web
    created Ox.example.com install/one
    unchanged: 7
    ");

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

    // Neither a second call nor one by a restarted controller writes anything, although the API server stores quantities in
    // another notation than the release.
    stage.writes();
    for restarted in [false, true] {
        if restarted {
            stage.restart().await;
        }
        let observed = stage.rollout.observe(&RolloutRequest::new(&stage.owner, &release)).await.unwrap();
        assert!(observed.matches_release() && observed.is_healthy(), "{observed:?}");
        let again = stage.advance(&release).await.unwrap();
        assert!(again.is_complete() && again.changes().is_empty(), "{again:?}");
        assert_eq!(stage.writes(), [""; 0]);
    }
}

#[tokio::test]
async fn invalid_releases_are_refused_before_anything_is_written() {
    let stage = Stage::set().await;
    stage.writes();
    let elsewhere = |namespace: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": namespace}});
    for (broken, message) in [
        (
            vec![(0, ox("one", json!({})))],
            "required resource not found: no matches for kind \"Ox\" in version \"example.com/v1\" (Ox.example.com one)",
        ),
        (
            // The CRD is in a later stage than the object that needs it.
            vec![(0, ox("one", json!({}))), (1, oxen(json!({})))],
            "required resource not found: no matches for kind \"Ox\" in version \"example.com/v1\" (Ox.example.com one)",
        ),
        (vec![(0, elsewhere("nowhere"))], "required resource not found: namespaces \"nowhere\" not found"),
        (
            vec![(0, config_map("x", json!({}))), (1, elsewhere("install"))],
            "ConfigMap install/x and ConfigMap install/x in the release are the same object in the cluster",
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
async fn a_release_may_bring_its_namespaces() {
    let stage = Stage::set().await;
    let mut settings = config_map("settings", json!({}));
    settings["metadata"]["namespace"] = json!("shop");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let changes = stage.complete(&release(&[(0, settings), (0, namespace)])).await;
    insta::assert_snapshot!(changes, @r"
    created Namespace shop
    created ConfigMap shop/settings
    unchanged: 0
    ");
}

#[tokio::test]
async fn a_stage_begins_when_the_one_before_is_healthy() {
    let stage = Stage::set().await;
    let objects = [(0, config_map("gate", json!({}))), (7, config_map("later", json!({})))];
    let release = release_with_probes(&objects, vec![gate_probe()]);
    for created in [1, 0] {
        let Progress::Waiting { stage: number, stages, installed, waiting, changes } =
            stage.advance(&release).await.unwrap()
        else {
            panic!("the gate is closed");
        };
        assert_eq!((number, stages, installed, changes.created.len()), (1, 2, false, created));
        let waiting: Vec<String> = waiting.iter().map(ToString::to_string).collect();
        assert_eq!(waiting, ["(/v1, Kind=ConfigMap)(install/gate): the gate is closed"]);
        assert_eq!(stage.live(&config_map_key("later")).await, None);
    }
    stage.open_gate().await;
    let done = stage.advance(&release).await.unwrap();
    assert!(done.is_complete(), "{done:?}");
    assert_eq!(done.changes().to_string(), "created ConfigMap install/later\nunchanged: 1");
}

/// A release with a CRD and so many of its custom resources.
fn herd(count: usize) -> Vec<(u32, Value)> {
    let oxen = [(0, oxen(json!({"legs": {"type": "integer"}})))];
    oxen.into_iter().chain((0..count).map(|number| (0, ox(&format!("ox-{number}"), json!({}))))).collect()
}

#[tokio::test]
async fn a_kind_whose_crd_was_deleted_is_defined_again() {
    // Few objects are looked up one by one, and many with a list.
    for count in [1, 20] {
        let stage = Stage::set().await;
        let release = release(&herd(count));
        stage.complete(&release).await;
        stage.remove(&key("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "oxen.example.com")).await;
        assert_eq!(stage.complete(&release).await.created.len(), count + 1);

        // The same process installs what it deleted.
        assert_eq!(stage.tear_down().await.len(), count + 1);
        let preview = stage.rollout.preview(&RolloutRequest::new(&stage.owner, &release)).await;
        assert!(preview.is_ok(), "{preview:?}");
        assert_eq!(stage.complete(&release).await.created.len(), count + 1);
    }
}
