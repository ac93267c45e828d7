//! Images and artifacts of OCI registries.
//!
//! One client pulls and pushes, so that certificates, credentials, proxies and limits are the same for both. It is not `oci-client`, which
//! reads manifests, tokens and error pages of any size into memory, follows the foreign URLs that a layer names, drops the reason when a token
//! is refused, and cannot trust a certificate as `certs.d` means it. Little of the distribution protocol is needed: HEAD and GET to pull, POST,
//! PATCH and PUT to push, and a token.

mod access;
mod blob;
mod challenge;
mod client;
mod component;
mod endpoints;
mod failure;
mod fetch;
mod layers;
mod manifest;
mod pull_secret;
mod push;
mod reference;
mod signatures;

pub use self::{
    access::{AccessError, Credentials, ImageAccess},
    component::component_tree,
    endpoints::{Keyring, RegistrySettings},
    failure::RegistryError,
    fetch::{ImageOptions, Images, ResolvedImage},
    manifest::{ImageError, Platform, PlatformError},
    pull_secret::PullSecrets,
    push::PushRepository,
    reference::{ImageReference, ReferenceError},
    signatures::RequiredSignatures,
};
pub(crate) use self::{client::may_be_plain, fetch::Inner};
