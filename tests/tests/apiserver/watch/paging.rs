//! Pages show one snapshot.

use serde_json::json;

use crate::support::{
    Collection, Scope, cases,
    objects::{names, version},
};

cases! {
    "3.13" pages_show_one_snapshot;
    "3.13" remaining_items_are_counted;
    "3.13" with_a_selector_remaining_items_are_not_counted;
    "3.13" pages_of_selected_items;
    "3.13" a_limit_above_the_item_count_makes_one_page;
    "3.13" lists_are_ordered_by_name;
    "3.13" a_continue_token_of_another_list_is_refused;
    "3.13" a_continue_token_fixes_the_version;
    "3.13" pages_across_namespaces;
    "3.13" a_watch_continues_from_the_version_of_the_pages;
}

async fn fill(secrets: &Collection, names: &[&str]) {
    for name in names {
        secrets.create(&json!({"metadata": {"name": name, "labels": {"case": "yes"}}})).await.ok();
    }
}

async fn pages_show_one_snapshot(scope: &Scope) {
    let secrets = scope.secrets().await;
    fill(&secrets, &["a", "b", "c", "d", "e"]).await;
    let first = secrets.list("limit=2").await.ok();
    assert_eq!(names(&first), ["a", "b"]);
    secrets.delete("d").await.ok();
    fill(&secrets, &["bb", "zz"]).await;
    secrets.merge("c", &json!({"metadata": {"labels": {"case": "later"}}})).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = secrets.list(&format!("limit=2&continue={token}")).await.ok();
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["items"][0]["metadata"]["labels"]["case"], "yes");
    assert_eq!(version(&second), version(&first));
    let token = second["metadata"]["continue"].as_str().unwrap();
    let third = secrets.list(&format!("limit=2&continue={token}")).await.ok();
    assert_eq!((names(&third), version(&third)), (vec!["e"], version(&first)));
    assert_eq!(third["metadata"].get("continue"), None);
}

async fn remaining_items_are_counted(scope: &Scope) {
    let secrets = scope.secrets().await;
    fill(&secrets, &["a", "b", "c"]).await;
    let first = secrets.list("limit=1").await.ok();
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    let second =
        secrets.list(&format!("limit=1&continue={}", first["metadata"]["continue"].as_str().unwrap())).await.ok();
    assert_eq!(second["metadata"]["remainingItemCount"], 1);
    let third =
        secrets.list(&format!("limit=1&continue={}", second["metadata"]["continue"].as_str().unwrap())).await.ok();
    assert_eq!(third["metadata"].get("remainingItemCount"), None);
}

async fn with_a_selector_remaining_items_are_not_counted(scope: &Scope) {
    let secrets = scope.secrets().await;
    fill(&secrets, &["a", "b"]).await;
    let first = secrets.list("limit=1&labelSelector=case=yes").await.ok();
    assert!(first["metadata"]["continue"].is_string());
    assert_eq!(first["metadata"].get("remainingItemCount"), None);
}

async fn pages_of_selected_items(scope: &Scope) {
    let secrets = scope.secrets().await;
    fill(&secrets, &["b", "d", "f"]).await;
    for name in ["a", "c", "e", "g"] {
        secrets.create(&json!({"metadata": {"name": name}})).await.ok();
    }
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let page = secrets.list(&format!("limit=2&labelSelector=case=yes&continue={token}")).await.ok();
        assert!(names(&page).len() <= 2);
        seen.extend(names(&page).into_iter().map(str::to_owned));
        match page["metadata"]["continue"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => break,
        }
    }
    assert_eq!(seen, ["b", "d", "f"]);
}

async fn a_limit_above_the_item_count_makes_one_page(scope: &Scope) {
    let secrets = scope.secrets().await;
    fill(&secrets, &["a", "b"]).await;
    for limit in [2, 500] {
        let list = secrets.list(&format!("limit={limit}")).await.ok();
        assert_eq!((names(&list).len(), list["metadata"].get("continue")), (2, None), "limit {limit}");
    }
}

async fn lists_are_ordered_by_name(scope: &Scope) {
    let secrets = scope.secrets().await;
    fill(&secrets, &["c", "a-b", "a", "b", "a.b"]).await;
    assert_eq!(names(&secrets.list("").await.ok()), ["a", "a-b", "a.b", "b", "c"]);
}

async fn a_continue_token_of_another_list_is_refused(scope: &Scope) {
    let secrets = scope.secrets().await;
    let status = secrets.list("limit=1&continue=nonsense").await.refused(400, "BadRequest");
    assert!(status["message"].as_str().unwrap().contains("continue key is not valid"), "{status}");
}

async fn a_continue_token_fixes_the_version(scope: &Scope) {
    let secrets = scope.secrets().await;
    fill(&secrets, &["a", "b"]).await;
    let first = secrets.list("limit=1").await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let answer = secrets.list(&format!("limit=1&continue={token}&resourceVersion={}", version(&first))).await;
    assert!((400..500).contains(&answer.status), "{} {}", answer.status, answer.text);
}

async fn pages_across_namespaces(scope: &Scope) {
    let other = scope.another_namespace("another").await;
    let label = scope.name("case");
    let elsewhere = Collection::namespaced(scope.http(), "v1", &other, "secrets");
    for collection in [scope.secrets().await, elsewhere] {
        for name in ["a", "b"] {
            collection.create(&json!({"metadata": {"name": name, "labels": {"case": label}}})).await.ok();
        }
    }
    let all = Collection::cluster(scope.http(), "v1", "secrets");
    let first = all.list(&format!("limit=3&labelSelector=case={label}")).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = all.list(&format!("limit=3&labelSelector=case={label}&continue={token}")).await.ok();
    assert_eq!((names(&first).len(), names(&second).len()), (3, 1));
    let namespaces = [scope.namespace().await, other.as_str()];
    let of = |item: &serde_json::Value| item["metadata"]["namespace"].as_str().unwrap().to_owned();
    assert_eq!(of(&first["items"][0]), *namespaces.iter().min().unwrap(), "in the order of namespaces");
    assert_eq!(of(&second["items"][0]), *namespaces.iter().max().unwrap());
}

async fn a_watch_continues_from_the_version_of_the_pages(scope: &Scope) {
    let secrets = scope.secrets().await;
    fill(&secrets, &["a", "b"]).await;
    let first = secrets.list("limit=1").await.ok();
    fill(&secrets, &["c"]).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = secrets.list(&format!("continue={token}")).await.ok();
    assert_eq!(names(&second), ["b"]);
    let mut events = secrets.watch(&format!("resourceVersion={}", version(&second))).await;
    assert_eq!(events.summaries(1).await, ["ADDED c"]);
}
