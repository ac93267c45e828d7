//! Where images are pulled from: an image reference in, the endpoints to ask out. No network.
//!
//! | item | purpose |
//! |---|---|
//! | [`Registries`] | the settings of all registries: [`endpoints`](Registries::endpoints) decides |
//! | [`mod@file`] | reads registries.conf and its drop-in files |
//! | [`mirror_sets`] | ImageDigestMirrorSet and ImageTagMirrorSet of OpenShift |
//! | [`certificates`] | certs.d: the certificates for each registry |
//! | [`normalized`], [`check_host`] | the one spelling of a name that settings and rules compare |
//!
//! The formats are specified in containers-registries.conf(5), containers-registries.conf.d(5) and containers-certs.d(5). Text that
//! these pages do not describe is refused: a mistyped `blocked` must not open what it was meant to close.

pub mod certificates;
pub mod file;
pub mod mirror_sets;
mod name;
mod scope;
mod settings;

pub use name::{HostError, check_host, normalized};
pub use scope::ScopeError;
pub use settings::{Blocked, Endpoint, MIRRORS, Registries, Version};
