use std::collections::BTreeMap;

use proptest::prelude::*;
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
fn a_write_sets_the_resource_version_and_expects_what_it_says() {
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

#[test]
fn the_history_is_bounded_by_revisions_and_by_bytes() {
    let by_count = Store::new(Limits { revisions: 10, bytes: usize::MAX });
    for number in 0..100 {
        by_count.put(key("a", &number.to_string()), Expected::Absent, json!({})).unwrap();
    }
    assert!(by_count.list(&scope(), Some(50)).is_err());
    assert!(by_count.list(&scope(), Some(by_count.revision() - 5)).is_ok());

    let by_size = Store::new(Limits { revisions: 1000, bytes: 10_000 });
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

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8),
    Delete(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..6u8, any::<u8>()).prop_map(|(name, data)| Step::Put(name, data)),
        (0..6u8).prop_map(Step::Delete)
    ];
    prop::collection::vec(step, 0..60)
}

fn snapshot(listing: &Listing) -> BTreeMap<String, Value> {
    listing.objects.iter().map(|(key, object)| (key.name.clone(), object.value().clone())).collect()
}

proptest! {
    /// Whatever was written: the list at any revision, changed by the events after it, is the list now.
    #[test]
    fn replaying_the_events_after_any_revision_yields_the_list(steps in steps()) {
        let store = Store::default();
        for step in steps {
            match step {
                Step::Put(name, data) => {
                    let key = key("a", &name.to_string());
                    let expected = store.get(&key).map_or(Expected::Absent, |object| Expected::Revision(object.revision()));
                    store.put(key, expected, json!({"data": data})).unwrap();
                }
                Step::Delete(name) => {
                    let key = key("a", &name.to_string());
                    if let Some(object) = store.get(&key) {
                        store.delete(&key, object.revision(), None).unwrap();
                    }
                }
            }
        }
        let now = snapshot(&store.list(&scope(), None).unwrap());
        for revision in 1..=store.revision() {
            let mut replayed = snapshot(&store.list(&scope(), Some(revision)).unwrap());
            let mut watch = store.watch(scope(), revision).unwrap();
            for event in watch.ready().unwrap().events {
                let before = replayed.get(&event.key.name).cloned();
                prop_assert_eq!(before.as_ref(), event.previous.as_ref().map(|object| object.value()));
                match event.change {
                    Change::Deleted => { replayed.remove(&event.key.name); }
                    Change::Added | Change::Modified => {
                        prop_assert_eq!(before.is_none(), event.change == Change::Added);
                        replayed.insert(event.key.name.clone(), event.object.value().clone());
                    }
                }
            }
            prop_assert_eq!(&replayed, &now);
        }
    }
}
