//! Blocking file work, on the thread pool of tokio.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{ContentError, StoreError};

/// Whether the caller of some work stopped waiting for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Set when the caller stops waiting, for libraries that look at it.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Fails if the caller stopped waiting. No caller sees this error.
    pub(crate) fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(io::Error::other("the caller stopped waiting")) } else { Ok(()) }
    }
}

/// Cancels the work when it is dropped, together with the future that holds it.
struct Waiting(Cancel);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs short blocking work on the blocking threads of tokio. The work continues if the caller stops waiting.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ContentError> + Send + 'static,
) -> Result<T, ContentError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => {
            Err(StoreError { operation: "work on", path: "the cache".into(), source: io::Error::other(error) }.into())
        }
    }
}

/// Runs long blocking work, which checks regularly whether the caller stopped waiting.
pub(crate) async fn run_long<T: Send + 'static>(
    work: impl FnOnce(&Cancel) -> Result<T, ContentError> + Send + 'static,
) -> Result<T, ContentError> {
    let cancel = Cancel::default();
    let _waiting = Waiting(cancel.clone());
    run(move || work(&cancel)).await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn work_learns_that_its_caller_went_away() {
        let (begun, begins) = mpsc::channel();
        let (ended, ends) = mpsc::channel();
        let work = tokio::spawn(run_long(move |cancel| {
            begun.send(()).unwrap();
            while cancel.check().is_ok() {
                std::thread::yield_now();
            }
            ended.send(()).unwrap();
            Ok(())
        }));
        while begins.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        work.abort();
        while ends.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
    }
}
