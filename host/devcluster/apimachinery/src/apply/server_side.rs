//! Server-side apply.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

use crate::{
    apply::{
        conflict::{Conflict, write_conflicts},
        conform::{Duplicates, conform},
        field_set::{FieldSet, display_path},
        last_applied,
        managers::{Managers, Owned, Owner, with_managed_fields, without_managed_fields},
        typed::{self, Comparison},
    },
    schema::Schema,
};

/// Owns the fields that an object had before ownership was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// One server-side apply.
#[derive(Debug, Clone, Copy)]
pub struct ApplyRequest<'a> {
    /// The type of the object in the version of the request.
    pub schema: &'a Schema,
    /// The stored object, in the version of the request and with its `metadata.managedFields`; `None` if it does not exist yet.
    pub live: Option<&'a Value>,
    /// The object that the manager declares: exactly the fields that it wants to own.
    pub applied: &'a Value,
    /// The field manager, at most 128 bytes.
    pub manager: &'a str,
    /// The version of the request, e.g. `apps/v1`.
    pub api_version: &'a str,
    /// Whether fields that others own are taken over instead of refused.
    pub force: bool,
    /// The subresource applied to; empty for the object itself.
    pub subresource: &'a str,
    /// The time of the write, RFC 3339 with whole seconds.
    pub now: &'a str,
}

/// The result of an apply.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyOutcome {
    /// The merged object with its new `metadata.managedFields`.
    pub object: Value,
    /// Whether the object differs from the stored one. If not, the times in `managedFields` are unchanged, too.
    pub changed: bool,
}

/// Why an apply fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Others own fields with other values (409, reason `Conflict`).
    Conflicts(Vec<Conflict>),
    /// The declared or the stored object does not match its type (500, without a reason).
    Untyped(String),
    /// The object cannot be applied (400): two items of a list with one key, `managedFields` set, no manager.
    Invalid(String),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflicts(conflicts) => write_conflicts(conflicts, f),
            Self::Untyped(reason) | Self::Invalid(reason) => f.write_str(reason),
        }
    }
}

/// Merges the fields that a manager declares into the stored object.
///
/// * Fields in `applied` take their value from it and belong to the manager from then on.
/// * Fields that the manager applied before and omits now are removed, unless another manager owns them.
/// * A field that another manager owns with another value is a conflict, or is taken over with `force`.
/// * Fields with equal values are shared.
///
/// The server fills in defaults and validates afterwards; fields it adds have no owner. For the main resource of a type with a
/// status subresource, the caller first takes `status` out of `applied`, and for `status` everything else but `metadata`.
///
/// # Errors
/// When others own a field with another value and `force` is not set, or when the declared object cannot be applied.
pub fn apply(request: ApplyRequest<'_>) -> Result<ApplyOutcome, ApplyError> {
    check_request(&request)?;
    let applied = without_managed_fields(request.applied);
    conform(request.schema, &applied, Duplicates::Refused)
        .map_err(|error| untyped(&request, "failed to create typed patch object", "", &error))?;
    let declared = typed::field_set(request.schema, &applied)
        .map_err(|error| untyped(&request, "failed to create typed patch object", "", &error))?;
    let empty = Value::Object(serde_json::Map::new());
    let live = request.live.map_or_else(|| empty.clone(), without_managed_fields);
    let before = request.live.map(Managers::of).unwrap_or_default();
    check_live(&request, &live, &before)?;
    let managers = tracked_from_the_start(&request, &live, before.clone());
    let mut result = merge_and_prune(&request, &live, &applied, &declared, managers.clone(), request.force);
    if let (Err(ApplyError::Conflicts(conflicts)), true) = (&result, last_applied::is_kubectl(request.manager)) {
        // kubectl changing from client-side to server-side apply meets its own former self.
        result = match last_applied::remaining_conflicts(request.schema, &live, conflicts) {
            remaining if remaining.is_empty() => merge_and_prune(&request, &live, &applied, &declared, managers, true),
            remaining => Err(ApplyError::Conflicts(remaining)),
        };
    }
    let (mut object, mut managers) = result?;
    if last_applied::is_kubectl(request.manager) {
        last_applied::refresh(&live, &applied, &mut object);
    }
    managers.strip();
    Ok(outcome(&request, &live, &before, object, managers))
}

fn check_request(request: &ApplyRequest<'_>) -> Result<(), ApplyError> {
    let invalid = |reason: String| Err(ApplyError::Invalid(reason));
    if request.manager.is_empty() {
        return invalid(
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
                .to_owned(),
        );
    }
    if !request.applied.is_object() {
        return invalid("an applied configuration must be an object".to_owned());
    }
    let managed = request.applied.pointer("/metadata/managedFields");
    if managed.is_some_and(|managed| !managed.is_null()) {
        return invalid("metadata.managedFields must be nil".to_owned());
    }
    match request.applied.get("apiVersion").and_then(Value::as_str) {
        Some(version) if version != request.api_version => invalid(format!(
            "Incorrect version specified in apply patch. Specified patch version: {version}, expected: {}",
            request.api_version
        )),
        _ => Ok(()),
    }
}

/// The stored object may not match its type: clients can write lists whose items lack their keys, and a type can change.
fn check_live(request: &ApplyRequest<'_>, live: &Value, managers: &Managers) -> Result<(), ApplyError> {
    if request.live.is_none() {
        return Ok(());
    }
    conform(request.schema, live, Duplicates::Allowed).map_err(|error| {
        if managers.owners.is_empty() {
            let failed = "failed to create manager for existing fields: failed to convert new object";
            return untyped(request, failed, " to smd typed", &error);
        }
        untyped(request, "failed to create typed live object", "", &error)
    })
}

