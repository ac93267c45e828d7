//! The limit on everything in the cache, and the room that is reserved before anything is written.
//!
//! What counts is on the disk: complete trees, the records about them, and what is being written. A file counts as at least [`FILE`] bytes, so
//! that the limit bounds the number of files, too. Nothing is reserved for what a server announces, which it may not keep: room is taken piece by
//! piece, each before it is written.

use std::{
    collections::HashMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_core::Digest;
use chandler_turns::Requester;
use parking_lot::{Mutex, MutexGuard};

use super::{
    RECORDS, Store,
    collect::Candidate,
    shares::{Charges, Held},
};
use crate::{CacheFull, ContentError, StoreError, blocking};

/// What a file or a directory counts at least. File systems are made with an inode for so many bytes (mke2fs.conf, "inode_ratio").
pub(crate) const FILE: u64 = 16 << 10;
/// The files and directories of a tree: itself, the index and the pack.
const FILES_OF_TREE: u64 = 3;
/// The unit in which file systems allocate.
const BLOCK: u64 = 4096;
/// How much room is taken at once, so that few writes need the lock.
const STEP: u64 = 1 << 20;
/// How much room is made at once, so that few writes list the cache.
const MADE: u64 = 8 << 20;
/// The part of the limit that records may have. Trees and what is written have the rest.
const RECORDS_PART: u64 = 16;
/// The part of the limit that is for administrators alone: Catalogs and the components of ProvisionerClasses.
const OWN_PART: u64 = 8;
/// How long what was counted is believed before anything is refused: other processes may share the directory.
const BELIEVED: Duration = Duration::from_secs(30);

/// The accounts that use content, by its digest. [`Requester::controller`] stands for what administrators create.
pub type Users = HashMap<Digest, Vec<Requester>>;

type ListUsers = dyn Fn() -> Option<Users> + Send + Sync;

/// What the cache holds, and what is reserved.
pub(super) struct Ledger {
    state: Mutex<State>,
    /// Held while room is made, so that two that need room do not both remove content.
    making: Mutex<()>,
}

struct State {
    /// The bytes of everything. `u64::MAX` stands for none.
    limit: u64,
    users: Option<Arc<ListUsers>>,
    trees: HashMap<Digest, u64>,
    writing: HashMap<u64, Writing>,
    /// The bytes of all trees, and of what is reserved for writing.
    content: u64,
    /// The bytes of all records.
    records: u64,
    next: u64,
    counted: Option<Instant>,
}

/// Something that is being written.
struct Writing {
    requester: Requester,
    /// What is reserved.
    reserved: u64,
    /// What of it is used.
    used: u64,
    /// Whether it must end, since others need the room.
    gives_way: bool,
}

/// What became of a request for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    Granted,
    /// There is not enough.
    Short,
    /// The write must end.
    GivesWay,
}

impl Default for Ledger {
    fn default() -> Self {
        let state = State {
            limit: u64::MAX,
            users: None,
            trees: HashMap::new(),
            writing: HashMap::new(),
            content: 0,
            records: 0,
            next: 0,
            counted: None,
        };
        Self { state: Mutex::new(state), making: Mutex::default() }
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Ledger")
            .field("limit", &state.limit)
            .field("content", &state.content)
            .field("records", &state.records)
            .finish_non_exhaustive()
    }
}

impl State {
    /// The most bytes that trees and what is written may have when something is written for this requester.
    fn most(&self, requester: &Requester) -> u64 {
        let content = self.limit - self.limit / RECORDS_PART;
        if requester.namespace().is_empty() { content } else { content - self.limit / OWN_PART }
    }

    /// Takes room for something that is being written: `more` at once, if there is enough.
    fn grant(&mut self, id: u64, bytes: u64, more: u64) -> Grant {
        let Some(writing) = self.writing.get(&id) else { return Grant::GivesWay };
        if writing.gives_way {
            return Grant::GivesWay;
        }
        let used = writing.used.saturating_add(bytes);
        let missing = used.saturating_sub(writing.reserved);
        let free = self.most(&writing.requester).saturating_sub(self.content);
        let taken = match missing {
            0 => 0,
            missing if missing.max(more) <= free => missing.max(more),
            missing if missing <= free => missing,
            _ => return Grant::Short,
        };
        self.content = self.content.saturating_add(taken);
        if let Some(writing) = self.writing.get_mut(&id) {
            writing.reserved = writing.reserved.saturating_add(taken);
            writing.used = used;
        }
        Grant::Granted
    }

