use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::observed::{Labels, seen};

const LABELS: Labels = Labels { set: "set", owner: "owner" };

fn object(name: &str, uid: &str, version: u64, set: Option<&str>, owner: &str) -> Value {
    let mut labels = json!({"owner": owner});
    if let Some(set) = set {
        labels["set"] = json!(set);
    }
    json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version.to_string(), "labels": labels}})
}

fn stored(name: &str, version: u64) -> Seen {
    seen(&object(name, "u", version, Some("s"), "a"), &LABELS).unwrap()
}

fn without_label(name: &str, version: u64) -> Seen {
    seen(&object(name, "u", version, None, "a"), &LABELS).unwrap()
}

fn id(name: &str) -> Id {
    Id { namespace: None, name: name.to_owned() }
}

fn store() -> Store {
    Store::new(Memory::new(1 << 20))
}

/// The members of the set, as `name=version`, and `name=?` where the state is unknown.
fn members(store: &Store) -> String {
    let Members { objects, unknown } = whole(store);
    let text = |object: &Value, pointer: &str| object.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let known = objects
        .iter()
        .map(|object| format!("{}={}", text(object, "/metadata/name"), text(object, "/metadata/resourceVersion")));
    let mut all: Vec<String> = known.chain(unknown.iter().map(|id| format!("{}=?", id.name))).collect();
    all.sort();
    all.join(" ")
}

/// All members of the set.
fn whole(store: &Store) -> Members {
    store.members("s", None, &|_, _| true)
}

