//! Request bodies in protobuf: what kubectl sends for a handful of kinds, whatever the server says it accepts.
//!
//! The envelope is `k8s\0` and a `runtime.Unknown` message; the field numbers of the kinds are those of `generated.proto` in
//! `k8s.io/api` and `k8s.io/apimachinery`. A message is read along a table of its fields; a field that the table lacks fails
//! the request, so that nothing is lost silently.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use crate::{clock, status::Status};

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

const MAGIC: &[u8] = b"k8s\0";

/// How a field is read.
#[derive(Clone, Copy)]
enum Type {
    Text,
    Bytes,
    Integer,
    Boolean,
    Time,
    Message(&'static [Field]),
    /// A map of text to this.
    Map(&'static Type),
    /// A field that may stand several times.
    List(&'static Type),
}

/// Number, JSON name and type.
struct Field(u32, &'static str, Type);

const OWNER_REFERENCE: &[Field] = &[
    Field(1, "kind", Type::Text),
    Field(3, "name", Type::Text),
    Field(4, "uid", Type::Text),
    Field(5, "apiVersion", Type::Text),
    Field(6, "controller", Type::Boolean),
    Field(7, "blockOwnerDeletion", Type::Boolean),
];

const OBJECT_META: &[Field] = &[
    Field(1, "name", Type::Text),
    Field(2, "generateName", Type::Text),
    Field(3, "namespace", Type::Text),
    Field(4, "selfLink", Type::Text),
    Field(5, "uid", Type::Text),
    Field(6, "resourceVersion", Type::Text),
    Field(7, "generation", Type::Integer),
    Field(8, "creationTimestamp", Type::Time),
    Field(9, "deletionTimestamp", Type::Time),
    Field(10, "deletionGracePeriodSeconds", Type::Integer),
    Field(11, "labels", Type::Map(&Type::Text)),
    Field(12, "annotations", Type::Map(&Type::Text)),
    Field(13, "ownerReferences", Type::List(&Type::Message(OWNER_REFERENCE))),
    Field(14, "finalizers", Type::List(&Type::Text)),
];

const META: Field = Field(1, "metadata", Type::Message(OBJECT_META));

const CONFIG_MAP: &[Field] = &[
    META,
    Field(2, "data", Type::Map(&Type::Text)),
    Field(3, "binaryData", Type::Map(&Type::Bytes)),
    Field(4, "immutable", Type::Boolean),
];

const SECRET: &[Field] = &[
    META,
    Field(2, "data", Type::Map(&Type::Bytes)),
    Field(3, "type", Type::Text),
    Field(4, "stringData", Type::Map(&Type::Text)),
    Field(5, "immutable", Type::Boolean),
];

const NAMESPACE: &[Field] = &[
    META,
    Field(2, "spec", Type::Message(&[Field(1, "finalizers", Type::List(&Type::Text))])),
    Field(3, "status", Type::Message(&[Field(1, "phase", Type::Text)])),
];

const OBJECT_REFERENCE: &[Field] = &[
    Field(1, "kind", Type::Text),
    Field(2, "namespace", Type::Text),
    Field(3, "name", Type::Text),
    Field(4, "uid", Type::Text),
    Field(5, "apiVersion", Type::Text),
    Field(6, "resourceVersion", Type::Text),
    Field(7, "fieldPath", Type::Text),
];

const SERVICE_ACCOUNT: &[Field] = &[
    META,
    Field(2, "secrets", Type::List(&Type::Message(OBJECT_REFERENCE))),
    Field(3, "imagePullSecrets", Type::List(&Type::Message(&[Field(1, "name", Type::Text)]))),
    Field(4, "automountServiceAccountToken", Type::Boolean),
];

const RESOURCE_ATTRIBUTES: &[Field] = &[
    Field(1, "namespace", Type::Text),
    Field(2, "verb", Type::Text),
    Field(3, "group", Type::Text),
    Field(4, "version", Type::Text),
    Field(5, "resource", Type::Text),
    Field(6, "subresource", Type::Text),
    Field(7, "name", Type::Text),
];

/// The status of a review is written by the server; clients send it empty.
const ACCESS_STATUS: &[Field] = &[
    Field(1, "allowed", Type::Boolean),
    Field(2, "reason", Type::Text),
    Field(3, "evaluationError", Type::Text),
    Field(4, "denied", Type::Boolean),
];

const USER_INFO: &[Field] =
    &[Field(1, "username", Type::Text), Field(2, "uid", Type::Text), Field(3, "groups", Type::List(&Type::Text))];

const SELF_SUBJECT_ACCESS_REVIEW: &[Field] = &[
    META,
    Field(
        2,
        "spec",
        Type::Message(&[
            Field(1, "resourceAttributes", Type::Message(RESOURCE_ATTRIBUTES)),
            Field(
                2,
                "nonResourceAttributes",
                Type::Message(&[Field(1, "path", Type::Text), Field(2, "verb", Type::Text)]),
            ),
        ]),
    ),
    Field(3, "status", Type::Message(ACCESS_STATUS)),
];

const SELF_SUBJECT_RULES_REVIEW: &[Field] = &[
    META,
    Field(2, "spec", Type::Message(&[Field(1, "namespace", Type::Text)])),
    Field(
        3,
        "status",
        Type::Message(&[Field(3, "incomplete", Type::Boolean), Field(4, "evaluationError", Type::Text)]),
    ),
];

const SELF_SUBJECT_REVIEW: &[Field] =
    &[META, Field(2, "status", Type::Message(&[Field(1, "userInfo", Type::Message(USER_INFO))]))];

const DELETE_OPTIONS: &[Field] = &[
    Field(1, "gracePeriodSeconds", Type::Integer),
    Field(2, "preconditions", Type::Message(&[Field(1, "uid", Type::Text), Field(2, "resourceVersion", Type::Text)])),
    Field(3, "orphanDependents", Type::Boolean),
    Field(4, "propagationPolicy", Type::Text),
    Field(5, "dryRun", Type::List(&Type::Text)),
];

fn fields_of(kind: &str) -> Option<&'static [Field]> {
    Some(match kind {
        "ConfigMap" => CONFIG_MAP,
        "Secret" => SECRET,
        "Namespace" => NAMESPACE,
        "ServiceAccount" => SERVICE_ACCOUNT,
        "SelfSubjectAccessReview" => SELF_SUBJECT_ACCESS_REVIEW,
        "SelfSubjectRulesReview" => SELF_SUBJECT_RULES_REVIEW,
        "SelfSubjectReview" => SELF_SUBJECT_REVIEW,
        "DeleteOptions" => DELETE_OPTIONS,
        _ => return None,
    })
}

/// `runtime.Unknown`
const UNKNOWN: &[Field] = &[
    Field(1, "typeMeta", Type::Message(&[Field(1, "apiVersion", Type::Text), Field(2, "kind", Type::Text)])),
    Field(2, "raw", Type::Bytes),
    Field(3, "contentEncoding", Type::Text),
    Field(4, "contentType", Type::Text),
];

/// Reads an object.
///
/// # Errors
/// When the body is malformed, or of a kind that is not read here.
pub fn decode(body: &[u8]) -> Result<Value, Status> {
    let malformed = |why: String| Status::bad_request(format!("the protobuf body is malformed: {why}"));
    let envelope = body.strip_prefix(MAGIC).ok_or_else(|| malformed("it does not begin with k8s\\0".to_owned()))?;
    let envelope = message(envelope, UNKNOWN).map_err(malformed)?;
    let text = |pointer: &str| envelope.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("/typeMeta/apiVersion"), text("/typeMeta/kind"));
    let fields = fields_of(kind).ok_or_else(|| {
        Status::unsupported_media_type(format!("a {kind} is not read as {MEDIA_TYPE}, send application/json"))
    })?;
    let raw = STANDARD.decode(text("/raw")).map_err(|error| malformed(error.to_string()))?;
    let mut object = message(&raw, fields).map_err(malformed)?;
    let map = crate::metadata::as_map(&mut object);
    map.insert("apiVersion".to_owned(), api_version.into());
    map.insert("kind".to_owned(), kind.into());
    Ok(object)
}

/// A value on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn message(mut bytes: &[u8], fields: &[Field]) -> Result<Value, String> {
    let mut object = Map::new();
    while !bytes.is_empty() {
        let (number, wire) = next(&mut bytes)?;
        let Some(Field(_, name, field_type)) = fields.iter().find(|field| field.0 == number) else {
            return Err(format!("field {number} is not known"));
        };
        match field_type {
            Type::Map(value_type) => {
                let (key, value) = entry(&wire, value_type)?;
                crate::metadata::child(&mut object, name).insert(key, value);
            }
            Type::List(item_type) => {
                let item = single(&wire, item_type)?;
                if let Some(items) = object.entry(*name).or_insert_with(|| json!([])).as_array_mut() {
                    items.push(item);
                }
            }
            other => {
                let value = single(&wire, other)?;
                // Go writes empty texts and zero times; JSON leaves them out.
                if !(value == "" || value.is_null()) {
                    object.insert((*name).to_owned(), value);
                }
            }
        }
    }
    Ok(Value::Object(object))
}

fn entry(wire: &Wire<'_>, value_type: &Type) -> Result<(String, Value), String> {
    let Wire::Bytes(mut bytes) = *wire else { return Err("a map entry is no message".to_owned()) };
    let empty = if matches!(value_type, Type::Text | Type::Bytes) { json!("") } else { Value::Null };
    let (mut key, mut value) = (String::new(), empty);
    while !bytes.is_empty() {
        match next(&mut bytes)? {
            (1, wire) => text(&wire)?.clone_into(&mut key),
            (2, wire) => value = single(&wire, value_type)?,
            (number, _) => return Err(format!("field {number} of a map entry is not known")),
        }
    }
    Ok((key, value))
}

fn single(wire: &Wire<'_>, field_type: &Type) -> Result<Value, String> {
    match (field_type, wire) {
        (Type::Text, wire) => Ok(text(wire)?.into()),
        (Type::Bytes, Wire::Bytes(bytes)) => Ok(STANDARD.encode(bytes).into()),
        (Type::Integer, Wire::Number(number)) => Ok(number.cast_signed().into()),
        (Type::Boolean, Wire::Number(number)) => Ok((*number != 0).into()),
        (Type::Time, Wire::Bytes(bytes)) => time(bytes),
        (Type::Message(fields), Wire::Bytes(bytes)) => message(bytes, fields),
        _ => Err("a field has another type on the wire".to_owned()),
    }
}

fn text<'a>(wire: &Wire<'a>) -> Result<&'a str, String> {
    match wire {
        Wire::Bytes(bytes) => std::str::from_utf8(bytes).map_err(|error| error.to_string()),
        Wire::Number(_) => Err("a text has another type on the wire".to_owned()),
    }
}