    fn step(&self) -> u64 {
        STEP.min(self.limit / 64)
    }

    fn set_tree(&mut self, digest: Digest, bytes: u64) {
        let before = self.trees.insert(digest, bytes).unwrap_or_default();
        self.content = self.content.saturating_sub(before).saturating_add(bytes);
    }

    fn remove_tree(&mut self, digest: &Digest) {
        let bytes = self.trees.remove(digest).unwrap_or_default();
        self.content = self.content.saturating_sub(bytes);
    }
}

impl Ledger {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn grant(&self, id: u64, bytes: u64) -> Grant {
        let mut state = self.state();
        let step = state.step();
        state.grant(id, bytes, step)
    }

    /// Notes a record that is written, or removed, with so many bytes.
    pub(super) fn records(&self, change: impl FnOnce(u64) -> u64) {
        let mut state = self.state();
        state.records = change(state.records);
    }

    /// Whether another record of so many bytes exceeds the part of records.
    fn lacks_records(&self, bytes: u64) -> bool {
        let state = self.state();
        state.records.saturating_add(bytes) > state.limit / RECORDS_PART
    }

    /// Notes that a tree was removed.
    pub(super) fn removed(&self, digest: &Digest) {
        self.state().remove_tree(digest);
    }

    /// Notes that a tree is complete, which was counted as written until now.
    fn completed(&self, id: u64, digest: Digest, bytes: u64) {
        let mut state = self.state();
        state.set_tree(digest, bytes);
        if let Some(writing) = state.writing.get_mut(&id) {
            let given = bytes.min(writing.used);
            writing.used -= given;
            writing.reserved = writing.reserved.saturating_sub(given);
            state.content = state.content.saturating_sub(given);
        }
    }

    fn release(&self, id: u64) {
        let mut state = self.state();
        if let Some(writing) = state.writing.remove(&id) {
            state.content = state.content.saturating_sub(writing.reserved);
        }
    }
}

/// Room for something that is being written. Clones share it. It is free again when the last one is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Reserved>);

#[derive(Debug)]
struct Reserved {
    store: Store,
    id: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.store.inner.ledger.release(self.id);
    }
}

impl Room {
    /// Takes room for so many bytes before they are written. May remove other content, which blocks on the disk.
    ///
    /// # Errors
    /// There is not enough, and no other content gives way; or this gave way to others. The source of the error is a [`CacheFull`].
    pub(crate) fn take(&self, bytes: u64) -> Result<(), StoreError> {
        let Reserved { store, id } = self.0.as_ref();
        match store.inner.ledger.grant(*id, bytes) {
            Grant::Granted => Ok(()),
            Grant::GivesWay => Err(store.full(CacheFull::GaveWay)),
            Grant::Short => store.make_room(*id, bytes),
        }
    }

    /// [`Room::take`], without blocking the caller's thread.
    pub(crate) async fn take_for(&self, bytes: u64) -> Result<(), ContentError> {
        if self.0.store.inner.ledger.grant(self.0.id, bytes) == Grant::Granted {
            return Ok(());
        }
        let room = self.clone();
        blocking::run(move || Ok(room.take(bytes)?)).await
    }

    /// Notes that a tree is complete, which was counted as written until now.
    pub(super) fn completed(&self, digest: &Digest) {
        let Reserved { store, id } = self.0.as_ref();
        let tree = Candidate::of(digest.clone(), &store.tree_path(digest));
        store.inner.ledger.completed(*id, tree.digest, tree.counted);
    }
}

