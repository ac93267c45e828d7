//! Reads and writes a Lease.

use std::{collections::BTreeMap, fmt, future::Future, sync::Arc, time::Duration};

use chandler_core::descriptors_exhausted;
use futures::StreamExt as _;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
    jiff::Timestamp,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{PostParams, WatchEvent, WatchParams},
};
use tokio::time::{Instant, sleep, timeout};

use super::{
    election::LeaseName,
    lease::{self, Action, Timing},
};

/// The timeout of one request: less than the time between a renewal and the deadline, so that a lost answer is found out before that.
const REQUEST: Duration = Duration::from_millis(4500);

/// A process that holds a Lease, or waits for it.
pub(super) struct Candidacy {
    pub(super) lease: LeaseName,
    leases: Api<Lease>,
    pub(super) timing: Timing,
    /// Annotations of the Lease while this process holds it.
    annotations: Arc<BTreeMap<String, Option<String>>>,
    seen: Seen,
    /// Since when the API server has refused this process.
    refused_since: Option<Instant>,
    /// For how long it may do so.
    refused_for: Duration,
    /// A renewal whose answer did not arrive: the write itself may have.
    unanswered: Option<Unanswered>,
    /// Whether the API server refuses to let this process watch the Lease.
    unwatched: bool,
}

/// A write of a Lease without an answer.
struct Unanswered {
    sent: Option<LeaseSpec>,
    began: Instant,
}

/// A Lease as it was written last, and when the request for that began.
pub(super) struct Held {
    lease: Lease,
    pub(super) renewed: Instant,
}

/// An attempt failed.
#[derive(Debug)]
pub(super) enum Failure {
    Timeout,
    Client(kube::Error),
}

/// A Lease that was seen, and since when it has not changed.
struct Seen {
    lease: Option<Lease>,
    since: Instant,
}

impl Candidacy {
    pub(super) fn new(lease: &LeaseName, client: &Client, timing: Timing) -> Self {
        let leases = Api::namespaced(client.clone(), &lease.namespace);
        Self {
            lease: lease.clone(),
            leases,
            timing,
            annotations: Arc::default(),
            seen: Seen::new(),
            refused_since: None,
            refused_for: timing.deadline,
            unanswered: None,
            unwatched: false,
        }
    }

    /// Lets the API server refuse this process for this long.
    pub(super) fn refused_for(self, refused_for: Duration) -> Self {
        Self { refused_for, ..self }
    }

    /// Sets these annotations while this process holds the Lease.
    pub(super) fn annotated(self, annotations: &Arc<BTreeMap<String, Option<String>>>) -> Self {
        Self { annotations: Arc::clone(annotations), ..self }
    }

    /// The annotations of the Lease as it was last read.
    pub(super) fn seen_annotations(&self) -> BTreeMap<String, String> {
        self.seen.lease.as_ref().and_then(|lease| lease.metadata.annotations.clone()).unwrap_or_default()
    }

    /// Reads the Lease, and takes or renews it if possible. Returns it, or its holder.
    pub(super) async fn attempt(&mut self) -> Result<Result<Held, String>, Failure> {
        let started = Instant::now();
        let read = timely(self.leases.get_opt(&self.lease.name)).await?;
        self.seen.update(read);
        let spec = self.seen.lease.as_ref().and_then(|lease| lease.spec.as_ref());
        let spec = spec.cloned().or_else(|| self.seen.lease.is_some().then(Default::default));
        let written = match lease::decide(spec.as_ref(), self.seen.since.elapsed(), &self.lease.identity, &self.timing)
        {
            Action::Wait { holder } => return Ok(Err(holder)),
            Action::Create => {
                let metadata = ObjectMeta { name: Some(self.lease.name.clone()), ..ObjectMeta::default() };
                let lease = self.held(Lease { metadata, spec: None });
                timely(self.leases.create(&PostParams::default(), &lease)).await?
            }
            Action::Take | Action::Renew => {
                self.replace(&self.held(self.seen.lease.clone().unwrap_or_default())).await?
            }
        };
        Ok(Ok(Held { lease: written, renewed: started }))
    }

