//! Counts the requests of a client.

use std::{collections::BTreeMap, sync::Arc};

use http::Request;
use kube::client::Body;
use parking_lot::Mutex;

use crate::requests::{reconciles, request::RequestKind};

/// Requests by verb and resource.
pub type Counts = BTreeMap<RequestKind, u64>;

/// The requests since an earlier count.
pub fn since(now: &Counts, before: &Counts) -> Counts {
    let since = now.iter().map(|(kind, count)| (kind.clone(), count - before.get(kind).copied().unwrap_or_default()));
    since.filter(|(_, count)| *count > 0).collect()
}

/// Counts requests. Clones share their state.
#[derive(Clone)]
pub struct Recorder {
    system_namespace: String,
    counts: Arc<Mutex<Counts>>,
}

impl Recorder {
    /// A recorder for a controller with this namespace for its own records.
    pub fn new(system_namespace: &str) -> Self {
        Self { system_namespace: system_namespace.to_owned(), counts: Arc::default() }
    }

    /// The requests so far.
    pub fn counts(&self) -> Counts {
        self.counts.lock().clone()
    }

    /// Counts a request. The client calls this in the span of the task that sends it.
    pub fn record(&self, request: Request<Body>) -> Request<Body> {
        let kind = RequestKind::of(&request, &self.system_namespace);
        reconciles::record(&kind);
        *self.counts.lock().entry(kind).or_default() += 1;
        request
    }
}
