//! Runs CPU-bound work on threads of its own, so that it does not delay other requests.
//!
//! As many pieces of work run at the same time as there are processors. A permit is taken for one piece of work, such as the
//! comparison of one object, in the order of the requests: an owner with many large objects waits its turn after each. Work
//! whose caller is gone ends at its next step.

use std::{
    panic::resume_unwind,
    sync::{Arc, OnceLock},
    thread,
};

use chandler_core::{Budget, Stop};
use serde_json::Value;
use tokio::{sync::Semaphore, task};

/// The number of values up to which an object is handled in place, which takes less time than moving it to another thread and
/// back.
const SMALL: usize = 5_000;
/// The bytes of a text that count as one value.
const TEXT: usize = 64;

/// The permits, one for each processor.
fn places() -> &'static Arc<Semaphore> {
    static PLACES: OnceLock<Arc<Semaphore>> = OnceLock::new();
    PLACES.get_or_init(|| Arc::new(Semaphore::new(thread::available_parallelism().map_or(1, Into::into))))
}

/// Runs work on a thread of its own. Dropping the future cancels the budget, which ends the work.
///
/// # Errors
/// If the runtime is shutting down.
///
/// # Panics
/// If the work panics.
pub(crate) async fn run<T: Send + 'static>(
    budget: &Budget,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stop> {
    let mut guard = CancelOnDrop(Some(budget.clone()));
    let permit = Arc::clone(places()).acquire_owned().await.map_err(|_| Stop::Cancelled)?;
    let worked = task::spawn_blocking(move || {
        let result = work();
        // Held until the work ends, even if its caller is gone.
        drop(permit);
        result
    });
    match worked.await {
        Ok(result) => {
            guard.0 = None;
            Ok(result)
        }
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(_) => Err(Stop::Cancelled),
    }
}

struct CancelOnDrop(Option<Budget>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(budget) = &self.0 {
            budget.cancel();
        }
    }
}

/// Whether work on all of these values should run on a thread of its own. Counting stops at the limit.
pub(crate) fn is_large<'a>(values: impl IntoIterator<Item = &'a Value>) -> bool {
    let mut left = SMALL;
    !values.into_iter().all(|value| fits(value, &mut left))
}

fn fits(value: &Value, left: &mut usize) -> bool {
    let size = match value {
        Value::String(text) => 1 + text.len() / TEXT,
        _ => 1,
    };
    let Some(rest) = left.checked_sub(size) else { return false };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| fits(item, left)),
        Value::Object(map) => map.values().all(|value| fits(value, left)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::FutureExt as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_large_values_are_moved_to_a_thread() {
        let list = json!(vec![1; SMALL - 1]);
        assert!(!is_large([&list]));
        assert!(is_large([&list, &json!(1)]));
        assert!(is_large([&json!("a".repeat(SMALL * TEXT))]));
    }

    #[tokio::test]
    async fn work_runs_on_another_thread_and_is_cancelled_with_its_future() {
        let budget = Budget::new(10);
        let here = thread::current().id();
        let there = run(&budget, move || thread::current().id()).await.unwrap();
        assert_ne!(there, here);
        assert_eq!(budget.step(), Ok(()), "completed work is not cancelled");

        let (ended, end) = mpsc::channel();
        let endless = Budget::new(u64::MAX);
        let steps = endless.clone();
        let (started, start) = tokio::sync::oneshot::channel();
        let mut work = Box::pin(run(&endless, move || {
            let _ = started.send(());
            let stop = loop {
                if let Err(stop) = steps.step() {
                    break stop;
                }
            };
            ended.send(stop)
        }));
        assert!(work.as_mut().now_or_never().is_none());
        start.await.unwrap();
        drop(work);
        let stop = task::spawn_blocking(move || end.recv()).await.unwrap();
        assert_eq!(stop, Ok(Stop::Cancelled));
    }
}
