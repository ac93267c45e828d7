//! CRDs that keep what a newer release added when an earlier release is rolled back to. Pure.
//!
//! The newer release may have added fields to a CRD, and objects may use them. A rollback must neither wait for a user to
//! approve their loss nor lose them: an older operator rarely has a problem with additional fields. So such a CRD keeps them, and the
//! earlier release restores everything else of it, also what the newer one no longer accepted.

use chandler_crd_upgrade::{
    Policy,
    rollback::{losses, with_additions},
};
use serde_json::Value;

use crate::pure::{
    crd::is_crd,
    desired::{APPLIED, Desired},
    live::{annotation, foreign_owner, is_terminating},
    owner::Owner,
};

/// Keeps what a newer release added to each CRD whose rollback the policy would refuse. Returns a warning for each.
pub(crate) fn keep_newer_crds(owner: &Owner, desired: &mut [Desired], live: &[Option<Value>]) -> Vec<String> {
    let mut notes = Vec::new();
    for (desired, live) in desired.iter_mut().zip(live) {
        let Some(live) = live.as_ref().filter(|live| is_newer(owner, desired, live)) else { continue };
        let Some((spec, note)) = kept(&owner.crd_upgrades, &desired.value, live) else { continue };
        notes.push(format!("{} {note}", desired.key));
        desired.replace_spec(spec);
    }
    notes
}

/// Whether this is a CRD of the owner that another release was the last to apply.
fn is_newer(owner: &Owner, desired: &Desired, live: &Value) -> bool {
    is_crd(&desired.key)
        && desired.key.version == "v1"
        && foreign_owner(live, owner).is_none()
        && !is_terminating(live)
        && annotation(live, APPLIED) != Some(desired.digest.as_str())
}

/// The `spec` of a CRD with what a newer release added, and the reason. None if the older one can be restored, and if nothing could
/// convert between the versions then.
fn kept(policy: &Policy, older: &Value, live: &Value) -> Option<(Value, String)> {
    let lost = losses(live, older, older, policy);
    let first = lost.first()?;
    let conversion = older.pointer("/spec/conversion");
    if !can_convert(conversion, older, live) {
        return None;
    }
    let more = match lost.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let merged = with_additions(live, older);
    if losses(live, older, &merged, policy).is_empty() {
        let spec = merged.get("spec")?.clone();
        return Some((spec, format!("keeps additions of a newer release: {first}{more}")));
    }
    let mut spec = live.get("spec")?.clone();
    let fields = spec.as_object_mut()?;
    match conversion {
        Some(conversion) => fields.insert("conversion".to_owned(), conversion.clone()),
        None => fields.remove("conversion"),
    };
    Some((spec, format!("keeps the versions of a newer release: {first}{more}")))
}

/// Whether the conversion of the older CRD can serve the versions in the cluster: a webhook of the older release does not know
/// later versions, and without a webhook no conversion must be necessary.
fn can_convert(conversion: Option<&Value>, older: &Value, live: &Value) -> bool {
    let is_webhook = |conversion: &Value| strategy(conversion) == "Webhook";
    if conversion.is_some_and(is_webhook) {
        let stored = versions(live).find(|version| version.get("storage") == Some(&Value::Bool(true)));
        let stored = stored.and_then(|version| version.get("name"));
        stored.is_some_and(|stored| versions(older).any(|version| version.get("name") == Some(stored)))
    } else {
        !live.pointer("/spec/conversion").is_some_and(is_webhook)
    }
}

fn strategy(conversion: &Value) -> &str {
    conversion.get("strategy").and_then(Value::as_str).unwrap_or("None")
}

