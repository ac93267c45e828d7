//! Changes that a comparison field by field cannot detect, found by the records of the field managers. Pure.
//!
//! Server-side apply resets some values as a whole: a selector, a list of strings. A member that a user adds to such a value is
//! not in the release, so [`difference`](crate::pure::difference::difference) cannot distinguish it from a member that another field
//! manager may own. `metadata.managedFields` can: a manager that writes anything below an atomic value is recorded as the owner of the
//! whole value, while below other values it owns its own members. Only such a record requires a dry run, so a controller that renews an
//! annotation or a Lease, or that writes the status, causes none.

use chandler_core::{Budget, Stop, pointer::escape};
use serde_json::{Map, Value};

use crate::pure::{
    difference::{Ended, difference, is_custom},
    live::text,
    owner::FIELD_MANAGER,
};

/// The records themselves, if Chandler did not leave them as they are.
const RECORDS: &str = "/metadata/managedFields";

/// The first place, as a JSON pointer, where applying `desired` may change `live` although no field of `desired` differs. None
/// means that an apply changes nothing.
///
/// # Errors
/// If the search takes more steps than the budget has left.
pub(crate) fn hidden_change(desired: &Value, live: &Value, budget: &Budget) -> Result<Option<String>, Stop> {
    match search_all(desired, live, budget) {
        Ok(()) => Ok(None),
        Err(Ended::At(pointer)) => Ok(Some(pointer)),
        Err(Ended::Early(stop)) => Err(stop),
    }
}

fn search_all(desired: &Value, live: &Value, budget: &Budget) -> Result<(), Ended> {
    let records = live.pointer(RECORDS).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let (own, others): (Vec<&Value>, Vec<&Value>) = records
        .iter()
        .partition(|record| text(record, "/manager") == FIELD_MANAGER && text(record, "/subresource").is_empty());
    match own.as_slice() {
        [own] => forged(own, desired, live, budget)?,
        // An apply that drops nothing leaves the record of the create beside its own.
        [create, apply] | [apply, create] if is_create(create, live) && text(apply, "/operation") == "Apply" => {
            applied(apply, desired, live, budget)?;
            applied(create, desired, live, budget)?;
        }
        // Otherwise another client used its name or reset the records.
        _ => return Err(Ended::At(RECORDS.to_owned())),
    }
    others.into_iter().try_for_each(|record| overwritten(record, desired, budget))
}

/// Finds fields in Chandler's record that Chandler did not write: another client used its name.
fn forged(record: &Value, desired: &Value, live: &Value, budget: &Budget) -> Result<(), Ended> {
    if text(record, "/operation") == "Update" {
        // The record of a create includes defaults, so only the time can distinguish them; clients can write the time, too.
        let changed = !is_create(record, live) || may_have_changed(desired, live);
        return if changed { Err(Ended::At(RECORDS.to_owned())) } else { Ok(()) };
    }
    applied(record, desired, live, budget)
}

/// Whether a record of an update may be the one of the create, by its time. Times have one format and one time zone.
fn is_create(record: &Value, live: &Value) -> bool {
    text(record, "/operation") == "Update" && text(record, "/time") <= text(live, "/metadata/creationTimestamp")
}

/// Finds fields in a record that an apply would remove.
fn applied(record: &Value, desired: &Value, live: &Value, budget: &Budget) -> Result<(), Ended> {
    // An apply removes what is recorded and no longer applied: a member, or a part of a value that is written as a whole. If
    // fields are no longer ignored, Chandler itself applied more.
    let counts = |pointer: &str, found: Option<&Value>| match (found, live.pointer(pointer)) {
        (Some(desired), Some(live)) => Ok(difference(live, desired, budget)?.is_some()),
        (found, _) => Ok(found.is_none()),
    };
    search(record, desired, &counts, budget)
}

/// Built-in kinds without a generation, and their values that an apply writes as a whole and that get no defaults.
const WHOLE: &[(&str, &str, &[&str])] = &[
    ("v1", "ConfigMap", &[]),
    ("v1", "Secret", &[]),
    ("v1", "ServiceAccount", &[]),
    ("v1", "Namespace", &[]),
    ("v1", "Service", &["/spec/selector"]),
    ("rbac.authorization.k8s.io/v1", "Role", &["/rules"]),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", &["/rules", "/aggregationRule"]),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", &[]),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", &[]),
];

