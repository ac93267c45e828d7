//! Slow work that a reconcile starts and does not wait for, such as a download from a slow registry.
//!
//! A reconcile waits briefly for the result, since most results are available at once. Where this one is not, the reconcile
//! continues without it, and the object is reconciled again when the job has finished. A job is aborted as soon as the reconciler
//! requests other work for the object, or none.

use std::{collections::HashMap, future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use chandler_core::Digest;
use chandler_turns::{Requester, Turns};
use futures::FutureExt as _;
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Notify, task::AbortHandle};

/// How long a reconcile waits for a result.
const WAIT: Duration = Duration::from_millis(500);

/// How many reconciles wait at once. After a restart every result may be in a cache on disk; this keeps them from being loaded
/// into memory all at once. Requesters take turns.
const MAX_WAITING: usize = 16;

/// The jobs of one kind: one for each object `name`, and one for each `name/part`.
pub struct Jobs<T> {
    all: Mutex<HashMap<String, Job<T>>>,
    /// How long a reconcile waits for a result.
    wait: Duration,
    /// Bounds how many wait at once.
    waiting: Turns,
}

struct Job<T> {
    /// The digest of its inputs.
    inputs: Digest,
    completion: Arc<Completion<T>>,
    task: AbortHandle,
}

/// A job panicked. The panic handler has logged the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panicked;

struct Completion<T> {
    state: Mutex<State<T>>,
    done: Notify,
}

struct State<T> {
    value: Option<Result<T, Panicked>>,
    /// Whether the reconcile that waited for it continued without it.
    missed: bool,
}

