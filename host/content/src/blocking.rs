//! File work away from the threads that drive the network.

use std::io;

use crate::{ContentError, StoreError};

/// Runs blocking work on the threads that tokio keeps for it. The work goes on when the caller goes away: what it writes
/// is bounded and is only visible when complete.
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
