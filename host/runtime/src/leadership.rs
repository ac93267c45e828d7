//! Runs reconcilers only while this process holds a Lease, and until it shuts down.
//!
//! A dedicated thread holds the Lease, with its own runtime and its own connection to the API server, so that the Lease is not lost when the
//! reconcilers are delayed (too little processor time, thousands of tasks, exhausted connections). If that thread is delayed too, the
//! [`Fence`] closes by the clock, in the threads of the writes.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `lease` | what a candidate does about a Lease that it sees | no |
//! | `candidacy` | reads and writes a Lease | yes |
//! | `election` | which Leases, and the errors | no |
//! | `leader` | acquires the Leases of an election, and renews them | yes |
//! | `thread` | the thread of an election | no |

mod candidacy;
mod election;
mod leader;
mod lease;
mod thread;

use std::future::Future;

use chandler_client::Fence;
use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};

pub use election::{Election, ElectionError, Renewal};
pub use lease::Timing;

/// Completes when the process shuts down. Every clone completes.
pub type Shutdown = Shared<BoxFuture<'static, ()>>;

/// Waits until this process is the leader and then does the work, which must end when the future that it receives completes, and whose
/// writes must wait for the [`Fence`]. Releases the Lease when the work has ended.
///
/// `None` if the process shuts down before it is elected. If another process becomes the leader, the work is dropped immediately, and the
/// error names that process; all tasks that the work has spawned must be behind the fence. If this future is dropped, the Lease expires.
pub async fn while_leader<F: Future>(
    election: &Election,
    shutdown: Shutdown,
    work: impl FnOnce(Shutdown, Fence) -> F,
) -> Result<Option<F::Output>, ElectionError> {
    let mut thread = thread::start(election.clone())?;
    let fence = tokio::select! {
        biased;
        // An attempt that is under way completes: a Lease that was written would keep others waiting.
        () = shutdown.clone() => return thread.end().await.map(|()| None),
        elected = thread.elected() => elected?,
    };
    let ended = tokio::select! {
        lost = thread.lost() => return Err(lost),
        ended = work(shutdown.clone(), fence) => ended,
    };
    if let Err(error) = thread.end().await {
        tracing::warn!(%error, "this controller was no longer the leader when it ended");
    }
    Ok(Some(ended))
}

/// A future that completes for all of its clones when this one completes.
pub fn shutdown(signal: impl Future<Output = ()> + Send + 'static) -> Shutdown {
    signal.boxed().shared()
}

#[cfg(test)]
mod tests;
