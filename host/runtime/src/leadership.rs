//! Runs reconcilers only while this process is the leader, and until it shuts down.

use std::{future::Future, sync::Arc};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};

/// Completes when the process shuts down or is no longer the leader. Every clone completes.
pub type Shutdown = Shared<BoxFuture<'static, ()>>;

/// Elects one process among those that reconcile the same objects.
pub trait LeaderElection: Send + Sync + 'static {
    /// Completes when this process is the leader.
    fn acquired(&self) -> impl Future<Output = ()> + Send;
    /// Completes when this process is no longer the leader.
    fn lost(&self) -> impl Future<Output = ()> + Send;
}

/// Every process is the leader: for deployments that run one replica.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysLeader;

impl LeaderElection for AlwaysLeader {
    async fn acquired(&self) {}

    async fn lost(&self) {
        std::future::pending().await
    }
}

/// Waits until this process is the leader and then does the work, which must end when the future that it receives completes.
/// None where the process shuts down before it is elected.
pub async fn while_leader<F: Future>(
    election: impl LeaderElection,
    shutdown: impl Future<Output = ()> + Send + 'static,
    work: impl FnOnce(Shutdown) -> F,
) -> Option<F::Output> {
    let shutdown = shutdown.boxed().shared();
    tokio::select! {
        biased;
        () = election.acquired() => {}
        () = shutdown.clone() => return None,
    }
    let election = Arc::new(election);
    let stop = async move {
        tokio::select! {
            () = shutdown => {}
            () = election.lost() => tracing::warn!("this process is no longer the leader; its reconcilers stop"),
        }
    };
    Some(work(stop.boxed().shared()).await)
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        pin::pin,
    };

    use futures::poll;
    use tokio::sync::Notify;

    use super::*;

    #[derive(Default)]
    struct Election {
        acquired: Notify,
        lost: Notify,
    }

    impl LeaderElection for Arc<Election> {
        async fn acquired(&self) {
            self.acquired.notified().await;
        }

        async fn lost(&self) {
            self.lost.notified().await;
        }
    }

    #[tokio::test]
    async fn work_starts_when_leadership_is_acquired_and_stops_when_it_is_lost() {
        let election = Arc::new(Election::default());
        let started = Arc::new(Notify::new());
        let work = |stop: Shutdown| {
            started.notify_one();
            stop
        };
        let mut running = pin!(while_leader(Arc::clone(&election), pending(), work));
        assert!(poll!(&mut running).is_pending());
        assert!(started.notified().now_or_never().is_none(), "another process is the leader");
        election.acquired.notify_one();
        assert!(poll!(&mut running).is_pending());
        assert!(started.notified().now_or_never().is_some());
        election.lost.notify_one();
        assert_eq!(running.await, Some(()));
    }

    #[tokio::test]
    async fn a_process_that_shuts_down_before_its_election_does_no_work() {
        let work = |_: Shutdown| async { unreachable!("it was never the leader") };
        assert_eq!(while_leader(Arc::new(Election::default()), ready(()), work).await, None::<()>);
    }

    #[tokio::test]
    async fn shutdown_stops_the_work_of_the_leader() {
        assert_eq!(while_leader(AlwaysLeader, ready(()), |stop| stop).await, Some(()));
    }
}
