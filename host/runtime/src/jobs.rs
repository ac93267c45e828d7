//! Work that a pass begins and does not wait for: fetching what a slow registry sends, rendering what a slow provisioner makes.
//!
//! A pass waits a moment for the outcome, since most of it is there at once. Where it is not, the pass goes on without, and the
//! BundleDeployment is reconciled again when the outcome has come. A job ends as soon as something else is asked for, or
//! nothing: nobody waits for what nobody wants.

use std::{
    collections::HashMap,
    future::Future,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chandler_core::Digest;
use futures::FutureExt as _;
use tokio::{
    sync::{Notify, Semaphore},
    task::AbortHandle,
};

/// How long a pass waits for an outcome.
const MOMENT: Duration = Duration::from_millis(500);

/// How many jobs are waited for at a time, so that not all are begun at once after a restart, when the outcome of each is in a cache
/// and takes memory.
const AT_ONCE: usize = 16;

/// Jobs for BundleDeployments: one for each name, and for each `name/part`.
pub(crate) struct Jobs<T> {
    all: Mutex<HashMap<String, Job<T>>>,
    /// How long a pass waits for an outcome.
    moment: Duration,
    /// Room for those that wait for that long.
    room: Semaphore,
}

struct Job<T> {
    /// What was asked for.
    asked: Digest,
    outcome: Arc<Outcome<T>>,
    task: AbortHandle,
}

/// A job panicked. The panic itself is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

struct Outcome<T> {
    state: Mutex<State<T>>,
    done: Notify,
}

struct State<T> {
    value: Option<Result<T, Panicked>>,
    /// Whether the pass that waited for it went on without.
    missed: bool,
}

impl<T> Default for Jobs<T> {
    fn default() -> Self {
        Self { all: Mutex::default(), moment: MOMENT, room: Semaphore::new(AT_ONCE) }
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<T: Send + 'static> Jobs<T> {
    /// The outcome of what is asked for, if it is there within a moment; `wake` is called when it comes later. Work that is under
    /// way for something else ends.
    pub(crate) async fn outcome<W>(
        &self,
        name: &str,
        asked: &Digest,
        work: impl FnOnce() -> W,
        wake: impl FnOnce() + Send + 'static,
    ) -> Option<Result<T, Panicked>>
    where
        W: Future<Output = T> + Send + 'static,
    {
        let _room = self.room.acquire().await;
        let outcome = self.begun(name, asked, work, wake);
        let value = match tokio::time::timeout(self.moment, outcome.value()).await {
            Ok(value) => value,
            Err(_) => outcome.give_up()?,
        };
        let mut all = self.all();
        if all.get(name).is_some_and(|job| Arc::ptr_eq(&job.outcome, &outcome)) {
            all.remove(name);
        }
        Some(value)
    }

    fn begun<W>(
        &self,
        name: &str,
        asked: &Digest,
        work: impl FnOnce() -> W,
        wake: impl FnOnce() + Send + 'static,
    ) -> Arc<Outcome<T>>
    where
        W: Future<Output = T> + Send + 'static,
    {
        let mut all = self.all();
        if let Some(job) = all.get(name).filter(|job| job.asked == *asked) {
            job.outcome.state().missed = false;
            return Arc::clone(&job.outcome);
        }
        let state = State { value: None, missed: false };
        let outcome = Arc::new(Outcome { state: Mutex::new(state), done: Notify::new() });
        let (work, ending) = (AssertUnwindSafe(work()), Arc::clone(&outcome));
        let task = tokio::spawn(async move {
            let value = work.catch_unwind().await;
            if ending.end(value.map_err(|_| Panicked)) {
                wake();
            }
        });
        let job = Job { asked: asked.clone(), outcome: Arc::clone(&outcome), task: task.abort_handle() };
        all.insert(name.to_owned(), job);
        outcome
    }

    /// Ends what is under way for a BundleDeployment, and forgets what came of it.
    pub(crate) fn end(&self, name: &str) {
        self.all().retain(|job, _| job.split('/').next() != Some(name));
    }

    /// The same for all of them.
    pub(crate) fn end_all(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Job<T>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Outcome<T> {
    /// Waits for the end. A job that is ended has none.
    async fn value(&self) -> Result<T, Panicked> {
        loop {
            let done = self.done.notified();
            if let Some(value) = self.state().value.take() {
                return value;
            }
            done.await;
        }
    }

    /// Waits no longer: what came in the last instant.
    fn give_up(&self) -> Option<Result<T, Panicked>> {
        let mut state = self.state();
        let value = state.value.take();
        state.missed = value.is_none();
        value
    }

    /// Notes the end; whether nobody waits for it any more.
    fn end(&self, value: Result<T, Panicked>) -> bool {
        let mut state = self.state();
        state.value = Some(value);
        self.done.notify_waiters();
        state.missed
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::sync::oneshot;

    use super::*;

    /// Jobs that nobody waits for unless they are done at once.
    fn jobs() -> Jobs<u32> {
        Jobs { moment: Duration::ZERO, ..Jobs::default() }
    }

    fn asked(text: &str) -> Digest {
        Digest::of(text.as_bytes())
    }

    #[tokio::test]
    async fn what_is_there_at_once_is_taken_once() {
        let jobs = Jobs::<u32>::default();
        for round in 0..2 {
            let outcome = jobs.outcome("a", &asked("x"), || ready(round), || panic!("nobody missed it")).await;
            assert_eq!(outcome, Some(Ok(round)));
        }
    }

    #[tokio::test]
    async fn what_comes_later_wakes_and_is_not_made_twice() {
        let jobs = jobs();
        let (send, receive) = oneshot::channel();
        let (woken, wakes) = oneshot::channel();
        let work = || receive.map(Result::unwrap_or_default);
        let first = jobs.outcome("a", &asked("x"), work, move || woken.send(()).unwrap_or_default()).await;
        assert_eq!(first, None, "it is not there yet");
        let again = jobs.outcome("a", &asked("x"), || async { unreachable!("it is under way") }, || ()).await;
        assert_eq!(again, None);
        send.send(7).expect("the job waits");
        wakes.await.expect("it wakes");
        let last = jobs.outcome("a", &asked("x"), || async { unreachable!("it is there") }, || ()).await;
        assert_eq!(last, Some(Ok(7)));
    }

    #[tokio::test]
    async fn what_nobody_wants_any_more_ends() {
        let jobs = Jobs::<usize> { moment: Duration::ZERO, ..Jobs::default() };
        let held = Arc::new(());
        let work = |held: &Arc<()>| {
            let held = Arc::clone(held);
            move || async move {
                pending::<()>().await;
                Arc::strong_count(&held)
            }
        };
        let ended = async |held: &Arc<()>| {
            while Arc::strong_count(held) > 1 {
                tokio::task::yield_now().await;
            }
        };
        assert_eq!(jobs.outcome("a", &asked("x"), work(&held), || panic!("it has no outcome")).await, None);
        assert_eq!(jobs.outcome("a", &asked("y"), pending, || ()).await, None, "something else is asked for");
        ended(&held).await;
        for end in [|jobs: &Jobs<usize>| jobs.end("a"), |jobs: &Jobs<usize>| jobs.end_all()] {
            for job in ["a", "a/1"] {
                assert_eq!(jobs.outcome(job, &asked("x"), work(&held), || panic!("it has no outcome")).await, None);
            }
            end(&jobs);
            ended(&held).await;
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_outcome() {
        let jobs = Jobs::<u32>::default();
        let outcome = jobs.outcome("a", &asked("x"), || async { panic!("a bug") }, || ()).await;
        assert_eq!(outcome, Some(Err(Panicked)));
    }
}
