//! Fault injection.

use crate::route::Route;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Respond with this status, such as 500, 429 or 401.
    Status(u16),
    /// Change one byte of the body.
    WrongBytes,
    /// End the body early, with a matching length.
    Truncated,
    /// Append one byte to the body.
    Longer,
    /// Reset the connection in the middle of the body.
    Broken,
    /// Never respond.
    Silent,
    /// Omit the header with the digest.
    NoDigestHeader,
    /// Redirect to `http://127.0.0.1` and this port, even if the registry uses TLS.
    RedirectToPlain(u16),
}

/// The requests that a fault applies to. Uploads never fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultOn {
    /// Requests for manifests.
    Manifests,
    /// Requests for blobs.
    Blobs,
    /// All read requests.
    Everything,
}

impl FaultOn {
    pub(crate) fn covers(self, route: &Route) -> bool {
        match self {
            Self::Manifests => matches!(route, Route::Manifest { .. }),
            Self::Blobs => matches!(route, Route::Blob { .. }),
            Self::Everything => true,
        }
    }
}
