//! Renders a tree of registry+v1 bundles in every mode and compares with what the reference renderer made of them.
//!
//! `cargo xtask corpus` is the command. It is the same for sixty bundles and for seven thousand: bundles are rendered one by one
//! on every core, and nothing is kept of a bundle but what is counted.
//!
//! | module | holds |
//! |---|---|
//! | [`bundles`] | which bundles and which expected results there are |
//! | [`render`] | rendering in the sandbox or natively |
//! | [`tally`] | what was counted, and how it is printed |

pub mod bundles;
pub mod render;
pub mod tally;
