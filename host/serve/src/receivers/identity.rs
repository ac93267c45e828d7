//! Identity tokens of requests, judged with the keys of their issuer.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_receivers::{Expected, KeyCache, Keys, Presented, Unproven};
use futures::future::BoxFuture;
use http::HeaderMap;
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;

use super::Outcome;

/// Fetches the keys of one issuer.
pub trait KeySource: Send + Sync {
    /// The keys; `None` if they cannot be fetched now.
    fn fetch(&self) -> BoxFuture<'static, Option<Keys>>;
}

/// The keys of one issuer, which the Receivers with this issuer share. They are fetched when a request needs them, one fetch at a time and not
/// more often than [`KeyCache`] allows, whatever the requests contain.
pub struct IssuerKeys {
    source: Box<dyn KeySource>,
    began: Instant,
    cache: Mutex<KeyCache>,
    refreshing: tokio::sync::Mutex<()>,
}

impl fmt::Debug for IssuerKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuerKeys").field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl IssuerKeys {
    /// No keys yet.
    pub fn new(source: impl KeySource + 'static) -> Self {
        let (source, began) = (Box::new(source), Instant::now());
        Self { source, began, cache: Mutex::default(), refreshing: tokio::sync::Mutex::default() }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether the signature fits; `None` without keys.
    fn verify(&self, token: &Presented<'_>) -> Option<Result<(), Unproven>> {
        let keys = self.cache.lock().keys(self.now());
        keys.map(|keys| keys.verify(token))
    }

    /// Fetches the keys if they are due, after another fetch that is under way.
    async fn refresh(self: Arc<Self>, is_unknown: bool) {
        let _one_at_a_time = self.refreshing.lock().await;
        {
            let (mut cache, now) = (self.cache.lock(), self.now());
            if !cache.is_due(is_unknown, now) {
                return;
            }
            cache.trying(now);
        }
        if let Some(keys) = self.source.fetch().await {
            self.cache.lock().fetched(keys, self.now());
        }
    }
}

/// How the identity tokens of a Receiver are judged.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) expected: Expected,
    pub(super) keys: Arc<IssuerKeys>,
}

impl Identity {
    /// Judges the token of a request with these headers. Nothing is fetched unless the token has the claims that the Receiver demands.
    pub(super) async fn judge(&self, headers: &HeaderMap) -> Result<(), Outcome> {
        let refused = |unproven: Unproven| {
            tracing::debug!(%unproven, "an identity token was refused");
            Outcome::Unauthenticated
        };
        let token = Presented::of(headers).map_err(refused)?;
        token.check(&self.expected, Timestamp::now().as_second()).map_err(refused)?;
        let mut verdict = self.keys.verify(&token);
        let is_unknown = matches!(verdict, None | Some(Err(Unproven::UnknownKey)));
        let is_old = || self.keys.cache.lock().is_due(false, self.keys.now());
        if is_unknown || is_old() {
            // On a task of its own, since a sender that leaves would otherwise use up the attempt of this minute. An error means that the
            // controller is stopping.
            let _ = tokio::spawn(Arc::clone(&self.keys).refresh(is_unknown)).await;
            verdict = self.keys.verify(&token);
        }
        verdict.ok_or(Outcome::NoKeys)?.map_err(refused)
    }
}
