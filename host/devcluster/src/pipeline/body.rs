//! Decodes a request body to an object, by its media type.

use chandler_devcluster_apimachinery::protobuf;
use serde_json::Value;

use super::decode::{self, Decoded};
use crate::{registry::Resource, status::Status};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

/// Reads the body of a write.
///
/// # Errors
/// When the body cannot be read. Custom resources have no messages, so that protobuf is not read for them.
pub fn object(resource: &Resource, content_type: &str, body: &[u8]) -> Result<Decoded, Status> {
    let kind = resource.kind();
    if resource.custom.is_some() && content_type == protobuf::MEDIA_TYPE {
        return Err(unknown_format(&[JSON, YAML]));
    }
    of_kind(&kind.api_version(), &kind.kind, content_type, body)
}

/// Reads the body of a built-in kind: an object, options, or what a subresource takes.
///
/// `api_version` and `kind` are the type of a protobuf body that does not state it; the caller must check the type of the object.
///
/// # Errors
/// When the body cannot be read.
pub fn of_kind(api_version: &str, kind: &str, content_type: &str, body: &[u8]) -> Result<Decoded, Status> {
    match content_type {
        JSON | "" => decode::json(body),
        YAML => decode::yaml(body),
        protobuf::MEDIA_TYPE => {
            let value = protobuf::decode(body, api_version, kind).map_err(|error| {
                Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {error}"))
            })?;
            Ok(Decoded { value, duplicates: Vec::new() })
        }
        _ => Err(unknown_format(&[JSON, YAML, protobuf::MEDIA_TYPE])),
    }
}

/// Reads the body of a delete.
///
/// # Errors
/// When the body cannot be read.
pub fn delete_options(content_type: &str, body: &[u8]) -> Result<Value, Status> {
    of_kind("v1", "DeleteOptions", content_type, body).map(|decoded| decoded.value)
}

fn unknown_format(accepted: &[&str]) -> Status {
    let accepted = accepted.join(", ");
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {accepted}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_that_are_not_read_are_named_with_those_that_are() {
        let status = of_kind("v1", "Pod", "application/cbor", b"").unwrap_err();
        assert_eq!(status.reason, "UnsupportedMediaType");
        assert_eq!(
            status.message,
            "the body of the request was in an unknown format - accepted media types include: application/json, \
             application/yaml, application/vnd.kubernetes.protobuf"
        );
        let status = of_kind("v1", "Pod", protobuf::MEDIA_TYPE, b"{}").unwrap_err();
        assert_eq!(
            status.message,
            "the object provided is unrecognized (must be of type Pod): provided data does not appear to be a protobuf \
             message, expected prefix [107 56 115 0]"
        );
    }

    #[test]
    fn options_are_read_in_every_format() {
        let protobuf = b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x0c\x22\x0aForeground";
        let bodies: [(&str, &[u8]); 4] = [
            ("", br#"{"propagationPolicy":"Foreground"}"#),
            (JSON, br#"{"propagationPolicy":"Foreground"}"#),
            (YAML, b"propagationPolicy: Foreground"),
            (protobuf::MEDIA_TYPE, protobuf),
        ];
        for (content_type, body) in bodies {
            assert_eq!(
                delete_options(content_type, body).unwrap()["propagationPolicy"],
                "Foreground",
                "{content_type}"
            );
        }
    }
}
