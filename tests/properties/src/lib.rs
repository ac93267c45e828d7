//! Properties that must hold for every input, however hostile.
//!
//! A [`Target`] is a function of bytes that panics if a property does not hold. The fuzz targets in `tests/fuzz` call it with inputs
//! of libFuzzer; the test in this crate calls it with inputs that once failed. `docs/contributing/fuzzing.md` describes how to run them.
//!
//! | module | holds |
//! |---|---|
//! | [`target`] | all targets by name |
//! | [`archive`] | a bundle and a request in one text format |
//! | [`memory`] | measures and bounds the memory of one run |
//! | [`seeds`] | the seed inputs of the corpora |
//! | `findings` | requirements of every finding |
//! | `provision` | provisioners without a sandbox, on any bundle |
//! | `edits` | random edits of a bundle with every feature |
//! | `documents`, `json`, `numbers` | the YAML and JSON parser |
//! | `tars`, `zips`, `archives` | unpacking archives |
//! | `git` | responses of a hostile git server, known_hosts files |
//! | `image` | responses of a hostile registry |
//! | `registries` | settings for registries: mirrors, and what is blocked |
//! | `releases` | the order and the digest of any objects |
//! | `resolver` | questions to the resolver, and catalogs of any content |
//! | [`sandbox`] | provisioners in the sandbox, and loading components of any bytes |
//! | `api` | client requests to the embedded API |
//! | `browser` | browser requests to servers on loopback |
//! | `cached` | forged cache files |
//! | `catalogs` | the files of a catalog, and altered indexes |
//! | `charts` | charts of Helm |
//! | `component_size` | the size of an instantiated component, computed before it is compiled |
//! | `delegation` | an object needs a permission for whatever it makes Chandler do |
//! | `expressions` | expressions on any object, within a budget |
//! | `generated` | generated Secret values |
//! | `kubeconfigs` | kubeconfigs of other clusters |
//! | `notifications` | texts of Events as notifications, and the Secret of an Alert |
//! | `patterns` | the regular expressions of a document |
//! | `signature` | signatures of an image |
//! | `text` | untrusted text in output |
//! | `webhooks` | webhooks of registries and git servers |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a property that does not hold panics, as in any test"
)]

mod api;
pub mod archive;
mod archives;
mod browser;
mod cached;
mod catalogs;
mod charts;
#[cfg(feature = "sandbox")]
mod component_size;
mod delegation;
mod documents;
mod edits;
mod expressions;
mod findings;
mod generated;
mod git;
mod helm_index;
mod image;
mod json;
mod kubeconfigs;
pub mod memory;
mod notifications;
mod numbers;
mod patterns;
mod provision;
mod registries;
mod releases;
mod resolver;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod seeds;
mod signature;
pub mod target;
mod tars;
mod text;
mod webhooks;
mod zips;

pub use target::{TARGETS, Target, check};
