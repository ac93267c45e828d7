//! Decisions about each kind, on the [model](super::model).

mod cron_jobs;
mod daemon_sets;
mod refusals;
mod services;
mod stateful_sets;
mod volumes;
