//! Changes the cluster.

pub(crate) mod apply;
pub(crate) mod conversion;
pub(crate) mod orphan;
pub(crate) mod parent;
pub(crate) mod preflight;
pub(crate) mod prune;
pub(crate) mod record;
pub(crate) mod recreate;
pub(crate) mod replace;
pub(crate) mod stages;
pub(crate) mod teardown;
