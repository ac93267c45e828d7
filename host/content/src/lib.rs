//! A source in, a verified, content-addressed tree out.
//!
//! | module | what it is about |
//! |---|---|
//! | [`Limits`] | what a source may hold at most |
//! | [`Store`], [`Tree`] | the cache directory, and one bundle in it |
//! | [`Images`] | images and artifacts of OCI registries |
//! | [`ImageReference`], [`ImageAccess`], [`pull_secret_credentials`] | which image, and with what rights |
//! | [`ContentError`] | what can go wrong, and whether trying again helps |
//!
//! Everything that comes from a source is untrusted. No name that an archive holds ever becomes the name of a file on the
//! disk: the bytes of a tree's files lie one after the other in one file, and its index says where. Nothing is
//! decompressed or unpacked that is not counted against [`Limits`].

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
    ReferenceError, RegistryError, RegistryFailure, ResolvedImage, pull_secret_credentials,
};
pub use limits::{LimitExceeded, Limits};
pub use store::{Collected, Store};
pub use tree::Tree;
