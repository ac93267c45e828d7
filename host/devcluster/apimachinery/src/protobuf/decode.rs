//! Decodes a body to JSON.

use serde_json::Value;

use crate::protobuf::{
    envelope,
    error::Error,
    message::{Budget, Limits},
};

/// Reads a body: the object with its `apiVersion` and `kind`, as Kubernetes would write it in JSON.
///
/// `null` is omitted wherever Go would write it. If the envelope lacks its type, it is taken from `api_version` and `kind`, the type that
/// the request is about.
///
/// # Errors
/// When the body is malformed, of an unknown kind, or beyond the limits of [`Limits::default`].
pub fn decode(body: &[u8], api_version: &str, kind: &str) -> Result<Value, Error> {
    decode_with(body, api_version, kind, Limits::default())
}

/// [`decode`] with limits.
///
/// # Errors
/// As there.
pub fn decode_with(body: &[u8], api_version: &str, kind: &str, limits: Limits) -> Result<Value, Error> {
    envelope::object(body, api_version, kind, &mut Budget::new(limits))
}