impl Store {
    /// Limits what all processes with this directory have in it, in bytes of the disk; what is there already is counted. Content that nothing uses
    /// is removed where room is needed. If that is not enough, content of the tenants with the most gives way to tenants with less. Blocks on the
    /// disk.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn limit(&self, bytes: u64) -> Result<(), StoreError> {
        self.inner.ledger.state().limit = bytes;
        self.recount()
    }

    /// Finds out by this what uses content. Until then, and while it returns `None`, no content is removed to make room.
    pub fn users_from(&self, users: impl Fn() -> Option<Users> + Send + Sync + 'static) {
        self.inner.ledger.state().users = Some(Arc::new(users));
    }

    /// The bytes of everything in the cache, and of what is being written, as they count for the limit.
    pub fn taken(&self) -> u64 {
        let state = self.inner.ledger.state();
        state.content.saturating_add(state.records)
    }

    /// No room yet, for something that is written on behalf of the requester of this store.
    pub(crate) fn room(&self) -> Room {
        let mut state = self.inner.ledger.state();
        let id = state.next;
        state.next += 1;
        let requester = self.requester.clone();
        state.writing.insert(id, Writing { requester, reserved: 0, used: 0, gives_way: false });
        Room(Arc::new(Reserved { store: self.clone(), id }))
    }

    fn full(&self, full: fn(u64) -> CacheFull) -> StoreError {
        let full = full(self.inner.ledger.state().limit);
        StoreError::at("write to", self.work())(io::Error::new(io::ErrorKind::StorageFull, full))
    }

    /// Takes room for something that is being written, and removes other content for that.
    fn make_room(&self, id: u64, bytes: u64) -> Result<(), StoreError> {
        let ledger = &self.inner.ledger;
        let _one_at_a_time = ledger.making.lock();
        match ledger.grant(id, bytes) {
            Grant::Granted => return Ok(()),
            Grant::GivesWay => return Err(self.full(CacheFull::GaveWay)),
            Grant::Short => {}
        }
        let (is_old, users) = {
            let state = ledger.state();
            (state.counted.is_none_or(|at| at.elapsed() > BELIEVED), state.users.clone())
        };
        if is_old {
            self.recount()?;
        }
        // Not under the lock: the users are found in other places, which have locks of their own.
        if let Some(users) = users.and_then(|users| users()) {
            self.remove_for(id, bytes, users)?;
        }
        match ledger.grant(id, bytes) {
            Grant::Granted => Ok(()),
            Grant::Short => Err(self.full(CacheFull::InUse)),
            Grant::GivesWay => Err(self.full(CacheFull::GaveWay)),
        }
    }

    /// Removes content that gives way, until there is enough room. If there is too little, others that write for tenants with more must end, and
    /// the next attempt has their room.
    fn remove_for(&self, id: u64, bytes: u64, mut users: Users) -> Result<(), StoreError> {
        let ledger = &self.inner.ledger;
        let (requester, others, target) = {
            let state = ledger.state();
            let Some(writing) = state.writing.get(&id) else { return Ok(()) };
            let others =
                state.writing.iter().map(|(other, writing)| (*other, writing.requester.clone(), writing.reserved));
            let wanted = bytes.saturating_add(MADE.min(state.limit / 32));
            (
                writing.requester.clone(),
                others.collect::<Vec<_>>(),
                state.most(&writing.requester).saturating_sub(wanted),
            )
        };
        let mut held: Vec<Held> = self
            .candidates()?
            .into_iter()
            .map(|Candidate { digest, counted, used, .. }| Held {
                users: users.remove(&digest).unwrap_or_default(),
                bytes: counted,
                digest,
                used,
            })
            .collect();
        let mut charges = Charges::of(&held, others.iter().map(|(_, requester, reserved)| (requester, *reserved)));
        charges.sort(&mut held);
        let (mut removed, mut freed) = (0_u64, 0_u64);
        for content in &held {
            if ledger.state().content <= target {
                break;
            }
            if charges.gives_way(&content.users, content.bytes, &requester, bytes)
                && self.remove_unused(&content.digest)?
            {
                charges.removed(content);
                (removed, freed) = (removed + 1, freed.saturating_add(content.bytes));
            }
        }
        if removed > 0 {
            self.forget_images()?;
            tracing::info!(
                removed,
                freed_bytes = freed,
                namespace = requester.namespace(),
                "content gave way to other content"
            );
        }
        let mut state = ledger.state();
        let most = state.most(&requester);
        let mut expected = state.content.saturating_add(bytes);
        for (other, of, reserved) in others {
            if expected <= most {
                break;
            }
            // What it has written is lost, so that the smaller one completes, and cannot be made to end by the larger one.
            if other != id && reserved > 0 && charges.gives_way(std::slice::from_ref(&of), 0, &requester, bytes) {
                if let Some(writing) = state.writing.get_mut(&other) {
                    writing.gives_way = true;
                }
                expected = expected.saturating_sub(reserved);
            }
        }
        Ok(())
    }

    /// Makes sure that there is room for a record of so many bytes: the oldest records of images and archives are removed for it.
    pub(super) fn room_for_record(&self, bytes: u64) -> Result<(), StoreError> {
        let ledger = &self.inner.ledger;
        if !ledger.lacks_records(bytes) {
            return Ok(());
        }
        let _one_at_a_time = ledger.making.lock();
        if !ledger.lacks_records(bytes) {
            return Ok(());
        }
        self.recount()?;
        let mut oldest = Vec::new();
        for name in ["images", "archives"] {
            for (path, metadata) in files_in(&self.inner.root.join(name))? {
                oldest.push((metadata.modified().ok(), path, on_disk(metadata.len())));
            }
        }
        oldest.sort();
        // A part of them, so that few writes list them.
        let most = oldest.len().div_ceil(4);
        for (_, path, bytes) in oldest.into_iter().take(most) {
            match fs::remove_file(&path) {
                Ok(()) => ledger.records(|records| records.saturating_sub(bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::at("remove", path)(error)),
            }
        }
        if ledger.lacks_records(bytes) { Err(self.full(CacheFull::InUse)) } else { Ok(()) }
    }

    /// Counts again what is on the disk. Content that is completed or removed meanwhile counts as it is then.
    pub(super) fn recount(&self) -> Result<(), StoreError> {
        let found: HashMap<Digest, u64> =
            self.candidates()?.into_iter().map(|candidate| (candidate.digest, candidate.counted)).collect();
        let mut records = 0_u64;
        for name in RECORDS {
            for (_, metadata) in files_in(&self.inner.root.join(name))? {
                records = records.saturating_add(on_disk(metadata.len()));
            }
        }
        let mut state = self.inner.ledger.state();
        let gone: Vec<Digest> =
            state.trees.keys().filter(|digest| !found.contains_key(*digest) && !self.has(digest)).cloned().collect();
        for digest in gone {
            state.remove_tree(&digest);
        }
        for (digest, bytes) in found {
            if state.trees.contains_key(&digest) || self.has(&digest) {
                state.set_tree(digest, bytes);
            }
        }
        state.records = records;
        state.counted = Some(Instant::now());
        Ok(())
    }
}

