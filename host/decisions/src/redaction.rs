//! Hides values of Secrets in the texts of a status.
//!
//! Every field of the status is named here, and one that is not bound to `_` is hidden: a new field does not compile before it is decided which of
//! the two it is. The author of the BundleDeployment wrote the shown ones for every reader, or the controller computed them; they must stay
//! as they are, since programs compare them.

use std::ops::Deref;

use chandler_api::{
    ApprovedChange, BundleCandidate, BundleDeploymentStatus, BundleDescription, BundleProperty, BundleWarning, Drifted,
    DriftedField, DriftedObject, MissingPermissions, PendingChange, ProvisionerChange, ProvisionerInUse, ReleaseInUse,
    Revision,
};
use chandler_values::Redactor;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// A status without values of Secrets. Only such a status can be written.
#[derive(Clone, Debug)]
pub struct Redacted(BundleDeploymentStatus);

impl Redacted {
    /// The status.
    pub fn into_inner(self) -> BundleDeploymentStatus {
        self.0
    }
}

impl Deref for Redacted {
    type Target = BundleDeploymentStatus;

    fn deref(&self) -> &BundleDeploymentStatus {
        &self.0
    }
}

/// Hides the values in all texts of the status, the history's included.
pub fn hide(redactor: &Redactor, mut status: BundleDeploymentStatus) -> Redacted {
    if !redactor.is_empty() {
        hide_status(redactor, &mut status);
    }
    Redacted(status)
}

fn hide_status(redactor: &Redactor, status: &mut BundleDeploymentStatus) {
    let BundleDeploymentStatus {
        conditions,
        // The spec has the same, but for the digest.
        resolved_source: _,
        content_url: _,
        observed_generation: _,
        content_digest: _,
        bundle,
        candidate,
        warnings,
        provisioner,
        release,
        revision: _,
        history,
        pending_change,
        drift,
        // An annotation of the author, which has to be equal.
        last_handled_reconcile_at: _,
        missing_permissions,
    } = status;
    for condition in conditions {
        hide_condition(redactor, condition);
    }
    if let Some(bundle) = bundle {
        hide_bundle(redactor, bundle);
    }
    candidate.iter().for_each(show_candidate);
    for warning in warnings {
        hide_warning(redactor, warning);
    }
    provisioner.iter().for_each(show_provisioner);
    if let Some(release) = release {
        hide_release(redactor, release);
    }
    for revision in history {
        hide_revision(redactor, revision);
    }
    if let Some(pending) = pending_change {
        hide_pending(redactor, pending);
    }
    if let Some(drift) = drift {
        hide_drift(redactor, drift);
    }
    missing_permissions.iter().for_each(show_permissions);
}

fn hide_condition(redactor: &Redactor, condition: &mut Condition) {
    // The reason is one of a list.
    let Condition { message, type_: _, status: _, reason: _, observed_generation: _, last_transition_time: _ } =
        condition;
    redactor.hide(message);
}

fn hide_warning(redactor: &Redactor, warning: &mut BundleWarning) {
    let BundleWarning { code, message } = warning;
    redactor.hide(code);
    redactor.hide(message);
}

fn hide_bundle(redactor: &Redactor, bundle: &mut BundleDescription) {
    // What names a bundle is compared and looked up in catalogs.
    let BundleDescription { name: _, package: _, version: _, properties, omitted_properties: _ } = bundle;
    for BundleProperty { kind, value } in properties {
        redactor.hide(kind);
        redactor.hide_in(value);
    }
}

fn show_candidate(candidate: &BundleCandidate) {
    let BundleCandidate { name: _, package: _, version: _, release_digest: _ } = candidate;
}

/// A component has no values when it describes itself. Its image is in the spec of the class.
fn show_provisioner(provisioner: &ProvisionerInUse) {
    let ProvisionerInUse { class: _, name: _, version: _, digest: _, image: _, format: _ } = provisioner;
}

