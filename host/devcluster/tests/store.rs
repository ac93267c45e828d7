//! Random interleavings of writes, reads, compactions and restarts, against a model that keeps everything.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chandler_devcluster::store::{
    Change, DataDirectory, Event, Expected, Key, Limits, Listing, Object, PageRequest, Scope, Store, Watch,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

#[derive(Clone, Debug)]
enum Step {
    Put {
        place: (u8, u8),
        data: u8,
    },
    Delete {
        place: (u8, u8),
    },
    /// To a revision this many before the current one.
    Compact(u64),
    Watch,
    /// Reads the pending events of a watch.
    Read(usize),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || (0..3_u8, 0..4_u8);
    let step = prop_oneof![
        8 => (place(), any::<u8>()).prop_map(|(place, data)| Step::Put { place, data }),
        4 => place().prop_map(|place| Step::Delete { place }),
        1 => (0..20_u64).prop_map(Step::Compact),
        1 => Just(Step::Watch),
        2 => (0..5_usize).prop_map(Step::Read),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 0..80)
}

type State = BTreeMap<(String, String), Value>;

fn resource() -> Arc<str> {
    "configmaps".into()
}

fn scope() -> Scope {
    Scope { resource: Some(resource()), namespace: None }
}

fn key((namespace, name): (u8, u8)) -> Key {
    Key::new(resource(), format!("namespace-{namespace}"), format!("name-{name}"))
}

fn state<'a>(objects: impl IntoIterator<Item = &'a (Key, Arc<Object>)>) -> State {
    objects
        .into_iter()
        .map(|(key, object)| ((key.namespace.clone(), key.name.clone()), object.peek().into_owned()))
        .collect()
}

/// A watcher and the state that it has replayed.
struct Watcher {
    watch: Watch,
    belief: State,
}

impl Watcher {
    fn new(store: &Store) -> Self {
        let (Listing { objects, .. }, watch) = store.list_and_watch(scope());
        Self { watch, belief: state(&objects) }
    }

    /// Applies events; `false` if the history is compacted.
    fn read(&mut self) -> Result<bool, TestCaseError> {
        let Ok(batch) = self.watch.ready() else { return Ok(false) };
        for event in batch.events {
            apply(&mut self.belief, &event)?;
        }
        Ok(true)
    }
}

fn apply(state: &mut State, event: &Event) -> Result<(), TestCaseError> {
    let place = (event.key.namespace.clone(), event.key.name.clone());
    let previous = event.previous.as_ref().map(|object| object.peek().into_owned());
    prop_assert_eq!(state.get(&place), previous.as_ref());
    match event.change {
        Change::Deleted => {
            prop_assert!(state.remove(&place).is_some());
        }
        Change::Added | Change::Modified => {
            let before = state.insert(place, event.object.peek().into_owned());
            prop_assert_eq!(before.is_none(), event.change == Change::Added);
        }
    }
    Ok(())
}

/// A store and its full history.
struct Harness {
    directory: Option<TempDir>,
    store: Store,
    limits: Limits,
    /// The state at each revision.
    past: BTreeMap<u64, State>,
    compacted: u64,
    given: BTreeSet<u64>,
}

impl Harness {
    fn new(kept: bool, limits: Limits) -> Self {
        let directory = kept.then(|| tempfile::tempdir().expect("a temporary directory"));
        let store = open(directory.as_ref(), limits);
        let past = BTreeMap::from([(store.revision(), State::new())]);
        Self { directory, store, limits, past, compacted: 0, given: BTreeSet::new() }
    }

    fn now(&self) -> State {
        self.past.values().next_back().cloned().unwrap_or_default()
    }

    fn note(&mut self, object: &Object, change: impl FnOnce(&mut State)) -> Result<(), TestCaseError> {
        let revision = object.revision();
        prop_assert!(self.given.last().is_none_or(|last| revision > *last), "revision {revision} came again");
        self.given.insert(revision);
        let mut now = self.now();
        change(&mut now);
        self.past.insert(revision, now);
        Ok(())
    }

    fn put(&mut self, place: (u8, u8), data: u8) -> Result<(), TestCaseError> {
        let key = key(place);
        let expected = self.store.get(&key).map_or(Expected::Absent, |object| Expected::Revision(object.revision()));
        let object = self.store.put(key.clone(), expected, json!({"kind": "A", "data": data})).expect("as expected");
        self.note(&object, |state| {
            state.insert((key.namespace, key.name), object.value().clone());
        })
    }

    fn delete(&mut self, place: (u8, u8)) -> Result<(), TestCaseError> {
        let key = key(place);
        let Some(object) = self.store.get(&key) else { return Ok(()) };
        let object = self.store.delete(&key, object.revision(), None).expect("as expected");
        self.note(&object, |state| {
            state.remove(&(key.namespace, key.name));
        })
    }

