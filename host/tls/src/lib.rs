//! The TLS settings of connections: the minimum version, cipher suites and groups for key exchange.
//!
//! Settings become a provider of rustls ([`TlsSettings::provider`]) that offers only what they allow: without a suite of TLS 1.2, rustls does
//! not negotiate TLS 1.2. Older versions are never offered. Nothing here connects or listens.
//!
//! | module | holds |
//! |---|---|
//! | [`settings`] | what an administrator sets, and the provider |
//! | [`names`] | the names of versions, suites and groups |
//! | [`profile`] | the TLS profile of an OpenShift cluster |
//! | [`roots`] | the certificates of the system |

pub mod names;
pub mod profile;
pub mod roots;
pub mod settings;

pub use self::{
    names::TlsVersion,
    roots::system_roots,
    settings::{TlsError, TlsSettings, provider},
};
