//! The effects of faults on requests.

use std::time::Duration;

use super::matching::Verb;

/// The effect of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The request waits on the cluster's clock before it is looked at: between `least` and `most`.
    Latency {
        /// At least so long.
        least: Duration,
        /// At most so long.
        most: Duration,
    },
    /// 409 Conflict, as if another write had come between. Nothing is written.
    Conflict,
    /// 410 Expired as the status of the response, as for a revision that was compacted.
    Gone,
    /// 429 with `Retry-After`, which counts whole seconds. Nothing is written.
    TooManyRequests {
        /// After how long the client may try again.
        retry_after: Duration,
    },
    /// 500. Nothing is written.
    InternalError,
    /// The request takes effect, the client sees 500.
    InternalErrorAfterWrite,
    /// 503. Nothing is written.
    Unavailable,
    /// The connection (with HTTP/2 the stream) is reset without a response. Nothing is written.
    Reset,
    /// The request takes effect, and the connection is reset without a response.
    ResetAfterWrite,
    /// Reads that a watch cache may answer, namely those that give `resourceVersion=0` or `resourceVersionMatch=NotOlderThan`,
    /// see the state of this many revisions ago, but none older than the one they give.
    Stale {
        /// How far the cache lags behind.
        revisions: u64,
    },
    /// A watch ends in good form, without the last bookmark.
    DropWatch(When),
    /// A watch breaks off: the connection (with HTTP/2 the stream) is reset in the middle of the response.
    ResetWatch(When),
    /// A watch gets an ERROR event with 410 Expired and ends.
    ExpireWatch(When),
    /// Each event of a watch is sent this long after the previous one.
    SlowWatch {
        /// The time before each event.
        delay: Duration,
    },
    /// Each bookmark of a watch, and the events after it, are delayed by this time.
    LateBookmarks {
        /// The time before each bookmark.
        delay: Duration,
    },
    /// A watch gets no bookmarks, not even the one that ends the initial events of a streaming list.
    NoBookmarks,
    /// A CRD whose names are accepted becomes established after this additional delay. It is matched as a `create` of the CRD.
    EstablishedDelay {
        /// Instead of [`Options::established_delay`](crate::Options::established_delay).
        delay: Duration,
    },
}

/// When it happens to a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// After this many events; bookmarks do not count.
    Events(u64),
    /// After so long on the cluster's clock.
    Time(Duration),
}

impl When {
    /// Before the first event.
    pub const AT_ONCE: Self = Self::Events(0);
}

impl Effect {
    /// The verbs of the requests that it can happen to; `None` means each, requests that are not for objects included.
    pub fn verbs(&self) -> Option<&'static [Verb]> {
        match self {
            Self::Latency { .. }
            | Self::Conflict
            | Self::Gone
            | Self::TooManyRequests { .. }
            | Self::InternalError
            | Self::Unavailable
            | Self::Reset => None,
            Self::InternalErrorAfterWrite | Self::ResetAfterWrite => Some(Verb::WRITES),
            Self::Stale { .. } => Some(&[Verb::Get, Verb::List, Verb::Watch]),
            Self::DropWatch(_)
            | Self::ResetWatch(_)
            | Self::ExpireWatch(_)
            | Self::SlowWatch { .. }
            | Self::LateBookmarks { .. }
            | Self::NoBookmarks => Some(&[Verb::Watch]),
            Self::EstablishedDelay { .. } => Some(&[Verb::Create]),
        }
    }
}
