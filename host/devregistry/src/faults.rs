//! Failing on purpose.

use crate::route::Route;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The answer is this status, such as 500, 429 or 401.
    Status(u16),
    /// A byte of the body is another one.
    WrongBytes,
    /// The body ends early, in good form.
    Truncated,
    /// The body is one byte longer.
    Longer,
    /// The connection breaks in the middle of the body.
    Broken,
    /// There is never an answer.
    Silent,
    /// The header that names the digest is missing.
    NoDigestHeader,
    /// The answer is a redirect to `http://127.0.0.1` and this port, whatever the connection is secured with.
    RedirectToPlain(u16),
}

/// For which requests. Uploads never fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultOn {
    /// Those for manifests.
    Manifests,
    /// Those for blobs.
    Blobs,
    /// All that read.
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
