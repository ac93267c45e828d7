//! A bundle with every feature, and random edits anywhere in it.
//!
//! Text that is mutated byte by byte rarely stays a bundle. Here an input is a list of edits of a bundle's values: the result is still
//! parsed to the end, with something odd in it.

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Unstructured};
use chandler_registry::Registry;
use serde_json::{Map, Value, json};

use crate::{archive::Archive, provision, seeds};

/// The file name of the request among the edited files.
const REQUEST: &str = "";

/// One edit. Places are indexes into all places of all documents.
#[derive(Debug, Arbitrary)]
enum Edit {
    Replace(u16, Anything),
    Remove(u16),
    Insert(u16, Name, Anything),
    /// Copies the value of one place to another.
    Copy(u16, u16),
    /// Duplicates an item.
    Repeat(u16),
    Rename(u16, Name),
    /// Appends to a text.
    Append(u16, Name),
    /// Replaces a file with these bytes.
    Raw(u8, Vec<u8>),
    Move(u8, Name),
}

/// A value for any place.
#[derive(Debug, Arbitrary)]
enum Anything {
    Null,
    Bool(bool),
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Text(Name),
    EmptyList,
    EmptyObject,
    ListOf(Name),
    ObjectOf(Name, i8),
    Nested(u8),
}

/// A name: one that the formats use, or another.
#[derive(Debug, Arbitrary)]
enum Name {
    Known(u8),
    Long(u8),
    Other(String),
}

/// Names with a meaning in the formats.
const KNOWN: &[&str] = &[
    "",
    "name",
    "op",
    "op.main",
    "ns",
    "v1",
    "apps/v1",
    "Deployment",
    "ServiceAccount",
    "Role",
    "ClusterServiceVersion",
    "CustomResourceDefinition",
    "apiextensions.k8s.io/v1",
    "apiextensions.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "berths.example.com",
    "ConversionWebhook",
    "ValidatingAdmissionWebhook",
    "MultiNamespace",
    "OwnNamespace",
    "reference",
    "extended",
    "cert-manager",
    "none",
    "1.20.0",
    ">=1.0.0 <2.0.0",
    "olm.constraint",
    "olm.gvk.required",
    "olm.maxOpenShiftVersion",
    "olm.properties",
    "500m",
    "1e400",
    "-9223372036854775809",
    "9999999999999999999999",
    "2024-01-01T00:00:00Z",
    "a/b",
    "../x",
    "a%2fb",
    "$(POD_NAME)",
    "List",
    "items",
    "manifests/csv.yaml",
    "manifests/x/y.yaml",
    "metadata/annotations.yaml",
    "metadata/properties.yaml",
    "metadata/dependencies.yaml",
];

impl Name {
    fn text(&self) -> String {
        match self {
            Self::Known(index) => KNOWN[usize::from(*index) % KNOWN.len()].to_owned(),
            Self::Long(length) => "x".repeat(usize::from(*length) * 3),
            Self::Other(text) => text.clone(),
        }
    }
}

impl Anything {
    fn value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => json!(value),
            Self::Integer(value) => json!(value),
            Self::Unsigned(value) => json!(value),
            Self::Float(value) => json!(value),
            Self::Text(name) => json!(name.text()),
            Self::EmptyList => json!([]),
            Self::EmptyObject => json!({}),
            Self::ListOf(name) => json!([name.text()]),
            Self::ObjectOf(name, value) => json!({name.text(): value}),
            Self::Nested(depth) => (0..*depth).fold(Value::Null, |inner, _| json!([inner])),
        }
    }
}

