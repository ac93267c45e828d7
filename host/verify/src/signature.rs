//! A signature as a registry stores it.

use serde::Deserialize;

/// A signature of an image, in one of the two forms of cosign. Its bytes are untrusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signature {
    /// The form of cosign 1 and 2: a layer of the image with the tag `sha256-<hex>.sig`.
    Payload {
        /// The bytes of the layer: a payload in the form of simple signing.
        payload: Vec<u8>,
        /// The annotations of the layer.
        annotations: Annotations,
    },
    /// The form of cosign 3: the layer of a referrer of the image, a bundle of Sigstore as JSON.
    Bundle(Vec<u8>),
    /// A signature that the registry lists and that could not be read, and why.
    Unreadable(String),
}

/// The annotations of a layer that cosign reads. Others are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Annotations {
    /// The signature of the payload, as base64.
    #[serde(default, rename = "dev.cosignproject.cosign/signature")]
    pub signature: Option<String>,
    /// The certificate of the signer, as PEM.
    #[serde(default, rename = "dev.sigstore.cosign/certificate")]
    pub certificate: Option<String>,
    /// The certificates between that one and the root, as PEM.
    #[serde(default, rename = "dev.sigstore.cosign/chain")]
    pub chain: Option<String>,
    /// The entry of the transparency log, as JSON.
    #[serde(default, rename = "dev.sigstore.cosign/bundle")]
    pub bundle: Option<String>,
    /// The timestamp of a timestamp authority, as JSON.
    #[serde(default, rename = "dev.sigstore.cosign/rfc3161timestamp")]
    pub timestamp: Option<String>,
}
