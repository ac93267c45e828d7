//! The signatures of an image in its own registry, or in the mirror that serves it, and whether they satisfy a policy.
//!
//! Both places of cosign are read: the tag `sha256-<hex>.sig` of cosign 1 and 2, and the referrers of cosign 3, with the tag
//! `sha256-<hex>` where a registry does not list referrers (distribution specification 1.1, "Referrers Tag Schema"). The registry is
//! not trusted: it can keep signatures back, but not make any. Unreadable entries in the list do not hide a good signature.

use std::{fmt, sync::Arc};

use chandler_core::Digest;
use chandler_verify::{Annotations, MOST_SIGNATURES, Policy, SIGNATURE_BYTES, Signature, Verifier};
use reqwest::Response;
use serde::Deserialize;

use super::{
    ImageReference, Images,
    blob::Blob,
    client::Client,
    endpoints::Endpoint,
    manifest::{ACCEPTED, Descriptor},
};
use crate::{ContentError, RegistryError, ServerFailure, blocking};

/// The layer of a payload of cosign 1 and 2.
const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// How the media types of Sigstore's bundles begin, whatever their version.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// The statement of a bundle that is a signature.
const SIGNS: &str = "https://sigstore.dev/cosign/sign/v1";

/// The signatures that an image must have.
#[derive(Clone)]
pub struct RequiredSignatures {
    policy: Policy,
    verifier: Arc<Verifier>,
}

impl RequiredSignatures {
    /// Signatures that satisfy a policy, checked with this verifier.
    pub fn new(policy: Policy, verifier: Arc<Verifier>) -> Self {
        Self { policy, verifier }
    }

    /// What a verdict depends on, besides the image: the digest of the policy and of the trusted root.
    pub fn proof(&self) -> Digest {
        self.verifier.proof(&self.policy)
    }
}

impl fmt::Debug for RequiredSignatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequiredSignatures").field(&self.proof()).finish()
    }
}

/// A manifest with signatures, or a list of such manifests.
#[derive(Deserialize)]
struct Listing {
    #[serde(default)]
    layers: Vec<Layer>,
    #[serde(default)]
    subject: Option<Descriptor>,
    #[serde(default)]
    manifests: Vec<Referrer>,
}

#[derive(Deserialize)]
struct Layer {
    #[serde(flatten)]
    descriptor: Descriptor,
    #[serde(default)]
    annotations: Option<Annotations>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Referrer {
    digest: Digest,
    #[serde(default)]
    artifact_type: Option<String>,
    #[serde(default)]
    annotations: Option<ReferrerAnnotations>,
}

#[derive(Deserialize)]
struct ReferrerAnnotations {
    #[serde(default, rename = "dev.sigstore.bundle.predicateType")]
    predicate_type: Option<String>,
}

impl Referrer {
    /// Whether it may be a signature. An annotation is not evidence, but skipping an entry is harmless.
    fn may_sign(&self) -> bool {
        let statement = self.annotations.as_ref().and_then(|annotations| annotations.predicate_type.as_deref());
        self.artifact_type.as_ref().is_some_and(|kind| kind.starts_with(BUNDLE))
            && statement.is_none_or(|kind| kind == SIGNS)
    }
}

impl Images {
    /// Verifies the signatures of an image at an endpoint. The registry serves its manifest first, so that this proves access as well.
    pub(super) async fn verify(&self, endpoint: &Endpoint, required: &RequiredSignatures) -> Result<(), ContentError> {
        let reference = &endpoint.image;
        let client = self.client(endpoint).await?;
        let manifest = self.manifest_text(&client, reference).await?;
        let Some(digest) = reference.digest() else {
            return Err(client.protocol("it has no digest to fetch it by").into());
        };
        let mut reader = Reader { client: &client, image: reference, digest, found: Vec::new() };
        reader.read().await?;
        let (required, signatures) = (required.clone(), reader.found);
        let verdict = blocking::run(move || Ok(required.verifier.verify(&required.policy, &manifest, &signatures)));
        match verdict.await? {
            Ok(verdict) => {
                tracing::info!(image = %reference, signers = verdict.signers.join(", "), "the signatures of the image are verified");
                Ok(())
            }
            Err(refused) => Err(ContentError::Unverified { image: reference.to_string(), refused }),
        }
    }
}

/// Reads the signatures of one image.
struct Reader<'a> {
    client: &'a Client,
    image: &'a ImageReference,
    digest: &'a Digest,
    found: Vec<Signature>,
}

