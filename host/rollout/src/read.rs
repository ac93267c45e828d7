//! Reads the cluster, and asks for dry runs.

pub(crate) mod absent;
pub(crate) mod adoption;
pub(crate) mod below;
pub(crate) mod checks;
pub(crate) mod comparisons;
pub(crate) mod crd_upgrade;
pub(crate) mod creation;
pub(crate) mod custom_resources;
pub(crate) mod deletion;
pub(crate) mod dependencies;
pub(crate) mod discovery;
pub(crate) mod dry_run;
pub(crate) mod early;
pub(crate) mod immutable;
pub(crate) mod parent;
pub(crate) mod permissions;
pub(crate) mod places;
pub(crate) mod preview;
pub(crate) mod resolve;
pub(crate) mod snapshot;
pub(crate) mod terminating;
