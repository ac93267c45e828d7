//! Sources of bundles: a `BundleSource` in, a pinned source and its tree out.
//!
//! `spec.source` is parsed once, into [`Source`]. Resolving a source gives [`Pinned`]: exactly the content that was found, such as
//! an image by digest. No other code reads the fields of a `BundleSource`.
//!
//! | module | holds |
//! |---|---|
//! | `table` | every kind of source: [`Source`], [`Pinned`], and the dispatch to the kinds |
//! | [`kind`] | [`SourceKind`], the trait of one kind of source |
//! | [`kinds`] | the kinds: images, ConfigMaps, archives over HTTP |
//! | [`sources`] | [`Sources`]: the rules that hold for every kind, such as when a source is resolved again |
//! | [`resolutions`] | what each moving source resolved to last |
//! | [`grant`] | which objects of the system namespace a BundleDeployment, ProvisionerClass or Catalog may name |
//! | [`image_rules`] | which signatures the administrator demands of which images |
//! | [`pull_secret`], [`authorization`] | credentials from Secrets, for registries and for other servers |
//! | [`system_namespace`] | reads Secrets, ConfigMaps and ServiceAccounts of the system namespace |
//! | [`error`] | why a source is invalid, or its content is not available |
//!
//! Adding a kind touches its file in `kinds`, its type in `host/api`, and one line of `table`.

pub mod authorization;
pub mod error;
pub mod grant;
pub mod image_rules;
pub mod kind;
pub mod kinds;
pub mod pull_secret;
pub mod resolutions;
pub mod sources;
pub mod system_namespace;
mod table;

pub use error::{InvalidSource, SourceError, api_message};
pub use grant::Grantee;
pub use image_rules::{ImageRules, ImageRulesError, ImageVerificationFile, SignaturesError};
pub use kind::{Environment, SourceKind};
pub use kinds::{git::Git, http::Http, image::CATALOG_LABEL};
pub use resolutions::{Resolution, Resolutions};
pub use sources::{NotObtained, Obtained, Sources, Wanted};
pub use system_namespace::SystemNamespace;
pub use table::{Pinned, Source, describe, without_certificates};
