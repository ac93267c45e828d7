//! Releases onto the API server of `chandler-devcluster`.

mod adoption;
mod atomic;
mod crash;
mod crd_upgrade;
mod drift;
mod gates;
mod install;
mod record;
mod preview;
mod support;
mod upgrade;
