//! Images, archives and files in, a verified, content-addressed tree out.
//!
//! | item | purpose |
//! |---|---|
//! | [`Limits`] | the limits of a source |
//! | [`Store`], [`Tree`] | the cache directory, and one bundle in it |
//! | [`Images`] | images and artifacts of OCI registries |
//! | [`ImageReference`], [`ImageAccess`], [`pull_secret_credentials`] | the name of an image, and access to its registry |
//! | [`connection_trust_problem`] | why a TLS connection is not trusted, in words |
//! | [`ContentError`] | failures, and whether a retry helps |
//!
//! All content of a source is untrusted. Names in an archive never become names of files on the disk: a tree stores the bytes of
//! all files in one file, with an index of their positions. All decompressed and unpacked bytes count against [`Limits`].

mod blocking;
mod causes;
mod directory;
mod error;
mod files;
mod image;
mod limits;
mod path;
mod store;
mod tree;
mod unpack;

pub use error::{ArchiveError, ContentError, EntryProblem, FailureClass, NamedTwice, StoreError};
pub use files::FileSet;
pub use image::{
    AccessError, Credentials, ImageAccess, ImageError, ImageOptions, ImageReference, Images, Platform, PlatformError,
    ReferenceError, RegistryError, RegistryFailure, ResolvedImage, connection_trust_problem, pull_secret_credentials,
};
pub use limits::{LimitExceeded, Limits};
pub use store::{Collected, Store};
pub use tree::Tree;
