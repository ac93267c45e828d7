//! Webhooks of registries and git servers: requests for Receivers, on an address of their own.
//!
//! A request is authentic if it has the path of a Receiver, and the signature, the token or the identity token that its type demands. No answer has a body, and no
//! answer before that tells more than whether the path is known, which cannot be guessed. Nothing in a request is logged or stored.
//!
//! A request that is repeated has sources polled again, within the limit for each Receiver: it changes nothing else, so that nothing is
//! needed against replays.

use std::{
    future::Future,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, Request, State},
    response::{IntoResponse as _, Response},
};
use chandler_api::ReceiverType;
use chandler_receivers::{Bucket, Expected, Named, Token, is_authentic, read};
use chandler_tls::TlsSettings;
use futures::StreamExt as _;
use http::{
    HeaderValue, Method, StatusCode,
    header::{CONTENT_LENGTH, RETRY_AFTER},
};
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::watch;

use self::identity::Identity;
use crate::{
    ServeError, ServiceOptions,
    relay::Relayed,
    service_listener::ServiceListener,
    shares::{Share, Shares},
};

mod identity;

pub use self::identity::{IssuerKeys, KeySource};

/// The most bytes of a body.
pub const BODY_BYTES: usize = 1 << 20;
/// How long a sender may take for the body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The most requests at a time, and for one Receiver. Beyond that, the one that has sent nothing for the longest time gives way: the path of
/// a Receiver alone must not be enough to keep its sender out.
const REQUESTS: usize = 64;
const REQUESTS_OF_ONE: usize = 8;

/// The Receivers that accept or refuse requests, and what they wake.
pub trait Hooks: Send + Sync {
    /// The Receiver with this path, in a time that does not depend on how much of it is right.
    fn find(&self, path: &str) -> Option<Arc<Hook>>;
    /// Requests a poll of each source that a request to the Receiver concerns. Returns how many.
    fn wake(&self, hook: &Hook, named: &Named) -> usize;
    /// A request was answered with this outcome, one of a few words.
    fn answered(&self, outcome: &'static str);
}

/// One Receiver.
#[derive(Debug)]
pub struct Hook {
    /// The name of the Receiver.
    pub name: String,
    /// Who sends the requests.
    pub kind: ReceiverType,
    /// The token.
    pub token: Token,
    /// The events that count; empty for all.
    pub events: Vec<String>,
    /// Whether all requests are refused.
    pub suspended: bool,
    /// How identity tokens are judged, for the types that have them.
    identity: Option<Identity>,
    limits: Limits,
}

#[derive(Debug)]
struct Limits {
    began: Instant,
    bucket: Mutex<Bucket>,
    log: Mutex<LogLimit>,
}

/// How many lines of the log the requests cause that poll nothing: anyone who knows the path can cause these.
#[derive(Debug, Default)]
struct LogLimit {
    bucket: Bucket,
    /// The requests without a line since the last line.
    left_out: u64,
}

impl Hook {
    /// A Receiver without requests so far.
    pub fn new(name: String, kind: ReceiverType, token: Token, events: Vec<String>, suspended: bool) -> Self {
        let limits = Limits { began: Instant::now(), bucket: Mutex::default(), log: Mutex::default() };
        Self { name, kind, token, events, suspended, identity: None, limits }
    }

    /// Identity tokens with these claims authenticate requests, if these keys verify them.
    #[must_use]
    pub fn with_identity(self, expected: Expected, keys: Arc<IssuerKeys>) -> Self {
        Self { identity: Some(Identity { expected, keys }), ..self }
    }

    fn take(&self) -> Result<(), Duration> {
        self.limits.bucket.lock().take(self.limits.began.elapsed())
    }

    /// Whether a request that polls nothing has a line in the log: the number of requests without one before it.
    fn logged(&self) -> Option<u64> {
        let mut log = self.limits.log.lock();
        if log.bucket.take(self.limits.began.elapsed()).is_err() {
            log.left_out = log.left_out.saturating_add(1);
            return None;
        }
        Some(std::mem::take(&mut log.left_out))
    }
}

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// So many sources are polled.
    Accepted(usize),
    /// An event that does not count.
    Ignored,
    /// The path of no Receiver.
    Unknown,
    Suspended,
    Unauthenticated,
    Malformed,
    TooLarge,
    Slow,
    /// The Receiver had enough requests for now; there is room after this time.
    Limited(Duration),
    /// It gave way, since too many requests are under way.
    Busy,
    /// The keys of the issuer are unknown, since they could not be fetched.
    NoKeys,
}

