//! The types that travel from source to status: content, release, diagnostics.
//!
//! Pure: this crate has no cluster, Wasm runtime or network, so that every decision based on these types can be tested without
//! them.
//!
//! | module | holds |
//! |---|---|
//! | [`budget`] | step limits for untrusted input, and cancellation |
//! | [`browser`] | refuses requests of web pages to servers on this machine |
//! | [`crd_upgrade`] | the policy for upgrades of CRDs |
//! | [`digest`] | SHA-256 digests of bytes, values and trees |
//! | [`causes`](mod@causes) | the causes of an error |
//! | [`content`] | the unpacked files of a bundle |
//! | [`description`] | the metadata of a bundle |
//! | [`descriptors`] | errors that mean that no file descriptor is left |
//! | [`diagnostic`] | findings with positions |
//! | [`dns_name`] | the syntax of names of objects |
//! | [`features`] | the features of this host that provisioners can query |
//! | [`image_name`] | the syntax of image references |
//! | [`nesting`] | JSON that is nested too deeply to be parsed |
//! | [`object`] | a Kubernetes object and its identity |
//! | [`order`] | the order of kinds inside a stage |
//! | [`pattern`] | names with `*` in them |
//! | [`pointer`](mod@pointer) | the names in JSON pointers |
//! | [`reach`] | how near an address is to this machine |
//! | [`reason`] | reasons of conditions |
//! | [`remedy`] | how a condition ends: by a retry, or by whose action |
//! | [`release`] | the objects that a provisioner rendered from a bundle |
//! | [`request`] | the request to a provisioner, and the facts that it reads |
//! | [`resource_version`] | the order of resource versions |
//! | [`text`] | untrusted text, escaped for output |
//! | [`unique_json`] | JSON without duplicate keys, for untrusted texts |

pub mod browser;
pub mod budget;
pub mod causes;
pub mod content;
pub mod crd_upgrade;
pub mod description;
pub mod descriptors;
pub mod diagnostic;
pub mod digest;
pub mod dns_name;
pub mod features;
pub mod image_name;
pub mod nesting;
pub mod object;
pub mod order;
pub mod pattern;
pub mod pointer;
pub mod reach;
pub mod reason;
pub mod release;
pub mod remedy;
pub mod request;
pub mod resource_version;
mod size;
pub mod text;

pub use chandler_yaml::unique_json;

pub use budget::{Budget, Stop};
pub use causes::causes;
pub use content::{Content, Entry, MemoryContent, ReadError};
pub use description::{Description, Property};
pub use descriptors::{DescriptorsExhausted, descriptors_exhausted};
pub use diagnostic::{Diagnostic, Location, Related, Severity};
pub use digest::Digest;
pub use object::{Object, ObjectError, ObjectKey, is_custom_group};
pub use reason::{Reason, ReportingKind};
pub use release::{Probe, ProbeSelector, Release};
pub use remedy::Remedy;
pub use request::{Fact, RecordedFacts, Request, Target};
