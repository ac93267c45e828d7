//! Compares the parts of a CRD outside of its schemas.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    Enforcement, Rule,
    change::Change,
    crd::{Crd, Version, text},
    finding::Effect::{Alters, Tightens},
};

/// A change, its version, if any, and its JSON pointer in the new CRD.
pub(crate) struct OutsideSchemas {
    pub(crate) version: Option<String>,
    pub(crate) pointer: String,
    pub(crate) change: Change,
}

pub(crate) fn compare(old: &Crd<'_>, new: &Crd<'_>) -> Vec<OutsideSchemas> {
    let mut found = Vec::new();
    let mut at = |pointer: &str, change: Change| {
        found.push(OutsideSchemas { version: None, pointer: pointer.to_owned(), change });
    };
    for (rule, pointer, what) in [
        (Rule::Scope, "/scope", "scope"),
        (Rule::Group, "/group", "group"),
        (Rule::Names, "/names/kind", "kind"),
        (Rule::Names, "/names/plural", "plural"),
    ] {
        let (before, after) = (text(old.spec, pointer), text(new.spec, pointer));
        if before != after {
            let change = Change::new(rule, Alters, format!("{what} changed : {before:?} -> {after:?}"));
            at(&place(new, pointer), change.of(old.spec.pointer(pointer), new.spec.pointer(pointer)));
        }
    }
    let names: BTreeSet<&str> = new.versions.iter().map(|version| version.name).collect();
    // A version that the old CRD did not have either is not a finding.
    let had = |version: &&str| old.version(version).is_some() && !names.contains(version);
    let stored: Vec<&str> = old.stored_versions.iter().copied().filter(had).collect();
    if !stored.is_empty() {
        let message = format!("stored versions removed : [{}]", stored.join(" "));
        at("/spec/versions", Change::new(Rule::StoredVersionRemoval, Tightens, message));
    }
    let served: Vec<&str> = old
        .versions
        .iter()
        .filter(|version| version.served && !serves(new, version.name))
        .map(|version| version.name)
        .collect();
    if !served.is_empty() {
        let message = format!("served versions removed : [{}]", served.join(" "));
        let change = Change::new(Rule::ServedVersionRemoval, Tightens, message);
        at("/spec/versions", change.by_default(Enforcement::Warn));
    }
    if old.converts_by_webhook() && !new.converts_by_webhook() && new.versions.len() > 1 {
        let message = "conversion strategy changed : \"Webhook\" -> \"None\"";
        let change = Change::new(Rule::Conversion, Alters, message).by_default(Enforcement::Warn);
        at(&place(new, "/conversion/strategy"), change);
    }
    let preserves = |crd: &Crd<'_>| crd.spec.get("preserveUnknownFields") == Some(&Value::Bool(true));
    if preserves(old) && !preserves(new) {
        let change =
            Change::new(Rule::PreserveUnknownFields, Tightens, "preserveUnknownFields changed : true -> false");
        at(&place(new, "/preserveUnknownFields"), change.by_default(Enforcement::Warn));
    }
    found.extend(
        old.versions.iter().filter_map(|before| Some((before, new.version(before.name)?))).flat_map(subresources),
    );
    found
}

fn serves(crd: &Crd<'_>, name: &str) -> bool {
    crd.version(name).is_some_and(|version| version.served)
}

/// The pointer of a place in the spec, or of the spec if the place does not exist.
fn place(crd: &Crd<'_>, pointer: &str) -> String {
    if crd.spec.pointer(pointer).is_some() { format!("/spec{pointer}") } else { "/spec".to_owned() }
}

fn subresources((old, new): (&Version<'_>, Version<'_>)) -> Vec<OutsideSchemas> {
    let has = |version: &Version<'_>, name: &str| {
        version.value.pointer("/subresources").and_then(|all| all.get(name)).is_some_and(|one| !one.is_null())
    };
    let removed = ["status", "scale"].into_iter().filter(|name| has(old, name) && !has(&new, name));
    removed
        .map(|name| OutsideSchemas {
            version: Some(new.name.to_owned()),
            pointer: format!("/spec/versions/{}", new.index),
            change: Change::new(Rule::Subresources, Tightens, format!("subresource removed : {name}"))
                .by_default(Enforcement::Warn),
        })
        .collect()
}