pub(crate) fn holds(input: &[u8]) {
    let mut unstructured = Unstructured::new(input);
    let mut documents = everything();
    let mut raw: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for _ in 0..12 {
        if unstructured.is_empty() {
            break;
        }
        let Ok(edit) = Edit::arbitrary(&mut unstructured) else { break };
        edit.apply(&mut documents, &mut raw);
    }
    let request = documents.remove(REQUEST).unwrap_or_default();
    let mut archive = Archive { request: serde_json::from_value(request).unwrap_or_default(), ..Archive::default() };
    for (path, value) in documents {
        let bytes = raw.remove(&path).unwrap_or_else(|| value.to_string().into_bytes());
        archive.insert(path, bytes);
    }
    // The memory bound depends on the edited bundle, not on the few bytes of its edits.
    let text = archive.write();
    provision::looks::<Registry>(&archive, &text);
    provision::holds::<Registry>(&archive, &text);
}

/// The values of the bundle's files by path, and the request.
fn everything() -> BTreeMap<String, Value> {
    let archive = Archive::read(seeds::EVERYTHING);
    let read = |bytes: &[u8]| {
        let documents = chandler_yaml::parse(bytes, &chandler_yaml::Limits::default()).expect("the seed is YAML");
        documents[0].root.to_json()
    };
    let files = archive.files.iter().map(|(path, bytes)| (path.clone(), read(bytes)));
    let request = serde_json::to_value(&archive.request).expect("a request is JSON");
    files.chain([(REQUEST.to_owned(), request)]).collect()
}

impl Edit {
    fn apply(&self, documents: &mut BTreeMap<String, Value>, raw: &mut BTreeMap<String, Vec<u8>>) {
        match self {
            Self::Replace(place, value) => {
                if let Some(found) = find(documents, *place) {
                    *found = value.value();
                }
            }
            Self::Insert(place, name, value) => match find(documents, *place) {
                Some(Value::Object(members)) => _ = members.insert(name.text(), value.value()),
                Some(Value::Array(items)) => items.push(value.value()),
                _ => {}
            },
            Self::Copy(from, to) => {
                let copy = find(documents, *from).cloned().unwrap_or_default();
                // Copies of copies would grow without bound.
                if copy.to_string().len() < 20_000
                    && let Some(found) = find(documents, *to)
                {
                    *found = copy;
                }
            }
            Self::Repeat(place) => {
                if let Some(Value::Array(items)) = find(documents, *place)
                    && items.len() < 100
                    && let Some(last) = items.last().cloned()
                {
                    items.push(last);
                }
            }
            Self::Remove(place) => parent(documents, *place, |members, key| _ = members.remove(key)),
            Self::Rename(place, name) => parent(documents, *place, |members, key| {
                let value = members.remove(key).unwrap_or_default();
                members.insert(name.text(), value);
            }),
            Self::Append(place, name) => {
                if let Some(Value::String(text)) = find(documents, *place) {
                    text.push_str(&name.text());
                }
            }
            Self::Raw(file, bytes) => {
                if let Some(path) = documents.keys().nth(usize::from(*file)).filter(|path| *path != REQUEST).cloned() {
                    raw.insert(path, bytes.clone());
                }
            }
            Self::Move(file, name) => {
                let path = documents.keys().nth(usize::from(*file)).filter(|path| *path != REQUEST).cloned();
                if let Some(value) = path.and_then(|path| documents.remove(&path))
                    && name.text() != REQUEST
                {
                    documents.insert(name.text(), value);
                }
            }
        }
    }
}

/// The value at a place, counted through all documents.
fn find(documents: &mut BTreeMap<String, Value>, place: u16) -> Option<&mut Value> {
    let total: usize = documents.values().map(count).sum();
    let mut left = usize::from(place) % total.max(1);
    documents.values_mut().find_map(|document| nth(document, &mut left))
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum::<usize>(),
        Value::Object(members) => members.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

fn nth<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, left)),
        Value::Object(members) => members.values_mut().find_map(|member| nth(member, left)),
        _ => None,
    }
}

/// The object at a place, or the next one after it, and one of its keys.
fn parent(documents: &mut BTreeMap<String, Value>, place: u16, act: impl FnOnce(&mut Map<String, Value>, &str)) {
    if let Some(Value::Object(members)) = find(documents, place)
        && let Some(key) = members.keys().nth(usize::from(place) % members.len().max(1)).cloned()
    {
        act(members, &key);
    }
}
