//! The types that travel from source to status: content, release, diagnostics.
//!
//! Pure: nothing here knows a cluster, a Wasm runtime or a network, so that every decision above can be tested without
//! them.
//!
//! | module | holds |
//! |---|---|
//! | [`budget`] | how many steps untrusted input may take, and how work is cancelled |
//! | [`browser`] | requests of web pages to servers on this machine |
//! | [`digest`] | SHA-256 digests and how the digest of a tree is made |
//! | [`content`] | what a bundle's unpacked files look like to a reader |
//! | [`description`] | what a bundle says of itself |
//! | [`diagnostic`] | findings with positions |
//! | [`nesting`] | JSON that is nested too deeply to be read |
//! | [`object`] | a Kubernetes object and its identity |
//! | [`order`] | the order of kinds inside a stage |
//! | [`pattern`] | names with `*` in them |
//! | [`release`] | what a provisioner made of a bundle |
//! | [`request`] | what a provisioner is asked, and what it asks in turn |
//! | [`text`] | text of others made fit for output |

pub mod browser;
pub mod budget;
pub mod content;
pub mod crd_upgrade;
pub mod description;
pub mod diagnostic;
pub mod digest;
pub mod nesting;
pub mod object;
pub mod order;
pub mod pattern;
pub mod reason;
pub mod release;
pub mod request;
mod size;
pub mod text;

pub use budget::{Budget, Stop};
pub use content::{Content, Entry, MemoryContent, ReadError};
pub use description::{Description, Property};
pub use diagnostic::{Diagnostic, Location, Related, Severity};
pub use digest::Digest;
pub use object::{Object, ObjectError, ObjectKey, is_custom_group};
pub use reason::Reason;
pub use release::{Probe, ProbeSelector, Release};
pub use request::{Fact, RecordedFacts, Request, Target};
