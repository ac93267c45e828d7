//! For tests: encodes messages with the table, and generates objects to encode.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::protobuf::{
    envelope::PREFIX,
    table::{Cardinality, Field, FieldType, Form, Message, Presence, Table},
};

/// A body with its envelope.
pub(crate) fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [PREFIX.to_vec(), bytes(1, &type_meta), bytes(2, raw), bytes(3, b""), bytes(4, b"")].concat()
}

/// A field that is bytes.
pub(crate) fn bytes(number: u32, content: &[u8]) -> Vec<u8> {
    [varint(u64::from(number) << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// A field that is a number.
pub(crate) fn number(number: u32, value: u64) -> Vec<u8> {
    [varint(u64::from(number) << 3), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value > 0x7f {
        out.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap());
    out
}

/// The message of a value.
pub(crate) fn message(index: usize, value: &Value) -> Vec<u8> {
    let message = Table::get().message(index).unwrap();
    match message.form {
        Form::Object => fields(message, value),
        Form::List => fields(message, &json!({"=": value})),
        Form::Json => bytes(1, value.to_string().as_bytes()),
        Form::Quantity => bytes(1, value.as_str().unwrap().as_bytes()),
        Form::IntegerOrText => match value.as_i64() {
            Some(value) => [number(1, 0), number(2, value.cast_unsigned()), bytes(3, b"")].concat(),
            None => [number(1, 1), number(2, 0), bytes(3, value.as_str().unwrap().as_bytes())].concat(),
        },
        Form::Time | Form::MicroTime => {
            let time = OffsetDateTime::parse(value.as_str().unwrap(), &Rfc3339).unwrap();
            let seconds = number(1, time.unix_timestamp().cast_unsigned());
            [seconds, number(2, u64::from(time.nanosecond()))].concat()
        }
        Form::SchemaOrList if value.is_array() => fields(message, &json!({"jSONSchemas": value})),
        Form::SchemaOrTexts if value.is_array() => fields(message, &json!({"property": value})),
        Form::SchemaOrBoolean if value.is_boolean() => fields(message, &json!({"allows": value})),
        Form::SchemaOrList | Form::SchemaOrTexts => fields(message, &json!({"schema": value})),
        Form::SchemaOrBoolean => fields(message, &json!({"schema": value, "allows": true})),
    }
}

fn fields(message: &Message, value: &Value) -> Vec<u8> {
    message.fields.iter().flat_map(|field| written(field, value)).collect()
}

fn written(field: &Field, object: &Value) -> Vec<u8> {
    if field.presence == Presence::Inline {
        return single(field, object);
    }
    match (object.get(&field.name), field.cardinality) {
        (None, _) => Vec::new(),
        (Some(value), Cardinality::Single) => single(field, value),
        (Some(value), Cardinality::List) => {
            value.as_array().unwrap().iter().flat_map(|item| single(field, item)).collect()
        }
        (Some(value), Cardinality::Map) => {
            let key = Field { number: 2, ..field.clone() };
            let entry =
                |(name, value)| bytes(field.number, &[bytes(1, str::as_bytes(name)), single(&key, value)].concat());
            value.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), value)).flat_map(entry).collect()
        }
    }
}

fn single(field: &Field, value: &Value) -> Vec<u8> {
    match field.field_type {
        FieldType::Text => bytes(field.number, value.as_str().unwrap().as_bytes()),
        FieldType::Bytes => bytes(field.number, &STANDARD.decode(value.as_str().unwrap()).unwrap()),
        FieldType::Boolean => number(field.number, u64::from(value.as_bool().unwrap())),
        FieldType::Integer32 | FieldType::Integer64 => number(field.number, value.as_i64().unwrap().cast_unsigned()),
        FieldType::Number => {
            let bits = value.as_f64().unwrap().to_bits();
            [varint(u64::from(field.number) << 3 | 1), bits.to_le_bytes().to_vec()].concat()
        }
        FieldType::Message(index) => bytes(field.number, &message(index, value)),
    }
}

/// Where arbitrary objects come from: bytes, and zeros when they are used up.
pub(crate) struct Entropy(std::vec::IntoIter<u8>);

impl Entropy {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes.into_iter())
    }

    fn byte(&mut self) -> u8 {
        self.0.next().unwrap_or(0)
    }

    /// An arbitrary value of a message, as decoding yields it.
    pub(crate) fn message(&mut self, index: usize) -> Value {
        let message = Table::get().message(index).unwrap();
        let byte = self.byte();
        match message.form {
            Form::Object => {
                let mut object = Map::new();
                self.fields(message, &mut object);
                Value::Object(object)
            }
            Form::List => (0..byte % 3).map(|_| self.scalar(FieldType::Text)).collect(),
            Form::Json => json!({"a": [byte, null, "x", {"b": 1.5}]}),
            Form::Quantity => ["0", "100m", "1Gi", "3"][usize::from(byte % 4)].into(),
            Form::IntegerOrText if byte.is_multiple_of(2) => i32::from(byte).into(),
            Form::IntegerOrText => "50%".into(),
            Form::Time => format!("20{:02}-01-31T23:59:{:02}Z", byte % 100, byte % 60).into(),
            Form::MicroTime => format!("20{:02}-01-31T23:59:00.{byte:06}Z", byte % 100).into(),
            Form::SchemaOrBoolean if byte.is_multiple_of(2) => (byte.is_multiple_of(4)).into(),
            Form::SchemaOrList | Form::SchemaOrTexts if byte % 2 == 1 => {
                let field = message.fields.get(1).unwrap();
                [self.value(field.field_type)].into_iter().collect()
            }
            Form::SchemaOrList | Form::SchemaOrTexts | Form::SchemaOrBoolean => {
                let schema = message.fields.iter().find(|field| field.name == "schema").unwrap();
                self.value(schema.field_type)
            }
        }
    }

    fn fields(&mut self, message: &Message, object: &mut Map<String, Value>) {
        for field in &message.fields {
            let present = self.byte();
            let always = field.presence == Presence::Always;
            match (field.presence, field.cardinality, field.field_type) {
                (Presence::Inline, _, FieldType::Message(index)) => {
                    self.fields(Table::get().message(index).unwrap(), object);
                }
                _ if present % 3 != 1 && !always => {}
                (presence, Cardinality::Single, field_type) => {
                    let value = self.value(field_type);
                    let zero = [json!(""), json!(0), json!(false)].contains(&value);
                    if presence != Presence::NonZero || !zero {
                        object.insert(field.name.clone(), value);
                    }
                }
                (_, Cardinality::List, field_type) => {
                    let items: Vec<Value> = (0..=present % 2).map(|_| self.value(field_type)).collect();
                    object.insert(field.name.clone(), items.into());
                }
                (_, Cardinality::Map, field_type) => {
                    let entries = (0..=present % 2).map(|at| (format!("key-{at}"), self.value(field_type)));
                    object.insert(field.name.clone(), Value::Object(entries.collect()));
                }
            }
        }
    }

    fn value(&mut self, field_type: FieldType) -> Value {
        match field_type {
            FieldType::Message(index) => self.message(index),
            scalar => self.scalar(scalar),
        }
    }

    fn scalar(&mut self, field_type: FieldType) -> Value {
        let byte = self.byte();
        match field_type {
            FieldType::Text => "ä".repeat(usize::from(byte % 4)).into(),
            FieldType::Bytes => STANDARD.encode(vec![byte; usize::from(byte % 4)]).into(),
            FieldType::Boolean => (byte.is_multiple_of(2)).into(),
            FieldType::Integer32 => (i32::from(byte) - 100).into(),
            FieldType::Integer64 => (i64::from(byte) << 40).into(),
            FieldType::Number if byte.is_multiple_of(2) => byte.into(),
            FieldType::Number => (f64::from(byte) / 8.0 + 0.3).into(),
            FieldType::Message(_) => Value::Null,
        }
    }
}
