//! Images, archives and files in, a verified, content-addressed tree out.
//!
//! | item | purpose |
//! |---|---|
//! | [`Limits`] | the limits of a source |
//! | [`Store`], [`Tree`] | the cache directory, and one bundle in it |
//! | [`Images`] | images and artifacts of OCI registries |
//! | [`PushRepository`] | a repository that images are pushed to |
//! | [`Archives`], [`ArchiveUrl`] | archives of HTTP servers |
//! | [`Charts`], [`ChartVersion`], [`HelmIndex`] | charts of Helm repositories |
//! | [`Repositories`], [`RepositoryUrl`], [`SshKey`] | git repositories on HTTP and SSH servers |
//! | [`ImageReference`], [`ImageAccess`], [`PullSecrets`], [`Keyring`] | the name of an image, and access to its registry and mirrors |
//! | [`RegistrySettings`] | mirrors, blocked and insecure registries, certificates |
//! | [`RequiredSignatures`] | the signatures that an image must have before it is unpacked |
//! | [`Posts`] | messages to servers, for notifications |
//! | [`Issuers`] | the public keys of OpenID Connect issuers, for webhooks |
//! | [`connection_trust_problem`] | why a TLS connection is not trusted, in words |
//! | [`ContentError`] | failures, and whether a retry helps |
//!
//! All content of a source is untrusted. Names in an archive never become names of files on the disk: a tree stores the bytes of
//! all files in one file, with an index of their positions. All decompressed and unpacked bytes count against [`Limits`].

mod archive;
mod blocking;
mod body;
mod chart;
mod charts;
mod checkout;
mod directory;
mod error;
mod files;
mod image;
mod issuer;
mod limits;
mod path;
mod post;
mod server;
mod store;
mod tgz;
mod transport;
mod tree;
mod unpack;

pub use archive::{ArchiveUrl, ArchiveUrlError, Archives, DownloadError, Downloaded, ResolvedArchive, shown_url};
pub use charts::{ChartError, ChartVersion, Charts, HelmIndex, ResolvedChart, is_chart_name};
pub use checkout::{Checkout, Repositories, RepositoryUrl, RepositoryUrlError, SshKey, SshKeyError};
pub use error::{ArchiveError, CacheFull, ContentError, EntryProblem, FailureClass, NamedTwice, StoreError};
pub use files::FileSet;
pub use image::{
    AccessError, Credentials, ImageAccess, ImageError, ImageOptions, ImageReference, Images, Keyring, Platform,
    PlatformError, PullSecrets, PushRepository, ReferenceError, RegistryError, RegistrySettings, RequiredSignatures,
    ResolvedImage, component_tree,
};
pub use issuer::{IssuerError, Issuers};
pub use limits::{LimitExceeded, Limits};
pub use post::{Answer, PostError, Posts};
pub use store::{Collected, Store, Upload, Users};
pub use tgz::{ArchivedContent, TemporaryFile};
pub use transport::{ServerFailure, connection_trust_problem};
pub use tree::Tree;
