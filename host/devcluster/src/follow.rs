//! State that is derived from tables of the store, and follows each change of them.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;

use crate::store::{Change, Compacted, Listing, Scope, Store, Watch};

/// A table, and how a change of it changes what is derived.
pub struct Table<T> {
    /// The name in the store.
    pub name: &'static str,
    /// Takes the place of all that was derived from it before.
    pub set: fn(&mut T, Vec<&Value>),
    /// Takes an object that is new or has changed.
    pub put: fn(&mut T, &Value),
    /// Takes leave of an object.
    pub remove: fn(&mut T, &Value),
}

/// What is derived from tables of a store. A write is seen by every reader after it: each asks whether a table has changed since the
/// last one, which costs next to nothing. A table is read anew only when the log no longer reaches back that far.
pub struct Followed<T: 'static> {
    tables: &'static [Table<T>],
    state: Mutex<Option<State<T>>>,
}

impl<T> fmt::Debug for Followed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Followed").finish_non_exhaustive()
    }
}

struct State<T> {
    derived: Arc<T>,
    /// In the order of the tables.
    watches: Vec<Watch>,
}

impl<T: Clone + Default> Followed<T> {
    /// Nothing is read yet.
    pub fn new(tables: &'static [Table<T>]) -> Self {
        Self { tables, state: Mutex::new(None) }
    }

    /// What the tables say now. Always call this with the same store.
    pub fn current(&self, store: &Store) -> Arc<T> {
        let mut state = self.state.lock();
        let state = state.get_or_insert_with(|| State::read(store, self.tables));
        for (watch, table) in state.watches.iter_mut().zip(self.tables) {
            if watch.is_behind() && follow(watch, &mut state.derived, table).is_err() {
                *watch = read(store, Arc::make_mut(&mut state.derived), table);
            }
        }
        Arc::clone(&state.derived)
    }
}

impl<T: Clone + Default> State<T> {
    fn read(store: &Store, tables: &[Table<T>]) -> Self {
        let mut derived = T::default();
        let watches = tables.iter().map(|table| read(store, &mut derived, table)).collect();
        Self { derived: Arc::new(derived), watches }
    }
}

fn read<T>(store: &Store, derived: &mut T, table: &Table<T>) -> Watch {
    let scope = Scope { resource: Some(table.name.into()), namespace: None };
    let (Listing { objects, .. }, watch) = store.list_and_watch(scope);
    let objects: Vec<_> = objects.iter().map(|(_, object)| object.peek()).collect();
    (table.set)(derived, objects.iter().map(AsRef::as_ref).collect());
    watch
}

/// Takes what has happened to a table since it was last read.
fn follow<T: Clone>(watch: &mut Watch, derived: &mut Arc<T>, table: &Table<T>) -> Result<(), Compacted> {
    loop {
        let events = watch.ready()?.events;
        if events.is_empty() {
            return Ok(());
        }
        let derived = Arc::make_mut(derived);
        for event in events {
            let change = if event.change == Change::Deleted { table.remove } else { table.put };
            change(derived, event.object.peek().as_ref());
        }
    }
}
