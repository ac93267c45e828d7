//! How a value is divided into parts that can have different owners.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    apply::element::{Json, PathElement},
    schema::{ListType, MapType, Presence, Schema, Shape},
};

/// How the values at one place split.
pub(crate) enum Structure<'a> {
    /// Not at all: scalars, atomic lists and maps, values of unknown type.
    Leaf,
    /// Into the fields of an object.
    Map(&'a Schema),
    /// Into the items of a list.
    List(List<'a>),
}

/// A list whose items have identities.
#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    items: &'a Schema,
    /// Key fields; empty for sets.
    keys: &'a [String],
}

/// The type of a field of an object.
pub(crate) struct Field {
    pub(crate) schema: Schema,
    /// Whether the field is named by the type, rather than being a key of a map.
    pub(crate) named: bool,
    /// Whether the type allows the field at all.
    pub(crate) known: bool,
}

/// How a value of this type is divided. An absent value and `null` are divided as the type says.
pub(crate) fn structure<'a>(schema: &'a Schema, value: Option<&Value>) -> Structure<'a> {
    let structure = match &schema.shape {
        Shape::Object { map_type: MapType::Granular, .. } => Structure::Map(schema),
        Shape::Deduced => match value {
            Some(Value::Object(_)) => Structure::Map(schema),
            _ => Structure::Leaf,
        },
        Shape::List { items, list_type: ListType::Set, .. } => Structure::List(List { items, keys: &[] }),
        Shape::List { items, list_type: ListType::Map(keys), .. } => Structure::List(List { items, keys }),
        _ => Structure::Leaf,
    };
    match (&structure, value) {
        (_, None | Some(Value::Null))
        | (Structure::Leaf, _)
        | (Structure::Map(_), Some(Value::Object(_)))
        | (Structure::List(_), Some(Value::Array(_))) => structure,
        // A value of the wrong type: validation reports it; ownership treats it as one thing.
        _ => Structure::Leaf,
    }
}

/// How two values at one place split: as both do, or not at all where they do not agree.
pub(crate) fn common_structure<'a>(schema: &'a Schema, lhs: Option<&Value>, rhs: Option<&Value>) -> Structure<'a> {
    match (structure(schema, lhs), structure(schema, rhs)) {
        (Structure::Leaf, other) if lhs.is_none_or(Value::is_null) => other,
        (other, Structure::Leaf) if rhs.is_none_or(Value::is_null) => other,
        (Structure::Leaf, _) | (_, Structure::Leaf) => Structure::Leaf,
        (_, structure) => structure,
    }
}

/// The type of the field `name` of an object of this type.
pub(crate) fn field(schema: &Schema, name: &str) -> Field {
    match &schema.shape {
        Shape::Object { properties, values, preserve_unknown, .. } => match (properties.get(name), values) {
            (Some(property), _) => Field { schema: property.clone(), named: true, known: true },
            (None, Some(values)) => Field { schema: values.clone(), named: false, known: true },
            (None, None) => Field { schema: Schema::deduced(), named: false, known: *preserve_unknown },
        },
        _ => Field { schema: Schema::deduced(), named: false, known: true },
    }
}

/// The fields of an object; none for an absent value and `null`.
pub(crate) fn fields(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

/// The items of a list; none for an absent value and `null`.
pub(crate) fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl<'a> List<'a> {
    /// The type of the items.
    pub(crate) fn items(&self) -> &'a Schema {
        self.items
    }

    /// The identity of an item; absent key fields take their default.
    ///
    /// # Errors
    /// When the item is not an object, or has none of the key fields; when an item of a set is not a scalar.
    pub(crate) fn element(&self, item: &Value) -> Result<PathElement, String> {
        if self.keys.is_empty() {
            return match item {
                Value::Object(_) | Value::Array(_) => Err("items of a set must be scalars".to_owned()),
                Value::Null => Err("associative list without keys may not have a null element".to_owned()),
                scalar => Ok(PathElement::Value(Json::new(scalar))),
            };
        }
        let Value::Object(item) = item else {
            return Err("associative list with keys may not have non-map elements".to_owned());
        };
        let keys: BTreeMap<String, Json> = self
            .keys
            .iter()
            .filter_map(|key| {
                let property = self.items.property(key);
                let default = || property.and_then(|schema| schema.default.as_deref().cloned());
                // A text that Go always writes has the empty text as its default.
                let empty = || {
                    property.filter(|schema| schema.presence == Presence::Written).map(|_| Value::String(String::new()))
                };
                let value = item.get(key).cloned().or_else(default).or_else(empty);
                value.map(|value| (key.clone(), Json::new(&value)))
            })
            .collect();
        if keys.is_empty() {
            let keys: Vec<String> = self.keys.iter().map(|key| format!("{key:?}")).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
                 for any key fields)",
                keys.join(" ")
            ));
        }
        Ok(PathElement::Key(keys))
    }

    /// The identity of each item.
    ///
    /// # Errors
    /// If one of them has no identity.
    pub(crate) fn elements(&self, list: &[Value]) -> Result<Vec<PathElement>, String> {
        list.iter()
            .enumerate()
            .map(|(index, item)| self.element(item).map_err(|error| format!("element {index}: {error}")))
            .collect()
    }
}
