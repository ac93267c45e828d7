//! The thread of an election.
//!
//! Nothing else runs on it, and it keeps its priority while the threads of the work yield (`chandler_turns::yield_thread`): it needs a
//! millisecond every five seconds, and gets it even if the work uses all processor time of the process.

use chandler_client::Fence;
use tokio::{runtime::Builder, sync::oneshot};

use super::{
    election::{Election, ElectionError},
    leader::{self, Ended},
};

/// The other end of the thread. When it is dropped, the thread ends and the Leases expire.
pub(super) struct ElectionThread {
    elected: oneshot::Receiver<Fence>,
    end: Option<oneshot::Sender<()>>,
    ended: oneshot::Receiver<Result<(), ElectionError>>,
}

/// Starts the thread of an election.
pub(super) fn start(election: Election) -> Result<ElectionThread, ElectionError> {
    let (elect, elected) = oneshot::channel();
    let (end, asked_to_end) = oneshot::channel();
    let (over, ended) = oneshot::channel();
    let run = move || {
        let result = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(run(&election, elect, asked_to_end)),
            Err(error) => Err(ElectionError::Thread(error)),
        };
        // Without a receiver, the process no longer needs the Lease.
        let _ = over.send(result);
    };
    std::thread::Builder::new().name("chandler-lease".to_owned()).spawn(run).map_err(ElectionError::Thread)?;
    Ok(ElectionThread { elected, end: Some(end), ended })
}

async fn run(
    election: &Election,
    elect: oneshot::Sender<Fence>,
    mut end: oneshot::Receiver<()>,
) -> Result<(), ElectionError> {
    // Connections belong to the runtime in which a client is made.
    let client = election.connect()?;
    let mut leader = match leader::acquire(election, &client, &mut end).await? {
        Ok(leader) => leader,
        Err(Ended) => return Ok(()),
    };
    // Without a receiver, the thread was asked to end, or the process no longer needs the Lease.
    let _ = elect.send(leader.fence());
    leader.keep(&mut end).await?;
    Ok(())
}

impl ElectionThread {
    /// Waits until this process is the leader.
    pub(super) async fn elected(&mut self) -> Result<Fence, ElectionError> {
        match (&mut self.elected).await {
            Ok(fence) => Ok(fence),
            Err(_) => Err(self.lost().await),
        }
    }

    /// Waits until this process is no longer the leader, and cannot become it.
    pub(super) async fn lost(&mut self) -> ElectionError {
        match (&mut self.ended).await {
            Ok(Err(error)) => error,
            // The thread ends without an error only if it is asked to.
            Ok(Ok(())) | Err(_) => ElectionError::Panicked,
        }
    }

    /// Asks the thread to release the Leases that it holds, and waits until it has ended.
    pub(super) async fn end(mut self) -> Result<(), ElectionError> {
        // A thread that has ended receives nothing.
        let _ = self.end.take().map(|end| end.send(()));
        match self.ended.await {
            Ok(result) => result,
            Err(_) => Err(ElectionError::Panicked),
        }
    }
}
