//! Functions of our own, and the names of all functions.

use std::sync::Arc;

use cel::{Value, objects::Opaque};

use super::{
    EvaluationError, Meter, Outcome, library,
    meter::{HEAD, ITEM, as_u64},
    operators, select,
};
use crate::re2::{Pattern, Patterns};

/// The functions of the language and of Kubernetes: global ones and methods. Sorted.
pub(crate) const FUNCTIONS: &[&str] = &[
    "add",
    "asApproximateFloat",
    "asInteger",
    "bool",
    "bytes",
    "charAt",
    "cidr",
    "compareTo",
    "contains",
    "containsCIDR",
    "containsIP",
    "distinct",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "family",
    "find",
    "findAll",
    "first",
    "flatten",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getEscapedPath",
    "getFullYear",
    "getHost",
    "getHostname",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getPort",
    "getQuery",
    "getScheme",
    "getSeconds",
    "hasValue",
    "indexOf",
    "int",
    "ip",
    "isCIDR",
    "isGlobalUnicast",
    "isGreaterThan",
    "isIP",
    "isInteger",
    "isLessThan",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isQuantity",
    "isSemver",
    "isSorted",
    "isURL",
    "isUnspecified",
    "join",
    "last",
    "lastIndexOf",
    "lowerAscii",
    "major",
    "masked",
    "matches",
    "max",
    "min",
    "minor",
    "or",
    "orValue",
    "patch",
    "prefixLength",
    "quantity",
    "replace",
    "reverse",
    "semver",
    "sign",
    "size",
    "slice",
    "sort",
    "split",
    "startsWith",
    "string",
    "sub",
    "substring",
    "sum",
    "timestamp",
    "trim",
    "type",
    "uint",
    "upperAscii",
    "url",
    "validate",
    "value",
];

/// The functions with a prefix that is not a variable.
const QUALIFIED: &[(&str, &[&str])] = &[
    ("base64", &["decode", "encode"]),
    (
        "format",
        &[
            "byte",
            "date",
            "datetime",
            "dns1035Label",
            "dns1035LabelPrefix",
            "dns1123Label",
            "dns1123LabelPrefix",
            "dns1123Subdomain",
            "dns1123SubdomainPrefix",
            "labelValue",
            "named",
            "qualifiedName",
            "uri",
            "uuid",
        ],
    ),
    ("ip", &["isCanonical"]),
    ("lists", &["range"]),
    (
        "math",
        &[
            "abs",
            "bitAnd",
            "bitNot",
            "bitOr",
            "bitShiftLeft",
            "bitShiftRight",
            "bitXor",
            "ceil",
            "floor",
            "greatest",
            "isFinite",
            "isInf",
            "isNaN",
            "least",
            "round",
            "sign",
            "sqrt",
            "trunc",
        ],
    ),
    ("optional", &["none", "of", "ofNonZeroValue"]),
    ("sets", &["contains", "equivalent", "intersects"]),
    ("strings", &["quote"]),
];

/// The names of types, which are values: `type(x) == string`.
const TYPES: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];

pub(crate) fn is_qualified(prefix: &str, name: &str) -> bool {
    QUALIFIED.iter().any(|(found, names)| *found == prefix && names.contains(&name))
}

pub(crate) fn is_function(name: &str) -> bool {
    FUNCTIONS.binary_search(&name).is_ok()
}

pub(crate) fn is_type(name: &str) -> bool {
    TYPES.contains(&name)
}

/// A type as a value.
#[derive(Debug, PartialEq, Eq)]
struct TypeValue(String);

impl Opaque for TypeValue {
    fn runtime_type_name(&self) -> &'static str {
        "type"
    }
}

pub(super) fn type_named(name: &str) -> Option<Value> {
    is_type(name).then(|| Value::Opaque(Arc::new(TypeValue(name.to_owned()))))
}

/// The name of a value's type.
pub(crate) fn type_name(value: &Value) -> &str {
    match value {
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Null => "null_type",
        Value::Duration(_) => "google.protobuf.Duration",
        Value::Timestamp(_) => "google.protobuf.Timestamp",
        Value::Opaque(opaque) => opaque.runtime_type_name(),
        Value::Function(..) => "function",
    }
}