/// Whether a value that an apply writes as a whole may have got more members since the object was created. Only the API server
/// counts generations; some kinds have none.
fn may_have_changed(desired: &Value, live: &Value) -> bool {
    if let Some(generation) = live.pointer("/metadata/generation").and_then(Value::as_i64) {
        return generation > 1;
    }
    let is_it = |(version, kind, _): &&(&str, &str, &[&str])| {
        *version == text(live, "/apiVersion") && *kind == text(live, "/kind")
    };
    match WHOLE.iter().find(is_it) {
        Some((.., pointers)) => pointers
            .iter()
            .any(|pointer| desired.pointer(pointer).is_some_and(|desired| live.pointer(pointer) != Some(desired))),
        None => true,
    }
}

/// Finds values that another field manager wrote as a whole and of which `desired` has members.
fn overwritten(record: &Value, desired: &Value, budget: &Budget) -> Result<(), Ended> {
    // The schema of a custom resource may have made a value atomic after one of its members was recorded.
    let may_become_atomic = is_custom(text(desired, "/apiVersion")) && text(record, "/subresource").is_empty();
    let counts = |pointer: &str, found: Option<&Value>| {
        Ok(match found {
            Some(value) => value.is_object() || value.is_array(),
            None => may_become_atomic && !pointer.starts_with("/metadata/"),
        })
    };
    search(record, desired, &counts, budget)
}

/// Whether a recorded place counts, by its pointer and by the desired value there.
type Counts<'a> = &'a dyn Fn(&str, Option<&Value>) -> Result<bool, Stop>;

/// Finds the first place of a record that counts. The status does not count; a record that cannot be parsed does.
fn search(record: &Value, desired: &Value, counts: Counts<'_>, budget: &Budget) -> Result<(), Ended> {
    let unclear = || Err(Ended::At(RECORDS.to_owned()));
    let Some(fields) = record.get("fieldsV1").and_then(Value::as_object) else { return unclear() };
    let same_version = text(record, "/apiVersion") == text(desired, "/apiVersion");
    fields.iter().try_for_each(|(element, below)| match element.as_str() {
        "f:status" => Ok(()),
        // Paths below metadata are the same in all versions of a kind.
        "f:metadata" => step(element, below, desired, "", counts, budget),
        _ if same_version => step(element, below, desired, "", counts, budget),
        _ => unclear(),
    })
}

/// Takes one step on the path to recorded places (see [`ownership`](crate::pure::ownership) for the format).
fn step(
    element: &str,
    below: &Value,
    desired: &Value,
    pointer: &str,
    counts: Counts<'_>,
    budget: &Budget,
) -> Result<(), Ended> {
    budget.step()?;
    let unclear = || Err(Ended::At(pointer.to_owned()));
    let (name, found) = match (element.split_once(':'), desired) {
        // The container itself.
        (None, _) if element == "." => return Ok(()),
        (Some(("f", name)), Value::Object(desired)) => (escape(name), desired.get(name)),
        (Some(("k", keys)), Value::Array(items)) => {
            let Ok(keys) = serde_json::from_str::<Map<String, Value>>(keys) else { return unclear() };
            // The API server sets defaults of keys, which are not known here.
            let is_it = |item: &Value| keys.iter().all(|(name, value)| item.get(name).is_none_or(|own| own == value));
            let (name, item) = place(items, is_it, budget)?;
            if item.is_some_and(|item| keys.keys().any(|key| item.get(key).is_none())) {
                return Err(Ended::At(format!("{pointer}/{name}")));
            }
            (name, item)
        }
        (Some(("v", value)), Value::Array(items)) => {
            let Ok(value) = serde_json::from_str::<Value>(value) else { return unclear() };
            place(items, |item| *item == value, budget)?
        }
        _ => return unclear(),
    };
    let pointer = format!("{pointer}/{name}");
    match (below.as_object(), found) {
        (Some(fields), Some(desired)) if !fields.is_empty() => {
            fields.iter().try_for_each(|(element, below)| step(element, below, desired, &pointer, counts, budget))
        }
        (_, found) if counts(&pointer, found)? => Err(Ended::At(pointer)),
        _ => Ok(()),
    }
}

/// The first matching item of a list, and its index for a pointer.
fn place<'v>(
    items: &'v [Value],
    is_it: impl Fn(&Value) -> bool,
    budget: &Budget,
) -> Result<(String, Option<&'v Value>), Stop> {
    let index = items.iter().position(is_it);
    budget.take(index.unwrap_or(items.len()) as u64)?;
    Ok(match index.and_then(|index| Some((index, items.get(index)?))) {
        Some((index, item)) => (index.to_string(), Some(item)),
        None => ("-".to_owned(), None),
    })
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "values are made where they are handed over")]
mod tests {
    use serde_json::json;

    use super::*;

    fn hidden_change(desired: &Value, live: &Value) -> Option<String> {
        super::hidden_change(desired, live, &Budget::new(10_000)).unwrap()
    }

