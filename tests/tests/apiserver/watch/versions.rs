//! A watch delivers every change once and in order, from the requested version on.

use serde_json::{Value, json};

use crate::support::{
    Collection, Scope, cases,
    events::Event,
    objects::{names, version},
};

cases! {
    "3.10" every_change_is_delivered_once_and_in_order;
    "3.10" nothing_is_lost_between_list_and_watch;
    "3.10" several_watchers_see_the_same;
    "3.10" an_event_contains_the_object_of_its_version;
    "3.10" without_a_version_a_watch_begins_with_what_exists;
    "3.10" version_zero_begins_with_what_exists;
    "3.10" a_watch_of_one_object_by_name;
    "3.10" a_watch_of_all_namespaces;
    "3.10" a_watch_ends_after_its_timeout;
    "3.10" a_watch_from_an_expired_version_is_refused;
    "3.10" a_list_at_an_expired_version_is_refused;
    "3.10" a_future_version_is_refused;
    "3.10" lists_are_at_least_as_new_as_requested;
    "3.10" exact_lists_show_an_old_version;
    "3.10" invalid_combinations_of_parameters_are_refused;
    "3.10" a_list_has_a_version_even_when_it_is_empty;
    "3.10" items_of_custom_lists_carry_their_type;
    "3.10" a_get_at_a_version;
    "4" no_event_is_lost_during_concurrent_writes;
}

async fn create(secrets: &Collection, name: &str) -> Value {
    secrets.create(&json!({"metadata": {"name": name}})).await.is(201)
}

async fn change(secrets: &Collection, name: &str, value: u32) -> Value {
    secrets.merge(name, &json!({"stringData": {"x": value.to_string()}})).await.is(200)
}

async fn every_change_is_delivered_once_and_in_order(scope: &Scope) {
    let secrets = scope.secrets().await;
    let list = secrets.list("").await.ok();
    let mut events = secrets.watch(&format!("resourceVersion={}", version(&list))).await;
    create(&secrets, "a").await;
    change(&secrets, "a", 1).await;
    change(&secrets, "a", 1).await;
    create(&secrets, "b").await;
    change(&secrets, "a", 2).await;
    secrets.delete("a").await.ok();
    create(&secrets, "marker").await;
    let seen = events.before("marker").await;
    let summaries: Vec<String> = seen.iter().map(Event::summary).collect();
    assert_eq!(summaries, ["ADDED a", "MODIFIED a", "ADDED b", "MODIFIED a", "DELETED a"]);
    let versions: Vec<u64> = seen.iter().map(|event| version(&event.object).parse().unwrap()).collect();
    assert!(versions.is_sorted_by(|one, other| one < other), "{versions:?}");
}

async fn nothing_is_lost_between_list_and_watch(scope: &Scope) {
    let secrets = scope.secrets().await;
    let list = secrets.list("").await.ok();
    create(&secrets, "a").await;
    secrets.delete("a").await.ok();
    create(&secrets, "b").await;
    let mut events = secrets.watch(&format!("resourceVersion={}", version(&list))).await;
    assert_eq!(events.summaries(3).await, ["ADDED a", "DELETED a", "ADDED b"]);
}

async fn several_watchers_see_the_same(scope: &Scope) {
    let secrets = scope.secrets().await;
    let from = format!("resourceVersion={}", version(&secrets.list("").await.ok()));
    let (mut one, mut two) = (secrets.watch(&from).await, secrets.watch(&from).await);
    create(&secrets, "a").await;
    change(&secrets, "a", 1).await;
    assert_eq!(one.summaries(2).await, two.summaries(2).await);
}

async fn an_event_contains_the_object_of_its_version(scope: &Scope) {
    let widgets = scope.widgets().await;
    let from = version(&widgets.list("").await.ok()).to_owned();
    let created = widgets.create(&scope.widget("a", json!({"size": 1}))).await.ok();
    let changed = widgets.merge("a", &json!({"spec": {"size": 2}})).await.ok();
    widgets.delete("a").await.ok();
    let mut events = widgets.watch(&format!("resourceVersion={from}")).await;
    assert_eq!(events.expect().await.object, created);
    assert_eq!(events.expect().await.object, changed);
    let mut deleted = events.expect().await.object;
    assert_ne!(version(&deleted), version(&changed), "the version of the deletion");
    deleted["metadata"]["resourceVersion"] = changed["metadata"]["resourceVersion"].clone();
    assert_eq!(deleted, changed, "else the last state");
}

