//! Types with a JSON form of their own.

use serde_json::{Map, Value};
use time::{OffsetDateTime, format_description::BorrowedFormatItem, macros::format_description};

use crate::protobuf::{
    envelope,
    error::{Error, Fault},
    message::{Budget, integer32, text},
    table::Form,
    wire::{Reader, Wire},
};

const SECONDS: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
const MICROSECONDS: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

/// The only field of a message, when it is there.
fn only(bytes: &[u8]) -> Result<Option<Wire<'_>>, Error> {
    let mut reader = Reader::new(bytes);
    let mut found = None;
    while let Some((number, wire)) = reader.next().map_err(Fault::here)? {
        if number == 1 {
            found = Some(wire);
        }
    }
    Ok(found)
}

/// `RawExtension`, `JSON`, `FieldsV1`: the value in the bytes. An extension may also hold an object in its own envelope.
pub(crate) fn json(bytes: &[u8], budget: &mut Budget) -> Result<Option<Value>, Error> {
    let raw = match only(bytes)? {
        Some(Wire::Bytes(raw)) if !raw.is_empty() => raw,
        None | Some(Wire::Bytes(_)) => return Ok(None),
        Some(other) => return Err(Fault::WrongType(other.wire_type()).here()),
    };
    if raw.starts_with(envelope::PREFIX) {
        return envelope::object(raw, "", "", budget).map(Some);
    }
    let value: Value = serde_json::from_slice(raw).map_err(|error| Fault::Json(error.to_string()).here())?;
    budget.reaches(levels(&value))?;
    Ok(Some(value).filter(|value| !value.is_null()))
}

/// How deep a value is nested; its parser has bounded that.
fn levels(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(levels).max().unwrap_or_default(),
        _ => 0,
    }
}

/// `resource.Quantity`: the text; without one, zero.
pub(crate) fn quantity(bytes: &[u8]) -> Result<Option<Value>, Error> {
    let quantity = only(bytes)?.map(text).transpose()?.unwrap_or_default();
    Ok(Some(if quantity.is_empty() { "0".into() } else { quantity.into() }))
}

/// `intstr.IntOrString`: type (0 for a number), number, text.
pub(crate) fn integer_or_text(bytes: &[u8]) -> Result<Option<Value>, Error> {
    let mut reader = Reader::new(bytes);
    let (mut is_text, mut number, mut words) = (false, 0_i32, "");
    while let Some((field, wire)) = reader.next().map_err(Fault::here)? {
        match (field, wire) {
            (1, Wire::Number(kind)) => is_text = kind != 0,
            (2, Wire::Number(value)) => number = integer32(value),
            (3, wire) => words = text(wire)?,
            (1 | 2, other) => return Err(Fault::WrongType(other.wire_type()).here()),
            _ => {}
        }
    }
    Ok(Some(if is_text { words.into() } else { number.into() }))
}

/// Seconds and nanoseconds since 1970; `None` for no time at all.
fn instant(bytes: &[u8]) -> Result<Option<(i64, i32)>, Error> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader::new(bytes);
    let (mut seconds, mut nanoseconds) = (0, 0);
    while let Some((field, wire)) = reader.next().map_err(Fault::here)? {
        match (field, wire) {
            (1, Wire::Number(value)) => seconds = value.cast_signed(),
            (2, Wire::Number(value)) => nanoseconds = integer32(value),
            (1 | 2, other) => return Err(Fault::WrongType(other.wire_type()).here()),
            _ => {}
        }
    }
    Ok(Some((seconds, nanoseconds)))
}

fn formatted(seconds: i64, nanoseconds: i64, format: &[BorrowedFormatItem<'_>]) -> Result<Value, Error> {
    let out_of_range = || Fault::Time(seconds).here();
    let time = OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| out_of_range())?;
    let time = time.checked_add(time::Duration::nanoseconds(nanoseconds)).ok_or_else(out_of_range)?;
    if time.year() < 0 {
        return Err(out_of_range());
    }
    time.format(format).map(Value::String).map_err(|_| out_of_range())
}

/// `meta.v1.Time`: whole seconds, as in JSON; an absent time is an empty message.
pub(crate) fn time(bytes: &[u8]) -> Result<Option<Value>, Error> {
    instant(bytes)?.map(|(seconds, _)| formatted(seconds, 0, SECONDS)).transpose()
}

/// `meta.v1.MicroTime`: microseconds.
pub(crate) fn micro_time(bytes: &[u8]) -> Result<Option<Value>, Error> {
    let formatted = |(seconds, nanoseconds): (i64, i32)| {
        let microseconds = i64::from(nanoseconds) / 1_000;
        formatted(seconds, microseconds * 1_000, MICROSECONDS)
    };
    instant(bytes)?.map(formatted).transpose()
}

/// The three types of a schema that are one thing or another (`k8s.io/apiextensions-apiserver/.../v1/marshal.go`).
pub(crate) fn schema_or(form: Form, mut object: Map<String, Value>) -> Option<Value> {
    let listed = |value: &Value| value.as_array().is_some_and(|items| !items.is_empty());
    match form {
        Form::SchemaOrList => object.remove("jSONSchemas").filter(listed).or_else(|| object.remove("schema")),
        Form::SchemaOrTexts => object.remove("property").filter(listed).or_else(|| object.remove("schema")),
        _ => object.remove("schema").or_else(|| object.remove("allows")),
    }
}
