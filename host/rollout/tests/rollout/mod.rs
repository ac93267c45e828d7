//! Releases onto the API server of `chandler-devcluster`.

mod absence;
mod adoption;
mod atomic;
mod crash;
mod crd_upgrade;
mod drift;
mod gates;
mod immutable;
mod informers;
mod install;
mod parent;
mod preview;
mod record;
mod sequences;
mod support;
mod upgrade;
