//! The bytes of a blob, verified during the download.

use bytes::Bytes;
use chandler_core::Digest;
use reqwest::{Method, Response};
use sha2::{Digest as _, Sha256};

use super::{
    client::Client,
    manifest::{Descriptor, ImageError, refused},
    reference::ImageReference,
};
use crate::{ContentError, transport::Pace};

/// A download. Its bytes must not be used before it has completed successfully.
pub(super) struct Blob<'a> {
    client: &'a Client,
    image: &'a ImageReference,
    expected: &'a Descriptor,
    response: Response,
    pace: Pace,
    hash: Sha256,
    size: u64,
}

impl<'a> Blob<'a> {
    /// Requests a blob of an image.
    pub(super) async fn request(
        client: &'a Client,
        image: &'a ImageReference,
        expected: &'a Descriptor,
    ) -> Result<Self, ContentError> {
        let response = client.request(Method::GET, &format!("blobs/{}", expected.digest), None).await?;
        Ok(Self { client, image, expected, response, pace: client.pace(), hash: Sha256::new(), size: 0 })
    }

    /// The next bytes; none at the end, if size and digest match. Never more bytes than the descriptor states.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ContentError> {
        let Some(chunk) = self.client.chunk(&mut self.response, &mut self.pace).await? else {
            self.verify()?;
            return Ok(None);
        };
        self.size = self.size.saturating_add(chunk.len() as u64);
        if self.size > self.expected.size {
            return Err(self.wrong_size(format!("more than {}", self.expected.size)));
        }
        self.hash.update(&chunk);
        Ok(Some(chunk))
    }

    fn verify(&self) -> Result<(), ContentError> {
        if self.size < self.expected.size {
            return Err(self.wrong_size(self.size.to_string()));
        }
        let found = Digest::from_hash(self.hash.clone().finalize().into());
        if found == self.expected.digest {
            return Ok(());
        }
        let mismatch = ImageError::DigestMismatch { what: self.name(), expected: self.expected.digest.clone(), found };
        Err(refused(self.image, mismatch))
    }

    fn wrong_size(&self, found: String) -> ContentError {
        refused(self.image, ImageError::SizeMismatch { what: self.name(), expected: self.expected.size, found })
    }

    fn name(&self) -> String {
        format!("layer {}", self.expected.digest.short())
    }
}
