use std::sync::Arc;

use serde_json::json;

use super::*;

fn resource() -> Arc<str> {
    "configmaps".into()
}

fn scope() -> Scope {
    Scope { resource: Some(resource()), namespace: None }
}

fn key(namespace: &str, name: &str) -> Key {
    Key::new(resource(), namespace, name)
}

fn names(listing: &Listing) -> Vec<String> {
    listing.objects.iter().map(|(key, _)| format!("{}/{}", key.namespace, key.name)).collect()
}

#[test]
fn a_write_sets_the_resource_version_and_checks_its_precondition() {
    let store = Store::default();
    let first = store.put(key("a", "x"), Expected::Absent, json!({"metadata": {"name": "x"}})).unwrap();
    assert_eq!(first.value()["metadata"]["resourceVersion"], first.revision().to_string());
    assert_eq!(store.put(key("a", "x"), Expected::Absent, json!({})).unwrap_err(), Mismatch);
    assert_eq!(store.put(key("a", "x"), Expected::Revision(first.revision() + 1), json!({})).unwrap_err(), Mismatch);
    let second = store.put(key("a", "x"), Expected::Revision(first.revision()), json!({})).unwrap();
    assert!(second.revision() > first.revision());
    assert_eq!(store.delete(&key("a", "x"), first.revision(), None).unwrap_err(), Mismatch);
    let gone = store.delete(&key("a", "x"), second.revision(), None).unwrap();
    assert!(gone.revision() > second.revision());
    assert!(store.get(&key("a", "x")).is_none());
}

#[test]
fn a_list_shows_the_past_until_it_is_compacted() {
    let store = Store::default();
    let one = store.put(key("a", "x"), Expected::Absent, json!({})).unwrap();
    let two = store.put(key("b", "y"), Expected::Absent, json!({})).unwrap();
    store.delete(&key("a", "x"), one.revision(), None).unwrap();
    assert_eq!(names(&store.list(&scope(), Some(two.revision())).unwrap()), ["a/x", "b/y"]);
    assert_eq!(names(&store.list(&scope(), None).unwrap()), ["b/y"]);
    store.compact(store.revision());
    assert!(store.list(&scope(), Some(two.revision())).is_err());
    assert!(store.watch(scope(), two.revision()).is_err());
    assert_eq!(names(&store.list(&scope(), None).unwrap()), ["b/y"]);
    assert!(store.watch(scope(), store.revision()).is_ok());
}

#[tokio::test]
async fn a_store_that_was_rewound_has_the_objects_and_the_revision_of_its_snapshot() {
    let store = Store::default();
    let kept = store.put(key("a", "kept"), Expected::Absent, json!({"data": 1})).unwrap();
    store.put_until(key("a", "expiring"), Expected::Absent, json!({}), 7).unwrap();
    let snapshot = store.snapshot();
    let (_, mut watch) = store.list_and_watch(scope());
    let lost = store.put(key("a", "lost"), Expected::Absent, json!({})).unwrap();
    store.put(key("a", "kept"), Expected::Revision(kept.revision()), json!({"data": 2})).unwrap();
    store.expire(7);
    let latest = store.revision();

    assert!(store.rewind(&snapshot));
    assert_eq!(names(&store.list(&scope(), None).unwrap()), ["a/expiring", "a/kept"]);
    assert_eq!(store.get(&key("a", "kept")).unwrap().value()["data"], 1);
    assert_eq!(store.next_expiry(), Some(7));
    assert!(watch.is_behind() && watch.next().await.is_err(), "a watch from before ends");
    assert!(store.list(&scope(), Some(kept.revision())).is_err(), "there is no history");

    // Revisions are given again, and a watch from a later one misses what happens until then.
    let mut late = store.watch(scope(), latest).unwrap();
    let again = store.put(key("a", "again"), Expected::Absent, json!({})).unwrap();
    assert_eq!(again.revision(), lost.revision());
    assert!(late.ready().unwrap().events.is_empty());
    while store.revision() <= latest {
        let name = store.revision().to_string();
        store.put(key("a", &name), Expected::Absent, json!({})).unwrap();
    }
    assert_eq!(late.ready().unwrap().events.len(), 1, "only what comes after that revision");
}

#[test]
fn the_history_is_bounded_by_revisions_and_by_bytes() {
    let by_count = Store::new(Limits { revisions: 10, bytes: usize::MAX, ..Limits::default() });
    for number in 0..100 {
        by_count.put(key("a", &number.to_string()), Expected::Absent, json!({})).unwrap();
    }
    assert!(by_count.list(&scope(), Some(50)).is_err());
    assert!(by_count.list(&scope(), Some(by_count.revision() - 5)).is_ok());

    let by_size = Store::new(Limits { revisions: 1000, bytes: 10_000, ..Limits::default() });
    let mut revision = by_size.put(key("a", "x"), Expected::Absent, json!({})).unwrap().revision();
    let early = revision;
    for _ in 0..100 {
        let value = json!({"data": "x".repeat(1000)});
        revision = by_size.put(key("a", "x"), Expected::Revision(revision), value).unwrap().revision();
    }
    assert!(by_size.list(&scope(), Some(early)).is_err());
}

