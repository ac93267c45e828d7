//! Reads and writes the Lease of an election.

use std::{fmt, future::Future, time::Duration};

use chandler_client::{Fence, FenceKeeper};
use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::{Api, Client, ResourceExt as _, api::PostParams};
use tokio::time::{Instant, sleep};

use super::{
    Shutdown,
    lease::{self, Action, Timing},
};

/// The timeout of one request.
const REQUEST: Duration = Duration::from_secs(4);

/// Elects one process among those that reconcile the same objects: the holder of a Lease.
#[derive(Clone, Debug)]
pub struct Election {
    leases: Api<Lease>,
    namespace: String,
    name: String,
    identity: String,
    timing: Timing,
}

/// Why this process is not the leader and will not become it.
#[derive(Debug, thiserror::Error)]
pub enum ElectionError {
    /// Another process is the leader.
    #[error("another controller has become the leader: {holder} holds the Lease {namespace}/{name}")]
    Lost {
        /// The namespace of the Lease.
        namespace: String,
        /// The name of the Lease.
        name: String,
        /// The identity of the leader.
        holder: String,
    },
    /// The API server refuses to let this process read or write the Lease.
    #[error("failed to hold the Lease {namespace}/{name}")]
    Refused {
        /// The namespace of the Lease.
        namespace: String,
        /// The name of the Lease.
        name: String,
        /// The error of the client.
        source: kube::Error,
    },
}

/// A process that holds the Lease.
pub(super) struct Leader<'a> {
    election: &'a Election,
    lease: Lease,
    renewed: Instant,
    keeper: FenceKeeper,
    fence: Fence,
}

/// An attempt failed.
#[derive(Debug)]
enum Failure {
    Timeout,
    Client(kube::Error),
}

/// A Lease that was seen, and since when it has not changed.
struct Seen {
    lease: Option<Lease>,
    since: Instant,
}

impl Election {
    /// An election by this Lease, for a process with this identity. No two processes may have the same one.
    pub fn new(client: Client, namespace: &str, name: &str, identity: String) -> Self {
        let leases = Api::namespaced(client, namespace);
        Self { leases, namespace: namespace.to_owned(), name: name.to_owned(), identity, timing: Timing::default() }
    }

    /// The same election with other times.
    pub fn with_timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// Waits until this process holds the Lease. None if it shuts down before.
    pub(super) async fn acquire(&self, shutdown: &Shutdown) -> Result<Option<Leader<'_>>, ElectionError> {
        let mut seen = Seen { lease: None, since: Instant::now() };
        let mut reported = String::new();
        // An API server that was just started, or whose data was restored, refuses everyone until it has loaded the roles.
        let mut refused_since = None;
        // Shutdown does not interrupt an attempt: one that was written would keep others waiting.
        loop {
            let started = Instant::now();
            let obstacle = match self.attempt(&mut seen).await {
                Ok(Ok(lease)) => {
                    tracing::info!(lease = %self, identity = %self.identity, "this controller is the leader");
                    return Ok(Some(Leader::new(self, lease, started)));
                }
                Ok(Err(holder)) => {
                    refused_since = None;
                    format!("{holder} is the leader")
                }
                Err(Failure::Client(error)) if is_refusal(&error) => {
                    let since = refused_since.get_or_insert(started);
                    if started.saturating_duration_since(*since) >= self.timing.deadline {
                        return Err(self.refused(error));
                    }
                    error.to_string()
                }
                Err(failure) => failure.to_string(),
            };
            if obstacle != reported {
                tracing::info!(lease = %self, reason = %obstacle, "this controller waits until it is the leader");
                reported = obstacle;
            }
            tokio::select! {
                biased;
                () = shutdown.clone() => return Ok(None),
                () = sleep(self.timing.retry) => {}
            }
        }
    }

    /// Reads the Lease, and takes or renews it if possible. Returns it, or its holder.
    async fn attempt(&self, seen: &mut Seen) -> Result<Result<Lease, String>, Failure> {
        let read = timely(self.leases.get_opt(&self.name)).await?;
        seen.update(read);
        let spec = seen.lease.as_ref().and_then(|lease| lease.spec.as_ref());
        let spec = spec.cloned().or_else(|| seen.lease.is_some().then(Default::default));
        match lease::decide(spec.as_ref(), seen.since.elapsed(), &self.identity, &self.timing) {
            Action::Wait { holder } => Ok(Err(holder)),
            Action::Create => {
                let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
                let lease = self.held(Lease { metadata, spec: None });
                timely(self.leases.create(&PostParams::default(), &lease)).await.map(Ok)
            }
            Action::Take | Action::Renew => {
                self.replace(&self.held(seen.lease.clone().unwrap_or_default())).await.map(Ok)
            }
        }
    }

    fn held(&self, lease: Lease) -> Lease {
        let spec = lease::held(lease.spec.as_ref(), &self.identity, Timestamp::now(), &self.timing);
        Lease { spec: Some(spec), ..lease }
    }

    /// Writes the Lease, unless it has changed since it was read.
    async fn replace(&self, lease: &Lease) -> Result<Lease, Failure> {
        timely(self.leases.replace(&self.name, &PostParams::default(), lease)).await
    }

    fn refused(&self, source: kube::Error) -> ElectionError {
        ElectionError::Refused { namespace: self.namespace.clone(), name: self.name.clone(), source }
    }

    fn lost(&self, holder: String) -> ElectionError {
        ElectionError::Lost { namespace: self.namespace.clone(), name: self.name.clone(), holder }
    }
}

