//! Write a Chandler provisioner: one trait and one export macro.
//!
//! A provisioner maps the files of a bundle to Kubernetes objects. It runs in a sandbox without network, clock, secure
//! randomness, file system or cluster access.
//!
//! ```
//! use chandler_sdk::{Content, Diagnostic, Facts, Failure, Output, Provisioner, Request};
//!
//! /// Installs every file as it is.
//! struct AsIs;
//!
//! impl Provisioner for AsIs {
//!     const FACTS: Facts = Facts::new("as-is", "0.1.0").formats(&["as-is+v0"]);
//!
//!     fn detect(content: &dyn Content) -> Option<String> {
//!         content.exists("as-is").then(|| "as-is+v0".to_owned())
//!     }
//!
//!     fn provision(_: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
//!         for entry in content.files("objects/") {
//!             let documents = chandler_sdk::read_documents(content, &entry.path)
//!                 .map_err(|finding| Failure::InvalidContent(vec![finding]))?;
//!             for document in documents {
//!                 output.emit_node(&document, None, &entry.path)?;
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//!
//! chandler_sdk::export!(AsIs);
//! # use chandler_sdk::testing::{Bundle, run};
//! # let bundle = Bundle::new([("objects/a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")]);
//! # assert_eq!(run::<AsIs>(&bundle, &Request::default()).unwrap().objects[0].value["metadata"]["name"], "a");
//! ```
//!
//! The same code runs natively: [`testing`] calls it without Wasm, so that `cargo test` needs only cargo. To build the
//! component: `cargo build --release --target wasm32-unknown-unknown` builds a core module with all types inside, and
//! `wit-component` turns it into a component.
//!
//! | module | holds |
//! |---|---|
//! | [`provisioner`] | the trait, and the facts of a provisioner |
//! | [`request`] | the request of a call |
//! | [`content`] | reading the bundle |
//! | [`output`] | objects, probes and findings |
//! | [`diagnostic`] | findings with positions, and failures |
//! | [`documents`] | YAML and JSON as in Kubernetes |
//! | [`log`] | messages for author and administrator |
//! | [`certificates`] | serving certificates, which the host issues |
//! | [`secrets`] | passwords and keys, which the host generates |
//! | [`lists`] | duplicate items of lists that API servers find too late |
//! | [`types`] | types of labels, annotations, and values of Secrets and ConfigMaps |
//! | [`testing`] | running a provisioner natively |

pub mod certificates;
pub mod content;
pub mod diagnostic;
pub mod documents;
mod export;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod guest;
pub mod lists;
pub mod log;
pub mod output;
pub mod provisioner;
pub mod request;
pub mod secrets;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod types;

pub use chandler_yaml as yaml;

pub use content::{Content, Entry, ReadError};
pub use diagnostic::{Diagnostic, Failure, Location, Position, Related, Severity};
pub use documents::read_documents;
pub use lists::check_lists;
pub use output::{Description, ObjectId, Output, Probe, Property, Refusal, Selector};
pub use provisioner::{Facts, Provisioner};
pub use request::Request;
pub use types::{check_types, is_base64};

/// The guide for authors; its example is tested with this crate.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