fn owners(owners: &Owners) -> String {
    owners.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// A store after a list with these objects.
fn listed(objects: &[(&str, u64)]) -> Store {
    let mut store = store();
    store.begin_list();
    for (name, version) in objects {
        store.observe(stored(name, *version));
    }
    store.end_list();
    store
}

#[test]
fn an_object_that_is_older_in_a_list_than_before_shows_a_rewind() {
    let rewound = |store: &mut Store, seen: Seen| {
        store.begin_list();
        store.observe(seen);
        store.take_rewound().map(|id| id.name)
    };
    assert_eq!(rewound(&mut listed(&[("x", 5)]), stored("x", 4)).as_deref(), Some("x"));
    assert_eq!(rewound(&mut listed(&[("x", 5)]), stored("x", 5)), None, "unchanged");
    assert_eq!(rewound(&mut listed(&[("x", 5)]), stored("y", 4)), None, "another object");
    let again = seen(&object("x", "v", 4, Some("s"), "a"), &LABELS).unwrap();
    assert_eq!(rewound(&mut listed(&[("x", 5)]), again), None, "another object of its name");

    // A late event of a watch, and a list that began before the write.
    let mut store = listed(&[("x", 5)]);
    store.observe(stored("x", 4));
    assert_eq!(store.take_rewound(), None);
    store.begin_list();
    store.begin_write(&id("x"));
    store.end_with(stored("x", 9));
    store.observe(stored("x", 5));
    assert_eq!(store.take_rewound(), None);
}

#[test]
fn the_newest_version_wins() {
    let mut store = listed(&[("x", 5)]);
    assert_eq!(owners(&store.observe(stored("x", 4))), "");
    assert_eq!(members(&store), "x=5");
    assert_eq!(owners(&store.observe(stored("x", 5))), "");
    assert_eq!(owners(&store.observe(stored("x", 10))), "a");
    assert_eq!(members(&store), "x=10");
}

#[test]
fn the_event_of_an_own_write_triggers_nothing() {
    // The answer arrives first.
    let mut store = listed(&[("x", 5)]);
    store.begin_write(&id("x"));
    assert_eq!(owners(&store.end_with(stored("x", 6))), "");
    assert_eq!(members(&store), "x=6");
    assert_eq!(owners(&store.observe(stored("x", 6))), "");
    // The event arrives first.
    store.begin_write(&id("x"));
    assert_eq!(owners(&store.observe(stored("x", 7))), "");
    assert_eq!(owners(&store.end_with(stored("x", 7))), "");
    assert_eq!(members(&store), "x=7");
}

#[test]
fn an_event_of_another_client_during_a_write_triggers_a_reconcile() {
    let mut store = listed(&[("x", 5)]);
    store.begin_write(&id("x"));
    assert_eq!(owners(&store.observe(stored("x", 6))), "");
    assert_eq!(owners(&store.observe(stored("x", 7))), "");
    assert_eq!(owners(&store.end_with(stored("x", 6))), "a");
    assert_eq!(members(&store), "x=7");

    for end in [Store::end_refused as fn(&mut Store, &Id) -> Owners, |store, id| store.end_unknown(id, Some("s"))] {
        let mut store = listed(&[("x", 5)]);
        store.begin_write(&id("x"));
        assert_eq!(owners(&store.observe(stored("x", 6))), "");
        assert_eq!(owners(&end(&mut store, &id("x"))), "a");
    }
}

#[test]
fn an_object_that_was_created_is_a_member_before_the_watch_reports_it() {
    let mut store = listed(&[]);
    store.begin_write(&id("x"));
    store.end_with(stored("x", 6));
    assert_eq!(members(&store), "x=6");
}

#[test]
fn the_events_of_an_own_deletion_trigger_nothing() {
    let mut store = listed(&[("x", 5)]);
    store.begin_write(&id("x"));
    assert_eq!(owners(&store.end_deleted(&id("x"), "u")), "");
    assert_eq!(members(&store), "");
    // An update that the watch reports late, and the deletion.
    assert_eq!(owners(&store.observe(stored("x", 6))), "");
    assert_eq!(owners(&store.observe_deletion(stored("x", 7))), "");
    assert_eq!(members(&store), "");
    // Another client creates an object of that name.
    let other = seen(&object("x", "other", 8, Some("s"), "a"), &LABELS).unwrap();
    assert_eq!(owners(&store.observe(other)), "a");
    assert_eq!(members(&store), "x=8");
}

#[test]
fn a_recreated_object_survives_the_late_event_of_its_deletion() {
    let mut store = listed(&[("x", 5)]);
    store.begin_write(&id("x"));
    store.end_deleted(&id("x"), "u");
    store.begin_write(&id("x"));
    store.end_with(seen(&object("x", "new", 9, Some("s"), "a"), &LABELS).unwrap());
    assert_eq!(owners(&store.observe_deletion(stored("x", 7))), "");
    assert_eq!(members(&store), "x=9");
}

#[test]
fn an_object_that_disappears_before_the_answer_to_its_deletion_is_no_member() {
    // A finalizer held it for a moment: the answer shows it with a deletion timestamp.
    for deleted_at in [6, 7] {
        let mut store = listed(&[("x", 5)]);
        store.begin_write(&id("x"));
        assert_eq!(owners(&store.observe_deletion(stored("x", deleted_at))), "");
        assert_eq!(owners(&store.end_with(stored("x", 6))), "a");
        assert_eq!(members(&store), "");
    }
}

#[test]
fn a_deletion_by_another_client_triggers_a_reconcile() {
    let mut store = listed(&[("x", 5)]);
    assert_eq!(owners(&store.observe_deletion(stored("x", 6))), "a");
    assert_eq!(members(&store), "");
}

#[test]
fn the_owner_before_is_reconciled_too() {
    let mut store = listed(&[("x", 5)]);
    let other = seen(&object("x", "u", 6, Some("s"), "b"), &LABELS).unwrap();
    assert_eq!(owners(&store.observe(other)), "a b");
}

#[test]
fn an_owner_that_loses_an_object_to_another_one_is_reconciled() {
    let taken = || seen(&object("x", "u", 6, Some("s"), "b"), &LABELS).unwrap();
    for event_first in [false, true] {
        let mut store = listed(&[("x", 5)]);
        store.begin_write(&id("x"));
        if event_first {
            assert_eq!(owners(&store.observe(taken())), "");
        }
        assert_eq!(owners(&store.end_with(taken())), "a");
        assert_eq!(owners(&store.observe(taken())), "");
    }
}

#[test]
fn an_object_that_lost_its_label_by_an_own_write_is_no_member() {
    let mut store = listed(&[("x", 5)]);
    store.begin_write(&id("x"));
    store.end_with(without_label("x", 6));
    assert_eq!(members(&store), "");
    // The watch reports that it left the selection, with the state before.
    assert_eq!(owners(&store.observe_deletion(stored("x", 6))), "");
    // Later another client adds the label again.
    assert_eq!(owners(&store.observe(stored("x", 7))), "a");
    assert_eq!(members(&store), "x=7");
}

#[test]
fn what_a_list_does_not_contain_is_gone() {
    let mut store = listed(&[("x", 5), ("y", 5)]);
    store.begin_list();
    assert_eq!(owners(&store.observe(stored("x", 5))), "");
    assert_eq!(owners(&store.end_list()), "a");
    assert_eq!(members(&store), "x=5");
}

#[test]
fn what_was_written_during_a_list_is_unknown_unless_the_list_contains_it() {
    let mut store = listed(&[("x", 5), ("y", 5)]);
    store.begin_list();
    for (name, version) in [("x", 6), ("y", 7), ("z", 8)] {
        store.begin_write(&id(name));
        store.end_with(stored(name, version));
    }
    store.observe(stored("x", 5));
    store.observe(stored("y", 7));
    store.end_list();
    assert_eq!(members(&store), "x=? y=7 z=?");
    store.confirm(&id("x"), Some(stored("x", 6)));
    store.confirm(&id("z"), None);
    assert_eq!(members(&store), "x=6 y=7");
}

#[test]
fn an_object_whose_write_has_no_answer_is_unknown() {
    let mut store = listed(&[("x", 5)]);
    for name in ["x", "y"] {
        store.begin_write(&id(name));
        store.end_unknown(&id(name), Some("s"));
    }
    assert_eq!(members(&store), "x=? y=?");
    // A read that is older than what is known proves nothing.
    store.confirm(&id("x"), Some(stored("x", 4)));
    assert_eq!(members(&store), "x=? y=?");
    store.confirm(&id("y"), None);
    assert_eq!(owners(&store.observe(stored("x", 6))), "a");
    assert_eq!(members(&store), "x=6");
    // A known object needs no confirmation.
    store.confirm(&id("x"), None);
    assert_eq!(members(&store), "x=6");
}

#[test]
fn what_does_not_fit_in_memory_is_unknown() {
    let seen = stored("x", 5);
    let size = seen.json.len() + seen.claims.len();
    let memory = Memory::new(2 * size);
    let mut store = Store::new(memory.clone());
    for name in ["x", "y", "z"] {
        store.observe(stored(name, 5));
    }
    assert_eq!(members(&store), "x=5 y=5 z=?");
    store.observe_deletion(stored("x", 6));
    store.observe(stored("z", 6));
    assert_eq!(members(&store), "y=5 z=6");
    drop(store);
    assert!(memory.take(2 * size), "a store gives its memory back");
}

#[test]
fn versions_that_cannot_be_compared_are_replaced_by_what_the_watch_reports() {
    let of = |version: &str| {
        let mut seen = stored("x", 1);
        version.clone_into(&mut seen.version);
        seen
    };
    let mut store = store();
    store.observe(of("b"));
    assert_eq!(owners(&store.observe(of("a"))), "a");
    assert_eq!(owners(&store.observe(of("a"))), "");
    assert_eq!(owners(&store.observe_deletion(of("c"))), "a");
    assert_eq!(members(&store), "");
}

#[test]
fn members_are_those_of_one_namespace() {
    let mut store = store();
    for namespace in ["n", "m"] {
        let mut object = object("x", "u", 1, Some("s"), "a");
        object["metadata"]["namespace"] = json!(namespace);
        store.observe(seen(&object, &LABELS).unwrap());
    }
    assert_eq!(whole(&store).objects.len(), 2);
    assert_eq!(store.members("s", Some("n"), &|_, _| true).objects.len(), 1);
    assert_eq!(store.members("other", None, &|_, _| true), Members::default());
}

#[test]
fn objects_that_only_carry_the_label_are_not_read() {
    let mut store = Store::new(Memory::new(1 << 30));
    for number in 0..200 {
        let mut other = object(&format!("x{number}"), "u", 1, Some("s"), "a");
        other["metadata"]["annotations"] = json!({"chandler.dev/seal": "forged", "other": "o"});
        other["data"] = json!({"text": "y".repeat(10_000)});
        store.observe(seen(&other, &LABELS).unwrap());
    }
    store.observe(stored("held", 1));
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let found = store.members("s", None, &|id, claims| {
        if let Some(claims) = claims {
            asked.fetch_add(1, Relaxed);
            assert_eq!(claims.get("data"), None);
            assert_eq!(claims["metadata"]["annotations"], json!({"chandler.dev/seal": "forged"}));
            return id.name == "x7";
        }
        id.name == "held"
    });
    let names: Vec<&str> = found.objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!((names, found.unknown.len(), asked.into_inner()), (vec!["held", "x7"], 0, 200));
    assert_eq!(found.objects[1]["data"]["text"].as_str().unwrap().len(), 10_000, "a wanted object is whole");
}

/// What happens to one object in the cluster, or to what the store learns about it.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Another client writes the object, or creates it.
    Foreign,
    /// Another client deletes it.
    ForeignDeletion,
    /// This process writes or creates it.
    Own {
        /// Whether the answer arrives.
        answered: bool,
        /// Whether another client deletes the object before the answer arrives.
        deleted: bool,
    },
    /// This process deletes it.
    OwnDeletion(bool),
    /// The watch delivers its next event.
    Deliver,
    /// The watch is interrupted, and lists again.
    Relist,
}

