//! Request bodies in protobuf.

use serde_json::Value;

use crate::status::Status;

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Reads an object.
///
/// # Errors
/// When the body is malformed, or of a kind that is not read here.
pub fn decode(_body: &[u8]) -> Result<Value, Status> {
    Err(Status::unsupported_media_type(format!("{MEDIA_TYPE} is not read, send application/json")))
}
