//! End to end: one file for each promise.

#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on panics")]

mod admission;
mod admission_policies;
mod adoption;
mod approval;
mod approval_waits;
mod certificates;
mod classes;
mod config_maps;
mod controller_rights;
mod crd_upgrade;
mod deep;
mod delete;
mod deletion;
mod drift;
mod drift_atomic;
mod drift_everything;
mod evidence;
mod failing_status;
mod faults;
mod forged_records;
mod generated_secrets;
mod health;
mod hostile;
mod idle;
mod install;
mod interrupted;
mod large;
mod malformed;
mod overtaken;
mod ownership;
mod permissions;
mod plain;
mod poisoned;
mod quiet;
mod revisions;
mod safety;
mod shared_cache;
mod stages;
mod starvation;
mod target;
mod tenancy;
mod two_tracks;
mod update;
mod watch_selector;

/// The class of registry+v1 bundles.
const REGISTRY: &str = "core-rukpak-io-registry";
/// The class of plain+v0 bundles.
const PLAIN: &str = "core-rukpak-io-plain";
