//! An OCI registry in this process, on the loopback interface: for development and tests.
//!
//! It keeps everything in memory, up to a bound, and speaks the part of the [OCI distribution specification] that tools
//! need to push and to pull: manifests by tag and by digest, blobs, uploads in one piece and in chunks, lists of tags. It
//! can ask for a password or for a token, speak TLS with a certificate of its own, and fail on purpose.
//!
//! | module | what it is about |
//! |---|---|
//! | [`Registry`] | a running registry |
//! | [`Options`], [`Authentication`] | how it runs |
//! | [`Fault`], [`FaultOn`] | failing on purpose |
//! | [`Image`], [`Layer`], [`Pushed`] | putting something into it without the network |
//!
//! [OCI distribution specification]: https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md

mod answer;
mod authentication;
mod blobs;
mod faults;
mod image;
mod manifests;
mod pack;
mod registry;
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
