//! The issuers of identity tokens, and the keys that the Receivers with the same issuer share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Instant,
};

use chandler_content::{IssuerError, Issuers};
use chandler_receivers::{Bucket, Keys};
use chandler_serve::{IssuerKeys, KeySource};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// The most fetches at once, for all issuers.
const FETCHES: usize = 4;

/// The issuers that Receivers name.
pub(crate) struct KnownIssuers {
    issuers: Issuers,
    limits: Arc<Limits>,
    known: Mutex<BTreeMap<Issuer, Weak<IssuerKeys>>>,
}

/// An issuer with what it is trusted with: Receivers with other certificates must not share its keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Issuer {
    url: String,
    certificates: Option<Vec<u8>>,
}

/// How many fetches there are, whatever the number of issuers and requests.
struct Limits {
    began: Instant,
    bucket: Mutex<Bucket>,
    places: Semaphore,
}

impl KnownIssuers {
    /// None yet. Their keys are fetched with `issuers`.
    pub(crate) fn new(issuers: Issuers) -> Self {
        let limits = Limits { began: Instant::now(), bucket: Mutex::default(), places: Semaphore::new(FETCHES) };
        Self { issuers, limits: Arc::new(limits), known: Mutex::default() }
    }

    /// Checks an issuer and its additional certificates. Connects to nothing.
    pub(super) fn check(&self, url: &str, certificates: Option<&[u8]>) -> Result<(), IssuerError> {
        self.issuers.check(url, certificates)
    }

    /// The keys of an issuer, which live as long as a Receiver has them.
    pub(super) fn keys(&self, url: &str, certificates: Option<&[u8]>) -> Arc<IssuerKeys> {
        let issuer = Issuer { url: url.to_owned(), certificates: certificates.map(<[u8]>::to_vec) };
        let mut known = self.known.lock();
        if let Some(keys) = known.get(&issuer).and_then(Weak::upgrade) {
            return keys;
        }
        let source = Fetch { issuers: self.issuers.clone(), limits: Arc::clone(&self.limits), issuer: issuer.clone() };
        let keys = Arc::new(IssuerKeys::new(source));
        known.retain(|_, keys| keys.strong_count() > 0);
        known.insert(issuer, Arc::downgrade(&keys));
        keys
    }
}

/// Fetches the keys of one issuer.
struct Fetch {
    issuers: Issuers,
    limits: Arc<Limits>,
    issuer: Issuer,
}

impl KeySource for Fetch {
    fn fetch(&self) -> BoxFuture<'static, Option<Keys>> {
        let (issuers, limits, issuer) = (self.issuers.clone(), Arc::clone(&self.limits), self.issuer.clone());
        Box::pin(async move {
            let Issuer { url, certificates } = issuer;
            // Each request to fetch is one of few in a minute, so that the lines of the log are, too.
            let taken = limits.bucket.lock().take(limits.began.elapsed());
            let (Ok(()), Ok(_place)) = (taken, limits.places.acquire().await) else {
                tracing::debug!(
                    issuer = url,
                    "the keys of an issuer are not fetched: too many were in the last minute"
                );
                return None;
            };
            let document = match issuers.keys(&url, certificates.as_deref()).await {
                Ok(document) => document,
                Err(error) => {
                    tracing::warn!(issuer = url, %error, "the keys of an issuer cannot be fetched");
                    return None;
                }
            };
            let keys = Keys::parse(&document);
            keys.inspect_err(|error| tracing::warn!(issuer = url, %error, "the keys of an issuer cannot be read")).ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use chandler_content::ImageOptions;
    use chandler_receivers::bucket::PER_MINUTE;

    use super::*;

    fn none() -> KnownIssuers {
        KnownIssuers::new(Issuers::new(ImageOptions::default()))
    }

    #[test]
    fn receivers_with_one_issuer_share_its_keys_unless_they_trust_another_server() {
        let known = none();
        let keys = known.keys("https://issuer.example.com", None);
        assert!(Arc::ptr_eq(&keys, &known.keys("https://issuer.example.com", None)));
        assert!(!Arc::ptr_eq(&keys, &known.keys("https://issuer.example.com", Some(b"a"))));
        let other = known.keys("https://other.example.com", None);
        assert!(!Arc::ptr_eq(&keys, &other));
        drop((keys, other));
        let _keys = known.keys("https://third.example.com", None);
        assert_eq!(known.known.lock().len(), 1, "no Receiver has the others");
    }

    #[tokio::test]
    async fn all_issuers_together_have_few_fetches_in_a_minute() {
        let known = none();
        let fetch = |number: u32| Fetch {
            issuers: known.issuers.clone(),
            limits: Arc::clone(&known.limits),
            // Refused before any connection.
            issuer: Issuer { url: format!("http://issuer-{number}.example.com"), certificates: None },
        };
        for number in 0..PER_MINUTE {
            assert!(fetch(number).fetch().await.is_none());
        }
        let more = |_: &u32| known.limits.bucket.lock().take(known.limits.began.elapsed()).is_ok();
        assert!((0..PER_MINUTE).filter(more).count() < PER_MINUTE as usize, "each one counted");
    }
}
