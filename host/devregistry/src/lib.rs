//! An OCI registry in this process, on the loopback interface: for development and tests.
//!
//! It keeps everything in memory, up to a limit, and optionally in a directory from which the next one continues. It implements the part of the [OCI distribution specification] that
//! tools need to push and pull: manifests by tag and by digest, referrers, blobs, uploads in one piece and in
//! chunks, and tag lists. It can require a password or a token, use TLS with its own certificate, and inject faults.
//!
//! | module | holds |
//! |---|---|
//! | [`Registry`] | a running registry |
//! | [`Options`], [`Authentication`] | options of a registry |
//! | [`Fault`], [`FaultOn`] | fault injection |
//! | [`Image`], [`Layer`], [`Pushed`] | pushing images in memory, without a network |
//!
//! [OCI distribution specification]: https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md

mod authentication;
mod blobs;
mod disk;
mod faults;
mod image;
mod manifests;
mod pack;
mod registry;
mod response;
mod route;
mod service;
mod storage;
mod tls;

pub use authentication::Authentication;
pub use faults::{Fault, FaultOn};
pub use image::{Image, Layer, Pushed};
pub use pack::PackError;
pub use registry::{Options, Registry, StartError};
pub use storage::StorageError;