/// Calls a function; one without a target may have it as its first argument.
pub(super) fn call(
    name: &str,
    target: Option<&Value>,
    arguments: &[Value],
    patterns: &Patterns,
    meter: &Meter,
) -> Outcome {
    match (name, target, arguments) {
        ("size", None, [value]) | ("size", Some(value), []) => size(value, meter),
        ("dyn", None, [value]) => Ok(value.clone()),
        ("type", None, [value]) => {
            meter.take(HEAD).map(|()| Value::Opaque(Arc::new(TypeValue(type_name(value).to_owned()))))
        }
        ("bool", None, [value]) => to_bool(value),
        ("string", None, [Value::Bool(value)]) => Ok(Value::from(if *value { "true" } else { "false" })),
        ("contains" | "startsWith" | "endsWith", Some(Value::String(text)), [Value::String(part)]) => {
            meter.charge_text(text.len())?;
            Ok(Value::Bool(match name {
                "contains" => text.contains(part.as_str()),
                "startsWith" => text.starts_with(part.as_str()),
                _ => text.ends_with(part.as_str()),
            }))
        }
        ("matches", Some(Value::String(text)), [Value::String(pattern)])
        | ("matches", None, [Value::String(text), Value::String(pattern)]) => {
            Ok(Value::Bool(pattern_of(pattern, text, patterns, meter)?.is_match(text)))
        }
        ("find" | "findAll", Some(Value::String(text)), [Value::String(pattern), ..]) => {
            let compiled = pattern_of(pattern, text, patterns, meter)?;
            // The library compiles the pattern once more.
            meter.charge(compiling(compiled.bytes()))?;
            library::call(name, None, target, arguments, meter)
        }
        ("contains" | "startsWith" | "endsWith" | "matches" | "find" | "findAll", ..) => {
            Err(EvaluationError::NoSuchOverload)
        }
        ("distinct", Some(Value::List(list)), []) => distinct(list, meter),
        ("value" | "hasValue" | "or" | "orValue", Some(target), _) => optional(name, target, arguments),
        _ => library::call(name, None, target, arguments, meter),
    }
}

/// Calls a function that the library adds to the language and Kubernetes does not know: `contains` of lists and maps.
pub fn member(name: &str, target: &Value, arguments: &[Value], meter: &Meter) -> Option<Outcome> {
    match (name, target, arguments) {
        ("contains", Value::List(_) | Value::Map(_), [item]) => {
            Some(operators::contains(target, item, meter).map(Value::Bool))
        }
        _ => None,
    }
}

fn pattern_of(pattern: &str, text: &str, patterns: &Patterns, meter: &Meter) -> Result<Arc<Pattern>, EvaluationError> {
    /// How many steps of a search cost as much as one of the evaluator.
    const SEARCH: u64 = 64;
    meter.charge_text(pattern.len())?;
    let before = patterns.charged();
    let compiled = patterns.get(pattern);
    meter.charge(compiling(patterns.charged().saturating_sub(before)))?;
    let compiled = compiled
        .map_err(|error| EvaluationError::Function { name: "matches".to_owned(), message: error.to_string() })?;
    meter.charge(compiled.steps(text) / SEARCH)?;
    Ok(compiled)
}

/// The cost of compiling a pattern to so many bytes.
fn compiling(bytes: usize) -> u64 {
    /// How many bytes cost as much as a step.
    const COMPILED: usize = 256;
    as_u64(bytes / COMPILED)
}

fn size(value: &Value, meter: &Meter) -> Outcome {
    let size = match value {
        Value::String(text) => {
            meter.charge_text(text.len())?;
            text.chars().count()
        }
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.map.len(),
        _ => return Err(EvaluationError::NoSuchOverload),
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn to_bool(value: &Value) -> Outcome {
    match value {
        Value::Bool(_) => Ok(value.clone()),
        Value::String(text) => match text.as_str() {
            "true" | "True" | "TRUE" | "t" | "1" => Ok(Value::Bool(true)),
            "false" | "False" | "FALSE" | "f" | "0" => Ok(Value::Bool(false)),
            _ => Err(EvaluationError::other("type conversion error from 'string' to 'bool'")),
        },
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

fn distinct(list: &[Value], meter: &Meter) -> Outcome {
    meter.take(list.len().saturating_mul(ITEM).saturating_add(HEAD))?;
    let mut found: Vec<Value> = Vec::new();
    for item in list {
        meter.charge(as_u64(found.len()))?;
        let mut known = false;
        for other in &found {
            known = known || operators::equal(other, item, meter)?;
        }
        if !known {
            found.push(item.clone());
        }
    }
    Ok(Value::List(Arc::new(found)))
}

fn optional(name: &str, target: &Value, arguments: &[Value]) -> Outcome {
    let held = select::as_optional(target)?;
    match (name, arguments) {
        ("hasValue", []) => Ok(Value::Bool(held.is_some())),
        ("value", []) => held.ok_or_else(|| EvaluationError::other("optional.none() dereference")),
        ("orValue", [otherwise]) => Ok(held.unwrap_or_else(|| otherwise.clone())),
        ("or", [otherwise]) => Ok(if held.is_some() { target.clone() } else { otherwise.clone() }),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}
