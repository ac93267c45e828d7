//! Acquires the Leases of an election, and renews them.

use std::collections::BTreeMap;

use chandler_client::{Fence, FenceKeeper};
use futures::future::join_all;
use kube::Client;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::{
    candidacy::{Candidacy, Failure, Held},
    election::{Election, ElectionError, Renewal, other_installation},
};

/// The process asked the thread to end.
#[derive(Debug)]
pub(super) struct Ended;

/// A process that holds the Leases.
pub(super) struct Leader {
    seats: Vec<Seat>,
    election: Election,
    keeper: FenceKeeper,
    fence: Fence,
}

/// A Lease that this process may hold.
struct Seat {
    candidacy: Candidacy,
    held: Option<Held>,
    /// Whether its holder is an installation, not a process.
    of_installation: bool,
}

/// Waits until this process holds the Leases: its own first, and then the one of the installation. It ends if the process asks.
pub(super) async fn acquire(
    election: &Election,
    client: &Client,
    end: &mut oneshot::Receiver<()>,
) -> Result<Result<Leader, Ended>, ElectionError> {
    let own = Candidacy::new(&election.own, client, election.timing).annotated(&election.annotations);
    let own = Seat::new(own, false);
    let installation = election.installation.as_ref();
    let installation = installation.map(|lease| Candidacy::new(lease, client, election.installation_timing()));
    let mut seats: Vec<Seat> = [own].into_iter().chain(installation.map(|it| Seat::new(it, true))).collect();
    let mut reported = String::new();
    // The request to end does not interrupt an attempt: one that was written would keep others waiting.
    loop {
        let Some(obstacle) = take(&mut seats).await? else {
            tracing::info!(lease = %election.own, identity = %election.own.identity, "this controller is the leader");
            return Ok(Ok(Leader::new(seats, election)));
        };
        match &obstacle {
            Obstacle::Replica(_) => election.note_waiting(&seats.first().map(Seat::annotations).unwrap_or_default()),
            Obstacle::Installation(_) => election.note_waiting(&BTreeMap::new()),
            Obstacle::Failure(_) => {}
        }
        if obstacle.text() != reported {
            obstacle.report(election);
            reported = obstacle.text().to_owned();
        }
        tokio::select! {
            biased;
            asked = &mut *end => {
                // Without a sender, the process has gone: as after a crash, the Lease expires.
                if asked.is_ok() {
                    release(&seats).await;
                }
                return Ok(Err(Ended));
            }
            () = sleep(election.timing.retry) => {}
        }
    }
}

/// Why a Lease was not acquired.
enum Obstacle {
    /// Another replica is the leader.
    Replica(String),
    /// A request failed.
    Failure(String),
    /// Another installation has the objects.
    Installation(String),
}

impl Obstacle {
    fn text(&self) -> &str {
        match self {
            Self::Replica(text) | Self::Failure(text) | Self::Installation(text) => text,
        }
    }

    fn report(&self, election: &Election) {
        match self {
            Self::Replica(reason) | Self::Failure(reason) => {
                tracing::info!(lease = %election.own, %reason, "this controller waits until it is the leader");
            }
            Self::Installation(reason) => tracing::warn!(%reason, "this controller writes nothing"),
        }
    }
}

/// Takes one Lease after the other, or renews it. Returns what is in the way.
async fn take(seats: &mut [Seat]) -> Result<Option<Obstacle>, ElectionError> {
    for seat in seats {
        let attempt = seat.candidacy.attempt().await;
        let is_refused = seat.candidacy.is_refused_for_good(attempt.as_ref().err());
        seat.held = match attempt {
            Ok(Ok(held)) => Some(held),
            Ok(Err(holder)) => {
                seat.held = None;
                return Ok(Some(seat.occupied(&holder)));
            }
            Err(Failure::Client(error)) if is_refused => return Err(seat.refused(error)),
            // A Lease that is held stays held until it expires.
            Err(failure) => return Ok(Some(Obstacle::Failure(format!("{}: {failure}", seat.candidacy.lease)))),
        };
    }
    Ok(None)
}

/// Lets other processes take the Leases that processes hold. An installation keeps its Lease, so that its next process continues.
async fn release(seats: &[Seat]) {
    for seat in seats.iter().filter(|seat| !seat.of_installation) {
        if let Some(held) = &seat.held {
            seat.candidacy.release(held).await;
        }
    }
}