    /// Waits while another process holds the Lease as it was last read. Returns when it has another holder or other annotations, when it
    /// has lasted without a renewal, and when nothing is known about it any longer: then it must be read again. A watch shows that without a
    /// request. What it shows decides nothing: the Lease is read before it is taken.
    pub(super) async fn until_it_may_differ(&mut self) {
        let began = Instant::now();
        let pause = self.look_again(false);
        if !self.unwatched {
            let Err(failure) = self.watch().await else { return };
            self.unwatched = failure.as_ref().is_some_and(Failure::is_refusal);
            if let Some(failure) = failure {
                tracing::debug!(lease = %self.lease, error = %failure, "the Lease is not watched, and read again and again");
            }
        }
        // Also after a watch that ended at once.
        sleep(pause.saturating_sub(began.elapsed())).await;
    }

    /// Follows the Lease. An error means that the watch ended, or why.
    async fn watch(&mut self) -> Result<(), Option<Failure>> {
        let version = self.seen.lease.as_ref().and_then(kube::ResourceExt::resource_version);
        let version = version.ok_or(None::<Failure>)?;
        let parameters = WatchParams::default().fields(&format!("metadata.name={}", self.lease.name));
        let leases = self.leases.clone();
        let mut events = timely(leases.watch(&parameters, &version)).await.map_err(Some)?.boxed();
        loop {
            let Ok(event) = timeout(self.look_again(true), events.next()).await else { return Ok(()) };
            match event.ok_or(None::<Failure>)?.map_err(|error| Some(Failure::Client(error)))? {
                WatchEvent::Added(lease) | WatchEvent::Modified(lease) => {
                    let before = self.shown();
                    self.seen.update(Some(lease));
                    if self.shown() != before {
                        return Ok(());
                    }
                }
                WatchEvent::Deleted(_) => return Ok(()),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(Some(Failure::Client(kube::Error::Api(status)))),
            }
        }
    }

    /// What matters about the Lease to a process that waits.
    fn shown(&self) -> (Option<String>, BTreeMap<String, String>) {
        let spec = self.seen.lease.as_ref().and_then(|lease| lease.spec.as_ref());
        (spec.and_then(|spec| spec.holder_identity.clone()), self.seen_annotations())
    }

    fn look_again(&self, watched: bool) -> Duration {
        let spec = self.seen.lease.as_ref().and_then(|lease| lease.spec.as_ref());
        self.timing.look_again(spec, self.seen.since.elapsed(), watched)
    }

    /// Renews the Lease as it was last written. If that fails because it has changed, it is read: its holder, if another process had it.
    /// After a renewal without an answer the Lease is read first: if that write arrived, it counts from when it began.
    pub(super) async fn renew(&mut self, held: &Held) -> Result<Result<Held, String>, Failure> {
        if let Some(unanswered) = &self.unanswered {
            let found = timely(self.leases.get_opt(&self.lease.name)).await?;
            let arrived = found.filter(|found| found.uid() == held.lease.uid() && unanswered.is(found));
            let began = unanswered.began;
            self.unanswered = None;
            if let Some(lease) = arrived {
                tracing::debug!(lease = %self.lease, "the renewal arrived, although its answer did not");
                return Ok(Ok(Held { lease, renewed: began }));
            }
        }
        let started = Instant::now();
        let lease = self.held(held.lease.clone());
        match self.replace(&lease).await {
            Ok(lease) => return Ok(Ok(Held { lease, renewed: started })),
            Err(Failure::Client(kube::Error::Api(status))) if status.is_conflict() || status.is_not_found() => {}
            Err(failure) => {
                self.unanswered = failure.may_have_arrived().then_some(Unanswered { sent: lease.spec, began: started });
                return Err(failure);
            }
        }
        let found = timely(self.leases.get_opt(&self.lease.name)).await?;
        let spec = found.and_then(|lease| lease.spec);
        match spec.map(|spec| spec.holder_identity.unwrap_or_default()) {
            Some(holder) if holder.is_empty() => Ok(Err("another process".to_owned())),
            Some(holder) if holder != self.lease.identity => Ok(Err(holder)),
            // A response to an own write was lost, or a user has edited or deleted the Lease.
            Some(_) | None => {
                self.seen = Seen::new();
                self.attempt().await
            }
        }
    }

