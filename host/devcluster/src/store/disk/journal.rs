//! The queue of writes and the thread that writes them to disk.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::watch;

use super::Disk;
use crate::store::{Failure, state::Committed};

/// The maximum number of pending writes before writers block. Bounds the memory of the queue, and the unacknowledged writes that
/// a crash can lose.
pub(super) const PENDING: usize = 4096;

/// How far the disk has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// All writes up to this revision are on disk.
    pub(crate) durable: u64,
    /// Why no more writes are accepted.
    pub(crate) failure: Option<Arc<Failure>>,
}

/// Brings writes to disk in the background. Dropping it waits until the rest is written.
#[derive(Debug)]
pub(crate) struct Journal {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    /// There is something to do.
    work: Condvar,
    /// There is room again.
    room: Condvar,
    /// [`Progress::durable`], to be read at no cost.
    durable: AtomicU64,
    progress: watch::Sender<Progress>,
}

#[derive(Debug, Default)]
struct Queue {
    pending: VecDeque<Committed>,
    /// The thread should end when it has written all pending changes.
    closing: bool,
    /// Writing has stopped.
    ended: bool,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Waits for writes. Returns an empty list if the thread should end.
    fn next(&self) -> Vec<Committed> {
        let waits = |queue: &mut Queue| queue.pending.is_empty() && !queue.closing;
        let mut queue = self.queue();
        self.work.wait_while(&mut queue, waits);
        self.room.notify_all();
        queue.pending.drain(..).collect()
    }

    fn run(&self, mut disk: Box<dyn Disk>) {
        let path = disk.path().to_owned();
        let result = loop {
            let changes = self.next();
            let Some(last) = changes.last() else {
                break disk.close(self.durable.load(Ordering::Acquire));
            };
            if let Err(what) = disk.write(&changes) {
                break Err(what);
            }
            let durable = last.version.revision();
            self.durable.store(durable, Ordering::Release);
            // Who waits for a change to be durable must find that watches know of it.
            changes.iter().for_each(Committed::notify);
            self.progress.send_modify(|progress| progress.durable = durable);
        };
        let mut queue = self.queue();
        queue.ended = true;
        queue.pending.clear();
        drop(queue);
        self.room.notify_all();
        let what = result.err().unwrap_or_else(|| "it was closed".to_owned());
        self.progress.send_modify(|progress| progress.failure = Some(Arc::new(Failure { path, what })));
    }
}

impl Journal {
    /// Starts to write to a disk that has all writes up to a revision.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub(crate) fn start(disk: Box<dyn Disk>, durable: u64) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            work: Condvar::new(),
            room: Condvar::new(),
            durable: AtomicU64::new(durable),
            progress: watch::Sender::new(Progress { durable, failure: None }),
        });
        let in_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("store".to_owned()).spawn(move || in_thread.run(disk))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Takes a write; the caller sees to it that they come in the order of their revisions.
    pub(crate) fn push(&self, change: Committed) {
        let mut queue = self.shared.queue();
        if !queue.ended {
            queue.pending.push_back(change);
            self.shared.work.notify_one();
        }
    }

    /// Waits while too many writes are pending.
    pub(crate) fn throttle(&self) {
        let is_full = |queue: &mut Queue| queue.pending.len() > PENDING && !queue.ended;
        self.shared.room.wait_while(&mut self.shared.queue(), is_full);
    }

    /// All writes up to this revision are on disk.
    pub(crate) fn durable(&self) -> u64 {
        self.shared.durable.load(Ordering::Acquire)
    }

    /// Why no more changes are written to disk.
    pub(crate) fn failure(&self) -> Option<Arc<Failure>> {
        self.shared.progress.borrow().failure.clone()
    }

    /// Tells how far the disk has come.
    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.shared.progress.subscribe()
    }

    /// Writes all pending changes and ends. Returns the failure, if any.
    pub(crate) fn close(&self) {
        self.shared.queue().closing = true;
        self.shared.work.notify_one();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // It fails when the thread panicked, which it does not.
            let _ = thread.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}
