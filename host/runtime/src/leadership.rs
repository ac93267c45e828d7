//! Runs reconcilers only while this process holds a Lease, and until it shuts down.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `lease` | what a candidate does about a Lease that it sees | no |
//! | `election` | reads and writes the Lease | yes |

mod election;
mod lease;

use std::future::Future;

use chandler_client::Fence;
use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};

pub use election::{Election, ElectionError};
pub use lease::Timing;

/// Completes when the process shuts down. Every clone completes.
pub type Shutdown = Shared<BoxFuture<'static, ()>>;

/// Waits until this process is the leader and then does the work, which must end when the future that it receives completes, and whose
/// writes must wait for the [`Fence`]. Releases the Lease when the work has ended.
///
/// None if the process shuts down before it is elected. If another process becomes the leader, the work is dropped where it is, and the
/// error names that process; whatever the work has spawned must be behind the fence.
pub async fn while_leader<F: Future>(
    election: &Election,
    shutdown: Shutdown,
    work: impl FnOnce(Shutdown, Fence) -> F,
) -> Result<Option<F::Output>, ElectionError> {
    let Some(mut leader) = election.acquire(&shutdown).await? else { return Ok(None) };
    let fence = leader.fence();
    let ended = tokio::select! {
        lost = leader.keep() => return Err(lost),
        ended = work(shutdown.clone(), fence) => ended,
    };
    leader.release().await;
    Ok(Some(ended))
}

/// A future that completes for all of its clones when this one completes.
pub fn shutdown(signal: impl Future<Output = ()> + Send + 'static) -> Shutdown {
    signal.boxed().shared()
}