fn hide_release(redactor: &Redactor, release: &mut ReleaseInUse) {
    let ReleaseInUse { digest: _, objects: _, stages: _, start_time: _, warnings } = release;
    for warning in warnings {
        hide_warning(redactor, warning);
    }
}

fn hide_revision(redactor: &Redactor, revision: &mut Revision) {
    let Revision {
        number: _,
        generation: _,
        rollback_to: _,
        // The spec has the same, but for the digest.
        source: _,
        content_digest: _,
        provisioner,
        version: _,
        install_namespace: _,
        // Digests of what is recorded: the versions of Secrets, not their values.
        config_digest: _,
        own_config_digest: _,
        spec_config_digest: _,
        values_from: _,
        // It is absent where values of Secrets are part of it, and a rollback needs it as it is.
        config: _,
        release_digest: _,
        approval,
        outcome: _,
        message,
        start_time: _,
        completion_time: _,
    } = revision;
    show_provisioner(provisioner);
    approval.iter().for_each(show_approval);
    if let Some(message) = message {
        redactor.hide(message);
    }
}

fn show_approval(approval: &ApprovedChange) {
    let ApprovedChange { change: _, approved_by: _, terms: _ } = approval;
}

fn hide_pending(redactor: &Redactor, pending: &mut PendingChange) {
    let PendingChange {
        digest: _,
        release_digest: _,
        created: _,
        changed: _,
        removed: _,
        objects,
        omitted: _,
        refusals,
        findings,
        since: _,
        cause: _,
        provisioner,
    } = pending;
    if let Some(ProvisionerChange { installed, new }) = provisioner {
        installed.iter().for_each(show_provisioner);
        show_provisioner(new);
    }
    [objects, refusals, findings].into_iter().flatten().for_each(|text| redactor.hide(text));
}

fn hide_drift(redactor: &Redactor, drift: &mut Drifted) {
    let Drifted { total: _, objects } = drift;
    for object in objects {
        // The API server shows the names of objects to everyone who may list them, whatever they are made of.
        let DriftedObject {
            group: _,
            kind: _,
            namespace: _,
            name: _,
            state: _,
            contested: _,
            fields,
            omitted_fields: _,
        } = object;
        // A path has names of members and of items of lists, which tell what a value is for.
        for DriftedField { path: _, manager } in fields {
            if let Some(manager) = manager {
                redactor.hide(manager);
            }
        }
    }
}

/// Rules have names of resources, and of objects.
fn show_permissions(missing: &MissingPermissions) {
    let MissingPermissions { namespace: _, rules: _ } = missing;
}

#[cfg(test)]
mod tests {
    use chandler_api::BundleDeployment;
    use kube_core::CustomResourceExt as _;
    use serde_json::{Map, Value, json};

    use super::*;

    const SECRET: &str = "hunter2";

    /// What may show a value, as pointers with `*` for items and members of any name.
    const SHOWN: &[&str] = &[
        "/conditions/*/reason",
        "/conditions/*/type",
        "/contentDigest",
        "/contentURL",
        "/lastHandledReconcileAt",
        "/bundle/name",
        "/bundle/package",
        "/bundle/version",
        "/candidate/name",
        "/candidate/package",
        "/candidate/releaseDigest",
        "/candidate/version",
        "/drift/objects/*/fields/*/path",
        "/drift/objects/*/group",
        "/drift/objects/*/kind",
        "/drift/objects/*/name",
        "/drift/objects/*/namespace",
        "/history/*/approval/approvedBy",
        "/history/*/approval/change",
        "/history/*/approval/terms",
        "/history/*/config/*",
        "/history/*/configDigest",
        "/history/*/contentDigest",
        "/history/*/installNamespace",
        "/history/*/ownConfigDigest",
        "/history/*/releaseDigest",
        "/history/*/specConfigDigest",
        "/history/*/valuesFrom/*/name",
        "/history/*/valuesFrom/*/resourceVersion",
        "/history/*/valuesFrom/*/uid",
        "/history/*/version",
        "/missingPermissions/*/namespace",
        "/pendingChange/digest",
        "/pendingChange/releaseDigest",
        "/release/digest",
    ];
    /// Fields that are shown with all that is below them.
    const SHOWN_BELOW: &[&str] = &[
        "/history/*/provisioner",
        "/history/*/source",
        "/missingPermissions/*/rules",
        "/pendingChange/provisioner",
        "/provisioner",
        "/resolvedSource",
    ];