/// A cluster with one object, and the events that the watch has yet to deliver.
#[derive(Default)]
struct World {
    clock: u64,
    object: Option<Seen>,
    events: std::collections::VecDeque<(Seen, bool)>,
}

impl World {
    fn write(&mut self) -> Seen {
        self.clock += 1;
        let uid = self.object.as_ref().map_or_else(|| format!("u{}", self.clock), |object| object.uid.clone());
        let written = seen(&object("x", &uid, self.clock, Some("s"), "a"), &LABELS).unwrap();
        self.object = Some(written.clone());
        self.events.push_back((written.clone(), false));
        written
    }

    fn delete(&mut self) -> Option<String> {
        let mut deleted = self.object.take()?;
        self.clock += 1;
        deleted.version = self.clock.to_string();
        let uid = deleted.uid.clone();
        self.events.push_back((deleted, true));
        Some(uid)
    }

    fn deliver(&mut self, store: &mut Store) -> bool {
        let Some((seen, deleted)) = self.events.pop_front() else { return false };
        let owners = if deleted { store.observe_deletion(seen) } else { store.observe(seen) };
        !owners.is_empty()
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Foreign),
        1 => Just(Step::ForeignDeletion),
        3 => any::<(bool, bool)>().prop_map(|(answered, deleted)| Step::Own { answered, deleted }),
        1 => any::<bool>().prop_map(Step::OwnDeletion),
        4 => Just(Step::Deliver),
        1 => Just(Step::Relist),
    ]
}

