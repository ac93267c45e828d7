//! Values of a template, with Go's types as far as text/template and its functions can see them.

use std::{
    any::Any,
    cell::{OnceCell, RefCell},
    collections::BTreeMap,
    fmt,
    rc::Rc,
};

use crate::{FunctionError, Str, Type};

/// A value of a template.
///
/// Cloning is cheap: strings, lists, maps and objects are shared. A map is shared **and mutable**, as in Go, since functions such as Sprig's
/// `set` and `merge` change their argument; a list never changes.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Go's nil, without a type.
    #[default]
    Nil,
    /// `bool`.
    Bool(bool),
    /// An integer of one of Go's types.
    Int(i64, IntKind),
    /// `float64`.
    Float(f64),
    /// `string`.
    String(Str),
    /// A slice.
    List(List),
    /// A map whose keys are strings.
    Map(Map),
    /// A value of a type of its own: a struct, or a named type with methods.
    Object(Rc<dyn Object>),
}

/// Go's integer types. A `uint64` above the largest `i64` is kept as its two's complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "Go has the same names")]
pub enum IntKind {
    Int,
    Int32,
    Int64,
    Uint,
    Uint8,
    Uint32,
    Uint64,
}

impl IntKind {
    /// The name of the type in Go.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
        }
    }

    /// Whether the type has a sign.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::Int | Self::Int32 | Self::Int64)
    }
}

/// What the items of a list, or the values of a map, are declared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// `interface {}`.
    Any,
    /// `string`.
    String,
    /// `bool`.
    Bool,
    /// An integer type.
    Int(IntKind),
    /// `float64`.
    Float,
    /// `map[string]interface {}`.
    Map,
    /// `[]uint8`.
    Bytes,
    /// A type with this name, whose values are objects.
    Object(&'static str),
}

impl Element {
    /// The name of the type in Go.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::String => "string",
            Self::Bool => "bool",
            Self::Int(kind) => kind.name(),
            Self::Float => "float64",
            Self::Map => "map[string]interface {}",
            Self::Bytes => "[]uint8",
            Self::Object(name) => name,
        }
    }

    /// Go's zero value of the type.
    pub fn zero(self) -> Value {
        match self {
            Self::Any | Self::Object(_) => Value::Nil,
            Self::String => Value::from(""),
            Self::Bool => Value::Bool(false),
            Self::Int(kind) => Value::Int(0, kind),
            Self::Float => Value::Float(0.0),
            Self::Map => Value::Map(Map::new()),
            Self::Bytes => Value::List(List::bytes(&[])),
        }
    }
}

/// A slice.
#[derive(Clone)]
pub struct List {
    element: Element,
    nil: bool,
    items: Rc<Items>,
}

/// The items of a list. A `[]uint8` makes its items when one is looked at, since a value takes more than twenty times the memory of a byte.
struct Items {
    bytes: Option<Box<[u8]>>,
    values: OnceCell<Vec<Value>>,
}

impl List {
    /// A `[]interface {}`.
    pub fn new(items: Vec<Value>) -> Self {
        Self::of(Element::Any, items)
    }

    /// A `[]string`.
    pub fn strings<S: Into<Str>>(items: impl IntoIterator<Item = S>) -> Self {
        Self::of(Element::String, items.into_iter().map(|item| Value::String(item.into())).collect())
    }

    /// A `[]uint8`.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self {
            element: Element::Int(IntKind::Uint8),
            nil: false,
            items: Rc::new(Items { bytes: Some(bytes.into()), values: OnceCell::new() }),
        }
    }

    /// A slice of a type. Each item must be of that type.
    pub fn of(element: Element, items: Vec<Value>) -> Self {
        let bytes = (element == Element::Int(IntKind::Uint8)).then(|| {
            let byte = |item: &Value| match item {
                Value::Int(byte, _) => u8::try_from(*byte).unwrap_or_default(),
                _ => 0,
            };
            items.iter().map(byte).collect()
        });
        Self { element, nil: false, items: Rc::new(Items { bytes, values: OnceCell::from(items) }) }
    }

    /// A nil slice of a type: without items, and `null` in JSON and YAML.
    pub fn nil(element: Element) -> Self {
        let mut list = Self::of(element, Vec::new());
        list.nil = true;
        list
    }

    /// Whether it is a nil slice.
    pub fn is_nil(&self) -> bool {
        self.nil
    }

    /// What the items are declared as.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The items.
    pub fn items(&self) -> &[Value] {
        self.items.values.get_or_init(|| {
            let bytes = self.items.bytes.as_deref().unwrap_or_default();
            bytes.iter().map(|byte| Value::Int(i64::from(*byte), IntKind::Uint8)).collect()
        })
    }

    /// The bytes, of a `[]uint8`.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        self.items.bytes.as_deref()
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.as_bytes().map_or_else(|| self.items().len(), <[u8]>::len)
    }

    /// Whether it has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of its type in Go.
    pub fn type_name(&self) -> String {
        format!("[]{}", self.element.name())
    }

    fn take(&mut self) -> Vec<Value> {
        Rc::get_mut(&mut self.items).and_then(|items| items.values.take()).unwrap_or_default()
    }
}

