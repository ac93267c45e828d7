//! One stored version of an object.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::{BufMut, Bytes, BytesMut};
use serde::{
    Deserialize,
    ser::{SerializeMap as _, Serializer as _},
};
use serde_json::{Map, Value};

/// A version of an object. Immutable.
///
/// Objects are kept as JSON, which is about a tenth of the size of a parsed [`Value`]. Each form is made from the other by its
/// first reader; the store drops parsed forms again when there are too many (`Limits::parsed_bytes`).
#[derive(Debug)]
pub struct Object {
    revision: u64,
    /// One of the two is always there.
    json: OnceLock<Rendered>,
    parsed: OnceLock<Parsed>,
    /// Looked up more often than anything else.
    labels: OnceLock<Labels>,
    meter: Arc<Meter>,
}

/// `metadata.labels`, sorted.
type Labels = Box<[(Box<str>, Box<str>)]>;

/// As much of an object as its labels need.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Labelled {
    metadata: LabelledMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LabelledMetadata {
    labels: Option<BTreeMap<Box<str>, Box<str>>>,
}

/// The JSON of an object; `kind` and `apiVersion` come first, so that the rest can be taken without them.
#[derive(Clone, Debug)]
pub(crate) struct Rendered {
    pub(crate) bytes: Bytes,
    /// The offset of the other members; zero if the value is not an object.
    pub(crate) rest: usize,
}

/// A parsed object, which is counted.
#[derive(Debug)]
struct Parsed {
    value: Value,
    weight: usize,
    meter: Arc<Meter>,
}

impl Parsed {
    fn new(value: Value, meter: &Arc<Meter>) -> Self {
        let weight = weight(&value);
        meter.0.fetch_add(weight, Ordering::Relaxed);
        Self { value, weight, meter: Arc::clone(meter) }
    }
}

impl Drop for Parsed {
    fn drop(&mut self) {
        self.meter.0.fetch_sub(self.weight, Ordering::Relaxed);
    }
}

/// Counts the approximate bytes of the parsed objects of a store.
#[derive(Debug, Default)]
pub(crate) struct Meter(AtomicUsize);

impl Meter {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Object {
    /// An object that is not stored: the outcome of a dry run.
    pub fn unstored(value: Value) -> Self {
        Self::parsed(value, 0, &Arc::default())
    }

    /// A version; `metadata.resourceVersion` is set to the revision.
    pub(crate) fn new(mut value: Value, revision: u64, meter: &Arc<Meter>) -> Self {
        if let Some(object) = value.as_object_mut() {
            let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
            }
        }
        Self::parsed(value, revision, meter)
    }

    /// A version from what was rendered before.
    pub(crate) fn from_rendered(rendered: Rendered, revision: u64, meter: &Arc<Meter>) -> Self {
        let (json, meter) = (OnceLock::from(rendered), Arc::clone(meter));
        Self { revision, json, parsed: OnceLock::new(), labels: OnceLock::new(), meter }
    }

    fn parsed(value: Value, revision: u64, meter: &Arc<Meter>) -> Self {
        let parsed = OnceLock::from(Parsed::new(value, meter));
        Self { revision, json: OnceLock::new(), parsed, labels: OnceLock::new(), meter: Arc::clone(meter) }
    }

    /// The object. Keeps the parsed form: for many objects at a time use [`peek`](Self::peek).
    pub fn value(&self) -> &Value {
        &self.parsed.get_or_init(|| Parsed::new(self.parse(), &self.meter)).value
    }