async fn without_a_version_a_watch_begins_with_what_exists(scope: &Scope) {
    let secrets = scope.secrets().await;
    create(&secrets, "a").await;
    change(&secrets, "a", 1).await;
    let mut events = secrets.watch("").await;
    assert_eq!(events.summaries(1).await, ["ADDED a"]);
    create(&secrets, "b").await;
    assert_eq!(events.summaries(1).await, ["ADDED b"]);
}

async fn version_zero_begins_with_what_exists(scope: &Scope) {
    let secrets = scope.secrets().await;
    create(&secrets, "a").await;
    let mut events = secrets.watch("resourceVersion=0").await;
    create(&secrets, "marker").await;
    let seen = events.before("marker").await;
    assert_eq!(seen.last().map(Event::summary).as_deref(), Some("ADDED a"));
    assert_eq!(names(&secrets.list("resourceVersion=0").await.ok()).len(), 2);
}

async fn a_watch_of_one_object_by_name(scope: &Scope) {
    let secrets = scope.secrets().await;
    let from = version(&create(&secrets, "a").await).to_owned();
    let mut events = secrets.watch(&format!("fieldSelector=metadata.name=b&resourceVersion={from}")).await;
    change(&secrets, "a", 1).await;
    create(&secrets, "b").await;
    assert_eq!(events.summaries(1).await, ["ADDED b"]);
}

async fn a_watch_of_all_namespaces(scope: &Scope) {
    let other = scope.another_namespace("other").await;
    let secrets = scope.secrets().await;
    let elsewhere = Collection::namespaced(scope.http(), "v1", &other, "secrets");
    let all = Collection::cluster(scope.http(), "v1", "secrets");
    let label = scope.name("case");
    let from = version(&secrets.list("").await.ok()).to_owned();
    let mut events = all.watch(&format!("labelSelector=case={label}&resourceVersion={from}")).await;
    for collection in [&secrets, &elsewhere] {
        collection.create(&json!({"metadata": {"name": "a", "labels": {"case": label}}})).await.ok();
    }
    let mut namespaces = Vec::new();
    for _ in 0..2 {
        namespaces.push(events.expect().await.object["metadata"]["namespace"].clone());
    }
    assert_eq!(namespaces, [json!(scope.namespace().await), json!(other)]);
    assert_eq!(all.list(&format!("labelSelector=case={label}")).await.ok()["items"].as_array().unwrap().len(), 2);
}

async fn a_watch_ends_after_its_timeout(scope: &Scope) {
    let secrets = scope.secrets().await;
    create(&secrets, "a").await;
    let mut events = secrets.watch("timeoutSeconds=1").await;
    assert_eq!(events.summaries(1).await, ["ADDED a"]);
    while let Some(event) = events.next().await {
        assert_eq!(event.kind, "BOOKMARK", "{event:?}");
    }
}

/// Watches from a very old version: servers usually drop their first writes. A server that keeps everything may deliver them.
async fn a_watch_from_an_expired_version_is_refused(scope: &Scope) {
    let secrets = scope.secrets().await;
    create(&secrets, "a").await;
    let path = secrets.path("?watch=true&resourceVersion=1&timeoutSeconds=1").replace("/?", "?");
    let answer = scope.http().get(&path).await;
    if answer.status == 410 {
        answer.refused(410, "Expired");
        return;
    }
    let first: Value = serde_json::from_str(answer.text.lines().next().unwrap_or("null")).unwrap();
    if first["type"] == "ERROR" {
        let status = &first["object"];
        assert_eq!(
            (&status["kind"], &status["code"], &status["reason"]),
            (&json!("Status"), &json!(410), &json!("Expired"))
        );
        assert!(status["message"].as_str().unwrap().starts_with("too old resource version: 1 ("), "{status}");
    } else {
        assert_eq!((answer.status, &first["type"]), (200, &json!("ADDED")), "the history reaches back that far");
    }
}

async fn a_list_at_an_expired_version_is_refused(scope: &Scope) {
    let secrets = scope.secrets().await;
    let answer = secrets.list("resourceVersion=1&resourceVersionMatch=Exact").await;
    if answer.status == 200 {
        assert_eq!(version(&answer.ok()), "1", "the history reaches back that far");
    } else {
        answer.refused(410, "Expired");
    }
}

