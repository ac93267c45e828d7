//! File-based catalogs: a streaming reader, an index on the disk, validation, overviews, and the catalogs of the resolver. Pure: no
//! cluster, no Wasm, no network.
//!
//! A catalog is a tree of YAML and JSON files. Each document has a schema and, mostly, a package and a name. A published catalog
//! has up to hundreds of megabytes, nearly all of them texts and icons that an installation never reads. [`read()`] therefore has one
//! document in memory at a time, and [`Index`] keeps on the disk what installations need, found by package, schema and name. The rest
//! stays in the files until [`Span::raw`] is asked for it.
//!
//! | item | purpose |
//! |---|---|
//! | [`read()`], [`Item`], [`Meta`], [`Span`] | the documents of a tree, one by one |
//! | [`Limits`] | the limits of a catalog |
//! | [`model`], [`Blob`] | packages, channels, bundles and deprecations |
//! | [`BundleVersion`] | the version of a bundle, with its release |
//! | [`Indexes`], [`Index`] | the indexes of a directory, built once for each digest, and one of them |
//! | [`Record`], [`PackageBlobs`], [`Query`] | what an index returns |
//! | [`lint`] | the rules for catalogs |
//! | [`graph`] | a channel as text and as a Mermaid flowchart |
//! | [`Finding`], [`Problem`], [`Place`] | what is wrong, where, and how to fix it |
//! | [`Directory`] | a directory of this machine as content |
//! | [`IndexCatalogs`] | catalogs with names and priorities, as the resolver reads them: one package at a time |
//! | [`overview`] | what users see: packages, channels, versions |
//! | [`difference`] | what one catalog has and another lacks |
//! | [`upgrade`] | the next version to install |
//! | [`namespace`] | the namespaces that bundles suggest |
//! | [`platform`] | which packages are platform operators |
//! | [`names`] | names that resemble a mistyped one |
//!
//! The reader, the index and the rules do not use the resolver, and `host/resolver` does not use this crate: [`IndexCatalogs`] and the
//! modules below it in this table join them.

mod blob;
mod csv;
pub mod difference;
mod directory;
mod fields;
mod finding;
pub mod graph;
mod ignored;
mod index;
mod index_catalogs;
mod limits;
pub mod lint;
pub mod model;
pub mod names;
pub mod namespace;
pub mod overview;
pub mod platform;
mod reader;
mod split;
pub mod upgrade;
mod version;

pub use self::{
    blob::Blob,
    directory::{Directory, DirectoryError},
    finding::{Finding, Place, Problem},
    index::{
        BuildError, Counts, Index, IndexError, Indexes, Located, Metas, PackageBlobs, PackageEntry, Provider, Query,
        RawError, Record, StoreError,
    },
    index_catalogs::IndexCatalogs,
    limits::Limits,
    model::{
        Bundle, Channel, ChannelEntry, Csv, Deprecation, Deprecations, Gvk, Package, PackageProperty, Property,
        Reference, RelatedImage, Summary,
    },
    reader::{CatalogError, Item, Meta, Span, read},
    version::{BundleVersion, VersionError},
};
