//! Work that keeps a processor busy, away from the threads that answer everybody else.
//!
//! What takes long for a large input runs on threads of its own, as many at a time as there are processors. A place is taken for
//! one piece of work, such as the comparison of one object, in the order in which they ask: an owner with many large objects
//! waits its turn after each. What nobody waits for any more ends at its next step.

use std::{
    panic::resume_unwind,
    sync::{Arc, OnceLock},
    thread,
};

use chandler_core::{Budget, Stop};
use serde_json::Value;
use tokio::{sync::Semaphore, task};

/// How many values an object may hold to be handled where it is: that takes less time than handing it over and back.
const SMALL: usize = 5_000;
/// How much of a text counts as a value, in bytes.
const TEXT: usize = 64;

/// The places for work, one for each processor.
fn places() -> &'static Arc<Semaphore> {
    static PLACES: OnceLock<Arc<Semaphore>> = OnceLock::new();
    PLACES.get_or_init(|| Arc::new(Semaphore::new(thread::available_parallelism().map_or(1, Into::into))))
}

/// Works on a thread for that. Dropping the future cancels the budget, at which the work ends.
///
/// # Errors
/// Where the runtime is going down.
///
/// # Panics
/// Where the work does.
pub(crate) async fn run<T: Send + 'static>(
    budget: &Budget,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stop> {
    let mut guard = CancelOnDrop(Some(budget.clone()));
    let permit = Arc::clone(places()).acquire_owned().await.map_err(|_| Stop::Cancelled)?;
    let worked = task::spawn_blocking(move || {
        let result = work();
        // Held to the end of the work, also where nobody waits for it any more.
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

/// Whether work on all of these is to run on a thread for that. At most the values of small ones are counted.
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
    fn only_the_large_is_handed_over() {
        let list = json!(vec![1; SMALL - 1]);
        assert!(!is_large([&list]));
        assert!(is_large([&list, &json!(1)]));
        assert!(is_large([&json!("a".repeat(SMALL * TEXT))]));
    }

    #[tokio::test]
    async fn work_runs_elsewhere_and_is_cancelled_with_its_future() {
        let budget = Budget::new(10);
        let here = thread::current().id();
        let there = run(&budget, move || thread::current().id()).await.unwrap();
        assert_ne!(there, here);
        assert_eq!(budget.step(), Ok(()), "what ended by itself was not cancelled");

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
