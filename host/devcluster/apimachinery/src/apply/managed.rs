//! `metadata.managedFields` of writes other than apply.

use serde_json::{Map, Value};

use crate::{
    apply::{
        conform::{Duplicates, conform},
        element::PathElement,
        field_set::FieldSet,
        managers::{Managers, Operation, Owned, Owner, with_managed_fields, without_managed_fields},
        typed,
    },
    schema::{Schema, canonicalize},
};

/// A write other than an apply: create, replace, patch.
#[derive(Debug, Clone, Copy)]
pub struct UpdateRequest<'a> {
    /// The type of the object in the version of the request.
    pub schema: &'a Schema,
    /// The stored object; `None` on create.
    pub live: Option<&'a Value>,
    /// The object to store. Without `managedFields`, the ones of `live` are used; an empty list resets them.
    pub new: &'a Value,
    /// The field manager.
    pub manager: &'a str,
    /// The version of the request, e.g. `apps/v1`.
    pub api_version: &'a str,
    /// The subresource written to; empty for the object itself.
    pub subresource: &'a str,
    /// Fields that the endpoint takes from the stored object, regardless of the request: the write makes no manager their owner.
    pub reset: &'a [&'a [&'a str]],
    /// The time of the write, RFC 3339 with whole seconds.
    pub now: &'a str,
}

/// Returns `new` with its `metadata.managedFields`: fields that changed belong to the manager alone.
///
/// A write that changes nothing changes no entry, so the caller can compare. Call it when defaults are filled in and
/// before the server adds anything of its own, which has no owner. Never fails: what cannot be tracked (a malformed entry) is
/// left out, and of an object that is not of its type nothing is tracked, as kube-apiserver does.
pub fn track_update(request: UpdateRequest<'_>) -> Value {
    let new = without_managed_fields(request.new);
    let live = request.live.map_or_else(|| blank(request.schema), without_managed_fields);
    let mut managers = starting_managers(&request);
    if request.live.is_some() && managers.owners.is_empty() {
        // An untracked object stays untracked until the first apply, which would otherwise find wrong owners.
        return new;
    }
    let is_typed = |object: &Value| conform(request.schema, object, Duplicates::Allowed).is_ok();
    if !is_typed(&new) || request.live.is_some() && !is_typed(&live) {
        return new;
    }
    let comparison = typed::compare(request.schema, &live, &new);
    let reset = reset_fields(request.reset);
    let written = comparison.written().recursive_difference(&reset);
    for owned in managers.owners.values_mut() {
        owned.fields = owned.fields.difference(&written).difference(&comparison.removed);
    }
    if !written.is_empty() {
        let owner = Owner::updater(request.manager, request.api_version, request.subresource);
        let before = starting_managers(&request).owners.get(&owner).cloned();
        let entry = managers.owners.entry(owner).or_insert_with(|| Owned {
            api_version: request.api_version.to_owned(),
            time: Some(request.now.to_owned()),
            ..Owned::default()
        });
        entry.fields = entry.fields.union(&written);
        if before.is_none_or(|before| before.fields != entry.fields) {
            entry.time = Some(request.now.to_owned());
        }
    }
    managers.strip();
    managers.cap();
    with_managed_fields(new, &managers)
}

/// The owners that the write starts from.
///
/// Clients may send back the entries that they read, edit them (to hand over ownership), or reset them with an empty list or a
/// list of one empty entry.
fn starting_managers(request: &UpdateRequest<'_>) -> Managers {
    let sent = request.new.pointer("/metadata/managedFields").and_then(Value::as_array);
    let is_reset = |entries: &Vec<Value>| {
        entries.is_empty()
            || (entries.len() == 1 && entries.first().and_then(Value::as_object).is_some_and(Map::is_empty))
    };
    match sent {
        Some(entries) if is_reset(entries) => Managers::default(),
        // Entries that cannot be read leave everything as it was.
        Some(entries) if entries.len() == Managers::of(request.new).owners.len() => Managers::of(request.new),
        _ => request.live.map(Managers::of).unwrap_or_default(),
    }
}

fn reset_fields(paths: &[&[&str]]) -> FieldSet {
    let mut fields = FieldSet::new();
    for path in paths {
        let path: Vec<PathElement> = path.iter().map(|name| PathElement::field(*name)).collect();
        fields.insert(&path);
    }
    fields
}

/// The empty object of the type.
///
/// kube-apiserver compares a new object of a built-in kind with the empty Go struct, in which some parts are always there, so
/// that no manager owns them as such: non-pointer structs, and fields without `omitempty`.
fn blank(schema: &Schema) -> Value {
    let mut blank = Value::Object(Map::new());
    if schema.is_builtin() {
        canonicalize(schema, &mut blank);
    }
    blank
}

/// Whether two objects differ in nothing but the times of their `managedFields`.
///
/// Such a write changes nothing, not even the resource version.
pub fn same_but_for_times(old: &Value, new: &Value) -> bool {
    let timeless = |object: &Value| {
        let mut managers = Managers::of(object);
        for owned in managers.owners.values_mut() {
            owned.time = None;
        }
        managers
    };
    without_managed_fields(old) == without_managed_fields(new) && timeless(old) == timeless(new)
}

/// The managers of an object, e.g. for messages: manager, operation, subresource.
pub fn managers(object: &Value) -> Vec<(String, Operation, String)> {
    let managers = Managers::of(object);
    managers.owners.into_keys().map(|owner| (owner.manager, owner.operation, owner.subresource)).collect()
}
