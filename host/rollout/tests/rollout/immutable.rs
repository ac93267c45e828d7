//! Releases that change immutable fields: refused, or deleted and created again where the owner allows it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

use chandler_core::{ObjectKey, Reason, Release};
use chandler_devcluster::{Effect, Fault, faults::Verb};
use chandler_rollout::{
    Change, ChangeKind, CollisionProtection, ImmutableAction, OnImmutable, Progress, RolloutError, RolloutRequest,
};
use serde_json::{Value, json};

use super::support::{Stage, config_map, config_map_key, deployment, key, ox, oxen, release};

fn web_key() -> ObjectKey {
    key("apps/v1", "Deployment", Some("install"), "web")
}

/// A Deployment with this selector. A Deployment cannot change its selector.
fn web(selector: &str) -> Value {
    let mut web = deployment("web", "example.com/web:v1");
    web["spec"]["selector"]["matchLabels"]["app"] = json!(selector);
    web["spec"]["template"]["metadata"]["labels"]["app"] = json!(selector);
    web
}

fn version(number: u32) -> Release {
    let settings = config_map("settings", json!({"version": number.to_string()}));
    release(&[(0, settings), (0, web(&format!("web-{number}")))])
}

/// A cluster with the first version, for an owner with this policy.
async fn installed(policy: OnImmutable) -> Stage {
    let mut stage = Stage::set().await;
    stage.owner.on_immutable = policy;
    stage.complete(&version(1)).await;
    stage.writes();
    stage
}

fn recreate() -> OnImmutable {
    OnImmutable { default: ImmutableAction::Recreate, kinds: Vec::new() }
}

/// The requests that create or delete objects, since the last call. The preflight prepares the field managers of objects.
fn replacements(stage: &Stage) -> Vec<String> {
    stage.writes().into_iter().filter(|write| !write.starts_with("PATCH ")).collect()
}

