//! The annotation that requests generated values of a Secret.
//!
//! A provisioner has no secure randomness: its output for a bundle is the same for everyone. An annotation on a Secret
//! makes the host generate passwords and keys, once for each installation, and keep them over upgrades:
//!
//! ```
//! use chandler_sdk::secrets::{GENERATE, Kind, generate};
//! use serde_json::json;
//!
//! // The host fills `password` and `cookie`; mount the Secret or refer to it as to any other.
//! let secret = json!({
//!     "apiVersion": "v1",
//!     "kind": "Secret",
//!     "metadata": {
//!         "name": "harbour-admin",
//!         "annotations": {GENERATE: generate([("password", Kind::Password(24)), ("cookie", Kind::Hex(32))])},
//!     },
//!     "stringData": {"username": "admin"},
//! });
//! # assert_eq!(secret["metadata"]["annotations"]["secrets.chandler.dev/generate"], "password=password:24,cookie=hex:32");
//! ```
//!
//! The host refuses the release for a key that the Secret also sets itself, a length out of range, and the annotation
//! on another kind.

/// On a Secret: the keys that the host fills, as [`generate`] formats them.
pub const GENERATE: &str = "secrets.chandler.dev/generate";

/// The kind of a generated value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// This many letters and digits, 12 to 1024.
    Password(u16),
    /// This many random bytes, 16 to 1024, in hexadecimal.
    Hex(u16),
    /// This many random bytes, 16 to 1024, as base64 text.
    Base64(u16),
    /// A UUID of version 4.
    Uuid,
}

/// The value of [`GENERATE`] for these keys.
pub fn generate<'a>(keys: impl IntoIterator<Item = (&'a str, Kind)>) -> String {
    let part = |(key, kind): (&str, Kind)| match kind {
        Kind::Password(length) => format!("{key}=password:{length}"),
        Kind::Hex(bytes) => format!("{key}=hex:{bytes}"),
        Kind::Base64(bytes) => format!("{key}=base64:{bytes}"),
        Kind::Uuid => format!("{key}=uuid"),
    };
    keys.into_iter().map(part).collect::<Vec<_>>().join(",")
}