impl fmt::Debug for List {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items().fmt(formatter)
    }
}

impl Drop for List {
    fn drop(&mut self) {
        release(self.take());
    }
}

/// A map whose keys are strings. Clones share their entries, also when these change.
#[derive(Clone)]
pub struct Map {
    /// The name of its type, if it is a named one.
    name: Option<&'static str>,
    element: Element,
    entries: Rc<RefCell<BTreeMap<Rc<str>, Value>>>,
}

impl Map {
    /// An empty `map[string]interface {}`.
    pub fn new() -> Self {
        Self::of(Element::Any)
    }

    /// An empty map of a type.
    pub fn of(element: Element) -> Self {
        Self { name: None, element, entries: Rc::default() }
    }

    /// The map under a named type, such as `chartutil.Values`, with the same entries.
    pub fn named(&self, name: &'static str) -> Self {
        Self { name: Some(name), element: self.element, entries: Rc::clone(&self.entries) }
    }

    /// The name of its type, if it is a named one.
    pub fn name(&self) -> Option<&'static str> {
        self.name
    }

    /// The map without a named type, with the same entries.
    pub fn unnamed(&self) -> Self {
        Self { name: None, element: self.element, entries: Rc::clone(&self.entries) }
    }

    /// What the values are declared as.
    pub fn element(&self) -> Element {
        self.element
    }

    /// A value.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.entries.borrow().get(key).cloned()
    }

    /// Whether it has a key.
    pub fn has(&self, key: &str) -> bool {
        self.entries.borrow().contains_key(key)
    }

    /// Sets a value, and gives the one that was there.
    pub fn insert(&self, key: impl Into<Rc<str>>, value: impl Into<Value>) -> Option<Value> {
        let value = value.into();
        self.entries.borrow_mut().insert(key.into(), value)
    }

    /// Removes a value.
    pub fn remove(&self, key: &str) -> Option<Value> {
        self.entries.borrow_mut().remove(key)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.borrow().is_empty()
    }

    /// The keys, in order of their bytes.
    pub fn keys(&self) -> Vec<Rc<str>> {
        self.entries.borrow().keys().cloned().collect()
    }

    /// The entries as they are now, in order of the keys' bytes.
    pub fn entries(&self) -> Vec<(Rc<str>, Value)> {
        self.entries.borrow().iter().map(|(key, value)| (Rc::clone(key), value.clone())).collect()
    }

    /// Whether both are one map, so that a change of one is seen in the other.
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.entries, &other.entries)
    }

    /// The name of its type in Go.
    pub fn type_name(&self) -> String {
        self.name.map_or_else(|| format!("map[string]{}", self.element.name()), str::to_owned)
    }

    fn take(&mut self) -> BTreeMap<Rc<str>, Value> {
        Rc::get_mut(&mut self.entries).map(|entries| std::mem::take(entries.get_mut())).unwrap_or_default()
    }
}

impl Default for Map {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entries.try_borrow() {
            Ok(entries) => entries.fmt(formatter),
            Err(_) => formatter.write_str("map"),
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let entries = self.take();
        if !entries.is_empty() {
            release(entries.into_values().collect());
        }
    }
}

impl<K: Into<Rc<str>>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let map = Self::new();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

/// Drops values without recursion: a template can nest them deeper than the stack allows.
fn release(mut values: Vec<Value>) {
    while let Some(mut value) = values.pop() {
        match &mut value {
            Value::List(list) => values.append(&mut list.take()),
            Value::Map(map) => values.extend(map.take().into_values()),
            _ => {}
        }
    }
}

/// A value of a type of its own: a struct, or a named type with methods.
pub trait Object: fmt::Debug {
    /// The name of the type, as `%T` prints it: `*semver.Version`.
    fn type_name(&self) -> &str;