/// An error of the kind that names the object, in the words of kube-apiserver.
fn untyped(request: &ApplyRequest<'_>, failed: &str, to: &str, error: &str) -> ApplyError {
    let text = |pointer: &str| request.applied.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let version = match request.api_version.split_once('/') {
        Some(_) => request.api_version.to_owned(),
        None => format!("/{}", request.api_version),
    };
    let (namespace, name, kind) = (text("/metadata/namespace"), text("/metadata/name"), text("/kind"));
    ApplyError::Untyped(format!("{failed} ({namespace}/{name}; {version}, Kind={kind}){to}: {error}"))
}

/// An object that nothing tracked so far belongs to a manager of its own, lest the first apply own nothing jointly.
fn tracked_from_the_start(request: &ApplyRequest<'_>, live: &Value, managers: Managers) -> Managers {
    let mut managers = managers;
    if request.live.is_some() && managers.owners.is_empty() {
        let empty = Value::Object(serde_json::Map::new());
        let fields = typed::compare(request.schema, &empty, live).added;
        let owner = Owner::updater(BEFORE_FIRST_APPLY, request.api_version, "");
        let api_version = request.api_version.to_owned();
        managers.owners.insert(owner, Owned { api_version, time: Some(request.now.to_owned()), fields });
        managers.strip();
    }
    managers
}

fn merge_and_prune(
    request: &ApplyRequest<'_>,
    live: &Value,
    applied: &Value,
    declared: &FieldSet,
    mut managers: Managers,
    force: bool,
) -> Result<(Value, Managers), ApplyError> {
    let schema = request.schema;
    let merged = typed::merge(schema, Some(live), Some(applied)).map_err(ApplyError::Invalid)?.unwrap_or_default();
    let own = Owner::applier(request.manager, request.subresource);
    let declaration = Owned {
        api_version: request.api_version.to_owned(),
        time: Some(request.now.to_owned()),
        fields: declared.clone(),
    };
    let last = managers.owners.insert(own.clone(), declaration).map(|last| last.fields).unwrap_or_default();
    let object = prune(schema, &merged, &managers, &last);
    let comparison = typed::compare(schema, live, &object);
    let conflicts = conflicts(&managers, &own, &comparison);
    if !force && !conflicts.is_empty() {
        return Err(ApplyError::Conflicts(
            conflicts.into_iter().flat_map(|(owner, fields)| describe(&managers, &owner, &fields)).collect(),
        ));
    }
    for (owner, fields) in conflicts {
        if let Some(owned) = managers.owners.get_mut(&owner) {
            owned.fields = owned.fields.difference(&fields);
        }
    }
    for (owner, owned) in &mut managers.owners {
        if *owner != own {
            owned.fields = owned.fields.difference(&comparison.removed);
        }
    }
    managers.drop_empty();
    Ok((object, managers))
}

/// Removes fields that the manager applied last time and does not declare now, unless another manager owns them.
fn prune(schema: &Schema, merged: &Value, managers: &Managers, last: &FieldSet) -> Value {
    if last.is_empty() {
        return merged.clone();
    }
    let parents = |set: &FieldSet| typed::with_named_parents(schema, Some(merged), set);
    let fields_of = |value: &Value| parents(&typed::field_set(schema, value).unwrap_or_default());
    let last = parents(last);
    let everything = fields_of(merged);
    let pruned = typed::remove(schema, merged, &last);
    // Back comes what others, or the new declaration, own ...
    let kept = fields_of(&pruned).union(&parents(&managers.all_fields()));
    let pruned = typed::remove(schema, merged, &everything.difference(&kept));
    // ... and what went only because something above it did, although the manager never owned it.
    let gone = everything.difference(&fields_of(&pruned)).intersection(&last);
    typed::remove(schema, merged, &gone)
}

fn conflicts(managers: &Managers, applier: &Owner, comparison: &Comparison) -> BTreeMap<Owner, FieldSet> {
    let written = comparison.written();
    let others = managers.owners.iter().filter(|(owner, _)| *owner != applier);
    let conflicts = others.map(|(owner, owned)| (owner.clone(), owned.fields.intersection(&written)));
    conflicts.filter(|(_, fields)| !fields.is_empty()).collect()
}

fn describe(managers: &Managers, owner: &Owner, fields: &FieldSet) -> Vec<Conflict> {
    let entry = managers.owners.get(owner).cloned().unwrap_or_default();
    let conflict = |path: Vec<crate::apply::element::PathElement>| Conflict {
        manager: owner.manager.clone(),
        operation: owner.operation,
        api_version: entry.api_version.clone(),
        subresource: owner.subresource.clone(),
        field: display_path(&path),
    };
    fields.paths().into_iter().map(conflict).collect()
}

/// Where nothing but the time of the entry would change, the stored object is the outcome.
fn outcome(
    request: &ApplyRequest<'_>,
    live: &Value,
    before: &Managers,
    object: Value,
    mut managers: Managers,
) -> ApplyOutcome {
    let applier = Owner::applier(request.manager, request.subresource);
    let same_object = request.live.is_some() && *live == object;
    // An apply that changes nothing but ownership has no time of its own.
    if let Some(new) = managers.owners.get_mut(&applier).filter(|_| same_object) {
        new.time = before.owners.get(&applier).and_then(|old| old.time.clone());
    }
    let changed = !(same_object && managers == *before);
    let object = match request.live {
        Some(live) if !changed => live.clone(),
        _ => with_managed_fields(object, &managers),
    };
    ApplyOutcome { object, changed }
}
