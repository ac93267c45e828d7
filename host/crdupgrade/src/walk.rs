//! Compares two schemas level by level.

use chandler_core::pointer::escape;
use serde_json::{Map, Value};

use crate::{
    Rule,
    change::Change,
    finding::{Effect, shown},
    keywords,
};

/// The maximum depth of the walk; the API server refuses deeper schemas. Everything below is one level.
pub(crate) const DEEPEST: usize = 100;

/// A change and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed {
    /// The path, as `^.spec.replicas`.
    pub(crate) property: String,
    /// The pointer below the root of the new schema, or of the old one if the new one does not have the place.
    pub(crate) pointer: String,
    /// Whether only the old schema has the place.
    pub(crate) gone: bool,
    pub(crate) change: Change,
}

/// Every change from one schema to the other that may break clients or stored objects.
pub(crate) fn compare(old: &Map<String, Value>, new: &Map<String, Value>) -> Vec<Placed> {
    let mut walk = Walk { found: Vec::new() };
    walk.level(old, new, &Place { property: "^".into(), pointer: String::new(), depth: 0 });
    walk.found
}

/// A place in a schema.
struct Place {
    property: String,
    pointer: String,
    depth: usize,
}

impl Place {
    fn field(&self, name: &str) -> Self {
        let pointer = format!("{}/properties/{}", self.pointer, escape(name));
        Self { property: format!("{}.{name}", self.property), pointer, depth: self.depth + 1 }
    }

    fn child(&self, keyword: &str) -> Self {
        let pointer = format!("{}/{keyword}", self.pointer);
        Self { property: format!("{}.{keyword}", self.property), pointer, depth: self.depth + 1 }
    }
}

struct Walk {
    found: Vec<Placed>,
}

impl Walk {
    fn level(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, place: &Place) {
        let bottom = place.depth >= DEEPEST;
        for change in keywords::compare(old, new, bottom) {
            self.push(place, false, change);
        }
        if bottom {
            return;
        }
        for (name, schema) in object(old, "properties").into_iter().flatten() {
            let Some(schema) = schema.as_object() else { continue };
            let place = place.field(name);
            match object(new, "properties").and_then(|fields| fields.get(name)).and_then(Value::as_object) {
                Some(other) => self.level(schema, other, &place),
                None => self.removed(schema, &place),
            }
        }
        match (object(old, "items"), object(new, "items")) {
            (Some(old), Some(new)) => self.level(old, new, &place.child("items")),
            (Some(old), None) => self.removed(old, &place.child("items")),
            (None, _) => self.other(place, "items", old, new),
        }
        match (object(old, "additionalProperties"), object(new, "additionalProperties")) {
            (Some(old), Some(new)) => self.level(old, new, &place.child("additionalProperties")),
            _ => self.openness(place, old, new),
        }
    }

    fn removed(&mut self, schema: &Map<String, Value>, place: &Place) {
        let below = fields(schema, place.depth);
        let and = if below == 0 { String::new() } else { format!(", with {below} below it") };
        let message = format!("removed field : {}{and}", place.property);
        let kind = schema.get("type").cloned();
        let change = Change::new(Rule::ExistingFieldRemoval, Effect::Tightens, message).of(kind.as_ref(), None);
        self.push(place, true, change);
    }

    /// Items without a schema, or with a new one.
    fn other(&mut self, place: &Place, keyword: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        let (before, after) = (old.get(keyword), new.get(keyword));
        // Items are added with the type of their list, and the change of the type is a finding already.
        if before.is_some() && before != after {
            let message = keywords::unhandled(keyword, before, after);
            self.push(place, false, Change::new(Rule::Unhandled, Effect::Alters, message).of(before, after));
        }
    }

    /// Compares whether fields without a schema are accepted. `null`, `false` and absence are the same: such fields are pruned.
    fn openness(&mut self, place: &Place, old: &Map<String, Value>, new: &Map<String, Value>) {
        let said = |schema: &Map<String, Value>| match schema.get("additionalProperties") {
            None | Some(Value::Null | Value::Bool(false)) => None,
            Some(value) => Some(value.clone()),
        };
        let any = |value: &Value| *value == Value::Bool(true) || value.as_object().is_some_and(Map::is_empty);
        let (before, after) = (said(old), said(new));
        let effect = match (&before, &after) {
            (None, None) => return,
            (Some(old), Some(new)) if any(old) && any(new) => return,
            (None, Some(_)) => Effect::Loosens,
            (Some(_), Some(new)) if any(new) => Effect::Loosens,
            (Some(_), _) => Effect::Tightens,
        };
        let text = |value: &Option<Value>| value.as_ref().map_or_else(|| "<empty>".to_owned(), shown);
        let message = format!("unhandled changes found (additionalProperties {} -> {})", text(&before), text(&after));
        self.push(
            place,
            false,
            Change::new(Rule::AdditionalProperties, effect, message).of(before.as_ref(), after.as_ref()),
        );
    }

    fn push(&mut self, place: &Place, gone: bool, change: Change) {
        let (property, pointer) = (place.property.clone(), place.pointer.clone());
        self.found.push(Placed { property, pointer, gone, change });
    }
}

fn object<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a Map<String, Value>> {
    schema.get(keyword)?.as_object()
}

/// The number of fields below a schema.
fn fields(schema: &Map<String, Value>, depth: usize) -> usize {
    if depth >= DEEPEST {
        return 0;
    }
    let below = |schema: &Value| schema.as_object().map_or(0, |schema| fields(schema, depth + 1));
    let own = object(schema, "properties").into_iter().flatten().map(|(_, field)| 1 + below(field)).sum::<usize>();
    own + ["items", "additionalProperties"].iter().filter_map(|keyword| schema.get(*keyword)).map(below).sum::<usize>()
}
