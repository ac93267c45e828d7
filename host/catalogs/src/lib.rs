//! Indexed catalogs for the resolver and for people.
//!
//! `host/catalog` knows files and indexes, and `host/resolver` knows questions and answers; neither knows the other. This crate joins
//! them, and holds what the command line and a controller both say about catalogs.
//!
//! | item | purpose |
//! |---|---|
//! | [`IndexCatalogs`] | catalogs with names and priorities, as the resolver reads them: one package at a time |
//! | [`overview`] | what people see: packages, channels, versions |
//! | [`difference`] | what one catalog has and another does not |
//! | [`upgrade`] | what would be installed next |
//! | [`namespace`] | the namespaces that bundles are meant for |
//! | [`platform`] | which packages are platform operators |
//! | [`names`] | names that resemble a mistyped one |

pub mod difference;
mod index_catalogs;
pub mod names;
pub mod namespace;
pub mod overview;
pub mod platform;
pub mod upgrade;

pub use self::index_catalogs::IndexCatalogs;
