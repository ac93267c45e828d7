//! The trusted root: what keyless signatures and log entries are checked with.

use chandler_core::Digest;
use sigstore_verify::trust_root::{SIGSTORE_PRODUCTION_TRUSTED_ROOT, TrustedRoot};

/// The largest trusted root.
const BYTES: usize = 1 << 20;

/// Certificate authorities, transparency logs and timestamp authorities, in the form `trusted_root.json` of Sigstore. It is pinned:
/// nothing is fetched.
#[derive(Clone, Debug)]
pub struct TrustRoot {
    pub(crate) root: TrustedRoot,
    digest: Digest,
}

/// The file is not a trusted root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a trusted root of Sigstore (trusted_root.json): {0}")]
pub struct TrustRootError(pub(crate) String);

impl TrustRoot {
    /// Parses `trusted_root.json`.
    pub fn parse(json: &str) -> Result<Self, TrustRootError> {
        if json.len() > BYTES {
            return Err(TrustRootError(format!("it is larger than {BYTES} bytes")));
        }
        let root = TrustedRoot::from_json(json).map_err(|error| TrustRootError(error.to_string()))?;
        Ok(Self { root, digest: Digest::of(json.as_bytes()) })
    }

    /// The root of Sigstore's public instance, as of the release of this program.
    pub fn public() -> Result<Self, TrustRootError> {
        Self::parse(SIGSTORE_PRODUCTION_TRUSTED_ROOT)
    }

    /// The digest of its text.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}