impl<T> Default for Jobs<T> {
    fn default() -> Self {
        Self { all: Mutex::default(), wait: WAIT, waiting: Turns::new(MAX_WAITING) }
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<T: Send + 'static> Jobs<T> {
    /// The result of the work for these inputs, if it is available within the wait; else `wake` is called when it is. A job of
    /// the same name with other inputs is aborted.
    pub async fn outcome<W>(
        &self,
        requester: &Requester,
        name: &str,
        inputs: &Digest,
        work: impl FnOnce() -> W,
        wake: impl FnOnce() + Send + 'static,
    ) -> Option<Result<T, Panicked>>
    where
        W: Future<Output = T> + Send + 'static,
    {
        let _permit = self.waiting.acquire(requester).await;
        let completion = self.start(name, inputs, work, wake);
        let value = match tokio::time::timeout(self.wait, completion.value()).await {
            Ok(value) => value,
            Err(_) => completion.stop_waiting()?,
        };
        let mut all = self.all();
        if all.get(name).is_some_and(|job| Arc::ptr_eq(&job.completion, &completion)) {
            all.remove(name);
        }
        Some(value)
    }

    fn start<W>(
        &self,
        name: &str,
        inputs: &Digest,
        work: impl FnOnce() -> W,
        wake: impl FnOnce() + Send + 'static,
    ) -> Arc<Completion<T>>
    where
        W: Future<Output = T> + Send + 'static,
    {
        let mut all = self.all();
        if let Some(job) = all.get(name).filter(|job| job.inputs == *inputs) {
            job.completion.state().missed = false;
            return Arc::clone(&job.completion);
        }
        let state = State { value: None, missed: false };
        let completion = Arc::new(Completion { state: Mutex::new(state), done: Notify::new() });
        let (work, ending) = (AssertUnwindSafe(work()), Arc::clone(&completion));
        let task = tokio::spawn(async move {
            let value = work.catch_unwind().await;
            if ending.complete(value.map_err(|_| Panicked)) {
                wake();
            }
        });
        let job = Job { inputs: inputs.clone(), completion: Arc::clone(&completion), task: task.abort_handle() };
        all.insert(name.to_owned(), job);
        completion
    }

    /// Aborts the jobs of an object, or one of its parts, and drops their results.
    pub fn end(&self, name: &str) {
        let is_of = |job: &str| job.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.all().retain(|job, _| !is_of(job));
    }

    /// Aborts all jobs and drops their results.
    pub fn end_all(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Job<T>>> {
        self.all.lock()
    }
}

impl<T> Completion<T> {
    /// Waits for the result. An aborted job has none.
    async fn value(&self) -> Result<T, Panicked> {
        loop {
            let done = self.done.notified();
            if let Some(value) = self.state().value.take() {
                return value;
            }
            done.await;
        }
    }

    /// Stops waiting. Returns a result that arrived at the last moment.
    fn stop_waiting(&self) -> Option<Result<T, Panicked>> {
        let mut state = self.state();
        let value = state.value.take();
        state.missed = value.is_none();
        value
    }

    /// Stores the result. Returns whether the reconcile that waited for it has continued without it.
    fn complete(&self, value: Result<T, Panicked>) -> bool {
        let mut state = self.state();
        state.value = Some(value);
        self.done.notify_waiters();
        state.missed
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        future::{pending, ready},
    };

    use tokio::sync::oneshot;

    use super::*;

    /// Jobs whose results are available only if they are complete at once.
    fn jobs() -> Jobs<u32> {
        Jobs { wait: Duration::ZERO, ..Jobs::default() }
    }

    fn requester() -> Requester {
        Requester::new("a", "a")
    }

    fn inputs(text: &str) -> Digest {
        Digest::of(text.as_bytes())
    }

    #[tokio::test]
    async fn a_result_that_is_available_at_once_is_returned_once() {
        let jobs = Jobs::<u32>::default();
        for round in 0..2 {
            let outcome = jobs
                .outcome(&requester(), "a", &inputs("x"), || ready(round), || panic!("the result was returned"))
                .await;
            assert_eq!(outcome, Some(Ok(round)));
        }
    }

    #[tokio::test]
    async fn a_late_result_wakes_the_object_and_is_not_computed_twice() {
        let jobs = jobs();
        let (send, receive) = oneshot::channel();
        let (woken, wakes) = oneshot::channel();
        let work = || receive.map(Result::unwrap_or_default);
        let first =
            jobs.outcome(&requester(), "a", &inputs("x"), work, move || woken.send(()).unwrap_or_default()).await;
        assert_eq!(first, None, "it is not available yet");
        let again =
            jobs.outcome(&requester(), "a", &inputs("x"), || async { unreachable!("the job is running") }, || ()).await;
        assert_eq!(again, None);
        send.send(7).expect("the job receives it");
        wakes.await.expect("the job wakes the object");
        let last = jobs
            .outcome(&requester(), "a", &inputs("x"), || async { unreachable!("the result is available") }, || ())
            .await;
        assert_eq!(last, Some(Ok(7)));
    }

    #[tokio::test]
    async fn a_job_that_is_no_longer_wanted_is_aborted() {
        let jobs = Jobs::<usize> { wait: Duration::ZERO, ..Jobs::default() };
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
        assert_eq!(
            jobs.outcome(&requester(), "a", &inputs("x"), work(&held), || panic!("an aborted job has no result")).await,
            None
        );
        assert_eq!(
            jobs.outcome(&requester(), "a", &inputs("y"), pending, || ()).await,
            None,
            "other inputs abort the first job"
        );
        ended(&held).await;
        for end in [|jobs: &Jobs<usize>| jobs.end("a"), |jobs: &Jobs<usize>| jobs.end_all()] {
            for job in ["a", "a/1"] {
                assert_eq!(
                    jobs.outcome(&requester(), job, &inputs("x"), work(&held), || panic!(
                        "an aborted job has no result"
                    ))
                    .await,
                    None
                );
            }
            end(&jobs);
            ended(&held).await;
        }
        for job in ["a", "a/1", "a/10", "a-b"] {
            assert_eq!(jobs.outcome(&requester(), job, &inputs("x"), pending, || ()).await, None);
        }
        jobs.end("a/1");
        let running: BTreeSet<String> = jobs.all().keys().cloned().collect();
        assert_eq!(running.iter().map(String::as_str).collect::<Vec<_>>(), ["a", "a-b", "a/10"], "a part alone");
    }

    #[tokio::test]
    async fn a_panic_is_a_result() {
        let jobs = Jobs::<u32>::default();
        let outcome = jobs.outcome(&requester(), "a", &inputs("x"), || async { panic!("a bug") }, || ()).await;
        assert_eq!(outcome, Some(Err(Panicked)));
    }
}
