//! Runs the binary as a user does. Unit tests cover the library; these tests check that its parts are connected.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test helpers may panic, too")]

mod approvals;
mod catalogs;
mod causes;
mod classes;
mod commands;
mod content;
mod detection;
mod dev;
mod dev_day;
mod dry_runs;
mod events;
mod flags;
mod golden;
mod hints;
mod hostile;
mod interruptions;
mod kinds;
mod layers;
mod lint;
mod locale;
mod manifests;
mod migrate;
mod migrate_crashes;
mod mistakes;
mod must_gather;
mod newest;
mod platform_operators;
mod push;
mod push_layout;
mod rbac;
mod refusals;
mod registries;
mod render;
mod resolutions;
mod resolve;
mod rollouts;
mod status_watch;
mod support;
mod targets;
mod tasks;
mod traces;
mod uninstall;
mod values;
