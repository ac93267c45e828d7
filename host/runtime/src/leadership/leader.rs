//! Acquires the Leases of an election, and renews them.

use std::{collections::BTreeMap, time::Duration};

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
    let installation = installation.map(|lease| {
        Candidacy::new(lease, client, election.installation_timing()).refused_for(election.timing.deadline)
    });
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
            () = pause(seats.first_mut(), &obstacle, election.timing.retry) => {}
        }
    }
}

/// Waits before the next attempt. While another replica is the leader, this process holds no Lease that it would have to renew.
async fn pause(own: Option<&mut Seat>, obstacle: &Obstacle, retry: Duration) {
    match (own, obstacle) {
        (Some(own), Obstacle::Replica(_)) => own.candidacy.until_it_may_differ().await,
        _ => sleep(retry).await,
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

    /// Whether the Lease is renewed now, and not in the next round.
    fn is_due(&self, round: Duration) -> bool {
        let timing = &self.candidacy.timing;
        self.renewed().is_none_or(|renewed| timing.is_due(renewed.elapsed(), round))
    }

    /// When the last successful renewal is too old for a leader.
    fn deadline(&self) -> Option<Instant> {
        self.renewed().map(|renewed| renewed + self.candidacy.timing.deadline)
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
        let first = self.seats.iter().map(Seat::deadline).min().flatten();
        self.keeper.open_until(first.unwrap_or_else(Instant::now));
    }

    /// Renews the Leases until the process asks to end, and then releases them; or until this process is no longer the leader. While the
    /// API server does not answer, the writes wait at the fence, and this process stays the leader if no other has taken a Lease meanwhile.
    ///
    /// Each round renews the Lease of the process, and a Lease that lasts longer when it is due.
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
            let began = Instant::now();
            let due = self.seats.iter_mut().filter(|seat| !seat.of_installation || seat.is_due(timing.renewal));
            let renewals = join_all(due.map(|seat| async move {
                let renewal = seat.renew().await;
                (seat, renewal)
            }))
            .await;
            pause = timing.interval(began.elapsed()).saturating_sub(began.elapsed());
            let mut failed = false;
            for (seat, renewal) in renewals {
                let failure = match renewal {
                    Ok(Ok(())) => {
                        // One that arrived without an answer began a while ago.
                        let since = seat.renewed().map(|renewed| renewed.elapsed()).unwrap_or_default();
                        pause = pause.min(seat.candidacy.timing.renewal.saturating_sub(since));
                        continue;
                    }
                    Ok(Err(holder)) => {
                        self.keeper.open_until(Instant::now());
                        self.election.note_renewal(Renewal::Lost);
                        return Err(seat.lost(holder));
                    }
                    Err(failure) => failure,
                };
                failed = true;
                // After a timeout the Lease is read at once: the write may have arrived.
                pause = pause.min(timing.retry.saturating_sub(began.elapsed()));
                let late = seat.deadline().is_none_or(|deadline| Instant::now() >= deadline);
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

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Arc, Mutex},
    };

    use http::{Method, Request, Response};
    use kube::client::Body;

    use super::*;
    use crate::leadership::Timing;

    #[tokio::test]
    async fn a_lease_that_lasts_longer_is_written_only_when_it_is_due() {
        let written = Arc::new(Mutex::new(Vec::<String>::new()));
        let (writes, (enough, mut end)) = (Arc::clone(&written), oneshot::channel());
        let enough = Arc::new(Mutex::new(Some(enough)));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (writes, enough) = (Arc::clone(&writes), Arc::clone(&enough));
            async move {
                if request.method() == Method::GET {
                    let none = r#"{"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}"#;
                    return Ok::<_, Infallible>(
                        Response::builder().status(404).body(Body::from(none.as_bytes().to_vec())).unwrap(),
                    );
                }
                let name = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
                let bytes = request.into_body().collect_bytes().await.unwrap();
                let mut writes = writes.lock().unwrap();
                writes.push(name);
                if writes.len() == 30 {
                    let enough: Option<oneshot::Sender<()>> = enough.lock().unwrap().take();
                    let _ = enough.map(|enough| enough.send(()));
                }
                Ok(Response::new(Body::from(bytes.to_vec())))
            }
        });
        let client = Client::new(service, "default");
        let brief = Duration::from_millis(1);
        let own = Timing { renewal: brief, retry: brief, ..Timing::default() };
        let long = Timing { renewal: Duration::from_hours(1), ..own };
        let connected = client.clone();
        let election = Election::new(move || Ok(connected.clone()), "n", "own", "me".to_owned()).with_timing(own);
        let election = election.among_installations("n", "all", "here");
        let seat = |name: &super::super::election::LeaseName, timing, of_installation| {
            Seat::new(Candidacy::new(name, &client, timing), of_installation)
        };
        let installation = election.installation.clone().unwrap();
        let mut seats = vec![seat(&election.own, own, false), seat(&installation, long, true)];
        assert!(take(&mut seats).await.unwrap().is_none());
        Leader::new(seats, &election).keep(&mut end).await.unwrap();
        let written = written.lock().unwrap();
        // The first two writes create the Leases.
        assert_eq!(written[..2], ["leases", "leases"]);
        assert!(written[2..].iter().all(|name| name == "own"), "{written:?}");
    }
}
