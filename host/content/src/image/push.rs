//! Pushes blobs and manifests to one repository of a registry.

use std::sync::Arc;

use bytes::Bytes;
use chandler_core::Digest;
use reqwest::{
    Method, Response, Url,
    header::{CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderValue},
};

use super::{
    ImageAccess, ImageOptions, ImageReference,
    client::{Client, Purpose},
    endpoints::Endpoint,
    manifest::refused,
};
use crate::{ContentError, LimitExceeded, Limits, RegistryError, ServerFailure, transport::SystemRoots};

/// The most bytes of one request: a slow network must send them before the registry counts as silent.
const CHUNK_BYTES: usize = 4 << 20;
/// The header with the least bytes that a registry takes in one request of an upload, but for its last.
const LEAST: &str = "oci-chunk-min-length";
/// The media type of the bytes of an upload.
const OCTETS: &str = "application/octet-stream";

/// A repository that is written to, with the certificates, proxies, credentials and limits of [`Images`](super::Images). Mirrors are not used.
pub struct PushRepository {
    client: Client,
    image: ImageReference,
}

impl PushRepository {
    /// The repository of an image. No request is sent yet.
    ///
    /// # Errors
    /// The certificates for the registry cannot be used.
    pub async fn open(
        image: &ImageReference,
        access: &ImageAccess,
        options: ImageOptions,
    ) -> Result<Self, ContentError> {
        let certificates = options.registries.read_certificates(image).await?;
        let endpoint = Endpoint { image: image.clone(), access: access.clone(), plain: false };
        let (options, roots) = (Arc::new(options), SystemRoots::default());
        let client = Client::new(&endpoint, Purpose::Push, certificates.as_ref(), &options, &roots, &Arc::default())?;
        Ok(Self { client, image: image.clone() })
    }

    /// The manifest of a tag or digest of the repository; `None` if there is none.
    ///
    /// # Errors
    /// The registry does not answer or refuses access, or the manifest is larger than the limit for manifests.
    pub async fn manifest(&self, version: &str, accept: &'static str) -> Result<Option<Vec<u8>>, ContentError> {
        let Some(response) = self.client.find(&format!("manifests/{version}"), accept).await? else {
            return Ok(None);
        };
        let most = Limits::default().manifest_bytes;
        let text = self.client.read(response, most).await?;
        text.map(Some).ok_or_else(|| refused(&self.image, LimitExceeded::ManifestBytes(most).into()))
    }

    /// Pushes a blob, unless the repository has it.
    ///
    /// # Errors
    /// The registry does not answer, or refuses the blob.
    pub async fn push_blob(&self, digest: &Digest, bytes: Bytes) -> Result<(), ContentError> {
        // This also shows whether the registry speaks TLS. Whether it refuses access shows the upload.
        if self.client.head(&format!("blobs/{digest}"), "*/*").await?.is_some() {
            return Ok(());
        }
        if bytes.len() > CHUNK_BYTES {
            match self.in_chunks(digest, &bytes).await {
                // Some registries take a blob in one piece only.
                Err(error) if matches!(error.failure, ServerFailure::Protocol | ServerFailure::NotFound) => {
                    tracing::debug!(%error, "the registry takes no chunks");
                }
                pushed => return Ok(pushed?),
            }
        }
        let (place, _) = self.begin().await?;
        self.finish(&place, digest, &bytes).await?;
        Ok(())
    }

    /// Pushes a manifest with a tag, or with its digest.
    ///
    /// # Errors
    /// The registry does not answer, or refuses the manifest.
    pub async fn push_manifest(&self, version: &str, media_type: &str, bytes: Bytes) -> Result<(), ContentError> {
        let media_type = HeaderValue::from_str(media_type)
            .map_err(|_| self.client.protocol("the media type of the manifest cannot be sent in a header"))?;
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, media_type)]);
        let url = self.client.url(&format!("manifests/{version}"))?;
        self.client.write(Method::PUT, &url, &headers, &bytes).await?;
        Ok(())
    }

    async fn in_chunks(&self, digest: &Digest, bytes: &Bytes) -> Result<(), RegistryError> {
        let (mut place, most) = self.begin().await?;
        let mut sent = 0;
        while sent < bytes.len() {
            let end = bytes.len().min(sent.saturating_add(most));
            let range = format!("{sent}-{}", end.saturating_sub(1));
            let range = HeaderValue::from_str(&range).map_err(|_| self.client.protocol("no range"))?;
            let headers =
                HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(OCTETS)), (CONTENT_RANGE, range)]);
            let response = self.client.write(Method::PATCH, &place, &headers, &bytes.slice(sent..end)).await?;
            place = self.place(&response)?;
            sent = end;
        }
        self.finish(&place, digest, &Bytes::new()).await
    }

    /// Begins an upload, and returns where its bytes go, and how many of them in one request.
    async fn begin(&self) -> Result<(Url, usize), RegistryError> {
        let url = self.client.url("blobs/uploads/")?;
        let response = self.client.write(Method::POST, &url, &HeaderMap::new(), &Bytes::new()).await?;
        Ok((self.place(&response)?, chunk_bytes(response.headers())))
    }

    /// Ends an upload with its last bytes.
    async fn finish(&self, place: &Url, digest: &Digest, bytes: &Bytes) -> Result<(), RegistryError> {
        let mut place = place.clone();
        place.query_pairs_mut().append_pair("digest", &digest.to_string());
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(OCTETS))]);
        self.client.write(Method::PUT, &place, &headers, bytes).await.map(drop)
    }

    /// Where the next bytes of an upload go.
    fn place(&self, response: &Response) -> Result<Url, RegistryError> {
        let place = self.client.location(response)?;
        place.ok_or_else(|| self.client.protocol("it does not say where the bytes of an upload go"))
    }
}

/// The bytes of one request of an upload that a registry has begun with these headers.
fn chunk_bytes(headers: &HeaderMap) -> usize {
    let least = headers.get(LEAST).and_then(|least| least.to_str().ok()?.trim().parse().ok());
    least.map_or(CHUNK_BYTES, |least: usize| least.max(CHUNK_BYTES))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderName;

    use super::*;

    #[test]
    fn a_registry_may_demand_larger_chunks() {
        let of = |least: &'static str| {
            chunk_bytes(&HeaderMap::from_iter([(HeaderName::from_static(LEAST), HeaderValue::from_static(least))]))
        };
        assert_eq!(of("5242880"), 5 << 20);
        for other in ["1", "0", "-1", "", "many", "99999999999999999999999999"] {
            assert_eq!(of(other), CHUNK_BYTES, "{other}");
        }
        assert_eq!(chunk_bytes(&HeaderMap::new()), CHUNK_BYTES);
    }
}
