//! Images and components of a registry, over http and https.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

mod cache;
mod charts;
mod components;
mod connection;
mod failures;
mod labelled;
mod layers;
mod manifests;
mod mirrors;
mod proxies;
mod setup;
mod signatures;