    /// Lets another candidate take the Lease at once.
    pub(super) async fn release(&self, held: &Held) {
        let spec = held.lease.spec.as_ref().map(|spec| lease::released(spec, Timestamp::now()));
        let none = self.annotations.keys().map(|name| (name.clone(), None)).collect();
        let lease = annotated(Lease { spec, ..held.lease.clone() }, &none);
        match self.replace(&lease).await {
            Ok(_) => tracing::info!(lease = %self.lease, "the Lease is released"),
            Err(error) => {
                tracing::warn!(lease = %self.lease, %error, "failed to release the Lease: another controller waits until it expires");
            }
        }
    }

    /// Whether the API server has refused this process for as long as a leader may go without a renewal: one that was just started, or whose
    /// data was restored, refuses everyone until it has loaded the roles.
    pub(super) fn is_refused_for_good(&mut self, failure: Option<&Failure>) -> bool {
        if !failure.is_some_and(Failure::is_refusal) {
            self.refused_since = None;
            return false;
        }
        self.refused_since.get_or_insert_with(Instant::now).elapsed() >= self.refused_for
    }

    fn held(&self, lease: Lease) -> Lease {
        let spec = lease::held(lease.spec.as_ref(), &self.lease.identity, Timestamp::now(), &self.timing);
        annotated(Lease { spec: Some(spec), ..lease }, &self.annotations)
    }

    /// Writes the Lease, unless it has changed since it was read.
    async fn replace(&self, lease: &Lease) -> Result<Lease, Failure> {
        timely(self.leases.replace(&self.lease.name, &PostParams::default(), lease)).await
    }
}

impl Unanswered {
    fn is(&self, found: &Lease) -> bool {
        matches!((&self.sent, &found.spec), (Some(sent), Some(found)) if lease::is_own_write(sent, found))
    }
}

impl Seen {
    fn new() -> Self {
        Self { lease: None, since: Instant::now() }
    }

    fn update(&mut self, lease: Option<Lease>) {
        let version = |lease: &Option<Lease>| lease.as_ref().map(|lease| (lease.uid(), lease.resource_version()));
        if version(&lease) != version(&self.lease) {
            self.since = Instant::now();
        }
        self.lease = lease;
    }
}

impl Failure {
    /// Whether only a user can help: permissions are missing, or the namespace is. A new API server may refuse everyone for a moment.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Client(kube::Error::Api(status)) if matches!(status.code, 401 | 403 | 404))
    }
}

impl Failure {
    /// Whether the API server may have done what was requested.
    fn may_have_arrived(&self) -> bool {
        !matches!(self, Self::Client(kube::Error::Api(status)) if matches!(status.code, 400..=499))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => write!(f, "the API server did not answer within {} s", REQUEST.as_secs_f32()),
            Self::Client(error) => match descriptors_exhausted(error) {
                Some(exhausted) => exhausted.fmt(f),
                None => error.fmt(f),
            },
        }
    }
}

fn annotated(mut lease: Lease, values: &BTreeMap<String, Option<String>>) -> Lease {
    if !values.is_empty() {
        let annotations = lease::annotated(lease.metadata.annotations.take().unwrap_or_default(), values);
        lease.metadata.annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
    }
    lease
}

async fn timely<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match tokio::time::timeout(REQUEST, request).await {
        Ok(answer) => answer.map_err(Failure::Client),
        Err(_) => Err(Failure::Timeout),
    }
}