    /// A value of a schema that has every field, and the secret in every string.
    fn planted(schema: &Value) -> Value {
        if let Some(first) = schema.pointer("/enum/0") {
            return first.clone();
        }
        let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
        match (text("type"), text("format")) {
            ("object", _) => {
                let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
                let mut object: Map<String, Value> =
                    properties.iter().map(|(name, schema)| (name.clone(), planted(schema))).collect();
                match schema.get("additionalProperties").filter(|more| more.is_object()) {
                    Some(more) => drop(object.insert("any".to_owned(), planted(more))),
                    None if object.is_empty() => drop(object.insert("any".to_owned(), json!(format!("a {SECRET}")))),
                    None => {}
                }
                object.into()
            }
            ("array", _) => json!([planted(schema.get("items").expect("items"))]),
            ("integer", _) => json!(1),
            ("boolean", _) => json!(true),
            (_, "date-time") => json!("2026-01-01T00:00:00Z"),
            // A value of any type.
            ("", _) => json!({"any": [format!("a {SECRET}")]}),
            _ => json!(format!("a {SECRET}")),
        }
    }

    /// The places of texts with the secret.
    fn found(value: &Value, at: &str, places: &mut Vec<String>) {
        match value {
            Value::String(text) if text.contains(SECRET) => places.push(at.to_owned()),
            Value::Array(items) => items.iter().for_each(|item| found(item, &format!("{at}/*"), places)),
            Value::Object(members) => {
                for (name, member) in members {
                    let name = if name == "any" { "*" } else { name };
                    found(member, &format!("{at}/{name}"), places);
                }
            }
            _ => {}
        }
    }

    fn places(status: &Value) -> Vec<String> {
        let mut places = Vec::new();
        found(status, "", &mut places);
        places
    }

    #[test]
    fn no_text_of_a_status_has_a_value_but_what_is_listed() {
        let crd = serde_json::to_value(BundleDeployment::crd()).unwrap();
        let schema = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status").expect("a schema");
        let planted = planted(schema);
        let status: BundleDeploymentStatus = serde_json::from_value(planted.clone()).unwrap();
        let before = serde_json::to_value(&status).unwrap();
        assert_eq!(places(&before).len(), places(&planted).len(), "every string of the schema is in the status");
        let status = hide(&Redactor::of([&json!(SECRET)]), status);
        let after = places(&serde_json::to_value(&*status).unwrap());
        let is_shown = |place: &String| {
            SHOWN.contains(&place.as_str()) || SHOWN_BELOW.iter().any(|below| place.starts_with(&format!("{below}/")))
        };
        let leaked: Vec<&String> = after.iter().filter(|place| !is_shown(place)).collect();
        assert!(leaked.is_empty(), "{leaked:?}");
        for place in SHOWN {
            assert!(after.contains(&(*place).to_owned()), "{place} is not shown");
        }
        for below in SHOWN_BELOW {
            assert!(after.iter().any(|place| place.starts_with(below)), "{below} is not shown");
        }
        assert!(places(&before).len() > after.len() + 10, "the others are hidden");
    }

    #[test]
    fn what_is_hidden_has_a_constant_in_its_place() {
        let mut status = BundleDeploymentStatus::default();
        status.warnings.push(BundleWarning { code: "Odd".to_owned(), message: "hunter2 is odd".to_owned() });
        let status = hide(&Redactor::of([&json!(SECRET)]), status);
        assert_eq!(status.warnings[0].message, "(hidden) is odd");
        assert_eq!(status.warnings[0].code, "Odd");
    }
}
