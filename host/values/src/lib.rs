//! Values of a configuration, for the controller and the command line.
//!
//! | module | holds |
//! |---|---|
//! | [`assignment`] | single values in the syntax of Helm's `--set`, and where they belong |
//! | [`document`] | the text of a key, parsed into values |
//! | [`resolve`] | the references of `spec.valuesFrom`, merged in their order, with `spec.config` over them |
//! | [`mod@read`] | reads the referenced objects, each once |
//! | [`redaction`] | hides values of Secrets in text |
//! | [`error`] | why values are unavailable |
//!
//! Values of Secrets have no `Debug`, and no error quotes one.

pub mod assignment;
pub mod document;
pub mod error;
pub mod read;
pub mod redaction;
pub mod resolve;

pub use error::{Problem, ValuesError};
pub use read::{Objects, ReadError, Version, Versions, read};
pub use redaction::Redactor;
pub use resolve::Values;
