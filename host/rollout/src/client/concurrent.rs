//! Several requests at a time.

use futures::{StreamExt as _, future::BoxFuture, stream};

/// How many requests are under way at the same time, for one owner.
const CONCURRENCY: usize = 8;

/// The results of all, in their order.
///
/// The futures come boxed in a list, not as an iterator: a closure that borrows would make the future of the caller one that
/// the compiler cannot prove to be `Send`.
pub(crate) async fn all<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    stream::iter(futures).buffered(CONCURRENCY).collect().await
}
