//! The functions of text/template itself.

use crate::{
    Function, IntKind, Limit, List, Meter, Str, Type, Value,
    escape::{html, javascript, query},
    format::{sprint, sprintf, sprintln},
};

/// What a name in a template calls.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee {
    Builtin(Builtin),
    Function(Function),
}

/// The functions that every template has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    And,
    Call,
    Eq,
    Ge,
    Gt,
    Html,
    Index,
    Js,
    Le,
    Len,
    Lt,
    Ne,
    Not,
    Or,
    Print,
    Printf,
    Println,
    Slice,
    UrlQuery,
}

/// A value with what reflection knows besides: whether it was read from a place that is declared as `interface {}`. Nil that was is a nil
/// interface; reflection has no value for other nils.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    pub(crate) value: Value,
    pub(crate) boxed: bool,
}

impl Held {
    pub(crate) fn new(value: Value) -> Self {
        Self { value, boxed: false }
    }

    pub(crate) fn unboxed(self) -> Self {
        Self { boxed: false, ..self }
    }

    /// Whether reflection has no value for it.
    pub(crate) fn is_invalid(&self) -> bool {
        self.value.is_nil() && !self.boxed
    }

    /// The static type.
    pub(crate) fn type_name(&self) -> String {
        if self.boxed { "interface {}".into() } else { self.value.type_name() }
    }
}

/// Why a built-in function failed.
pub(crate) enum Failure {
    Message(String),
    Limit(Limit),
}

impl From<Limit> for Failure {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::Message(message.into())
    }
}

type Result<T> = std::result::Result<T, Failure>;

impl Builtin {
    pub(crate) fn find(name: &str) -> Option<Self> {
        Some(match name {
            "and" => Self::And,
            "call" => Self::Call,
            "eq" => Self::Eq,
            "ge" => Self::Ge,
            "gt" => Self::Gt,
            "html" => Self::Html,
            "index" => Self::Index,
            "js" => Self::Js,
            "le" => Self::Le,
            "len" => Self::Len,
            "lt" => Self::Lt,
            "ne" => Self::Ne,
            "not" => Self::Not,
            "or" => Self::Or,
            "print" => Self::Print,
            "printf" => Self::Printf,
            "println" => Self::Println,
            "slice" => Self::Slice,
            "urlquery" => Self::UrlQuery,
            _ => return None,
        })
    }

    /// How many arguments it needs, and whether it takes more.
    pub(crate) fn arity(self) -> (usize, bool) {
        match self {
            Self::And | Self::Or | Self::Call | Self::Eq | Self::Index | Self::Slice | Self::Printf => (1, true),
            Self::Ge | Self::Gt | Self::Le | Self::Lt | Self::Ne => (2, false),
            Self::Len | Self::Not => (1, false),
            Self::Html | Self::Js | Self::Print | Self::Println | Self::UrlQuery => (0, true),
        }
    }

    /// The type of a parameter; `None` takes a value as it is.
    pub(crate) fn parameter(self, index: usize) -> Option<Type> {
        match self {
            Self::Printf if index == 0 => Some(Type::String),
            Self::Html | Self::Js | Self::Print | Self::Printf | Self::Println | Self::UrlQuery => Some(Type::Any),
            _ => None,
        }
    }

    /// Calls it. `and` and `or` are not called, since they do not evaluate all of their arguments.
    pub(crate) fn call(self, meter: &mut Meter, arguments: &[Held]) -> Result<Held> {
        let values = || arguments.iter().map(|argument| argument.value.clone()).collect::<Vec<_>>();
        let argument = |index: usize| arguments.get(index).cloned().unwrap_or_default();
        let value = |index: usize| argument(index).value;
        let rest = arguments.get(1..).unwrap_or_default();
        let boolean = |truth| Ok(Held::new(Value::Bool(truth)));
        match self {
            Self::And | Self::Or => Ok(argument(arguments.len().saturating_sub(1))),
            Self::Not => boolean(!value(0).truth()),
            Self::Call => match value(0) {
                Value::Nil => Err("call of nil".into()),
                // The executor puts the argument's text where the brackets are.
                value => Err(format!("non-function {{}} of type {}", value.type_name()).into()),
            },
            Self::Eq => boolean(equal(meter, &value(0), rest)?),
            Self::Ne => boolean(!equal(meter, &value(0), rest)?),
            Self::Lt => boolean(less(&value(0), &value(1))?),
            Self::Le => boolean(less(&value(0), &value(1))? || equal(meter, &value(0), rest)?),
            Self::Gt => boolean(!(less(&value(0), &value(1))? || equal(meter, &value(0), rest)?)),
            Self::Ge => boolean(!less(&value(0), &value(1))?),
            Self::Len => length(&argument(0)),
            Self::Index => index(argument(0), rest),
            Self::Slice => slice(meter, &value(0), rest),
            Self::Print => Ok(text(sprint(meter, &values())?)),
            Self::Println => Ok(text(sprintln(meter, &values())?)),
            Self::Printf => match value(0) {
                Value::String(format) => Ok(text(sprintf(meter, &format, values().get(1..).unwrap_or_default())?)),
                _ => Err("invalid format".into()),
            },
            Self::Html => Ok(text(html(&one_text(meter, &values())?, meter)?)),
            Self::Js => Ok(text(javascript(&one_text(meter, &values())?, meter)?)),
            Self::UrlQuery => Ok(text(query(&one_text(meter, &values())?, meter)?)),
        }
    }
}