/// `meta.v1.Time`: seconds and nanoseconds since 1970; empty for no time.
fn time(bytes: &[u8]) -> Result<Value, String> {
    const FIELDS: &[Field] = &[Field(1, "seconds", Type::Integer), Field(2, "nanos", Type::Integer)];
    let parts = message(bytes, FIELDS)?;
    let Some(seconds) = parts.get("seconds").and_then(Value::as_i64) else { return Ok(Value::Null) };
    let time = time::OffsetDateTime::from_unix_timestamp(seconds).map_err(|error| error.to_string())?;
    Ok(clock::seconds(time).into())
}

fn next<'a>(bytes: &mut &'a [u8]) -> Result<(u32, Wire<'a>), String> {
    let tag = varint(bytes)?;
    let number = u32::try_from(tag >> 3).map_err(|_| "a field's number is too large".to_owned())?;
    let wire = match tag & 7 {
        0 => Wire::Number(varint(bytes)?),
        1 => Wire::Bytes(take(bytes, 8)?),
        2 => {
            let length = usize::try_from(varint(bytes)?).map_err(|error| error.to_string())?;
            Wire::Bytes(take(bytes, length)?)
        }
        5 => Wire::Bytes(take(bytes, 4)?),
        other => return Err(format!("wire type {other} is not known")),
    };
    Ok((number, wire))
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or_else(|| "it ends early".to_owned())?;
    *bytes = rest;
    Ok(taken)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let [byte] = take(bytes, 1)? else { break };
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
        let type_meta = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &type_meta), field(2, raw), field(3, b""), field(4, b"")].concat()
    }

    #[test]
    fn a_config_map_is_read() {
        let label = [field(1, b"app"), field(2, b"web")].concat();
        let time = vec![8, 1];
        let metadata = [field(1, b"a"), field(2, b""), field(8, &time), field(9, b""), field(11, &label)].concat();
        let data = [field(1, b"x"), field(2, b"y")].concat();
        let empty = field(1, b"empty");
        let raw = [field(1, &metadata), field(2, &data), field(2, &empty), field(3, &data), vec![4 << 3, 1]].concat();
        assert_eq!(
            decode(&body("ConfigMap", &raw)).unwrap(),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "a", "labels": {"app": "web"}, "creationTimestamp": "1970-01-01T00:00:01Z"},
                "data": {"x": "y", "empty": ""}, "binaryData": {"x": "eQ=="}, "immutable": true,
            })
        );
    }

    #[test]
    fn other_kinds_and_unknown_fields_are_refused() {
        assert_eq!(decode(&body("Pod", b"")).unwrap_err().reason, "UnsupportedMediaType");
        assert_eq!(decode(&body("ConfigMap", &field(9, b"x"))).unwrap_err().reason, "BadRequest");
        assert_eq!(decode(b"{}").unwrap_err().reason, "BadRequest");
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
            let _ = decode(&[MAGIC, &bytes].concat());
            let _ = message(&bytes, CONFIG_MAP);
        }
    }
}