fn versions(crd: &Value) -> impl Iterator<Item = &Value> {
    crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(versions: &[(&str, bool, &[&str])], conversion: Value) -> Value {
        let versions: Vec<Value> = versions
            .iter()
            .map(|(name, storage, fields)| {
                let properties: Value = fields.iter().map(|field| (*field, json!({"type": "string"}))).collect();
                let schema = json!({"type": "object", "properties": properties});
                json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}})
            })
            .collect();
        let mut crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
                     "versions": versions},
        });
        if !conversion.is_null() {
            crd["spec"]["conversion"] = conversion;
        }
        crd
    }

    fn webhook(service: &str) -> Value {
        json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": service}}}})
    }

    #[test]
    fn a_crd_keeps_what_a_rollback_would_lose() {
        let one = |fields| crd(&[("v1", true, fields)], Value::Null);
        let none = json!({"strategy": "None"});
        let two = |conversion| crd(&[("v1", true, &["a", "b"]), ("v2", false, &["a"])], conversion);
        let moved = |conversion| crd(&[("v1", false, &["a", "b"]), ("v2", true, &["a"])], conversion);
        let only = |conversion| crd(&[("v1", true, &["a"])], conversion);
        for (what, older, live, keeps) in [
            ("nothing is lost", one(&["a", "b"]), one(&["a"]), false),
            ("the same", one(&["a"]), one(&["a"]), false),
            ("a field", one(&["a"]), one(&["a", "b"]), true),
            ("the API server sets the default strategy", one(&["a"]), crd(&[("v1", true, &["a", "b"])], none), true),
            ("a version", only(Value::Null), two(Value::Null), true),
            ("no webhook would convert", only(Value::Null), two(webhook("new")), false),
            ("the older webhook knows what is stored", only(webhook("old")), two(webhook("new")), true),
            ("the older webhook does not", only(webhook("old")), moved(webhook("new")), false),
        ] {
            let kept = kept(&Policy::default(), &older, &live);
            assert_eq!(kept.is_some(), keeps, "{what}");
            let Some((spec, _)) = kept else { continue };
            assert_eq!(spec["versions"], live["spec"]["versions"], "{what}");
            assert_eq!(spec.get("conversion"), older["spec"].get("conversion"), "{what}");
        }
        let disabled = Policy { disabled: true, ..Policy::default() };
        assert_eq!(kept(&disabled, &one(&["a"]), &one(&["a", "b"])), None, "the policy allows the loss");
        let (_, why) = kept(&Policy::default(), &one(&["a"]), &one(&["a", "b", "c"])).unwrap();
        insta::assert_snapshot!(
            why,
            @r#"keeps additions of a newer release: validating upgrade for CRD "widgets.example.com": v1: ^.b: existingFieldRemoval: removed field : ^.b (and 1 more)"#
        );
    }

    #[test]
    fn a_rollback_ends_restrictions() {
        let v1 = |fields: Value, required: Value| {
            let mut crd = crd(&[("v1", true, &[])], Value::Null);
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
                json!({"type": "object", "properties": fields, "required": required});
            crd
        };
        let text = || json!({"type": "string"});
        let older = v1(json!({"a": text()}), json!([]));
        let restricted = v1(json!({"a": {"type": "string", "pattern": "^a$"}}), json!(["a"]));
        assert_eq!(kept(&Policy::default(), &older, &restricted), None, "nothing is lost");
        let extended = v1(json!({"a": {"type": "string", "pattern": "^a$"}, "b": text()}), json!(["b"]));
        let (spec, _) = kept(&Policy::default(), &older, &extended).unwrap();
        let schema = &spec["versions"][0]["schema"]["openAPIV3Schema"];
        assert_eq!(schema, &json!({"type": "object", "properties": {"a": text(), "b": text()}}));
        // A scope cannot be merged: the API server refuses to change it.
        let mut scoped = extended.clone();
        scoped["spec"]["scope"] = json!("Cluster");
        let (spec, why) = kept(&Policy::default(), &older, &scoped).unwrap();
        assert_eq!(spec["versions"], scoped["spec"]["versions"]);
        assert!(why.starts_with("keeps the versions of a newer release: "), "{why}");
    }

    #[test]
    fn only_a_crd_of_the_owner_that_another_release_applied_keeps_its_versions() {
        let owner = crate::pure::live::tests::owner();
        let older = crate::pure::desired::tests::desired(&crd(&[("v1", true, &["a"])], Value::Null), false);
        let newer = crd(&[("v1", true, &["a", "b"])], Value::Null);
        let ours = json!({"ownerReferences": [owner.reference()]});
        let with = |name: &str, value: Value| {
            let mut metadata = ours.clone();
            metadata[name] = value;
            metadata
        };
        for (what, metadata, keeps) in [
            ("another release", ours.clone(), true),
            ("the same release", with("annotations", json!({APPLIED: older.digest})), false),
            ("it is being deleted", with("deletionTimestamp", json!("2026-01-01T00:00:00Z")), false),
            ("another owner", json!({}), false),
        ] {
            let mut live = newer.clone();
            live["metadata"] = metadata;
            let mut desired = [older.clone()];
            let notes = keep_newer_crds(&owner, &mut desired, &[Some(live)]);
            assert_eq!(notes.len(), usize::from(keeps), "{what}");
            assert_eq!(desired[0].digest != older.digest, keeps, "{what}");
            let wanted = if keeps { &newer } else { &older.value };
            assert_eq!(desired[0].value["spec"]["versions"], wanted["spec"]["versions"], "{what}");
        }
        assert_eq!(keep_newer_crds(&owner, &mut [older], &[None]), Vec::<String>::new(), "it does not exist");
    }
}