    fn compact(&mut self, back: u64) {
        let revision = self.store.revision().saturating_sub(back);
        self.store.compact(revision);
        self.compacted = self.compacted.max(revision);
    }

    fn restart(&mut self) {
        if self.directory.is_some() {
            let before = self.store.revision();
            self.store.close();
            self.store = open(self.directory.as_ref(), self.limits);
            assert_eq!(self.store.revision(), before);
            self.compacted = before;
        }
    }

    /// Every revision shows the state of its write, or is refused because it was compacted; the pages of each are
    /// one snapshot; the events after each lead to the current state.
    fn check(&self) -> Result<(), TestCaseError> {
        let now = self.now();
        self.flush();
        for (revision, expected) in &self.past {
            let listing = self.store.list(&scope(), Some(*revision));
            prop_assert_eq!(listing.is_err(), *revision < self.compacted, "revision {}", revision);
            let Ok(listing) = listing else { continue };
            let mut replayed = state(&listing.objects);
            prop_assert_eq!(&replayed, expected);
            prop_assert_eq!(&self.pages(*revision), expected);
            let mut watch = self.store.watch(scope(), *revision).expect("it can be listed at");
            for event in watch.ready().expect("it can be listed at").events {
                apply(&mut replayed, &event)?;
            }
            prop_assert_eq!(&replayed, &now);
        }
        Ok(())
    }

    fn flush(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(self.store.durable(self.store.revision())).expect("the disk works");
    }

    fn pages(&self, revision: u64) -> State {
        let mut found = State::new();
        let mut after: Option<(String, String)> = None;
        loop {
            let place = after.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str()));
            let request = PageRequest { revision: Some(revision), after: place, limit: Some(2) };
            let page = self.store.page(&resource(), None, request).expect("it can be listed at");
            found.extend(state(&page.objects));
            let Some((last, _)) = page.objects.last().filter(|_| page.remaining > 0) else { return found };
            after = Some((last.namespace.clone(), last.name.clone()));
        }
    }
}

fn open(directory: Option<&TempDir>, limits: Limits) -> Store {
    directory.map_or_else(
        || Store::new(limits),
        |directory| {
            DataDirectory::open(directory.path()).and_then(|directory| directory.store(limits)).expect("it opens")
        },
    )
}

fn run(kept: bool, limits: Limits, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut harness = Harness::new(kept, limits);
    let mut watchers: Vec<Watcher> = Vec::new();
    for step in steps {
        match step {
            Step::Put { place, data } => harness.put(place, data)?,
            Step::Delete { place } => harness.delete(place)?,
            Step::Compact(back) => harness.compact(back),
            Step::Watch => watchers.push(Watcher::new(&harness.store)),
            Step::Read(index) => {
                if let Some(watcher) = watchers.get_mut(index)
                    && !watcher.read()?
                {
                    watchers.swap_remove(index);
                }
            }
            Step::Restart if kept => {
                harness.restart();
                watchers.clear();
            }
            Step::Restart => {}
        }
    }
    harness.check()?;
    let now = harness.now();
    for mut watcher in watchers {
        if watcher.read()? {
            prop_assert_eq!(&watcher.belief, &now);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn in_memory_the_past_stays_as_it_was(steps in steps()) {
        run(false, Limits::default(), steps)?;
    }

    #[test]
    fn dropping_parsed_forms_changes_nothing(steps in steps()) {
        run(false, Limits { parsed_bytes: 0, ..Limits::default() }, steps)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn on_disk_the_past_stays_as_it_was(steps in steps()) {
        run(true, Limits::default(), steps)?;
    }
}

/// Writers, readers and compaction at the same time: every watcher reaches the current state.
#[test]
fn watchers_of_a_busy_store_reach_the_current_state() {
    let store = Store::new(Limits { parsed_bytes: 10_000, ..Limits::default() });
    std::thread::scope(|threads| {
        for writer in 0..4_u8 {
            let store = &store;
            threads.spawn(move || {
                for round in 0..200_u32 {
                    let key = key((writer % 2, u8::try_from(round % 5).expect("small")));
                    let current = store.get(&key);
                    // Other writers may interfere; preconditions then fail as expected.
                    let _ = match current {
                        Some(object) if round % 7 == 0 => store.delete(&key, object.revision(), None),
                        Some(object) => store.put(key, Expected::Revision(object.revision()), json!({"round": round})),
                        None => store.put(key, Expected::Absent, json!({"round": round})),
                    };
                }
            });
        }
        for _ in 0..3 {
            let store = &store;
            threads.spawn(move || {
                let mut watcher = Watcher::new(store);
                while store.revision() < 300 {
                    assert!(watcher.read().expect("events fit what was believed"));
                }
                while watcher.belief != state(&store.list_now(&scope()).objects) {
                    assert!(watcher.read().expect("events fit what was believed"));
                }
            });
        }
    });
}
