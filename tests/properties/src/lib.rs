//! What must hold for every input, however hostile.
//!
//! A [`Target`] is a function of bytes that panics where something does not hold. The fuzz targets in `tests/fuzz` call it
//! with what libFuzzer makes up; the test in this crate calls it with the inputs that failed once. `docs/fuzzing.md` tells
//! how to run them.
//!
//! | module | holds |
//! |---|---|
//! | [`target`] | all targets by name |
//! | [`archive`] | a bundle and a request as one text, so that inputs can be read and mutated as text |
//! | [`memory`] | the memory that one run took, and how much it may |
//! | [`seeds`] | the inputs from which a corpus grows |
//! | `findings` | what every finding must say |
//! | `provision` | what a provisioner makes of any bundle, without a sandbox |
//! | `edits` | a bundle that has something of everything, with anything anywhere |
//! | `documents`, `json`, `numbers` | the reader of YAML and JSON |
//! | `tars`, `archives` | archives that are unpacked |
//! | `image` | what a registry answers |
//! | `releases` | the order and the digest of any objects |
//! | [`sandbox`] | provisioners in the sandbox, and bytes that are to be one |
//! | `api` | what clients send to the embedded API |
//! | `browser` | who is behind a request to a server on loopback |
//! | `cached` | files of caches that somebody altered |
//! | `component_size` | what a component instantiates, counted before it is compiled |
//! | `generated` | Secrets whose values the host generates |
//! | `patterns` | the regular expressions of a document |
//! | `text` | text of others in output |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what does not hold is told by a panic, as in any test"
)]

mod api;
pub mod archive;
mod archives;
mod browser;
mod cached;
#[cfg(feature = "sandbox")]
mod component_size;
mod documents;
mod edits;
mod findings;
mod generated;
mod image;
mod json;
pub mod memory;
mod numbers;
mod patterns;
mod provision;
mod releases;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod seeds;
pub mod target;
mod tars;
mod text;

pub use target::{TARGETS, Target, check};
