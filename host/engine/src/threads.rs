//! The threads on which guests run, separate from the host's threads, so that a spinning guest delays no other work of the process.

use std::{future::Future, io, num::NonZeroUsize};

use chandler_turns::{Permit, Requester, Turns, yield_thread};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::{AbortHandle, JoinError},
};

/// A runtime for guests and a limit on how many run at the same time. Components take turns, and within a component those on whose behalf it
/// is called.
pub(crate) struct Threads {
    runtime: Option<Runtime>,
    handle: Handle,
    slots: Turns,
    count: NonZeroUsize,
}

/// A component's share of the slots: all but one, so that it cannot occupy all of them.
pub(crate) struct ShareOfSlots {
    /// The component.
    component: Requester,
    calls: Turns,
}

/// The permit of one call; released when it is dropped.
pub(crate) struct Slot {
    _share: Permit,
    _slot: Permit,
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
        Ok(Self { runtime: Some(runtime), handle, slots: Turns::new(count.get()), count })
    }

    /// The share of the component with this digest.
    pub(crate) fn share(&self, component: &str) -> ShareOfSlots {
        let calls = Turns::new(self.count.get().saturating_sub(1).max(1));
        ShareOfSlots { component: Requester::new(component, ""), calls }
    }

    /// Waits for a slot within a share, on behalf of a requester.
    pub(crate) async fn slot(&self, share: &ShareOfSlots, requester: &Requester) -> Option<Slot> {
        // The share is acquired first, so that no call holds a slot while it waits.
        let within = share.calls.acquire(requester).await?;
        let slot = self.slots.acquire(&share.component).await?;
        Some(Slot { _share: within, _slot: slot })
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

    /// Runs a task to its end, even if the returned future is dropped.
    pub(crate) async fn run_to_end<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        self.handle.spawn(task).await
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    /// Counted in calls: two components with many calls each, and one owner with most of them.
    #[tokio::test]
    async fn another_component_and_another_owner_wait_for_few_calls() {
        let threads = Arc::new(Threads::start(4).expect("threads"));
        let share = |name| Arc::new(threads.share(name));
        let (one, two, third) = (share("one"), share("two"), share("third"));
        let (grant, mut granted) = unbounded_channel();
        let call = |share: &Arc<ShareOfSlots>, owner: &str, name: &'static str| {
            let (threads, share, grant) = (Arc::clone(&threads), Arc::clone(share), grant.clone());
            let owner = Requester::new(owner, "");
            tokio::spawn(async move { grant.send((name, threads.slot(&share, &owner).await)) })
        };
        for _ in 0..20 {
            drop(call(&one, "many", "one"));
        }
        for _ in 0..20 {
            drop(call(&two, "many", "two"));
        }
        drop((call(&third, "few", "third"), call(&one, "few", "few")));
        let mut running = std::collections::VecDeque::new();
        let mut order = Vec::new();
        while order.len() < 42 {
            // Whatever can be granted is, before a call ends.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            while let Ok((name, slot)) = granted.try_recv() {
                order.push(name);
                running.push_back(slot);
            }
            assert!(running.len() <= 4, "more calls than slots");
            drop(running.pop_front());
        }
        let place = |name| order.iter().position(|known| *known == name).expect("it had its turn");
        // Behind the calls that began and one of each other component.
        assert!(place("third") <= 5, "{order:?}");
        assert!(place("few") <= 12, "{order:?}");
    }
}
