//! Compares the outcome of a registry+v1 bundle with OLM v1's renderer.
//!
//! An expected result is `{"objects": [...]}` or `{"error": "..."}`. Objects are compared in a [`canonical()`] form; errors are
//! compared by class, not by text. This crate knows no renderer: the plugin's own tests use it, and `cargo xtask corpus`.
//!
//! | module | holds |
//! |---|---|
//! | [`mode`] | the configurations in which a bundle is rendered |
//! | [`outcome`] | the outcome of rendering a bundle, and the classes of errors |
//! | [`canonical()`], [`difference()`] | a canonical form of objects for comparison |
//! | [`compare()`] | compares an outcome with the expected one |

mod canonical;
mod compare;
pub mod mode;
pub mod outcome;

pub use canonical::{Difference, canonical, difference, identity, without_empty_maps};
pub use compare::{Verdict, compare};
pub use mode::{Mode, Namespaces};
pub use outcome::{Finding, Outcome, Refusal};