/// The regular files in a directory.
fn files_in(directory: &Path) -> Result<Vec<(PathBuf, fs::Metadata)>, StoreError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(StoreError::at("list", directory))? {
        let entry = entry.map_err(StoreError::at("list", directory))?;
        // One that was removed meanwhile does not count.
        if let Ok(metadata) = entry.metadata()
            && metadata.is_file()
        {
            files.push((entry.path(), metadata));
        }
    }
    Ok(files)
}

/// What a file of so many bytes counts.
pub(super) fn on_disk(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX).max(FILE)
}

/// What a tree with an index and a pack of these lengths counts.
pub(super) fn counted(lengths: [u64; 2]) -> u64 {
    lengths.into_iter().map(on_disk).fold(FILE, u64::saturating_add)
}

/// What a workspace counts before anything is written to it: its directory, and the files of a tree.
pub(super) const WORKSPACE: u64 = FILE * (FILES_OF_TREE + 1);

#[cfg(test)]
mod tests {
    use super::*;

    fn state(limit: u64) -> State {
        State { limit, ..Ledger::default().state.into_inner() }
    }

    fn writing(state: &mut State, namespace: &str) -> u64 {
        let id = state.next;
        state.next += 1;
        let requester = Requester::new(namespace, "");
        state.writing.insert(id, Writing { requester, reserved: 0, used: 0, gives_way: false });
        id
    }

    #[test]
    fn tenants_leave_a_part_to_administrators_and_what_is_reserved_counts() {
        let mut state = state(1600);
        let (tenant, other, own) = (writing(&mut state, "a"), writing(&mut state, "b"), writing(&mut state, ""));
        // 1600, less a sixteenth for records and an eighth.
        assert_eq!(state.grant(tenant, 1000, 0), Grant::Granted);
        assert_eq!(state.grant(other, 301, 0), Grant::Short);
        assert_eq!(state.grant(other, 200, 250), Grant::Granted);
        assert_eq!((state.content, state.writing[&other].reserved), (1250, 250));
        assert_eq!(state.grant(other, 50, 0), Grant::Granted, "reserved before");
        assert_eq!(state.content, 1250);
        assert_eq!((state.grant(own, 251, 0), state.grant(own, 250, 9)), (Grant::Short, Grant::Granted));
        assert_eq!(state.content, 1500);
    }

    #[test]
    fn small_files_count_like_the_space_that_has_an_inode() {
        assert_eq!([0, 1, FILE, FILE + 1].map(on_disk), [FILE, FILE, FILE, FILE + BLOCK]);
        assert_eq!(on_disk(u64::MAX), u64::MAX);
    }
}
