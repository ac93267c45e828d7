//! The threads on which guests run, separate from the host's threads, so that a spinning guest delays no other work of the process.

use std::{future::Future, io, num::NonZeroUsize, sync::Arc};

use chandler_turns::yield_thread;
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{AbortHandle, JoinError},
};

/// A runtime for guests and a limit on how many run at the same time.
pub(crate) struct Threads {
    runtime: Option<Runtime>,
    handle: Handle,
    slots: Arc<Semaphore>,
    count: NonZeroUsize,
}

/// The permit of one call; released when it is dropped.
pub(crate) struct Slot {
    _share: OwnedSemaphorePermit,
    _slot: OwnedSemaphorePermit,
}

impl Threads {
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let count = NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
        let runtime = Builder::new_multi_thread()
            .worker_threads(count.get())
            .thread_name("wasm-guest")
            .on_thread_start(yield_thread)
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Some(runtime), handle, slots: Arc::new(Semaphore::new(count.get())), count })
    }

    /// A provisioner's share of the slots: all but one, so that it cannot occupy all of them.
    pub(crate) fn share(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(self.count.get().saturating_sub(1).max(1)))
    }

    /// Waits for a slot within a share.
    pub(crate) async fn slot(&self, share: &Arc<Semaphore>) -> Option<Slot> {
        // The share is acquired first, so that no call holds a slot while it waits.
        let share = Arc::clone(share).acquire_owned().await.ok()?;
        let slot = Arc::clone(&self.slots).acquire_owned().await.ok()?;
        Some(Slot { _share: share, _slot: slot })
    }

    /// Runs a task to its end, or stops it when the returned future is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        let task = self.handle.spawn(task);
        let _guard = AbortOnDrop(task.abort_handle());
        task.await
    }

    /// Runs blocking work.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        self.handle.spawn_blocking(work).await
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // A plain drop waits for the tasks, which a thread of another runtime must not do.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
