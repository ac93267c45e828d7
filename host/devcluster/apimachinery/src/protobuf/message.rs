//! Decodes a message with the table.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Number, Value};

use crate::protobuf::{
    error::{Error, Fault},
    special,
    table::{Cardinality, Field, FieldType, Form, Message, Presence, Table},
    wire::{Reader, Wire},
};

/// Bounds on what one body may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Levels of the resulting JSON; JSON bodies have the same limit of some hundred.
    pub depth: usize,
    /// Values in all: on the wire an empty message takes two bytes, in JSON an object with all that is never left out.
    pub values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 120, values: 500_000 }
    }
}

/// The limits that one decoding uses up.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    values: usize,
    depth: usize,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, values: 0, depth: 0 }
    }

    fn spend(&mut self) -> Result<(), Error> {
        self.values += 1;
        if self.values > self.limits.values { Err(Fault::TooMany(self.limits.values).here()) } else { Ok(()) }
    }

    /// Whether this many levels more are within the limit.
    pub(crate) fn reaches(&self, levels: usize) -> Result<(), Error> {
        if self.depth + levels > self.limits.depth { Err(Fault::TooDeep(self.limits.depth).here()) } else { Ok(()) }
    }

    /// Runs something one level deeper.
    pub(crate) fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.reaches(1)?;
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }
}

/// Decodes a message; `None` means JSON's null, which is omitted like everything that Go omits.
pub(crate) fn value(index: usize, bytes: &[u8], budget: &mut Budget) -> Result<Option<Value>, Error> {
    let Some(message) = Table::get().message(index) else { return Ok(None) };
    budget.spend()?;
    budget.deeper(|budget| match message.form {
        Form::Object => {
            let mut object = Map::new();
            fields(message, bytes, &mut object, budget)?;
            Ok(Some(Value::Object(object)))
        }
        Form::List => {
            let mut object = Map::new();
            fields(message, bytes, &mut object, budget)?;
            Ok(Some(object.remove("=").unwrap_or_else(|| Value::Array(Vec::new()))))
        }
        Form::Json => special::json(bytes, budget),
        Form::Quantity => special::quantity(bytes),
        Form::IntegerOrText => special::integer_or_text(bytes),
        Form::Time => special::time(bytes),
        Form::MicroTime => special::micro_time(bytes),
        Form::SchemaOrList | Form::SchemaOrBoolean | Form::SchemaOrTexts => {
            let mut object = Map::new();
            fields(message, bytes, &mut object, budget)?;
            Ok(special::schema_or(message.form, object))
        }
    })
}

/// Decodes the fields of a message into an object, and merges them with existing ones, as protobuf specifies.
fn fields(message: &Message, bytes: &[u8], object: &mut Map<String, Value>, budget: &mut Budget) -> Result<(), Error> {
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next().map_err(Fault::here)? {
        let Ok(at) = message.fields.binary_search_by_key(&number, |field| field.number) else { continue };
        if let Some(field) = message.fields.get(at) {
            add(field, wire, object, budget).map_err(|error| error.within(&field.name))?;
        }
    }
    for field in message.fields.iter().filter(|field| field.presence == Presence::Always) {
        if !object.contains_key(&field.name) {
            budget.spend()?;
            object.insert(field.name.clone(), zero(field.field_type));
        }
    }
    Ok(())
}

fn add(field: &Field, wire: Wire<'_>, object: &mut Map<String, Value>, budget: &mut Budget) -> Result<(), Error> {
    match (field.cardinality, field.presence) {
        (Cardinality::Single, Presence::Inline) => {
            let FieldType::Message(index) = field.field_type else { return Ok(()) };
            let (Some(message), Wire::Bytes(bytes)) = (Table::get().message(index), wire) else {
                return Err(Fault::WrongType(wire.wire_type()).here());
            };
            budget.deeper(|budget| fields(message, bytes, object, budget))
        }
        (Cardinality::Single, presence) => {
            match single(field.field_type, wire, budget)? {
                Some(value) if presence == Presence::NonZero && value == zero(field.field_type) => {
                    object.remove(&field.name);
                }
                Some(value) => merge(object, &field.name, value),
                None => {}
            }
            Ok(())
        }
        (Cardinality::List, _) => {
            let items = object.entry(field.name.as_str()).or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(items) = items else { return Ok(()) };
            budget.deeper(|budget| match wire {
                Wire::Bytes(bytes) if is_packable(field.field_type) => packed(field.field_type, bytes, items, budget),
                _ => {
                    items.push(single(field.field_type, wire, budget)?.unwrap_or(Value::Null));
                    Ok(())
                }
            })
        }
        (Cardinality::Map, _) => {
            let (key, value) = budget.deeper(|budget| entry(field.field_type, wire, budget))?;
            let entries = object.entry(field.name.as_str()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(entries) = entries {
                entries.insert(key, value.unwrap_or(Value::Null));
            }
            Ok(())
        }
    }
}

/// Repeated occurrences of a message are merged; of everything else the last one counts.
fn merge(object: &mut Map<String, Value>, name: &str, value: Value) {
    match (object.get_mut(name), value) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            for (name, value) in new {
                merge(old, &name, value);
            }
        }
        (_, value) => {
            object.insert(name.to_owned(), value);
        }
    }
}