#[tokio::test]
async fn a_waiting_watch_wakes_for_its_own_resource() {
    let store = Store::default();
    let mut watch = store.watch(scope(), store.revision()).unwrap();
    let waiting = tokio::spawn(async move { watch.next().await });
    store.put(Key::new("pods".into(), "a", "p"), Expected::Absent, json!({})).unwrap();
    store.put(key("a", "x"), Expected::Absent, json!({})).unwrap();
    let batch = waiting.await.unwrap().unwrap();
    assert_eq!(batch.events.len(), 1);
    assert_eq!(batch.events[0].change, Change::Added);
    assert_eq!(batch.revision, store.revision());
}

#[test]
fn pages_at_one_revision_are_one_snapshot() {
    let store = Store::default();
    for (namespace, name) in [("a", "x"), ("a", "y"), ("b", "x"), ("b", "z"), ("c", "x")] {
        store.put(key(namespace, name), Expected::Absent, json!({})).unwrap();
    }
    let pages = |namespace: Option<&str>, limit: usize| {
        let mut found = Vec::new();
        let mut after: Option<(String, String)> = None;
        let mut revision = None;
        loop {
            let place = after.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str()));
            let request = PageRequest { revision, after: place, limit: Some(limit) };
            let page = store.page(&resource(), namespace, request).unwrap();
            revision = Some(page.revision);
            let Some((last, _)) = page.objects.last() else { break };
            after = Some((last.namespace.clone(), last.name.clone()));
            let listing = Listing { objects: page.objects, revision: page.revision };
            found.push((names(&listing).join(" "), page.remaining));
            // Changes between the pages are not visible.
            let _ = store.put(key("c", &format!("new-{}", store.revision())), Expected::Absent, json!({}));
            if page.remaining == 0 {
                break;
            }
        }
        found
    };
    let expected = [("a/x a/y", 3), ("b/x b/z", 1), ("c/x", 0)].map(|(names, left)| (names.to_owned(), left));
    assert_eq!(pages(None, 2), expected);
    let expected = [("b/x", 1), ("b/z", 0)].map(|(names, left)| (names.to_owned(), left));
    assert_eq!(pages(Some("b"), 1), expected);
    assert_eq!(store.page(&"nothing".into(), None, PageRequest::default()).unwrap().objects.len(), 0);
}

#[test]
fn an_object_ends_at_its_time_unless_it_is_written_again() {
    let store = Store::default();
    store.put_until(key("a", "x"), Expected::Absent, json!({}), 100).unwrap();
    let kept = store.put_until(key("a", "y"), Expected::Absent, json!({}), 100).unwrap();
    let stays = store.put_until(key("a", "z"), Expected::Absent, json!({}), 100).unwrap();
    assert_eq!(store.next_expiry(), Some(100));
    assert_eq!(store.expire(99), 0);
    store.put_until(key("a", "y"), Expected::Revision(kept.revision()), json!({}), 200).unwrap();
    store.put(key("a", "z"), Expected::Revision(stays.revision()), json!({})).unwrap();
    let mut watch = store.watch(scope(), store.revision()).unwrap();
    assert_eq!(store.expire(100), 1);
    let events = watch.ready().unwrap().events;
    assert_eq!(
        events.iter().map(|event| (event.change, &*event.key.name)).collect::<Vec<_>>(),
        [(Change::Deleted, "x")]
    );
    assert_eq!(names(&store.list_now(&scope())), ["a/y", "a/z"]);
    assert_eq!(store.next_expiry(), Some(200));
    assert_eq!(store.expire(i64::MAX), 1);
    assert_eq!(names(&store.list_now(&scope())), ["a/z"]);
    assert_eq!(store.next_expiry(), None);
}

#[test]
fn parsed_objects_are_dropped_when_there_are_too_many() {
    let store = Store::new(Limits { parsed_bytes: 4000, ..Limits::default() });
    for number in 0..50 {
        let value = json!({"kind": "A", "spec": {"text": "x".repeat(100), "number": number}});
        store.put(key("a", &number.to_string()), Expected::Absent, value).unwrap();
    }
    let listing = store.list_now(&scope());
    let parsed = listing.objects.iter().filter(|(_, object)| object.unparsed().is_some()).count();
    assert!(parsed < 10, "{parsed} of 50 are parsed");
    for (key, object) in &listing.objects {
        assert_eq!(object.value()["spec"]["number"].to_string(), key.name);
        assert_eq!(object.value()["metadata"]["resourceVersion"], object.revision().to_string());
    }
    drop(listing);
    let listing = store.list_now(&scope());
    assert!(
        listing.objects.iter().all(|(_, object)| object.unparsed().is_none()),
        "readers alone can make it drop them"
    );
}

#[test]
fn in_memory_everything_is_durable() {
    let store = Store::default();
    let revision = store.put(key("a", "x"), Expected::Absent, json!({})).unwrap().revision();
    let durable = std::pin::pin!(store.durable(revision));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(matches!(durable.poll(&mut context), std::task::Poll::Ready(Ok(()))));
    assert!(store.failure().is_none());
}
