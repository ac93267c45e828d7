//! Releases onto the API server of `chandler-devcluster`.

mod adoption;
mod atomic;
mod crash;
mod crd_upgrade;
mod drift;
mod gates;
mod install;
mod parent;
mod preview;
mod record;
mod support;
mod upgrade;