async fn uid(stage: &Stage, key: &ObjectKey) -> String {
    stage.live(key).await.unwrap()["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// What a preview says about an object, and the refusals.
async fn change(stage: &Stage, release: &Release, key: &ObjectKey) -> (Change, Vec<String>) {
    let preview = stage.rollout.preview(&RolloutRequest::new(&stage.owner, release)).await.unwrap();
    (preview.changes.into_iter().find(|change| change.object == *key).unwrap(), preview.refusals)
}

#[tokio::test]
async fn an_immutable_field_refuses_the_release_and_the_message_names_the_setting() {
    let stage = Box::pin(installed(OnImmutable::default())).await;
    let (changed, refusals) = change(&stage, &version(2), &web_key()).await;
    let refused = stage.advance(&version(2)).await.unwrap_err();
    assert_eq!((changed.kind, refusals), (ChangeKind::Change, vec![refused.to_string()]));
    assert_eq!(refused.reason(), Reason::ImmutableField);
    assert!(refused.is_refusal() && !refused.is_transient());
    let text = refused.to_string();
    assert!(text.starts_with("cannot update Deployment.apps install/web: "), "{text}");
    assert!(text.contains("field is immutable"), "{text}");
    let setting = "spec.rollout.onImmutable: {kinds: [{group: apps, kind: Deployment, action: Recreate}]}";
    assert!(text.contains(setting), "{text}");
    assert_eq!(replacements(&stage), [""; 0]);
    assert_eq!(stage.live(&config_map_key("settings")).await.unwrap()["data"]["version"], "1");
}

/// The second version, whose Deployment the release lets the host recreate.
fn recreatable() -> Release {
    let mut web = web("web-2");
    web["metadata"]["annotations"] = json!({"chandler.dev/on-immutable": "Recreate"});
    release(&[(0, config_map("settings", json!({"version": "2"}))), (0, web)])
}

#[tokio::test]
async fn an_object_is_recreated_if_the_release_allows_it() {
    let stage = Box::pin(installed(OnImmutable::default())).await;
    let before = uid(&stage, &web_key()).await;
    let (changed, refusals) = change(&stage, &recreatable(), &web_key()).await;
    assert_eq!((changed.kind, refusals), (ChangeKind::Recreate, Vec::new()));
    stage.complete(&recreatable()).await;
    let live = stage.live(&web_key()).await.unwrap();
    assert_eq!(live["spec"]["selector"]["matchLabels"]["app"], "web-2");
    assert_ne!(live["metadata"]["uid"], json!(before));
    assert!(live["metadata"]["annotations"].get("chandler.dev/on-immutable").is_none(), "{live}");
}

#[tokio::test]
async fn a_policy_that_names_the_kind_wins_over_the_release() {
    let kinds = vec![("apps".to_owned(), "Deployment".to_owned(), ImmutableAction::Refuse)];
    let stage = Box::pin(installed(OnImmutable { kinds, ..OnImmutable::default() })).await;
    let before = uid(&stage, &web_key()).await;
    let refused = stage.advance(&recreatable()).await.unwrap_err();
    assert_eq!(refused.reason(), Reason::ImmutableField, "{refused}");
    assert_eq!(uid(&stage, &web_key()).await, before);
    assert_eq!(replacements(&stage), [""; 0]);
}

#[tokio::test]
async fn an_object_is_recreated_if_the_owner_allows_it() {
    let stage = Box::pin(installed(recreate())).await;
    let before = uid(&stage, &web_key()).await;
    let (changed, refusals) = change(&stage, &version(2), &web_key()).await;
    assert_eq!((changed.kind, refusals), (ChangeKind::Recreate, vec![]));
    assert_eq!(
        changed.note.as_deref(),
        Some(
            "it is deleted and created again, because an immutable field changes: its Pods stop until new ones are ready"
        )
    );
    assert!(changed.fields.iter().any(|field| field.path.starts_with("spec.selector")), "{:?}", changed.fields);
    assert_eq!(stage.writes(), [""; 0], "a preview writes nothing");
    assert_eq!(uid(&stage, &web_key()).await, before);

    let mut recreated = Vec::new();
    let progress = stage.advance(&version(2)).await.unwrap();
    recreated.extend(progress.changes().recreated.clone());
    stage.complete(&version(2)).await;
    assert_eq!(recreated, [web_key()]);
    assert_ne!(uid(&stage, &web_key()).await, before);
    let writes = stage.writes();
    let about_web: Vec<&str> = writes
        .iter()
        .filter(|write| write.contains("deployments"))
        .filter_map(|write| write.split(' ').next())
        .collect();
    assert_eq!(about_web.iter().filter(|&&verb| verb == "DELETE").count(), 1, "{writes:?}");
    assert_eq!(about_web.last(), Some(&"POST"), "{writes:?}");
    let live = stage.live(&web_key()).await.unwrap();
    assert_eq!(live["spec"]["selector"], json!({"matchLabels": {"app": "web-2"}}));
    assert_eq!(stage.live(&config_map_key("settings")).await.unwrap()["data"]["version"], "2");
    // An update that changes no immutable field recreates nothing.
    let mut third = web("web-2");
    third["spec"]["replicas"] = json!(2);
    let before = uid(&stage, &web_key()).await;
    let third = release(&[(0, config_map("settings", json!({}))), (0, third)]);
    assert_eq!(change(&stage, &third, &web_key()).await.0.kind, ChangeKind::Change);
    stage.complete(&third).await;
    assert_eq!(uid(&stage, &web_key()).await, before);
}

#[tokio::test]
async fn a_failed_recreation_is_completed_by_the_next_attempt() {
    for (verb, resource) in [(Verb::Delete, "deployments.apps"), (Verb::Create, "deployments.apps")] {
        for effect in [Effect::InternalError, Effect::InternalErrorAfterWrite, Effect::ResetAfterWrite] {
            let mut stage = Box::pin(installed(recreate())).await;
            let before = uid(&stage, &web_key()).await;
            let fault = Fault::new(effect).verb(verb).resource(resource).name("web").dry_run(false).times(1);
            let text = fault.to_string();
            stage.cluster.inject(fault);
            let error = stage.fail(&version(2)).await;
            assert!(error.is_transient(), "{text}: {error}");
            // Another process continues, with the record alone.
            stage.restart().await;
            stage.complete(&version(2)).await;
            let live = stage.live(&web_key()).await.unwrap();
            assert_eq!(live["spec"]["selector"], json!({"matchLabels": {"app": "web-2"}}), "{text}");
            assert_ne!(live["metadata"]["uid"], json!(before), "{text}");
        }
    }
}

#[tokio::test]
async fn a_rollout_waits_until_the_old_object_is_gone() {
    let stage = Box::pin(installed(recreate())).await;
    stage.meddle(&web_key(), json!({"metadata": {"finalizers": ["example.com/held"]}})).await;
    for _ in 0..2 {
        let progress = stage.advance(&version(2)).await.unwrap();
        let Progress::Waiting { waiting, installed, .. } = progress else { panic!("{progress:?}") };
        assert!(!installed);
        assert!(waiting.iter().any(|unhealthy| unhealthy.object == web_key()), "{waiting:?}");
    }
    stage.meddle(&web_key(), json!({"metadata": {"finalizers": null}})).await;
    stage.complete(&version(2)).await;
    let live = stage.live(&web_key()).await.unwrap();
    assert_eq!(live["spec"]["selector"], json!({"matchLabels": {"app": "web-2"}}));
}

fn yoke_crd() -> Value {
    let size = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]});
    oxen(json!({"size": size}))
}