async fn a_future_version_is_refused(scope: &Scope) {
    let secrets = scope.secrets().await;
    let status = secrets.list("resourceVersion=999999999999").await.refused(504, "Timeout");
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert!(status["details"]["retryAfterSeconds"].as_u64().is_some(), "{status}");
    assert!(
        status["message"].as_str().unwrap().starts_with("Too large resource version: 999999999999, current: ")
            || status["message"]
                .as_str()
                .unwrap()
                .starts_with("Timeout: Too large resource version: 999999999999, current: "),
        "{status}"
    );
    let status = secrets.get("a?resourceVersion=999999999999").await.refused(504, "Timeout");
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

async fn lists_are_at_least_as_new_as_requested(scope: &Scope) {
    let secrets = scope.secrets().await;
    let a = create(&secrets, "a").await;
    let b = create(&secrets, "b").await;
    let fresh = secrets.list(&format!("resourceVersion={}&resourceVersionMatch=NotOlderThan", version(&b))).await.ok();
    assert_eq!(names(&fresh), ["a", "b"]);
    let fresh = secrets.list(&format!("resourceVersion={}", version(&a))).await.ok();
    assert!(names(&fresh).contains(&"a"));
    assert_eq!(names(&secrets.list("").await.ok()), ["a", "b"], "without a version: the most recent");
}

async fn exact_lists_show_an_old_version(scope: &Scope) {
    let secrets = scope.secrets().await;
    create(&secrets, "a").await;
    let b = create(&secrets, "b").await;
    secrets.delete("a").await.ok();
    create(&secrets, "c").await;
    let past = secrets.list(&format!("resourceVersion={}&resourceVersionMatch=Exact", version(&b))).await.ok();
    assert_eq!((names(&past), version(&past)), (vec!["a", "b"], version(&b)));
}

async fn invalid_combinations_of_parameters_are_refused(scope: &Scope) {
    let secrets = scope.secrets().await;
    for (query, field) in [
        ("resourceVersionMatch=Exact", "resourceVersionMatch"),
        ("resourceVersion=0&resourceVersionMatch=Exact", "resourceVersionMatch"),
        ("resourceVersion=1&resourceVersionMatch=Roughly", "resourceVersionMatch"),
        ("watch=true&resourceVersion=1&resourceVersionMatch=Exact", "resourceVersionMatch"),
    ] {
        let answer = secrets.list(query).await;
        let status = answer.clone();
        status.invalid(field);
    }
    let answer = secrets.list("resourceVersion=recently").await;
    assert!((400..=500).contains(&answer.status), "{} {}", answer.status, answer.text);
}

async fn a_list_has_a_version_even_when_it_is_empty(scope: &Scope) {
    for list in [scope.secrets().await.list("").await.ok(), scope.widgets().await.list("limit=500").await.ok()] {
        assert_eq!(list["items"], json!([]));
        assert!(!version(&list).is_empty() && version(&list) != "0", "{list}");
    }
}

async fn items_of_custom_lists_carry_their_type(scope: &Scope) {
    let widgets = scope.widgets().await;
    let created = widgets.create(&scope.widget("a", json!({}))).await.ok();
    let list = widgets.list("").await.ok();
    assert_eq!(list["kind"], "WidgetList");
    assert_eq!(list["items"], json!([created]));
    let secrets = scope.secrets().await;
    create(&secrets, "a").await;
    let list = secrets.list("").await.ok();
    assert_eq!((&list["kind"], list["items"][0].get("kind")), (&json!("SecretList"), None));
}

async fn a_get_at_a_version(scope: &Scope) {
    let secrets = scope.secrets().await;
    let a = create(&secrets, "a").await;
    let read = secrets.get(&format!("a?resourceVersion={}", version(&a))).await.ok();
    assert_eq!(read, a);
    assert_eq!(secrets.get("a").await.ok(), a);
}

async fn no_event_is_lost_during_concurrent_writes(scope: &Scope) {
    const WRITERS: u32 = 4;
    const EACH: u32 = 15;
    let secrets = scope.secrets().await;
    let from = version(&secrets.list("").await.ok()).to_owned();
    let writers = (0..WRITERS).map(|writer| {
        let secrets = secrets.clone();
        async move {
            let name = format!("w{writer}");
            create(&secrets, &name).await;
            for value in 1..EACH {
                change(&secrets, &name, value).await;
            }
        }
    });
    let watching = async {
        let mut events = secrets.watch(&format!("resourceVersion={from}")).await;
        let mut last = 0;
        for _ in 0..WRITERS * EACH {
            let now: u64 = version(&events.expect().await.object).parse().unwrap();
            assert!(now > last, "{now} after {last}");
            last = now;
        }
        create(&secrets, "marker").await;
        events.before("marker").await
    };
    let (_, rest) = futures::join!(futures::future::join_all(writers), watching);
    assert!(rest.is_empty(), "more events than changes: {rest:?}");
}