    /// The object; parsed anew when the parsed form is not there, and not kept.
    pub fn peek(&self) -> Cow<'_, Value> {
        match self.parsed.get() {
            Some(parsed) => Cow::Borrowed(&parsed.value),
            None => Cow::Owned(self.parse()),
        }
    }

    /// The revision at which it was written.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The value of a label; does not parse the rest of the object.
    pub fn label(&self, key: &str) -> Option<&str> {
        let labels = self.labels.get_or_init(|| self.find_labels());
        let index = labels.binary_search_by(|(found, _)| (**found).cmp(key)).ok()?;
        labels.get(index).map(|(_, value)| &**value)
    }

    fn find_labels(&self) -> Labels {
        if let Some(parsed) = self.parsed.get() {
            let labels = parsed.value.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
            return labels.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into()))).collect();
        }
        let mut deserializer = serde_json::Deserializer::from_slice(&self.rendered().bytes);
        deserializer.disable_recursion_limit();
        let labelled = Labelled::deserialize(&mut deserializer).unwrap_or_default();
        labelled.metadata.labels.into_iter().flatten().collect()
    }

    /// The `apiVersion`; does not parse the rest of the object.
    pub fn api_version(&self) -> Option<&str> {
        if let Some(parsed) = self.parsed.get() {
            return parsed.value.get("apiVersion").and_then(Value::as_str);
        }
        let Rendered { bytes, rest } = self.rendered();
        let head = std::str::from_utf8(bytes.get(..*rest)?).ok()?;
        let (_, version) = head.split_once("\"apiVersion\":\"")?;
        version.split_once('"').map(|(version, _)| version)
    }

    /// The object as JSON.
    pub fn json(&self) -> Bytes {
        self.rendered().bytes.clone()
    }

    /// The object as JSON without `apiVersion` and `kind`, as in the lists of built-in types.
    pub fn item_json(&self) -> Bytes {
        let mut item = BytesMut::with_capacity(self.rendered().bytes.len());
        self.write_item(&mut item);
        item.freeze()
    }

    /// Appends [`item_json`](Self::item_json).
    pub fn write_item(&self, to: &mut impl BufMut) {
        let Rendered { bytes, rest } = self.rendered();
        if *rest > 0 {
            to.put_u8(b'{');
        }
        to.put_slice(bytes.get(*rest..).unwrap_or_default());
    }

    pub(crate) fn rendered(&self) -> &Rendered {
        self.json.get_or_init(|| self.parsed.get().map_or_else(Rendered::null, |parsed| Rendered::new(&parsed.value)))
    }

    /// This version without its parsed form, if it has one.
    pub(crate) fn unparsed(&self) -> Option<Self> {
        self.parsed.get()?;
        let unparsed = Self::from_rendered(self.rendered().clone(), self.revision, &self.meter);
        Some(Self { labels: self.labels.clone(), ..unparsed })
    }

    /// Roughly how many bytes it takes while it is not parsed.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + self.rendered().bytes.len()
    }

    /// JSON that was serialised by this module, or checked when it was loaded, can be parsed. How deep it may be was decided when it
    /// came in.
    fn parse(&self) -> Value {
        let mut deserializer = serde_json::Deserializer::from_slice(&self.rendered().bytes);
        deserializer.disable_recursion_limit();
        Value::deserialize(&mut deserializer).unwrap_or_default()
    }
}

impl Rendered {
    /// Renders an object. Writing a [`Value`] to memory cannot fail, since its keys are strings.
    fn new(value: &Value) -> Self {
        let Some(object) = value.as_object() else { return Self { bytes: render(value), rest: 0 } };
        let mut bytes = b"{".to_vec();
        for name in ["kind", "apiVersion"] {
            if let Some(value) = object.get(name) {
                bytes.extend_from_slice(format!("\"{name}\":").as_bytes());
                bytes.extend_from_slice(&render(value));
                bytes.push(b',');
            }
        }
        let rest = bytes.len();
        let others = without_type(value);
        match others.as_ref() {
            // No member comes after the last comma.
            b"{}" if rest > 1 => {
                bytes.pop();
                bytes.push(b'}');
                Self { rest: rest - 1, bytes: bytes.into() }
            }
            others => {
                bytes.extend_from_slice(others.get(1..).unwrap_or_default());
                Self { bytes: bytes.into(), rest }
            }
        }
    }

    fn null() -> Self {
        Self { bytes: Bytes::from_static(b"null"), rest: 0 }
    }
}