    /// The kind of the type, as `reflect.Kind` prints it: `struct`, `ptr`, `map`, `slice`.
    fn kind(&self) -> &'static str {
        "struct"
    }

    /// A field of the struct, or an entry of the map. `None` if it does not exist.
    fn field(&self, name: &str) -> Option<Value>;

    /// A method: `None` if it does not exist. Methods are looked up before fields.
    fn method(&self, _name: &str, _arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        None
    }

    /// The types of a method's parameters: arguments are checked against them.
    fn parameters(&self, _name: &str) -> &'static [Type] {
        &[]
    }

    /// Whether a method exists.
    fn has_method(&self, _name: &str) -> bool {
        false
    }

    /// What `String()` or `Error()` of the type gives: how it is printed. `None` if it has neither.
    fn string(&self) -> Option<String> {
        None
    }

    /// What `String()` of a pointer to it gives: an action prints the object so, but a function does not, which gets a copy.
    fn addressed_string(&self) -> Option<String> {
        None
    }

    /// Its plain data: a map of the fields, for printing, conversion to JSON and YAML, and equality. For a map or slice with methods, the map or
    /// list, over which `range`, `len` and `index` work as well.
    fn data(&self) -> Value;

    /// The fields in the order of their declaration, as `%v` prints them; `None` prints `data`.
    fn fields(&self) -> Option<Vec<(&'static str, Value)>> {
        None
    }

    /// For use by the functions that know the type.
    fn as_any(&self) -> &dyn Any;
}

impl Value {
    /// An `int`.
    pub fn int(value: i64) -> Self {
        Self::Int(value, IntKind::Int)
    }

    /// An `int64`, as most of Sprig's functions give.
    pub fn int64(value: i64) -> Self {
        Self::Int(value, IntKind::Int64)
    }

    /// A `[]interface {}`.
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(List::new(items))
    }

    /// A `[]string`.
    pub fn strings<S: Into<Str>>(items: impl IntoIterator<Item = S>) -> Self {
        Self::List(List::strings(items))
    }

    /// Whether it is nil.
    pub fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    /// The string, of a string.
    pub fn as_string(&self) -> Option<&Str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The map, of a map.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The list, of a list.
    pub fn as_list(&self) -> Option<&List> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// The object of a type, if it is one.
    pub fn as_object<T: 'static>(&self) -> Option<&T> {
        match self {
            Self::Object(object) => object.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// The name of its type, as `%T` prints it: `<nil>` for nil.
    pub fn type_name(&self) -> String {
        match self {
            Self::Nil => "<nil>".into(),
            Self::Bool(_) => "bool".into(),
            Self::Int(_, kind) => kind.name().into(),
            Self::Float(_) => "float64".into(),
            Self::String(_) => "string".into(),
            Self::List(list) => list.type_name(),
            Self::Map(map) => map.type_name(),
            Self::Object(object) => object.type_name().into(),
        }
    }

    /// The kind of its type, as `reflect.Kind` prints it: `invalid` for nil.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_, kind) => kind.name(),
            Self::Float(_) => "float64",
            Self::String(_) => "string",
            Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Object(object) => object.kind(),
        }
    }

    /// Whether `if` takes it for true: what is neither zero nor empty. A struct always is.
    pub fn truth(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value, _) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::String(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Object(object) => match (object.kind(), object.data()) {
                ("map" | "slice", data) => data.truth(),
                _ => true,
            },
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value.into())
    }
}

impl From<Str> for Value {
    fn from(value: Str) -> Self {
        Self::String(value)
    }
}

impl From<List> for Value {
    fn from(value: List) -> Self {
        Self::List(value)
    }
}

impl From<Map> for Value {
    fn from(value: Map) -> Self {
        Self::Map(value)
    }
}

impl From<Vec<Value>> for Value {
    fn from(value: Vec<Value>) -> Self {
        Self::list(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_map_share_changes() {
        let map = Map::new();
        let other = Value::Map(map.named("chartutil.Values"));
        map.insert("a", true);
        assert!(other.truth());
        assert_eq!(other.type_name(), "chartutil.Values");
        assert_eq!(map.type_name(), "map[string]interface {}");
    }

    #[test]
    fn deep_values_are_dropped_without_recursion() {
        let mut value = Value::Nil;
        for _ in 0..100_000 {
            value = Value::Map([("a", Value::list(vec![value]))].into_iter().collect());
        }
        drop(value);
    }
}