fn entry(field_type: FieldType, wire: Wire<'_>, budget: &mut Budget) -> Result<(String, Option<Value>), Error> {
    let Wire::Bytes(bytes) = wire else { return Err(Fault::WrongType(wire.wire_type()).here()) };
    let mut reader = Reader::new(bytes);
    let (mut key, mut found) = (String::new(), None);
    while let Some((number, wire)) = reader.next().map_err(Fault::here)? {
        match number {
            1 => text(wire)?.clone_into(&mut key),
            2 => found = Some(wire),
            _ => {}
        }
    }
    let value = match (found, field_type) {
        (Some(wire), _) => single(field_type, wire, budget).map_err(|error| error.within(&key))?,
        // The zero value is not written.
        (None, FieldType::Message(_)) => single(field_type, Wire::Bytes(&[]), budget)?,
        (None, scalar) => Some(zero(scalar)),
    };
    Ok((key, value))
}

fn single(field_type: FieldType, wire: Wire<'_>, budget: &mut Budget) -> Result<Option<Value>, Error> {
    if let (FieldType::Message(index), Wire::Bytes(bytes)) = (field_type, wire) {
        return value(index, bytes, budget);
    }
    budget.spend()?;
    Ok(Some(match (field_type, wire) {
        (FieldType::Text, wire) => text(wire)?.into(),
        (FieldType::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (FieldType::Boolean, Wire::Number(number)) => (number != 0).into(),
        (FieldType::Integer32, Wire::Number(number)) => integer32(number).into(),
        (FieldType::Integer64, Wire::Number(number)) => number.cast_signed().into(),
        (FieldType::Number, Wire::Fixed64(bits)) => float(bits),
        _ => return Err(Fault::WrongType(wire.wire_type()).here()),
    }))
}

fn is_packable(field_type: FieldType) -> bool {
    matches!(field_type, FieldType::Boolean | FieldType::Integer32 | FieldType::Integer64 | FieldType::Number)
}

fn packed(field_type: FieldType, bytes: &[u8], items: &mut Vec<Value>, budget: &mut Budget) -> Result<(), Error> {
    let mut reader = Reader::new(bytes);
    while !reader.is_at_end() {
        let wire = match field_type {
            FieldType::Number => reader.fixed64().map(Wire::Fixed64),
            _ => reader.varint().map(Wire::Number),
        };
        items.extend(single(field_type, wire.map_err(Fault::here)?, budget)?);
    }
    Ok(())
}

/// The text on the wire.
pub(crate) fn text(wire: Wire<'_>) -> Result<&str, Error> {
    match wire {
        Wire::Bytes(bytes) => std::str::from_utf8(bytes).map_err(|_| Fault::NotUtf8.here()),
        other => Err(Fault::WrongType(other.wire_type()).here()),
    }
}

/// The lower half, as Go takes it.
pub(crate) fn integer32(number: u64) -> i32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default().cast_signed()
}

/// Whole numbers are written without a fraction; what JSON cannot hold is null.
fn float(bits: u64) -> Value {
    let number = f64::from_bits(bits);
    if number.fract() == 0.0
        && number.abs() < 1e15
        && let Ok(whole) = format!("{number:.0}").parse::<i64>()
    {
        return whole.into();
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

fn zero(field_type: FieldType) -> Value {
    match field_type {
        FieldType::Text | FieldType::Bytes => "".into(),
        FieldType::Boolean => false.into(),
        FieldType::Integer32 | FieldType::Integer64 | FieldType::Number => 0.into(),
        FieldType::Message(_) => Value::Null,
    }
}
