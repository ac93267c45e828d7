//! Renders a tree of registry+v1 bundles in every mode and compares the results with OLM v1's renderer.
//!
//! The command is `cargo xtask corpus`. It scales from sixty to seven thousand bundles: each core renders one bundle at a time, and
//! only counts are kept.
//!
//! | module | holds |
//! |---|---|
//! | [`bundles`] | finds bundles and their expected results |
//! | [`render`] | rendering in the sandbox or natively |
//! | [`statistics`] | counts the results, and prints them |

pub mod bundles;
pub mod render;
pub mod statistics;
