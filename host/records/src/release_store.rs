//! Stores releases in immutable Secrets, so that the current release can be repaired even if the registry is
//! unavailable and the caches are empty.

use chandler_core::{Digest, Release};
use chandler_releases::format::{from_bytes, to_bytes};
use k8s_openapi::{ByteString, api::core::v1::Secret};

use crate::{
    error::RecordError,
    names::{self, RELEASE_TYPE},
    records::Secrets,
};

/// The bytes in one Secret: slightly below the API server's limit of one mebibyte.
pub(crate) const PART_BYTES: usize = 1_000_000;
/// The key of the bytes in a Secret.
const KEY: &str = "part";

/// A release in Secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The number of Secrets.
    pub(crate) parts: usize,
    /// Its bytes; `None` if an earlier version of the controller stored it.
    pub(crate) bytes: Option<u64>,
}

/// Stores a release.
pub(crate) async fn store(
    secrets: &Secrets,
    deployment: &str,
    uid: &str,
    release: &Release,
) -> Result<Stored, RecordError> {
    let bytes = to_bytes(release)?;
    let parts = bytes.chunks(PART_BYTES);
    let count = parts.len();
    for (number, part) in parts.enumerate() {
        let name = names::release(uid, release.digest(), number);
        let secret = Secret {
            metadata: names::metadata(name, names::RELEASE, deployment),
            type_: Some(RELEASE_TYPE.to_owned()),
            immutable: Some(true),
            data: Some([(KEY.to_owned(), ByteString(part.to_vec()))].into()),
            string_data: None,
        };
        // An existing Secret of this name has the same bytes: the name identifies the release, and its encoding is
        // deterministic.
        secrets.create_if_absent(&secret).await?;
    }
    Ok(Stored { parts: count, bytes: u64::try_from(bytes.len()).ok() })
}

/// Reads a release of this many parts. Returns `None` if a part is missing.
pub(crate) async fn read(
    secrets: &Secrets,
    uid: &str,
    digest: &Digest,
    parts: usize,
) -> Result<Option<Release>, RecordError> {
    let mut bytes = Vec::new();
    for number in 0..parts {
        let Some(secret) = secrets.get(&names::release(uid, digest, number)).await? else { return Ok(None) };
        let part = secret.data.unwrap_or_default().remove(KEY);
        bytes.extend(part.unwrap_or_default().0);
    }
    let release = from_bytes(digest, &bytes);
    release.map(Some).map_err(|source| RecordError::Altered { name: names::release(uid, digest, 0), source })
}

/// Deletes a release.
pub(crate) async fn delete(secrets: &Secrets, uid: &str, digest: &Digest, parts: usize) -> Result<(), RecordError> {
    for number in 0..parts {
        secrets.delete(&names::release(uid, digest, number)).await?;
    }
    Ok(())
}