fn text(text: Str) -> Held {
    Held::new(Value::String(text))
}

fn one_text(meter: &mut Meter, values: &[Value]) -> Result<Str> {
    if let [Value::String(text)] = values {
        return Ok(text.clone());
    }
    let shown = |value: &Value| if value.is_nil() { Value::from("<no value>") } else { value.clone() };
    let values: Vec<Value> = values.iter().map(shown).collect();
    Ok(sprint(meter, &values)?)
}

/// The kinds of values that can be ordered.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Basic {
    Bool,
    Int,
    Uint,
    Float,
    String,
}

fn basic(value: &Value) -> Option<Basic> {
    Some(match value {
        Value::Bool(_) => Basic::Bool,
        Value::Int(_, kind) if kind.is_signed() => Basic::Int,
        Value::Int(..) => Basic::Uint,
        Value::Float(_) => Basic::Float,
        Value::String(_) => Basic::String,
        _ => return None,
    })
}

fn equal(meter: &mut Meter, first: &Value, others: &[Held]) -> Result<bool> {
    if others.is_empty() {
        return Err("missing argument for comparison".into());
    }
    for Held { value: other, .. } in others {
        let (left, right) = (basic(first), basic(other));
        let same = if left == right {
            match (first, other) {
                (Value::Bool(left), Value::Bool(right)) => left == right,
                #[expect(clippy::float_cmp, reason = "as Go compares")]
                (Value::Float(left), Value::Float(right)) => left == right,
                (Value::Int(left, _), Value::Int(right, _)) => left == right,
                (Value::String(left), Value::String(right)) => left == right,
                (Value::Nil, Value::Nil) => true,
                (Value::Nil, _) | (_, Value::Nil) => false,
                _ if first.kind() != other.kind() => {
                    let (left, right) = (shown(meter, first)?, sprint(meter, std::slice::from_ref(other))?);
                    return Err(format!(
                        "non-comparable types {left}: {}, {}: {right}",
                        first.type_name(),
                        other.type_name()
                    )
                    .into());
                }
                (Value::Object(left), Value::Object(right)) if matches!(left.kind(), "struct" | "ptr") => {
                    std::rc::Rc::ptr_eq(left, right)
                }
                _ => return Err(format!("non-comparable type {}: {}", shown(meter, other)?, other.type_name()).into()),
            }
        } else {
            match (first, other) {
                (Value::Int(left, kind), Value::Int(right, other)) if kind.is_signed() != other.is_signed() => {
                    left == right && *left >= 0
                }
                (Value::Nil, _) | (_, Value::Nil) => false,
                _ => {
                    return Err(format!(
                        "incompatible types for comparison: {} and {}",
                        first.type_name(),
                        other.type_name()
                    )
                    .into());
                }
            }
        };
        if same {
            return Ok(true);
        }
    }
    Ok(false)
}

fn shown(meter: &mut Meter, value: &Value) -> Result<String> {
    Ok(sprintf(meter, &"%s".into(), std::slice::from_ref(value))?.to_string())
}

fn less(first: &Value, other: &Value) -> Result<bool> {
    let bad = || Failure::from("invalid type for comparison");
    let (left, right) = (basic(first).ok_or_else(bad)?, basic(other).ok_or_else(bad)?);
    Ok(match (first, other) {
        (Value::Int(left, kind), Value::Int(right, other)) => match (kind.is_signed(), other.is_signed()) {
            (true, true) => left < right,
            (false, false) => left.cast_unsigned() < right.cast_unsigned(),
            (true, false) => *left < 0 || left.cast_unsigned() < right.cast_unsigned(),
            (false, true) => *right >= 0 && left.cast_unsigned() < right.cast_unsigned(),
        },
        (Value::Float(left), Value::Float(right)) => left < right,
        (Value::String(left), Value::String(right)) => left < right,
        _ if left == right => return Err(bad()),
        _ => {
            return Err(
                format!("incompatible types for comparison: {} and {}", first.type_name(), other.type_name()).into()
            );
        }
    })
}

