//! One step of a field path.

use std::{cmp::Ordering, collections::BTreeMap, fmt};

use serde_json::Value;

/// A JSON value in canonical text: object keys sorted, no spaces, whole numbers without a fraction.
///
/// Text compares and orders, which `serde_json::Value` does not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Json(String);

impl Json {
    /// The canonical text of a value.
    pub fn new(value: &Value) -> Self {
        let mut text = String::new();
        write_canonical(value, &mut text);
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => {
            let sorted: BTreeMap<&String, &Value> = object.iter().collect();
            text.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Number(number) => {
            let number = number.to_string();
            text.push_str(number.strip_suffix(".0").unwrap_or(&number));
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// One step of a field path: a field, or an item of a list named by its keys, its value or its index.
///
/// Elements order as in `FieldsV1`: fields, keys, values, indices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PathElement {
    /// A field of an object or a key of a map.
    Field(String),
    /// The item of a list that has these values in its key fields.
    Key(BTreeMap<String, Json>),
    /// The item of a set with this value.
    Value(Json),
    /// The item with this index.
    Index(u64),
}

impl PathElement {
    /// The step to a field.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }

    /// Reads a key of `FieldsV1`: `f:<name>`, `k:<keys>`, `v:<value>` or `i:<index>`.
    ///
    /// Returns `None` for anything else.
    pub fn decode(text: &str) -> Option<Self> {
        let (prefix, rest) = text.split_once(':')?;
        match prefix {
            "f" => Some(Self::Field(rest.to_owned())),
            "v" => Some(Self::Value(Json::new(&serde_json::from_str(rest).ok()?))),
            "i" => rest.parse().ok().map(Self::Index),
            "k" => {
                let Value::Object(keys) = serde_json::from_str(rest).ok()? else { return None };
                Some(Self::Key(keys.into_iter().map(|(name, value)| (name, Json::new(&value))).collect()))
            }
            _ => None,
        }
    }

    /// Writes a key of `FieldsV1`.
    pub fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Value(value) => format!("v:{}", value.as_str()),
            Self::Index(index) => format!("i:{index}"),
            Self::Key(keys) => {
                let fields =
                    keys.iter().map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value.as_str()));
                format!("k:{{{}}}", fields.collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => a.cmp(b),
            (Self::Value(a), Self::Value(b)) => a.cmp(b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The form of conflict messages: `.containers`, `[name="a"]`, `[="x"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Value(value) => write!(f, "[={}]", value.as_str()),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(keys) => {
                let fields = keys.iter().map(|(name, value)| format!("{name}={}", value.as_str()));
                write!(f, "[{}]", fields.collect::<Vec<_>>().join(","))
            }
        }
    }
}