#[tokio::test]
async fn what_may_hold_data_is_recreated_only_if_its_kind_is_named() {
    let mut stage = Stage::set().await;
    stage.owner.on_immutable = recreate();
    let ox_key = key("example.com/v1", "Ox", Some("install"), "one");
    let of = |size: &str| release(&[(0, yoke_crd()), (0, ox("one", json!({"size": size})))]);
    stage.complete(&of("small")).await;
    let before = uid(&stage, &ox_key).await;
    stage.writes();
    let refused = stage.advance(&of("large")).await.unwrap_err();
    assert_eq!(refused.reason(), Reason::ImmutableField, "{refused}");
    assert!(refused.to_string().contains("{group: example.com, kind: Ox, action: Recreate}"), "{refused}");
    assert_eq!(replacements(&stage), [""; 0]);

    let kinds = vec![("example.com".to_owned(), "Ox".to_owned(), ImmutableAction::Recreate)];
    stage.owner.on_immutable = OnImmutable { kinds, ..OnImmutable::default() };
    assert_eq!(change(&stage, &of("large"), &ox_key).await.0.kind, ChangeKind::Recreate);
    stage.complete(&of("large")).await;
    let live = stage.live(&ox_key).await.unwrap();
    assert_eq!((&live["spec"]["size"], live["metadata"]["uid"] == json!(before)), (&json!("large"), false));
}

#[tokio::test]
async fn an_object_that_is_invalid_in_itself_is_not_deleted() {
    let stage = Box::pin(installed(recreate())).await;
    let before = uid(&stage, &web_key()).await;
    let mut invalid = web("web-2");
    // No new object could have this template either.
    invalid["spec"]["template"]["metadata"]["labels"]["app"] = json!("other");
    let refused = stage.advance(&release(&[(0, invalid)])).await.unwrap_err();
    assert_eq!(refused.reason(), Reason::ObjectRefused, "{refused}");
    assert_eq!(uid(&stage, &web_key()).await, before);
    assert_eq!(replacements(&stage), [""; 0]);
}

#[tokio::test]
async fn an_object_of_another_owner_is_not_recreated() {
    let mut stage = Stage::set().await;
    stage.owner.on_immutable = recreate();
    stage.owner.collisions = CollisionProtection::None;
    stage.make(&web_key(), web("theirs")).await;
    let before = uid(&stage, &web_key()).await;
    let refused = stage.advance(&release(&[(0, web("ours"))])).await.unwrap_err();
    assert!(matches!(refused, RolloutError::Objects(_)), "{refused}");
    assert_eq!(refused.reason(), Reason::ObjectRefused, "{refused}");
    assert_eq!(uid(&stage, &web_key()).await, before);
}
