//! Removes duplicate objects.
//!
//! OLM v1 may emit two objects of one identity; applied one after the other, the last one remains. A release contains
//! each object once, so this module decides which.

use std::collections::{BTreeMap, btree_map::Entry};

use chandler_sdk::{Diagnostic, Location};
use serde_json::{Map, Value};

use crate::{
    bundle::Locate as _,
    compatibility::Compatibility,
    generate::{Generated, Identity, Source},
    json::set,
};

/// The identity of an object.
const HELP: &str = "an object has an apiVersion, a kind and a name of up to 253 characters without / and %; quote a name \
                    that YAML takes for a number or a truth value";

/// The objects of a release.
#[derive(Default)]
pub(crate) struct Unique<'a> {
    /// The objects without duplicates.
    pub(crate) objects: Vec<Generated<'a>>,
    /// Decisions that a user should check.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// Removes duplicate objects.
///
/// - Bundles repeat permissions, which gives the same role twice: one is kept.
/// - Bundles contain a ServiceAccount that is also generated: the bundle's is kept, since it may have more fields.
/// - Bundles contain the Service of their webhooks, which is also generated: the generated one has the ports that the
///   API server calls, and gets the other fields of the bundle's.
/// - Of two manifests for one object the last one wins.
///
/// # Errors
/// Errors: two manifests in two namespaces that would both be moved to the install namespace, where one would silently
/// win; and objects that API servers reject.
pub(crate) fn unique(objects: Vec<Generated<'_>>, compatibility: Compatibility) -> Result<Unique<'_>, Vec<Diagnostic>> {
    let mut unique = Unique { objects: Vec::with_capacity(objects.len()), ..Unique::default() };
    let mut seen: BTreeMap<Identity, usize> = BTreeMap::new();
    let mut findings = Vec::new();
    for object in objects {
        if let Some(fault) = &object.fault {
            let message = format!("API servers reject object {}: {fault}", object.identity);
            findings.push(place(object.origin).error("InvalidIdentity", message).help(HELP));
            continue;
        }
        let entry = match seen.entry(object.identity.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(unique.objects.len());
                unique.objects.push(object);
                continue;
            }
            Entry::Occupied(entry) => entry,
        };
        let Some(first) = unique.objects.get_mut(*entry.get()).filter(|first| first.json != object.json) else {
            continue;
        };
        match resolve_duplicate(first, object, compatibility) {
            Ok(warning) => unique.warnings.extend(warning.map(|warning| *warning)),
            Err(finding) => findings.push(*finding),
        }
    }
    if findings.is_empty() { Ok(unique) } else { Err(findings) }
}

/// Replaces an object with the result for it and another one of its name; a warning, if there is one.
fn resolve_duplicate<'a>(
    first: &mut Generated<'a>,
    second: Generated<'a>,
    compatibility: Compatibility,
) -> Result<Option<Box<Diagnostic>>, Box<Diagnostic>> {
    let identity = &second.identity;
    let warning = match (&first.source, &second.source) {
        (Source::ServiceAccount, _) => None,
        (Source::Manifest { namespace: one }, Source::Manifest { namespace: other })
            if one != other && compatibility.refuses_collisions() =>
        {
            let message = format!("bundle contains two different objects {identity}");
            let help =
                format!("the other is at {}; all namespaced objects are moved to the install namespace", first.origin);
            return Err(Box::new(place(second.origin).error("DuplicateObject", message).help(help)));
        }
        (Source::Manifest { .. }, Source::Service) if compatibility.merges_services() => {
            let message =
                format!("bundle contains {identity}, which is also generated for its webhooks; the two are merged");
            let finding = place(first.origin.clone()).warning("SharedService", message);
            let help = "the webhooks determine its ports and selector; remove the Service, or rename it";
            let merged = merge_services(&first.json, &second.json);
            *first = Generated { json: merged.into(), ..second };
            return Ok(Some(Box::new(finding.help(help))));
        }
        _ => {
            let message = format!("bundle contains two different objects {identity}, and only the last one is used");
            let finding = place(first.origin.clone()).warning("DuplicateObject", message);
            Some(Box::new(finding.help(format!("the last one is at {}; keep one", second.origin))))
        }
    };
    *first = second;
    Ok(warning)
}

/// The Service of a bundle with the ports and the selector of the generated one.
fn merge_services(bundled: &[u8], generated: &[u8]) -> Vec<u8> {
    let object =
        |json: &[u8]| serde_json::from_slice::<Map<String, Value>>(json).map(Value::Object).unwrap_or_default();
    let (mut merged, generated) = (object(bundled), object(generated));
    let members = |pointer| generated.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
    for (key, value) in members("/metadata/annotations") {
        set(&mut merged, ["metadata", "annotations", key], value.clone());
    }
    for (key, value) in members("/spec").filter(|(key, _)| *key != "ports") {
        set(&mut merged, ["spec", key], value.clone());
    }
    let ports = |service: &Value| service.pointer("/spec/ports").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut all = ports(&generated);
    for mut port in ports(&merged) {
        if all.iter().all(|known| known.get("port") != port.get("port")) {
            // If there are several, each has a name.
            if port.get("name").is_none_or(Value::is_null) {
                let number = port.get("port").map(Value::to_string).unwrap_or_default();
                set(&mut port, ["name"], number);
            }
            all.push(port);
        }
    }
    set(&mut merged, ["spec", "ports"], all);
    merged.to_string().into_bytes()
}

/// The location of a finding about a whole object.
fn place(origin: Location) -> Location {
    Location { pointer: origin.pointer.or_else(|| Some(String::new())), ..origin }
}
