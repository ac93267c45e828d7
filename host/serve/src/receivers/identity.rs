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
use tokio::sync::watch;

use super::Outcome;

/// Fetches the keys of one issuer.
pub trait KeySource: Send + Sync {
    /// The keys; `None` if they cannot be fetched now.
    fn fetch(&self) -> BoxFuture<'static, Option<Keys>>;
}

/// The keys of one issuer, which the Receivers with this issuer share. They are fetched when a request needs them, not more often than
/// [`KeyCache`] allows, whatever the requests contain. All requests that need keys wait for one fetch.
pub struct IssuerKeys {
    source: Box<dyn KeySource>,
    began: Instant,
    cache: Mutex<KeyCache>,
    /// Closes when the last fetch ends.
    fetch: Mutex<Option<watch::Receiver<()>>>,
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
        Self { source, began, cache: Mutex::default(), fetch: Mutex::default() }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether the signature fits; `None` without keys.
    fn verify(&self, token: &Presented<'_>) -> Option<Result<(), Unproven>> {
        let keys = self.cache.lock().keys(self.now());
        keys.map(|keys| keys.verify(token))
    }

    /// Waits for the fetch that is under way, or for a new one if the keys are due.
    async fn refresh(self: &Arc<Self>, is_unknown: bool) {
        if let Some(mut fetch) = self.fetching(is_unknown) {
            // Nothing is sent: this is an error, once the fetch ends.
            let _ = fetch.changed().await;
        }
    }

    /// The fetch that is under way, or a new one if the keys are due. It runs on a task of its own, since a sender that leaves would otherwise
    /// use up the attempt of this minute.
    fn fetching(self: &Arc<Self>, is_unknown: bool) -> Option<watch::Receiver<()>> {
        let mut fetch = self.fetch.lock();
        if let Some(running) = fetch.as_ref().filter(|running| running.has_changed().is_ok()) {
            return Some(running.clone());
        }
        {
            let (mut cache, now) = (self.cache.lock(), self.now());
            if !cache.is_due(is_unknown, now) {
                return None;
            }
            cache.trying(now);
        }
        let (end, running) = watch::channel(());
        *fetch = Some(running.clone());
        let this = Arc::clone(self);
        tokio::spawn(async move {
            if let Some(keys) = this.source.fetch().await {
                this.cache.lock().fetched(keys, this.now());
            }
            drop(end);
        });
        Some(running)
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
            self.keys.refresh(is_unknown).await;
            verdict = self.keys.verify(&token);
        }
        verdict.ok_or(Outcome::NoKeys)?.map_err(refused)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::{FutureExt as _, join_all};
    use tokio::{runtime::Handle, sync::Notify};

    use super::*;

    /// An issuer that answers when it is notified.
    #[derive(Clone, Default)]
    struct Slow {
        fetches: Arc<AtomicUsize>,
        answers: Arc<Notify>,
    }

    impl KeySource for Slow {
        fn fetch(&self) -> BoxFuture<'static, Option<Keys>> {
            self.fetches.fetch_add(1, Ordering::Relaxed);
            let answers = Arc::clone(&self.answers);
            Box::pin(async move {
                answers.notified().await;
                Some(Keys::default())
            })
        }
    }

    #[tokio::test]
    async fn many_requests_wait_for_one_fetch_that_outlives_them() {
        let source = Slow::default();
        let keys = Arc::new(IssuerKeys::new(source.clone()));
        let waiting = || {
            Box::pin({
                let keys = Arc::clone(&keys);
                async move { keys.refresh(true).await }
            })
        };
        let mut requests: Vec<_> = (0..100).map(|_| waiting()).collect();
        for request in &mut requests {
            assert!(request.now_or_never().is_none());
        }
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 1, "requests start no tasks");
        // The first sender leaves.
        drop(requests.remove(0));
        source.answers.notify_one();
        join_all(requests).await;
        assert_eq!(source.fetches.load(Ordering::Relaxed), 1);
        assert!(keys.cache.lock().keys(keys.now()).is_some());
        // Within the minute, nothing is fetched and nothing waits.
        assert!(waiting().now_or_never().is_some());
    }
}
