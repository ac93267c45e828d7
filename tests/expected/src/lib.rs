//! Compares what a registry+v1 bundle became with what the reference renderer made of it.
//!
//! An expected result is `{"objects": [...]}` or `{"error": "..."}`. Objects are compared in a [`canonical()`] form; of refusals the
//! class is compared, not the text. What renders is not known here: the plugin's own tests use this, and `cargo xtask corpus`.
//!
//! | module | holds |
//! |---|---|
//! | [`mode`] | the configurations in which a bundle is rendered |
//! | [`outcome`] | what became of a bundle, and the classes of refusals |
//! | [`canonical()`], [`difference()`] | objects in a form that can be compared |
//! | [`compare()`] | an outcome against what is expected |

mod canonical;
mod compare;
pub mod mode;
pub mod outcome;

pub use canonical::{Difference, canonical, difference, identity, without_empty_maps};
pub use compare::{Verdict, compare};
pub use mode::{Mode, Namespaces};
pub use outcome::{Finding, Outcome, Refusal};
