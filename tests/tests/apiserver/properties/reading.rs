//! Watches replay to the state of a list, and pages are one snapshot.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering},
};

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::holds;
use crate::support::{
    Collection, Scope, cases,
    objects::{name, names, version},
};

cases! {
    "3.10" a_watch_from_any_version_replays_to_the_list;
    "3.13" pages_are_one_snapshot;
}

/// A write to one of a few Secrets.
#[derive(Debug, Clone)]
enum Step {
    Create(u8, bool),
    Change(u8, u8),
    Label(u8, bool),
    Delete(u8),
    /// Remember a list, to start a watch from it at the end.
    List,
}

fn step() -> impl Strategy<Value = Step> {
    let object = 0..4_u8;
    prop_oneof![
        3 => (object.clone(), any::<bool>()).prop_map(|(object, selected)| Step::Create(object, selected)),
        3 => (object.clone(), any::<u8>()).prop_map(|(object, value)| Step::Change(object, value)),
        2 => (object.clone(), any::<bool>()).prop_map(|(object, selected)| Step::Label(object, selected)),
        2 => object.prop_map(Step::Delete),
        1 => Just(Step::List),
    ]
}

/// Names and labels that no other input of the property uses.
struct Space {
    prefix: String,
    secrets: Collection,
}

impl Space {
    fn new(secrets: &Collection) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self { prefix: format!("s{}", NEXT.fetch_add(1, Ordering::Relaxed)), secrets: secrets.clone() }
    }

    fn name(&self, object: impl std::fmt::Display) -> String {
        format!("{}-{object}", self.prefix)
    }

    fn label(&self, selected: bool) -> Value {
        json!({"case": if selected { self.prefix.as_str() } else { "no" }})
    }

    fn selector(&self) -> String {
        format!("labelSelector=case={}", self.prefix)
    }

    /// Any of these may be rejected: whether the object exists depends on the input.
    async fn write(&self, step: &Step) {
        match step {
            Step::Create(object, selected) => {
                let metadata = json!({"name": self.name(object), "labels": self.label(*selected)});
                self.secrets.create(&json!({"metadata": metadata})).await;
            }
            Step::Change(object, value) => {
                self.secrets.merge(&self.name(object), &json!({"stringData": {"x": value.to_string()}})).await;
            }
            Step::Label(object, selected) => {
                self.secrets.merge(&self.name(object), &json!({"metadata": {"labels": self.label(*selected)}})).await;
            }
            Step::Delete(object) => drop(self.secrets.delete(&self.name(object)).await),
            Step::List => {}
        }
    }
}

fn state(list: &Value) -> BTreeMap<String, Value> {
    list["items"].as_array().unwrap().iter().map(|item| (name(item).to_owned(), item["metadata"].clone())).collect()
}

async fn a_watch_from_any_version_replays_to_the_list(scope: &Scope) {
    let secrets = scope.secrets().await;
    holds(8, vec(step(), 1..24), |steps| {
        let space = Space::new(&secrets);
        async move {
            let list = || async { space.secrets.list(&space.selector()).await.ok() };
            let mut lists = vec![list().await];
            for step in &steps {
                space.write(step).await;
                if matches!(step, Step::List) {
                    lists.push(list().await);
                }
            }
            let end = space.name("zz-end");
            space.secrets.create(&json!({"metadata": {"name": end, "labels": space.label(true)}})).await.ok();
            let expected = state(&list().await);
            for list in lists {
                let mut replayed = state(&list);
                let mut events =
                    space.secrets.watch(&format!("{}&resourceVersion={}", space.selector(), version(&list))).await;
                while !replayed.contains_key(&end) {
                    let event = events.expect().await;
                    let (name, metadata) = (name(&event.object).to_owned(), event.object["metadata"].clone());
                    let known = match event.kind.as_str() {
                        "DELETED" => replayed.remove(&name).is_some(),
                        _ => replayed.insert(name, metadata).is_some(),
                    };
                    assert_eq!(known, event.kind != "ADDED", "{}", event.summary());
                }
                assert_eq!(replayed, expected);
            }
        }
    })
    .await;
}

async fn pages_are_one_snapshot(scope: &Scope) {
    let secrets = scope.secrets().await;
    holds(8, (1..12_u8, 1..5_usize, vec((0..12_u8, any::<bool>()), 0..8)), |(count, limit, writes)| {
        let space = Space::new(&secrets);
        async move {
            for object in 0..count {
                space.write(&Step::Create(object, true)).await;
            }
            let whole = space.secrets.list(&space.selector()).await.ok();
            let mut writes = writes.into_iter();
            let mut seen = Vec::new();
            let mut token = String::new();
            loop {
                let page =
                    space.secrets.list(&format!("{}&limit={limit}&continue={token}", space.selector())).await.ok();
                assert!(names(&page).len() <= limit);
                seen.extend(page["items"].as_array().unwrap().iter().cloned());
                let Some(next) = page["metadata"]["continue"].as_str() else { break };
                next.clone_into(&mut token);
                if let Some((object, create)) = writes.next() {
                    let write = if create { Step::Create(object, true) } else { Step::Delete(object) };
                    space.write(&write).await;
                }
            }
            assert_eq!(Value::Array(seen), whole["items"]);
        }
    })
    .await;
}