impl Outcome {
    const fn name(self) -> &'static str {
        match self {
            Self::Accepted(_) => "accepted",
            Self::Ignored => "ignored",
            Self::Unknown => "unknown",
            Self::Suspended => "suspended",
            Self::Unauthenticated => "unauthenticated",
            Self::Malformed => "malformed",
            Self::TooLarge => "too-large",
            Self::Slow => "slow",
            Self::Limited(_) => "limited",
            Self::Busy => "busy",
            Self::NoKeys => "no-keys",
        }
    }

    fn response(self) -> Response {
        let (status, retry_after) = match self {
            Self::Accepted(_) => (StatusCode::ACCEPTED, None),
            Self::Ignored => (StatusCode::OK, None),
            Self::Unknown => (StatusCode::NOT_FOUND, None),
            Self::Suspended => (StatusCode::FORBIDDEN, None),
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, None),
            Self::Malformed => (StatusCode::BAD_REQUEST, None),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, None),
            Self::Slow => (StatusCode::REQUEST_TIMEOUT, None),
            Self::Limited(after) => (StatusCode::TOO_MANY_REQUESTS, Some(after)),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, Some(Duration::from_secs(1))),
            Self::NoKeys => (StatusCode::SERVICE_UNAVAILABLE, Some(Duration::from_mins(1))),
        };
        let mut response = status.into_response();
        if let Some(after) = retry_after {
            let seconds = after.as_secs().saturating_add(u64::from(after.subsec_nanos() > 0));
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// What the requests share.
struct Service {
    hooks: Arc<dyn Hooks>,
    /// The requests that are under way, by the name of the Receiver.
    requests: Shares<String>,
}

/// All paths, for these Receivers.
pub fn router(hooks: Arc<dyn Hooks>) -> Router {
    let service = Arc::new(Service { hooks, requests: Shares::new(REQUESTS, REQUESTS_OF_ONE) });
    // The limit is checked where the body is read.
    Router::new().fallback(receive).layer(DefaultBodyLimit::disable()).with_state(service)
}

async fn receive(State(service): State<Arc<Service>>, request: Request) -> Response {
    let hook = service.hooks.find(request.uri().path()).filter(|_| request.method() == Method::POST);
    let outcome = match &hook {
        None => Outcome::Unknown,
        Some(hook) => answer(&service, hook, request).await,
    };
    service.hooks.answered(outcome.name());
    match (&hook, outcome) {
        // Anyone who reaches the address causes these.
        (None, _) => tracing::debug!(outcome = outcome.name(), "a webhook was refused"),
        (Some(hook), Outcome::Accepted(polled)) => {
            tracing::info!(receiver = hook.name, polled, "a webhook was accepted");
        }
        (Some(hook), outcome) => {
            if let Some(left_out) = hook.logged() {
                tracing::info!(receiver = hook.name, outcome = outcome.name(), left_out, "a webhook polls nothing");
            }
        }
    }
    outcome.response()
}

async fn answer(service: &Service, hook: &Hook, request: Request) -> Outcome {
    if hook.suspended {
        return Outcome::Suspended;
    }
    let (head, body) = request.into_parts();
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > BODY_BYTES as u64) {
        return Outcome::TooLarge;
    }
    let place = service.requests.take(hook.name.clone());
    // Before the body, of which a forged request costs nothing.
    if let Some(identity) = &hook.identity {
        let judged = tokio::select! {
            biased;
            judged = identity.judge(&head.headers) => judged,
            () = place.gives_way() => return Outcome::Busy,
        };
        if let Err(outcome) = judged {
            return outcome;
        }
    }
    let body = tokio::select! {
        biased;
        body = tokio::time::timeout(BODY_TIMEOUT, collected(body, &place)) => match body {
            Ok(Some(body)) => body,
            Ok(None) => return Outcome::TooLarge,
            Err(_) => return Outcome::Slow,
        },
        () = place.gives_way() => return Outcome::Busy,
    };
    if hook.identity.is_none() && !is_authentic(hook.kind, &hook.token, &head.headers, &body) {
        return Outcome::Unauthenticated;
    }
    let named = match read(hook.kind, &head.headers, &body, &hook.events) {
        Ok(Named::Nothing) => return Outcome::Ignored,
        Ok(named) => named,
        Err(_) => return Outcome::Malformed,
    };
    match hook.take() {
        Ok(()) => Outcome::Accepted(service.hooks.wake(hook, &named)),
        Err(after) => Outcome::Limited(after),
    }
}

/// The body; `None` if it is too large, or the connection ended.
async fn collected(body: Body, place: &Share<String>) -> Option<Vec<u8>> {
    let (mut parts, mut collected) = (body.into_data_stream(), Vec::new());
    while let Some(part) = parts.next().await {
        let part = part.ok()?;
        if collected.len().saturating_add(part.len()) > BODY_BYTES {
            return None;
        }
        if !part.is_empty() {
            place.used();
        }
        collected.extend_from_slice(&part);
    }
    Some(collected)
}

/// A bound address, on which nothing is received yet.
#[derive(Debug)]
pub struct ReceiverListener(ServiceListener);

impl ReceiverListener {
    /// Binds the address. `namespace` is the system namespace.
    ///
    /// # Errors
    /// The address is in use, or may not be used.
    pub fn bind(options: ServiceOptions, namespace: &str) -> Result<Self, ServeError> {
        ServiceListener::bind(Self::WHAT, options, namespace).map(Self)
    }

    /// Receives requests until `shutdown` completes. `client` reads the Secret with the certificate, and `tls` is what connections may
    /// negotiate.
    ///
    /// # Errors
    /// Connections cannot be accepted.
    pub async fn serve(
        self,
        client: Client,
        hooks: Arc<dyn Hooks>,
        tls: watch::Receiver<TlsSettings>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        self.0.serve("", router(hooks), &client, tls, shutdown).await
    }
}

impl Relayed for ReceiverListener {
    const WHAT: &'static str = "webhooks";

    fn address(&self) -> Result<SocketAddr, ServeError> {
        self.0.address()
    }

    fn shared(&self) -> Result<Self, ServeError> {
        self.0.shared().map(Self)
    }

    fn into_socket(self) -> TcpListener {
        self.0.socket
    }
}

#[cfg(test)]
mod tests;
