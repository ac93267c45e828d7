//! A minimal API server for tests of decisions: actions are executed at once, in memory.

use std::{collections::HashMap, time::Duration};

use chandler_devcluster_apimachinery::apply::patch::merge_patch;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::{
    action::{Action, Note},
    cache::Cache,
    fields::{generation, text},
    kind::{Key, Kind},
    pods,
    reconcile::{affected, reconcile, reconcile_missing},
    rules::Rules,
    world::World,
};
use crate::{clock, metadata};

/// More than any test needs; reaching it means that something runs in circles.
const MOST_STEPS: usize = 20_000;

pub(super) struct Model {
    pub(super) cache: Cache,
    pub(super) rules: Rules,
    pub(super) now: OffsetDateTime,
    pub(super) notes: Vec<(Kind, Note)>,
    pub(super) writes: usize,
    queue: Vec<Key>,
    waiting: Vec<(OffsetDateTime, Key)>,
    version: u64,
}

impl Model {
    /// A model with a node that is ready.
    pub(super) fn new() -> Self {
        let mut model = Self {
            cache: Cache::default(),
            rules: Rules::default(),
            now: OffsetDateTime::UNIX_EPOCH + Duration::from_hours(24 * 365 * 50),
            notes: Vec::new(),
            writes: 0,
            queue: vec![pods::node_key()],
            waiting: Vec::new(),
            version: 0,
        };
        model.settle();
        model
    }

    pub(super) fn create(&mut self, kind: Kind, mut object: Value) -> Key {
        self.version += 1;
        let (version, uid) = (self.version, format!("uid-{}", self.version));
        let fields = metadata::of(&mut object);
        if fields.get("name").is_none() {
            let prefix = fields.get("generateName").and_then(Value::as_str).unwrap_or_default();
            let name = format!("{prefix}{version}");
            fields.insert("name".to_owned(), name.into());
        }
        if kind != Kind::Node && kind != Kind::PersistentVolume && kind != Kind::ApiService {
            fields.entry("namespace").or_insert_with(|| "n".into());
        }
        fields.insert("uid".to_owned(), uid.into());
        fields.insert("resourceVersion".to_owned(), version.to_string().into());
        fields.insert("generation".to_owned(), 1.into());
        fields.insert("creationTimestamp".to_owned(), clock::seconds(self.now).into());
        let mut status = json!({});
        if kind == Kind::Pod {
            status = json!({"phase": "Pending"});
        }
        metadata::as_map(&mut object).insert("status".to_owned(), status);
        let key = Key::of(kind, &object);
        assert!(self.cache.get(&key).is_none(), "{key:?} exists");
        self.store(kind, object);
        key
    }

    pub(super) fn get(&self, key: &Key) -> &Value {
        self.cache.get(key).unwrap_or_else(|| panic!("{key:?} does not exist"))
    }

    pub(super) fn all(&self, kind: Kind) -> Vec<&Value> {
        self.cache.namespace(kind, "n").map(AsRef::as_ref).collect()
    }

    /// Merges into an object, as a user would.
    pub(super) fn change(&mut self, key: &Key, change: &Value) {
        let mut object = merge_patch(self.get(key), change);
        let before = self.get(key);
        if object.get("spec") != before.get("spec") || metadata::is_deleting(&object) != metadata::is_deleting(before) {
            let generation = generation(before) + 1;
            metadata::of(&mut object).insert("generation".to_owned(), generation.into());
        }
        self.version += 1;
        let version = self.version.to_string();
        metadata::of(&mut object).insert("resourceVersion".to_owned(), version.into());
        self.store(key.kind, object);
    }

    /// Deletes an object and what it controls.
    pub(super) fn delete(&mut self, key: &Key) {
        let Some(object) = self.cache.get(key) else { return };
        if !metadata::finalizers(object).is_empty() {
            let now = clock::seconds(self.now);
            return self.change(key, &json!({"metadata": {"deletionTimestamp": now}}));
        }
        let uid = metadata::uid(object).to_owned();
        let dependants = self.cache.dependants(&uid);
        if let Some(change) = self.cache.remove(key, &uid) {
            self.route(key, &change);
        }
        for dependant in dependants {
            self.delete(&dependant);
        }
    }

    pub(super) fn look_at_all(&mut self) {
        self.queue = self.cache.keys().cloned().collect();
    }

