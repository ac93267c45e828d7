//! Tests of provisioners for their authors: what a provisioner made of a bundle, compared with what a case expects; checks that every
//! provisioner must pass; and measurements. `chandler plugin` runs them. No file is read or written here.
//!
//! | module | holds |
//! |---|---|
//! | [`rendering`] | everything that a provisioner returned for one bundle |
//! | [`case`] | a bundle with a request; two calls that must agree |
//! | [`conformance`] | the checks, and their report |
//! | [`badge`] | the report as a badge |
//! | [`mod@bench`] | how long calls take, and what they use |
//! | `observed` | content that counts what is read |
//! | `bundles` | files of a bundle in memory, and hostile variants of them |

pub mod badge;
pub mod bench;
mod bundles;
pub mod case;
pub mod conformance;
mod observed;
pub mod rendering;

pub use case::{Case, Differing};
pub use conformance::{Check, Report, Verdict};
pub use rendering::{Emitted, Failure, Rendering};