/// Writes a value as JSON. Writing a [`Value`] to memory cannot fail, since its keys are strings.
pub fn render(value: &Value) -> Bytes {
    serde_json::to_vec(value).map(Bytes::from).unwrap_or_default()
}

/// Writes an object as JSON without `apiVersion` and `kind`.
pub fn without_type(value: &Value) -> Bytes {
    let Some(object) = value.as_object() else { return render(value) };
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut bytes);
    let written = serializer.serialize_map(None).and_then(|mut map| {
        for (key, value) in object {
            if key != "apiVersion" && key != "kind" {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    });
    written.map(|()| Bytes::from(bytes)).unwrap_or_default()
}

/// Roughly how many bytes a value takes in memory beyond its own cell.
fn weight(value: &Value) -> usize {
    const ENTRY: usize = size_of::<(String, Value)>();
    /// The fewest entries that are allocated: a node of the tree that a map is.
    const NODE: usize = 11;
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| size_of::<Value>() + weight(item)).sum(),
        Value::Object(fields) => {
            let nodes = fields.len().div_ceil(NODE) * NODE * ENTRY;
            nodes + fields.iter().map(|(key, value)| key.len() + weight(value)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_type_comes_first_and_can_be_left_out() {
        let cases = [
            (
                json!({"apiVersion": "v1", "data": {"a": "b"}, "kind": "ConfigMap"}),
                r#"{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"b"}}"#,
                r#"{"data":{"a":"b"}}"#,
            ),
            (json!({"apiVersion": "v1", "kind": "A"}), r#"{"kind":"A","apiVersion":"v1"}"#, "{}"),
            (json!({"kind": "A"}), r#"{"kind":"A"}"#, "{}"),
            (json!({"spec": 1}), r#"{"spec":1}"#, r#"{"spec":1}"#),
            (json!({}), "{}", "{}"),
        ];
        for (value, whole, item) in cases {
            let object = Object::unstored(value.clone());
            assert_eq!(object.json(), whole);
            assert_eq!(object.item_json(), item);
            let again = object.unparsed().unwrap();
            assert_eq!(*again.peek(), value);
            assert!(again.unparsed().is_none(), "to peek keeps nothing");
            assert_eq!(again.value(), &value);
            assert_eq!(again.item_json(), item);
        }
    }

    #[test]
    fn labels_and_versions_are_found_without_parsing() {
        let cases = [
            (
                json!({"apiVersion": "apps/v1", "kind": "A", "metadata": {"labels": {"b": "2", "a": "1"}}}),
                Some("1"),
                Some("apps/v1"),
            ),
            (json!({"apiVersion": "v1"}), None, Some("v1")),
            (json!({"metadata": {"labels": null}}), None, None),
            (json!({"spec": {"apiVersion": "v2"}, "metadata": {"labels": {}}}), None, None),
        ];
        for (value, label, version) in cases {
            let object = Object::unstored(value);
            let unparsed = object.unparsed().unwrap();
            for object in [&object, &unparsed] {
                assert_eq!((object.label("a"), object.api_version()), (label, version));
                assert_eq!(object.label("c"), None);
            }
            assert!(unparsed.parsed.get().is_none());
        }
    }

    #[test]
    fn numbers_survive_being_rendered_and_parsed() {
        let value = json!({"numbers": [31.245_270_191_439_438, 0.1, 1e300, u64::MAX, i64::MIN, 1.0, -0.0]});
        let object = Object::unstored(value.clone());
        assert_eq!(*object.unparsed().unwrap().peek(), value);
    }

    #[test]
    fn the_meter_counts_parsed_objects() {
        let meter = Arc::new(Meter::default());
        let object = Object::new(json!({"data": "x"}), 7, &meter);
        let parsed = meter.bytes();
        assert!(parsed > 0);
        let unparsed = object.unparsed().unwrap();
        drop(object);
        assert_eq!(meter.bytes(), 0);
        assert_eq!(unparsed.value()["metadata"]["resourceVersion"], "7");
        assert_eq!(meter.bytes(), parsed);
    }
}