fn count(length: usize) -> Held {
    Held::new(Value::int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn length(item: &Held) -> Result<Held> {
    match &item.value {
        Value::Nil if item.boxed => Err("len of nil pointer".into()),
        Value::Nil => Err("reflect: call of reflect.Value.Type on zero Value".into()),
        Value::String(text) => Ok(count(text.len())),
        Value::List(list) => Ok(count(list.len())),
        Value::Map(map) => Ok(count(map.len())),
        Value::Object(object) => match object.data() {
            Value::List(list) if object.kind() == "slice" => Ok(count(list.len())),
            Value::Map(map) if object.kind() == "map" => Ok(count(map.len())),
            _ => Err(format!("len of type {}", object.type_name()).into()),
        },
        value => Err(format!("len of type {}", value.type_name()).into()),
    }
}

fn position(index: &Value, most: usize) -> Result<usize> {
    match index {
        Value::Int(at, _) => match usize::try_from(*at) {
            Ok(at) if at <= most => Ok(at),
            _ => Err(format!("index out of range: {at}").into()),
        },
        Value::Nil => Err("cannot index slice/array with nil".into()),
        other => Err(format!("cannot index slice/array with type {}", other.type_name()).into()),
    }
}

/// The error of reflection for an index that equals the length.
fn beyond(kind: &str) -> Failure {
    format!("reflect: {kind} index out of range").into()
}

fn index(item: Held, indexes: &[Held]) -> Result<Held> {
    if item.value.is_nil() {
        return Err("index of untyped nil".into());
    }
    let mut item = item;
    for Held { value: index, .. } in indexes {
        let data = match &item.value {
            Value::Object(object) if matches!(object.kind(), "map" | "slice") => object.data(),
            value => value.clone(),
        };
        item = match &data {
            Value::Nil => return Err("index of nil pointer".into()),
            Value::List(list) => {
                let at = position(index, list.len())?;
                Held {
                    value: list.items().get(at).cloned().ok_or_else(|| beyond("slice"))?,
                    boxed: list.element() == crate::Element::Any,
                }
            }
            Value::String(text) => {
                let at = position(index, text.len())?;
                let byte = text.as_bytes().get(at).ok_or_else(|| beyond("string"))?;
                Held::new(Value::Int(i64::from(*byte), IntKind::Uint8))
            }
            Value::Map(map) => {
                let key = match index {
                    Value::String(key) => key.text(),
                    Value::Nil => return Err("value is nil; should be of type string".into()),
                    other => return Err(format!("value has type {}; should be string", other.type_name()).into()),
                };
                Held {
                    value: map.get(&key).unwrap_or_else(|| map.element().zero()),
                    boxed: map.element() == crate::Element::Any,
                }
            }
            value => return Err(format!("can't index item of type {}", value.type_name()).into()),
        };
    }
    Ok(item)
}

fn slice(meter: &mut Meter, item: &Value, indexes: &[Held]) -> Result<Held> {
    if item.is_nil() {
        return Err("slice of untyped nil".into());
    }
    if indexes.len() > 3 {
        return Err(format!("too many slice indexes: {}", indexes.len()).into());
    }
    let data = match item {
        Value::Object(object) if object.kind() == "slice" => object.data(),
        value => value.clone(),
    };
    let length = match &data {
        Value::String(_) if indexes.len() == 3 => return Err("cannot 3-index slice a string".into()),
        Value::String(text) => text.len(),
        Value::List(list) => list.len(),
        value => return Err(format!("can't slice item of type {}", value.type_name()).into()),
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(&index.value, length)?;
    }
    let [from, to, end] = bounds;
    if from > to {
        return Err(format!("invalid slice index: {from} > {to}").into());
    }
    if to > end {
        return Err(format!("invalid slice index: {to} > {end}").into());
    }
    Ok(Held::new(match &data {
        Value::String(text) => {
            meter.charge(to - from)?;
            Value::String(text.as_bytes().get(from..to).unwrap_or_default().into())
        }
        Value::List(list) => {
            meter.charge((to - from).saturating_mul(size_of::<Value>()))?;
            Value::List(List::of(list.element(), list.items().get(from..to).unwrap_or_default().to_vec()))
        }
        other => other.clone(),
    }))
}