    fn store(&mut self, kind: Kind, object: Value) {
        let key = Key::of(kind, &object);
        if let Some(change) = self.cache.apply(kind, object) {
            self.route(&key, &change);
        }
    }

    fn route(&mut self, key: &Key, change: &super::cache::Change) {
        let mut keys = std::collections::HashSet::new();
        affected(&self.cache, key, change, &mut keys);
        let mut keys: Vec<Key> = keys.into_iter().filter(|key| !self.queue.contains(key)).collect();
        keys.sort();
        self.queue.extend(keys);
    }

    /// Takes decisions until there are none; `check` looks at the world after each write.
    pub(super) fn settle_checking(&mut self, mut check: impl FnMut(&Self)) {
        for _ in 0..MOST_STEPS {
            if self.queue.is_empty() {
                return;
            }
            let key = self.queue.remove(0);
            for action in self.decide(&key) {
                self.act(&key, action);
                check(self);
            }
        }
        panic!("it does not come to rest: {:?}", self.queue);
    }

    pub(super) fn settle(&mut self) {
        self.settle_checking(|_| {});
    }

    /// Lets time pass, and what waits for it happen.
    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
        let (due, later) = std::mem::take(&mut self.waiting).into_iter().partition(|(due, _)| *due <= self.now);
        self.waiting = later;
        let due: Vec<(OffsetDateTime, Key)> = due;
        self.queue.extend(due.into_iter().map(|(_, key)| key));
        self.settle();
    }

    fn decide(&mut self, key: &Key) -> Vec<Action> {
        let refusals = HashMap::new();
        let world = World { cache: &self.cache, rules: &self.rules, now: self.now, refusals: &refusals };
        let decision = match self.cache.get(key) {
            Some(object) => reconcile(&world, key.kind, object),
            None => reconcile_missing(&world, key),
        };
        if let Some(again) = decision.again {
            assert!(!again.is_zero(), "{key:?} runs in circles");
            self.waiting.push((self.now + again, key.clone()));
        }
        decision.actions
    }

    fn act(&mut self, subject: &Key, action: Action) {
        if !matches!(action, Action::Tell(_)) {
            self.writes += 1;
        }
        match action {
            Action::Tell(note) => self.notes.push((subject.kind, note)),
            Action::Create { kind, object, note, .. } => {
                self.create(kind, object);
                self.notes.extend(note.map(|note| (subject.kind, note)));
            }
            Action::Delete { key, uid, note, .. } => {
                assert_eq!(metadata::uid(self.get(&key)), uid);
                self.delete(&key);
                self.notes.extend(note.map(|note| (subject.kind, note)));
            }
            Action::Change { key, change } => {
                let stated = metadata::text(&change, "resourceVersion");
                if stated == metadata::text(self.get(&key), "resourceVersion") {
                    self.change(&key, &change);
                } else {
                    self.queue.push(subject.clone());
                }
            }
            Action::Status { key, change } => self.change(&key, &change),
            Action::Bind { key, node, .. } => {
                assert_eq!(text(self.get(&key), "/spec/nodeName"), "");
                self.change(&key, &json!({"spec": {"nodeName": node}}));
            }
        }
    }

    /// The reasons of the Events about objects of a kind, without duplicates, in order.
    pub(super) fn story(&self, kind: Kind) -> Vec<&'static str> {
        let mut story: Vec<&'static str> = Vec::new();
        for (_, note) in self.notes.iter().filter(|(of, _)| *of == kind) {
            if !story.contains(&note.reason) {
                story.push(note.reason);
            }
        }
        story
    }
}

/// A workload's specification with a Pod template.
pub(super) fn spec(name: &str, image: &str, more: &Value) -> Value {
    let spec = json!({
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"restartPolicy": "Always", "containers": [{"name": "c", "image": image}]},
        },
    });
    merge_patch(&json!({"metadata": {"name": name}, "spec": spec}), &json!({"spec": more}))
}

#[test]
fn pods_get_a_node_that_is_ready() {
    let mut model = Model::new();
    let node = model.get(&pods::node_key());
    assert!(super::fields::is_true(node, "Ready"), "{node}");
    let before = model.writes;
    model.look_at_all();
    model.settle();
    assert_eq!(model.writes, before, "nothing is written when nothing is to be done");
}
