//! The entries of `metadata.managedFields`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::apply::field_set::FieldSet;

/// Most entries of the operation `Update`; the oldest are joined beyond that, as kube-apiserver does.
const MOST_UPDATE_MANAGERS: usize = 10;
/// The manager of the joined entries.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// How a manager came to own its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// It declared them by server-side apply.
    Apply,
    /// It wrote them by any other request.
    Update,
}

impl Operation {
    /// The value of `operation`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// The owner of a set of fields.
///
/// `Update` entries of one manager in two versions are two owners; `Apply` entries are one, in the version last applied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner {
    pub(crate) operation: Operation,
    pub(crate) manager: String,
    /// Empty for `Apply`.
    pub(crate) update_version: String,
    pub(crate) subresource: String,
}

impl Owner {
    pub(crate) fn applier(manager: &str, subresource: &str) -> Self {
        Self {
            operation: Operation::Apply,
            manager: manager.to_owned(),
            update_version: String::new(),
            subresource: subresource.to_owned(),
        }
    }

    pub(crate) fn updater(manager: &str, api_version: &str, subresource: &str) -> Self {
        Self {
            operation: Operation::Update,
            manager: manager.to_owned(),
            update_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}

/// The fields of an owner.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Owned {
    pub(crate) api_version: String,
    pub(crate) time: Option<String>,
    pub(crate) fields: FieldSet,
}

/// All owners of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Managers {
    pub(crate) owners: BTreeMap<Owner, Owned>,
}

impl Managers {
    /// Reads `metadata.managedFields` of an object; an unreadable entry is omitted.
    pub(crate) fn of(object: &Value) -> Self {
        let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        let mut managers = Self::default();
        for entry in entries.into_iter().flatten() {
            if let Some((owner, owned)) = decode(entry) {
                managers.owners.insert(owner, owned);
            }
        }
        managers
    }

    /// The value of `metadata.managedFields`: appliers first, then by time, manager, version, subresource.
    pub(crate) fn encode(&self) -> Value {
        let mut entries: Vec<(&Owner, &Owned)> = self.owners.iter().collect();
        entries.sort_by_key(|(owner, owned)| {
            (owner.operation, owned.time.as_deref(), &owner.manager, &owned.api_version, &owner.subresource)
        });
        Value::Array(entries.into_iter().map(|(owner, owned)| encode(owner, owned)).collect())
    }

    /// Drops owners of nothing.
    pub(crate) fn drop_empty(&mut self) {
        self.owners.retain(|_, owned| !owned.fields.is_empty());
    }

    /// All fields that have an owner.
    pub(crate) fn all_fields(&self) -> FieldSet {
        self.owners.values().fold(FieldSet::new(), |all, owned| all.union(&owned.fields))
    }

    /// Takes fields that are the server's own business from every owner.
    pub(crate) fn strip(&mut self) {
        let stripped = stripped_fields();
        for owned in self.owners.values_mut() {
            owned.fields = owned.fields.difference(&stripped);
        }
        self.drop_empty();
    }

    /// Joins the oldest `Update` entries of one version when there are more than kube-apiserver keeps.
    pub(crate) fn cap(&mut self) {
        let mut updaters: Vec<(Option<String>, Owner)> = self
            .owners
            .iter()
            .filter(|(owner, _)| owner.operation == Operation::Update && owner.subresource.is_empty())
            .map(|(owner, owned)| (owned.time.clone(), owner.clone()))
            .collect();
        if updaters.len() <= MOST_UPDATE_MANAGERS {
            return;
        }
        updaters.sort();
        let surplus = updaters.len() - MOST_UPDATE_MANAGERS + 1;
        for (_, owner) in updaters.into_iter().take(surplus) {
            let Some(owned) = self.owners.remove(&owner) else { continue };
            let bucket = Owner::updater(ANCIENT_CHANGES, &owned.api_version, "");
            let joined = self.owners.entry(bucket).or_insert_with(|| Owned {
                api_version: owned.api_version.clone(),
                time: owned.time.clone(),
                fields: FieldSet::new(),
            });
            joined.fields = joined.fields.union(&owned.fields);
            joined.time = joined.time.take().max(owned.time);
        }
    }
}

/// Fields without an owner: the identity of the object and the fields that the server sets.
fn stripped_fields() -> FieldSet {
    let fields = json!({
        "f:apiVersion": {},
        "f:kind": {},
        "f:metadata": {
            ".": {},
            "f:name": {},
            "f:namespace": {},
            "f:creationTimestamp": {},
            "f:selfLink": {},
            "f:uid": {},
            "f:clusterName": {},
            "f:generation": {},
            "f:managedFields": {},
            "f:resourceVersion": {},
        },
    });
    FieldSet::decode(&fields).unwrap_or_default()
}

fn decode(entry: &Value) -> Option<(Owner, Owned)> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let api_version = text("apiVersion");
    let (operation, update_version) = match entry.get("operation").and_then(Value::as_str)? {
        "Apply" => (Operation::Apply, String::new()),
        "Update" => (Operation::Update, api_version.clone()),
        _ => return None,
    };
    let fields = FieldSet::decode(entry.get("fieldsV1").unwrap_or(&Value::Object(Map::new()))).ok()?;
    let owner = Owner { operation, manager: text("manager"), update_version, subresource: text("subresource") };
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Some((owner, Owned { api_version, time, fields }))
}

fn encode(owner: &Owner, held: &Owned) -> Value {
    let mut entry = Map::new();
    entry.insert("apiVersion".to_owned(), held.api_version.as_str().into());
    entry.insert("fieldsType".to_owned(), "FieldsV1".into());
    entry.insert("fieldsV1".to_owned(), held.fields.encode());
    if !owner.manager.is_empty() {
        entry.insert("manager".to_owned(), owner.manager.as_str().into());
    }
    entry.insert("operation".to_owned(), owner.operation.as_str().into());
    if !owner.subresource.is_empty() {
        entry.insert("subresource".to_owned(), owner.subresource.as_str().into());
    }
    if let Some(time) = &held.time {
        entry.insert("time".to_owned(), time.as_str().into());
    }
    Value::Object(entry)
}

/// The object without `metadata.managedFields`.
pub(crate) fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// The object with these managers as its `metadata.managedFields`; without the field when there are none.
pub(crate) fn with_managed_fields(mut object: Value, managers: &Managers) -> Value {
    let Some(fields) = object.as_object_mut() else { return object };
    if let Some(metadata) = fields.entry("metadata").or_insert_with(|| json!({})).as_object_mut() {
        if managers.owners.is_empty() {
            metadata.remove("managedFields");
        } else {
            metadata.insert("managedFields".to_owned(), managers.encode());
        }
    }
    object
}
