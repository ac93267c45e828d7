//! Releases onto the API server of `chandler-devcluster`.

mod crash;
mod drift;
mod install;
mod support;
mod upgrade;