proptest! {
    /// However late the events of the watch are, and wherever it is interrupted: the store never shows a state from before the
    /// last own write; a change by another client triggers a reconcile or makes the state unknown; and in the end the store holds
    /// what the cluster holds.
    #[test]
    fn the_store_converges_and_never_goes_back_before_an_own_write(
        steps in prop::collection::vec((step(), any::<bool>()), 0..40),
    ) {
        let (mut world, mut store) = (World::default(), store());
        store.begin_list();
        store.end_list();
        let mut written = 0;
        for (step, event_first) in steps {
            match step {
                Step::Foreign => drop(world.write()),
                Step::ForeignDeletion => drop(world.delete()),
                Step::Own { answered, deleted } => {
                    store.begin_write(&id("x"));
                    let seen = world.write();
                    written = if answered { world.clock } else { written };
                    if deleted {
                        world.delete();
                    }
                    if event_first {
                        while world.deliver(&mut store) {}
                    }
                    if answered {
                        store.end_with(seen);
                    } else {
                        store.end_unknown(&id("x"), Some("s"));
                    }
                }
                Step::OwnDeletion(answered) => {
                    store.begin_write(&id("x"));
                    let deleted = world.delete();
                    match deleted {
                        Some(uid) if answered => {
                            store.end_deleted(&id("x"), &uid);
                            prop_assert!(whole(&store).objects.is_empty());
                        }
                        _ => drop(store.end_unknown(&id("x"), Some("s"))),
                    }
                }
                Step::Deliver => drop(world.deliver(&mut store)),
                Step::Relist => {
                    world.events.clear();
                    store.begin_list();
                    if let Some(object) = &world.object {
                        store.observe(object.clone());
                    }
                    store.end_list();
                }
            }
            for object in whole(&store).objects {
                let version: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
                prop_assert!(version >= written, "{version} is older than the own write {written}");
            }
        }
        while !world.events.is_empty() {
            world.deliver(&mut store);
        }
        let Members { objects, unknown } = whole(&store);
        let stored = world.object.as_ref().map(|object| object.version.clone());
        let found: Vec<&str> =
            objects.iter().map(|object| object["metadata"]["resourceVersion"].as_str().unwrap()).collect();
        if unknown.is_empty() {
            prop_assert_eq!(found, stored.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}
