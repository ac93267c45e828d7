//! End to end: one file for each promise.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on panics")]

mod admission;
mod config_maps;
mod delete;
mod drift;
mod hostile;
mod install;
mod ownership;
mod plain;
mod quiet;
mod stages;
mod target;
mod update;

/// The class of registry+v1 bundles.
const REGISTRY: &str = "core-rukpak-io-registry";
/// The class of plain+v0 bundles.
const PLAIN: &str = "core-rukpak-io-plain";
