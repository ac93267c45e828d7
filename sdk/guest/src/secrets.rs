//! How a Secret is marked whose values the host generates.
//!
//! A provisioner has no randomness: what it makes of the same bundle is the same for everyone. A Secret with an annotation
//! has the host make passwords and keys, once for each installation, and keep them over upgrades:
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
//! A key that the Secret holds itself, too, a length out of bounds, and a mark on another kind have the release refused.

/// On a Secret: which keys the host fills, as [`generate`] writes it.
pub const GENERATE: &str = "secrets.chandler.dev/generate";

/// What a generated value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// So many letters and digits, 12 to 1024.
    Password(u16),
    /// So many random bytes, 16 to 1024, in hexadecimal digits.
    Hex(u16),
    /// So many random bytes, 16 to 1024, as text in base64.
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