impl Seat {
    fn new(candidacy: Candidacy, of_installation: bool) -> Self {
        Self { candidacy, held: None, of_installation }
    }

    fn occupied(&self, holder: &str) -> Obstacle {
        let lease = &self.candidacy.lease;
        if self.of_installation {
            return Obstacle::Installation(other_installation(holder, &lease.namespace, &lease.name));
        }
        Obstacle::Replica(format!("{holder} is the leader"))
    }

    fn lost(&self, holder: String) -> ElectionError {
        let (namespace, name) = (self.candidacy.lease.namespace.clone(), self.candidacy.lease.name.clone());
        if self.of_installation {
            return ElectionError::OtherInstallation { namespace, name, holder };
        }
        ElectionError::Lost { namespace, name, holder }
    }

    fn refused(&self, source: kube::Error) -> ElectionError {
        let lease = &self.candidacy.lease;
        ElectionError::Refused { namespace: lease.namespace.clone(), name: lease.name.clone(), source }
    }

    async fn renew(&mut self) -> Result<Result<(), String>, Failure> {
        let renewed = match &self.held {
            Some(held) => self.candidacy.renew(held).await?,
            None => self.candidacy.attempt().await?,
        };
        Ok(renewed.map(|held| self.held = Some(held)))
    }

    /// The annotations of the Lease as it was last read.
    fn annotations(&self) -> BTreeMap<String, String> {
        self.candidacy.seen_annotations()
    }

    /// When the last successful renewal began.
    fn renewed(&self) -> Option<Instant> {
        self.held.as_ref().map(|held| held.renewed)
    }
}

impl Leader {
    fn new(seats: Vec<Seat>, election: &Election) -> Self {
        let (keeper, fence) = FenceKeeper::new(Instant::now());
        let leader = Self { seats, election: election.clone(), keeper, fence };
        leader.open();
        leader
    }

    /// What the writes of this leader wait for.
    pub(super) fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Lets writes pass while every Lease was renewed recently enough.
    fn open(&self) {
        let oldest = self.seats.iter().map(Seat::renewed).min().flatten();
        self.keeper.open_until(oldest.map_or_else(Instant::now, |renewed| renewed + self.election.timing.deadline));
    }

    /// Renews the Leases until the process asks to end, and then releases them; or until this process is no longer the leader. While the
    /// API server does not answer, the writes wait at the fence, and this process stays the leader if no other has taken a Lease meanwhile.
    pub(super) async fn keep(&mut self, end: &mut oneshot::Receiver<()>) -> Result<(), ElectionError> {
        let timing = self.election.timing;
        let mut pause = timing.renewal;
        let mut warned = false;
        loop {
            tokio::select! {
                biased;
                asked = &mut *end => {
                    self.keeper.open_until(Instant::now());
                    // Without a sender, the process has gone: as after a crash, the Lease expires.
                    if asked.is_ok() {
                        release(&self.seats).await;
                    }
                    return Ok(());
                }
                () = sleep(pause) => {}
            }
            let renewals = join_all(self.seats.iter_mut().map(Seat::renew)).await;
            pause = timing.renewal;
            let mut failed = false;
            for (seat, renewal) in self.seats.iter().zip(renewals) {
                let failure = match renewal {
                    Ok(Ok(())) => continue,
                    Ok(Err(holder)) => {
                        self.keeper.open_until(Instant::now());
                        self.election.note_renewal(Renewal::Lost);
                        return Err(seat.lost(holder));
                    }
                    Err(failure) => failure,
                };
                failed = true;
                pause = timing.retry;
                let late = seat.renewed().is_none_or(|renewed| renewed.elapsed() >= timing.deadline);
                let is_refusal = failure.is_refusal();
                match failure {
                    Failure::Client(error) if late && is_refusal => return Err(seat.refused(error)),
                    failure if late && !warned => {
                        warned = true;
                        tracing::warn!(lease = %seat.candidacy.lease, error = %failure, "the Lease is not renewed: writes wait until it is");
                    }
                    failure => {
                        tracing::debug!(lease = %seat.candidacy.lease, error = %failure, "failed to renew the Lease");
                    }
                }
            }
            self.election.note_renewal(if failed { Renewal::Failed } else { Renewal::Completed });
            warned &= failed;
            self.open();
        }
    }
}
