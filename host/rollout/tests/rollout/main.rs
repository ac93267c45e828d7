//! Releases onto the API server of `chandler-devcluster`.

mod adoption;
mod crash;
mod crd_upgrade;
mod drift;
mod gates;
mod install;
mod preview;
mod support;
mod upgrade;