impl fmt::Display for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl<'a> Leader<'a> {
    fn new(election: &'a Election, lease: Lease, renewed: Instant) -> Self {
        let (keeper, fence) = FenceKeeper::new(renewed + election.timing.deadline);
        Self { election, lease, renewed, keeper, fence }
    }

    /// What the writes of this leader wait for.
    pub(super) fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Renews the Lease until this process is no longer the leader. While the API server does not answer, the writes wait at the fence,
    /// and this process stays the leader if no other has taken the Lease meanwhile.
    pub(super) async fn keep(&mut self) -> ElectionError {
        let mut pause = self.election.timing.renewal;
        let mut warned = false;
        loop {
            sleep(pause).await;
            let started = Instant::now();
            let failure = match self.renew().await {
                Ok(Ok(lease)) => {
                    (self.lease, self.renewed) = (lease, started);
                    self.keeper.open_until(started + self.election.timing.deadline);
                    (pause, warned) = (self.election.timing.renewal, false);
                    continue;
                }
                Ok(Err(holder)) => {
                    self.keeper.open_until(started);
                    return self.election.lost(holder);
                }
                Err(failure) => failure,
            };
            pause = self.election.timing.retry;
            let late = self.renewed.elapsed() >= self.election.timing.deadline;
            match failure {
                Failure::Client(error) if late && is_refusal(&error) => return self.election.refused(error),
                failure if late && !warned => {
                    warned = true;
                    tracing::warn!(lease = %self.election, error = %failure, "the Lease is not renewed: writes wait until it is");
                }
                failure => tracing::debug!(lease = %self.election, error = %failure, "failed to renew the Lease"),
            }
        }
    }

    /// Renews the Lease as it was last written. If that fails because it has changed, it is read: its holder, if another process had it.
    async fn renew(&self) -> Result<Result<Lease, String>, Failure> {
        let election = self.election;
        match election.replace(&election.held(self.lease.clone())).await {
            Ok(lease) => return Ok(Ok(lease)),
            Err(Failure::Client(kube::Error::Api(status))) if status.is_conflict() || status.is_not_found() => {}
            Err(failure) => return Err(failure),
        }
        let mut seen = Seen { lease: None, since: Instant::now() };
        seen.update(timely(election.leases.get_opt(&election.name)).await?);
        let spec = seen.lease.as_ref().and_then(|lease| lease.spec.clone());
        match spec.map(|spec| spec.holder_identity.unwrap_or_default()) {
            // A response to an own write was lost, or a user has edited or deleted the Lease.
            None => election.attempt(&mut seen).await,
            Some(holder) if holder == election.identity => election.attempt(&mut seen).await,
            Some(holder) if holder.is_empty() => Ok(Err("another process".to_owned())),
            Some(holder) => Ok(Err(holder)),
        }
    }

    /// Lets another candidate take the Lease at once.
    pub(super) async fn release(self) {
        self.keeper.open_until(Instant::now());
        let spec = self.lease.spec.as_ref().map(|spec| lease::released(spec, Timestamp::now()));
        let lease = Lease { spec, ..self.lease.clone() };
        match self.election.replace(&lease).await {
            Ok(_) => tracing::info!(lease = %self.election, "the Lease is released"),
            Err(error) => {
                tracing::warn!(lease = %self.election, %error, "failed to release the Lease: another controller waits until it expires");
            }
        }
    }
}

impl Seen {
    fn update(&mut self, lease: Option<Lease>) {
        let version = |lease: &Option<Lease>| lease.as_ref().map(|lease| (lease.uid(), lease.resource_version()));
        if version(&lease) != version(&self.lease) {
            self.since = Instant::now();
        }
        self.lease = lease;
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => write!(f, "the API server did not answer within {} s", REQUEST.as_secs()),
            Self::Client(error) => error.fmt(f),
        }
    }
}

/// Whether only a user can help: permissions are missing, or the namespace is. A new API server may refuse everyone for a moment.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 401 | 403 | 404))
}

async fn timely<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match tokio::time::timeout(REQUEST, request).await {
        Ok(answer) => answer.map_err(Failure::Client),
        Err(_) => Err(Failure::Timeout),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use futures::FutureExt as _;
    use http::{Method, Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// An API server that refuses to create the Lease this many times.
    fn refusing(times: usize) -> Client {
        let created = Arc::new(AtomicUsize::new(0));
        let service = tower::service_fn(move |request: Request<Body>| {
            let status = |code: u16, reason: &str| {
                (
                    code,
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": reason, "code": code}),
                )
            };
            let (code, body) = match request.method() {
                &Method::GET => status(404, "NotFound"),
                _ if created.fetch_add(1, Ordering::Relaxed) < times => status(403, "Forbidden"),
                _ => (201, json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "l"}})),
            };
            let response = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
            std::future::ready(Ok::<_, Infallible>(response.unwrap()))
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn a_refusal_counts_once_it_lasts() {
        let never: Shutdown = std::future::pending().boxed().shared();
        let election = |times, deadline| {
            let retry = Duration::from_millis(1);
            Election::new(refusing(times), "n", "l", "me".to_owned()).with_timing(Timing {
                deadline,
                retry,
                ..Timing::default()
            })
        };
        let hour = Duration::from_hours(1);
        assert!(election(3, hour).acquire(&never).await.unwrap().is_some());
        let refused = election(usize::MAX, Duration::from_millis(10));
        assert!(matches!(refused.acquire(&never).await, Err(ElectionError::Refused { .. })));
    }
}