    fn record(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn with(mut record: Value, name: &str, value: &str) -> Value {
        record[name] = json!(value);
        record
    }

    fn desired() -> Value {
        json!({
            "apiVersion": "apps/v1",
            "metadata": {"labels": {"app": "a"}, "ownerReferences": [{"uid": "u"}]},
            "spec": {
                "replicas": 1, "selector": {"app": "a"},
                "template": {"containers": [{"name": "main", "args": ["a"], "ports": [{"containerPort": 80}]}]},
                "tags": ["x"],
            },
        })
    }

    fn live(records: Value) -> Value {
        json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1, "managedFields": records},
            "spec": {"selector": {"app": "a"}, "tags": ["x", "y"]}})
    }

    fn found(api_version: &str, records: Value) -> Option<String> {
        let mut desired = desired();
        desired["apiVersion"] = json!(api_version);
        hidden_change(&desired, &live(records))
    }

    /// The record of a create by Chandler.
    fn ours() -> Value {
        record("chandler", "Update", json!({"f:spec": {"f:replicas": {}, "f:defaulted": {}}}))
    }

    #[test]
    fn values_that_others_write_as_a_whole_may_be_reset() {
        let main = r#"k:{"name":"main"}"#;
        for (fields, want) in [
            // Scalars either differ or match the release.
            (json!({"f:spec": {"f:replicas": {}}}), None),
            // Members that the release does not have belong to the manager that wrote them.
            (json!({"f:spec": {"f:paused": {}, "f:extra": {".": {}, "f:a": {}}}}), None),
            (json!({"f:metadata": {"f:annotations": {".": {}, "f:restartedAt": {}}, "f:labels": {"f:b": {}}}}), None),
            (json!({"f:status": {"f:spec": {}}}), None),
            (json!({"f:spec": {"f:selector": {}}}), Some("/spec/selector")),
            (json!({"f:spec": {"f:selector": {"f:app": {}}}}), None),
            (json!({"f:spec": {".": {}, "f:tags": {".": {}, "v:\"y\"": {}, "v:\"x\"": {}}}}), None),
            (json!({"f:spec": {"f:tags": {}}}), Some("/spec/tags")),
            (json!({"f:spec": {"f:tags": {"i:0": {}}}}), Some("/spec/tags")),
            (
                json!({"f:spec": {"f:template": {"f:containers": {main: {".": {}, "f:args": {}}}}}}),
                Some("/spec/template/containers/0/args"),
            ),
            (json!({"f:spec": {"f:template": {"f:containers": {r#"k:{"name":"other"}"#: {"f:args": {}}}}}}), None),
            (
                json!({"f:spec": {"f:template": {"f:containers": {main: {"f:ports": {
                    r#"k:{"containerPort":80,"protocol":"TCP"}"#: {}}}}}}}),
                Some("/spec/template/containers/0/ports/0"),
            ),
            (
                json!({"f:metadata": {"f:ownerReferences": {r#"k:{"uid":"u"}"#: {}}}}),
                Some("/metadata/ownerReferences/0"),
            ),
            (json!({"f:metadata": {"f:ownerReferences": {r#"k:{"uid":"v"}"#: {}}}}), None),
            // Records that cannot be parsed.
            (json!({"f:spec": {"f:replicas": {"f:a": {}}}}), Some("/spec/replicas")),
            (json!({"f:spec": {"f:tags": {"v:": {}}}}), Some("/spec/tags")),
            (json!("odd"), Some(RECORDS)),
        ] {
            for operation in ["Update", "Apply"] {
                let theirs = record("kubectl", operation, fields.clone());
                assert_eq!(found("apps/v1", json!([ours(), theirs])).as_deref(), want, "{fields}");
            }
        }
    }

    /// A user who may patch an object may also write its records, as if it had never changed.
    #[test]
    fn a_create_record_is_evidence_only_if_nothing_can_have_changed() {
        let desired = json!({"spec": {"selector": {"app": "a"}}, "data": {}});
        let selector = |selector: Value| json!({"spec": {"selector": selector}});
        let (same, more) = (selector(json!({"app": "a"})), selector(json!({"app": "a", "b": "c"})));
        for (api_version, kind, generation, found, want) in [
            ("apps/v1", "Deployment", json!(1), &more, None),
            ("apps/v1", "Deployment", json!(2), &same, Some(RECORDS)),
            ("v1", "Service", json!(null), &same, None),
            ("v1", "Service", json!(null), &more, Some(RECORDS)),
            ("v1", "ConfigMap", json!(null), &more, None),
            ("v1", "PodTemplate", json!(null), &same, Some(RECORDS)),
            ("example.com/v1", "ConfigMap", json!(null), &same, Some(RECORDS)),
        ] {
            let mut live = found.clone();
            live["apiVersion"] = json!(api_version);
            live["kind"] = json!(kind);
            live["metadata"] = json!({"generation": generation, "creationTimestamp": "2026-01-01T00:00:00Z"});
            live["metadata"]["managedFields"] = json!([ours()]);
            assert_eq!(hidden_change(&desired, &live).as_deref(), want, "{api_version} {kind} {live}");
        }
    }

    #[test]
    fn members_of_custom_resources_may_have_become_parts_of_atomic_values() {
        let member = json!({"f:spec": {"f:selector": {"f:extra": {}}}});
        let annotation = json!({"f:metadata": {"f:annotations": {"f:extra": {}}}});
        let theirs = |api_version, fields| with(record("kubectl", "Update", fields), "apiVersion", api_version);
        for (api_version, theirs, want) in [
            ("apps/v1", theirs("apps/v1", member.clone()), None),
            ("batch.k8s.io/v1", theirs("batch.k8s.io/v1", member.clone()), None),
            ("example.com/v1", theirs("example.com/v1", member.clone()), Some("/spec/selector/extra")),
            ("example.com/v1", theirs("example.com/v1", annotation.clone()), None),
            ("example.com/v1", with(theirs("example.com/v1", member.clone()), "subresource", "scale"), None),
            // In another version of the kind, paths may mean something else.
            ("apps/v1", theirs("apps/v2", member), Some(RECORDS)),
            ("apps/v1", theirs("apps/v2", annotation), None),
            ("apps/v1", theirs("apps/v2", json!({"f:status": {"f:a": {}}})), None),
        ] {
            assert_eq!(found(api_version, json!([ours(), theirs])).as_deref(), want, "{api_version} {theirs}");
        }
    }

    #[test]
    fn records_of_subresources_count() {
        let sub = |fields, name| with(record("controller", "Update", fields), "subresource", name);
        for (theirs, want) in [
            (sub(json!({"f:status": {"f:ready": {}}}), "status"), None),
            // Status updates of some built-in kinds write annotations, too.
            (sub(json!({"f:metadata": {"f:annotations": {"f:revision": {}}}, "f:status": {}}), "status"), None),
            (sub(json!({"f:spec": {"f:replicas": {}}}), "scale"), None),
            (sub(json!({"f:spec": {"f:selector": {}}}), "scale"), Some("/spec/selector")),
            (with(ours(), "subresource", "status"), None),
        ] {
            assert_eq!(found("apps/v1", json!([ours(), theirs])).as_deref(), want, "{theirs}");
        }
    }

    #[test]
    fn records_that_chandler_did_not_write_are_no_evidence() {
        let applied = |fields| record("chandler", "Apply", fields);
        let declared =
            json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:replicas": {}, "f:selector": {}}});
        for (records, want) in [
            (json!([ours()]), None),
            (json!([applied(declared.clone())]), None),
            (json!([applied(json!({"f:spec": {"f:selector": {}, "f:extra": {}}}))]), Some("/spec/extra")),
            (json!([applied(json!({"f:metadata": {"f:labels": {"f:b": {}}}}))]), Some("/metadata/labels/b")),
            (json!([applied(json!({"f:spec": {"f:tags": {}}}))]), Some("/spec/tags")),
            (json!([with(ours(), "time", "2026-01-01T00:00:01Z")]), Some(RECORDS)),
            // The record of a create that names nothing else.
            (json!([record("chandler", "Update", declared.clone()), applied(declared.clone())]), None),
            (json!([applied(declared.clone()), record("chandler", "Update", json!({}))]), None),
            (json!([ours(), applied(declared.clone())]), Some("/spec/defaulted")),
            (
                json!([record("chandler", "Update", json!({"f:spec": {"f:tags": {}}})), applied(declared.clone())]),
                Some("/spec/tags"),
            ),
            (
                json!([
                    with(record("chandler", "Update", json!({})), "time", "2026-01-01T00:00:01Z"),
                    applied(declared.clone())
                ]),
                Some(RECORDS),
            ),
            (json!([applied(declared.clone()), applied(declared.clone())]), Some(RECORDS)),
            (json!([ours(), ours()]), Some(RECORDS)),
            (json!([ours(), ours(), applied(declared)]), Some(RECORDS)),
            (json!([record("kubectl", "Update", json!({}))]), Some(RECORDS)),
            (json!([]), Some(RECORDS)),
            (json!("odd"), Some(RECORDS)),
        ] {
            assert_eq!(found("apps/v1", records.clone()).as_deref(), want, "{records}");
        }
        assert_eq!(hidden_change(&desired(), &json!({})).as_deref(), Some(RECORDS));
    }
}
