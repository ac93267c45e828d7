use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::history;
use crate::{
    metadata,
    workloads::{
        Behaviour, Subject,
        behaviour::ANNOTATION,
        fields::{condition, count, replicas, text},
        kind::{Key, Kind},
        model::{Model, spec},
    },
};

fn deployment(model: &mut Model, replicas: i64, strategy: &Value) -> Key {
    let more = json!({
        "replicas": replicas, "strategy": strategy, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 2});
    model.create(Kind::Deployment, spec("web", "nginx:1", &more))
}

fn rolling(surge: i64, unavailable: i64) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
}

fn set_image(model: &mut Model, key: &Key, image: &str) {
    model.change(key, &json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}));
}

fn reason<'a>(model: &'a Model, key: &Key, condition_type: &str) -> &'a str {
    condition(model.get(key), condition_type).map(|condition| text(condition, "/reason")).unwrap_or_default()
}

/// Name without hash, revision and size of the ReplicaSets, by revision.
fn sets(model: &Model) -> Vec<(i64, i64)> {
    let mut sets: Vec<(i64, i64)> =
        model.all(Kind::ReplicaSet).iter().map(|set| (history::revision(set), replicas(set))).collect();
    sets.sort_unstable();
    sets
}

#[test]
fn a_deployment_comes_up_with_replica_set_and_pods() {
    let mut model = Model::new();
    let key = deployment(&mut model, 2, &rolling(1, 0));
    model.settle();
    let found = model.get(&key);
    let status = found["status"].clone();
    assert_eq!(
        ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "observedGeneration"]
            .map(|field| count(&status, &format!("/{field}"))),
        [2, 2, 2, 2, 1]
    );
    assert_eq!(metadata::annotation(found, history::REVISION), Some("1"));
    let set = model.all(Kind::ReplicaSet)[0];
    let hash = text(set, "/metadata/labels/pod-template-hash");
    assert_eq!(metadata::name(set), format!("web-{hash}"));
    let progressing = condition(found, "Progressing").unwrap();
    assert_eq!(progressing["message"], format!("ReplicaSet {:?} has successfully progressed.", metadata::name(set)));
    assert_eq!(set["spec"]["selector"]["matchLabels"], json!({"app": "web", "pod-template-hash": hash}));
    assert_eq!(metadata::annotation(set, "deployment.kubernetes.io/desired-replicas"), Some("2"));
    assert_eq!(metadata::annotation(set, "deployment.kubernetes.io/max-replicas"), Some("3"));
    assert_eq!(set["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
    for pod in model.all(Kind::Pod) {
        assert!(metadata::name(pod).starts_with(&format!("web-{hash}-")), "{pod}");
        assert_eq!(pod["metadata"]["labels"], json!({"app": "web", "pod-template-hash": hash}));
        assert_eq!((text(pod, "/status/phase"), text(pod, "/spec/nodeName")), ("Running", "devcluster-node"));
    }
    assert_eq!(model.story(Kind::Deployment), ["ScalingReplicaSet"]);
    assert_eq!(model.story(Kind::ReplicaSet), ["SuccessfulCreate"]);
    assert_eq!(model.story(Kind::Pod), ["Scheduled", "Pulled", "Created", "Started"]);
}

#[test]
fn nothing_is_written_once_it_is_up() {
    let mut model = Model::new();
    deployment(&mut model, 3, &rolling(1, 1));
    model.settle();
    let before = model.writes;
    for _ in 0..3 {
        model.look_at_all();
        model.settle();
        model.now += Duration::from_hours(1);
    }
    assert_eq!(model.writes, before);
}

#[test]
fn a_new_template_is_a_new_revision_and_going_back_is_another() {
    let mut model = Model::new();
    let key = deployment(&mut model, 2, &rolling(1, 0));
    model.settle();
    set_image(&mut model, &key, "nginx:2");
    model.settle();
    assert_eq!(sets(&model), [(1, 0), (2, 2)]);
    assert_eq!(reason(&model, &key, "Progressing"), "NewReplicaSetAvailable");
    set_image(&mut model, &key, "nginx:1");
    model.settle();
    assert_eq!(sets(&model), [(2, 0), (3, 2)]);
    let back = model.all(Kind::ReplicaSet).into_iter().find(|set| history::revision(set) == 3).unwrap();
    assert_eq!(metadata::annotation(back, "deployment.kubernetes.io/revision-history"), Some("1"));
    assert_eq!(metadata::annotation(model.get(&key), history::REVISION), Some("3"));
    // The limit of the history is two.
    for image in ["nginx:3", "nginx:4", "nginx:5"] {
        set_image(&mut model, &key, image);
        model.settle();
    }
    assert_eq!(sets(&model), [(4, 0), (5, 0), (6, 2)]);
}

#[test]
fn a_release_that_does_not_come_up_leaves_the_earlier_one_running_until_it_is_mended() {
    for (annotation, image) in
        [(Some("stall"), "nginx:2"), (Some("crash-loop"), "nginx:2"), (None, "x.invalid/nginx:2")]
    {
        let mut model = Model::new();
        let key = deployment(&mut model, 3, &rolling(1, 0));
        model.settle();
        let annotations = annotation.map(|annotation| json!({ANNOTATION: annotation}));
        set_image(&mut model, &key, image);
        model.change(&key, &json!({"spec": {"template": {"metadata": {"annotations": annotations}}}}));
        model.settle();
        assert_eq!(sets(&model), [(1, 3), (2, 1)]);
        assert_eq!(reason(&model, &key, "Available"), "MinimumReplicasAvailable");
        assert_eq!(reason(&model, &key, "Progressing"), "ReplicaSetUpdated");
        assert_eq!(count(model.get(&key), "/status/unavailableReplicas"), 1);
        model.pass(Duration::from_secs(602));
        assert_eq!(reason(&model, &key, "Progressing"), "ProgressDeadlineExceeded", "{annotation:?}");
        set_image(&mut model, &key, "nginx:1");
        model.change(&key, &json!({"spec": {"template": {"metadata": {"annotations": null}}}}));
        model.settle();
        assert_eq!(reason(&model, &key, "Progressing"), "NewReplicaSetAvailable");
        assert_eq!(sets(&model), [(2, 0), (3, 3)]);
    }
}

#[test]
fn a_simulated_failure_exceeds_its_deadline_at_once() {
    let mut model = Model::new();
    let more = json!({"replicas": 1, "progressDeadlineSeconds": 600, "strategy": rolling(1, 0)});
    let mut object = spec("web", "nginx", &more);
    object["metadata"]["annotations"] = json!({ANNOTATION: "fail"});
    let key = model.create(Kind::Deployment, object);
    model.settle();
    assert_eq!(reason(&model, &key, "Progressing"), "ProgressDeadlineExceeded");
    assert_eq!(reason(&model, &key, "Available"), "MinimumReplicasUnavailable");
}

#[test]
fn a_rule_for_a_workload_affects_its_current_pods_and_can_be_removed() {
    let mut model = Model::new();
    let key = deployment(&mut model, 2, &rolling(1, 0));
    model.settle();
    model.change(&key, &json!({"metadata": {"annotations": {ANNOTATION: "crash-loop"}}}));
    model.settle();
    assert_eq!(count(model.get(&key), "/status/availableReplicas"), 0);
    let waits =
        |model: &Model| text(model.all(Kind::Pod)[0], "/status/containerStatuses/0/state/waiting/reason").to_owned();
    assert_eq!(waits(&model), "CrashLoopBackOff");
    model.change(&key, &json!({"metadata": {"annotations": {ANNOTATION: null}}}));
    model.settle();
    assert_eq!(count(model.get(&key), "/status/availableReplicas"), 2);

    model.rules.behave(Subject::object("Deployment", "n", "web"), Behaviour::CrashLoop);
    model.look_at_all();
    model.settle();
    assert_eq!(count(model.get(&key), "/status/availableReplicas"), 0);
    model.rules.behave(Subject::object("Deployment", "n", "web"), Behaviour::Healthy);
    model.look_at_all();
    model.settle();
    assert_eq!(count(model.get(&key), "/status/availableReplicas"), 2);
    assert!(count(model.all(Kind::Pod)[0], "/status/containerStatuses/0/restartCount") >= 2);
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let mut model = Model::new();
    let key = deployment(&mut model, 2, &rolling(1, 0));
    model.settle();
    model.change(&key, &json!({"spec": {"paused": true}}));
    model.settle();
    assert_eq!(reason(&model, &key, "Progressing"), "DeploymentPaused");
    set_image(&mut model, &key, "nginx:2");
    model.change(&key, &json!({"spec": {"replicas": 5}}));
    model.settle();
    assert_eq!(sets(&model), [(1, 5)]);
    model.change(&key, &json!({"spec": {"paused": null}}));
    model.settle();
    assert_eq!(sets(&model), [(1, 0), (2, 5)]);
    assert_eq!(reason(&model, &key, "Progressing"), "NewReplicaSetAvailable");
}

#[test]
fn recreate_stops_the_old_pods_before_the_new_ones_come() {
    let mut model = Model::new();
    let key = deployment(&mut model, 3, &json!({"type": "Recreate"}));
    model.settle();
    set_image(&mut model, &key, "nginx:2");
    model.settle_checking(|model| {
        let images: std::collections::BTreeSet<&str> =
            model.all(Kind::Pod).into_iter().map(|pod| text(pod, "/spec/containers/0/image")).collect();
        assert!(images.len() <= 1, "{images:?}");
    });
    assert_eq!(sets(&model), [(1, 0), (2, 3)]);
    assert_eq!(reason(&model, &key, "Progressing"), "NewReplicaSetAvailable");
}

#[test]
fn pods_that_must_stay_ready_for_a_while_are_not_available_before() {
    let mut model = Model::new();
    let more = json!({"replicas": 2, "minReadySeconds": 30, "strategy": rolling(1, 0), "progressDeadlineSeconds": 600});
    let key = model.create(Kind::Deployment, spec("web", "nginx", &more));
    model.settle();
    assert_eq!(count(model.get(&key), "/status/readyReplicas"), 2);
    assert_eq!(count(model.get(&key), "/status/availableReplicas"), 0);
    model.pass(Duration::from_secs(31));
    assert_eq!(count(model.get(&key), "/status/availableReplicas"), 2);
}

#[test]
fn a_name_that_is_taken_is_passed_over() {
    let mut model = Model::new();
    let key = deployment(&mut model, 1, &rolling(1, 0));
    model.settle();
    let set = model.all(Kind::ReplicaSet)[0].clone();
    model.delete(&key);
    let mut stranger = json!({"metadata": {"name": metadata::name(&set)}, "spec": set["spec"].clone()});
    stranger["spec"]["replicas"] = 0.into();
    stranger["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "other", "uid": "other", "controller": true}]);
    model.create(Kind::ReplicaSet, stranger);
    let key = deployment(&mut model, 1, &rolling(1, 0));
    model.settle();
    assert_eq!(count(model.get(&key), "/status/collisionCount"), 1);
    assert_eq!(count(model.get(&key), "/status/availableReplicas"), 1);
}

#[test]
fn orphans_are_taken_in_again() {
    let mut model = Model::new();
    let key = deployment(&mut model, 2, &rolling(1, 0));
    model.settle();
    let set = Key::of(Kind::ReplicaSet, model.all(Kind::ReplicaSet)[0]);
    let before: Vec<String> = model.all(Kind::Pod).iter().map(|pod| metadata::uid(pod).to_owned()).collect();
    model.change(&set, &json!({"metadata": {"ownerReferences": null}}));
    model.delete(&key);
    let key = deployment(&mut model, 2, &rolling(1, 0));
    model.settle();
    assert_eq!(metadata::uid(model.get(&key)), model.get(&set)["metadata"]["ownerReferences"][0]["uid"]);
    let after: Vec<String> = model.all(Kind::Pod).iter().map(|pod| metadata::uid(pod).to_owned()).collect();
    assert_eq!(before, after);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// With the real decisions, whatever the strategy and whatever is changed on the way.
    #[test]
    fn rollouts_keep_their_promises_and_end(
        wanted in 1_i64..7,
        surge in 0_i64..4,
        unavailable in 0_i64..4,
        changes in prop::collection::vec((0_usize..3, 1_i64..7), 1..4),
    ) {
        let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
        let mut model = Model::new();
        let key = deployment(&mut model, wanted, &rolling(surge, unavailable));
        model.settle();
        let mut size = wanted;
        for (round, (kind, number)) in changes.into_iter().enumerate() {
            match kind {
                0 => { size = number; model.change(&key, &json!({"spec": {"replicas": number}})); }
                _ => set_image(&mut model, &key, &format!("nginx:{kind}-{round}")),
            }
            let rolls = kind != 0;
            model.settle_checking(|model| {
                if rolls {
                    let pods = model.all(Kind::Pod);
                    let ready = pods.iter().filter(|pod| crate::workloads::pods::is_ready(pod)).count();
                    let (all, ready) = (i64::try_from(pods.len()).unwrap(), i64::try_from(ready).unwrap());
                    assert!(all <= size + surge, "{all} of {size}+{surge}");
                    assert!(ready >= size - unavailable, "{ready} of {size}-{unavailable}");
                }
            });
            let status = &model.get(&key)["status"];
            for field in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
                prop_assert_eq!(count(status, &format!("/{field}")), size, "{}", field);
            }
        }
    }
}
