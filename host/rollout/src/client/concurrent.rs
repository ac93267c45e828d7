//! Runs several requests at a time.

use futures::{StreamExt as _, future::BoxFuture, stream};

/// The number of concurrent requests for one owner.
const CONCURRENCY: usize = 8;

/// The results of all futures, in order.
///
/// The futures are boxed in a list instead of an iterator: with a closure that borrows, the compiler could not prove that the
/// caller's future is `Send`.
pub(crate) async fn all<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    stream::iter(futures).buffered(CONCURRENCY).collect().await
}
