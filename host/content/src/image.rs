//! Images and artifacts of OCI registries.
//!
//! Tools push with `oci-client`. This crate does not pull with it: `oci-client` reads manifests, tokens and error pages of any
//! size into memory, follows the foreign URLs that a layer names, and drops the reason when a token is refused. Pulling needs
//! little of the distribution protocol: a HEAD, two GETs and a token.

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
    reference::{ImageReference, ReferenceError},
    signatures::RequiredSignatures,
};
pub(crate) use self::{client::may_be_plain, fetch::Inner};