impl Reader<'_> {
    /// Reads what the registry lists. One signature more than are accepted ends the reading.
    async fn read(&mut self) -> Result<(), ContentError> {
        let tag = format!("manifests/sha256-{}", self.digest.hex());
        if let Some(response) = self.client.find(&format!("{tag}.sig"), ACCEPTED).await? {
            self.payloads(response).await?;
        }
        let referrers = self.client.find(&format!("referrers/{}", self.digest), ACCEPTED).await;
        let listed = match referrers {
            Ok(Some(response)) => Some(response),
            // Registries of before version 1.1 of the specification do not know the endpoint, and answer in several ways.
            Ok(None) | Err(RegistryError { failure: ServerFailure::Protocol, .. }) => {
                self.client.find(&tag, ACCEPTED).await?
            }
            Err(error) => return Err(error.into()),
        };
        match listed {
            Some(response) => self.bundles(response).await,
            None => Ok(()),
        }
    }

    async fn payloads(&mut self, response: Response) -> Result<(), ContentError> {
        let listing = self.listing(response, "the manifest with its signatures").await?;
        let layers = listing.into_iter().flat_map(|listing| listing.layers);
        for Layer { descriptor, annotations } in layers.filter(|layer| layer.descriptor.media_type == PAYLOAD) {
            if self.is_full() {
                break;
            }
            let payload = |payload| Signature::Payload { payload, annotations: annotations.unwrap_or_default() };
            let signature = self.blob(&descriptor, payload).await?;
            self.found.push(signature);
        }
        Ok(())
    }

    async fn bundles(&mut self, response: Response) -> Result<(), ContentError> {
        let listing = self.listing(response, "the list of its referrers").await?;
        let referrers = listing.into_iter().flat_map(|listing| listing.manifests);
        for referrer in referrers.filter(Referrer::may_sign) {
            if self.is_full() {
                break;
            }
            let signature = self.bundle(&referrer.digest).await?;
            self.found.push(signature);
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.found.len() > MOST_SIGNATURES
    }

    /// The bundle in a referrer.
    async fn bundle(&self, digest: &Digest) -> Result<Signature, ContentError> {
        let Some(response) = self.client.find(&format!("manifests/{digest}"), ACCEPTED).await? else {
            return Ok(unreadable("the registry lists it, but has it not"));
        };
        let Some(text) = self.client.read(response, SIGNATURE_BYTES).await? else {
            return Ok(unreadable("its manifest is larger than 1 MiB"));
        };
        if Digest::of(&text) != *digest {
            return Ok(unreadable("its manifest has another digest than the registry lists"));
        }
        let Ok(listing) = serde_json::from_slice::<Listing>(&text) else {
            return Ok(unreadable("its manifest cannot be read"));
        };
        if listing.subject.is_none_or(|subject| subject.digest != *self.digest) {
            return Ok(unreadable("it refers to another image"));
        }
        match listing.layers.as_slice() {
            [layer] if layer.descriptor.media_type.starts_with(BUNDLE) => {
                self.blob(&layer.descriptor, Signature::Bundle).await
            }
            _ => Ok(unreadable("its manifest has not exactly one layer with a bundle")),
        }
    }

    /// A manifest or a list, or `None` if it cannot be read, which is noted.
    async fn listing(&mut self, response: Response, what: &str) -> Result<Option<Listing>, ContentError> {
        let text = self.client.read(response, SIGNATURE_BYTES).await?;
        let listing = match text {
            Some(text) => serde_json::from_slice(&text).map_err(|error| format!("{what} cannot be read: {error}")),
            None => Err(format!("{what} is larger than 1 MiB")),
        };
        Ok(listing.map_err(|why| self.found.push(Signature::Unreadable(why))).ok())
    }

    /// The signature in a layer, whose bytes match its digest.
    async fn blob(
        &self,
        layer: &Descriptor,
        signature: impl FnOnce(Vec<u8>) -> Signature,
    ) -> Result<Signature, ContentError> {
        if layer.size > SIGNATURE_BYTES {
            return Ok(unreadable("it is larger than 1 MiB"));
        }
        match self.download(layer).await {
            Ok(bytes) => Ok(signature(bytes)),
            Err(ContentError::Registry(error)) if error.failure == ServerFailure::NotFound => {
                Ok(unreadable("the registry lists it, but has it not"))
            }
            Err(ContentError::Image { error, .. }) => Ok(unreadable(&error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// No longer than the descriptor states.
    async fn download(&self, layer: &Descriptor) -> Result<Vec<u8>, ContentError> {
        let mut bytes = Vec::new();
        let mut blob = Blob::request(self.client, self.image, layer).await?;
        while let Some(chunk) = blob.next().await? {
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}

fn unreadable(why: &str) -> Signature {
    Signature::Unreadable(why.to_owned())
}
