//! Each object once.

use std::collections::{BTreeMap, btree_map::Entry};

use chandler_sdk::{Diagnostic, Location};

use crate::{
    bundle::Locate as _,
    generate::{Generated, Source},
};

/// What an object is called.
const HELP: &str = "an object has an apiVersion, a kind and a name of up to 253 characters without / and %; quote a name \
                    that YAML takes for a number or a truth value";

/// Each object once.
///
/// - Bundles repeat permissions, which gives the same role twice: once is enough.
/// - Bundles bring a ServiceAccount that is also generated: theirs may say more, and the generated one gives way.
///
/// # Errors
/// Two other objects with one identity, since one of them would silently win; and objects that no API server takes.
pub(crate) fn unique(objects: Vec<Generated<'_>>) -> Result<Vec<Generated<'_>>, Vec<Diagnostic>> {
    let mut unique: Vec<Generated<'_>> = Vec::with_capacity(objects.len());
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut findings = Vec::new();
    for object in objects {
        if let Some(fault) = &object.fault {
            let message = format!("no API server takes object {}: {fault}", object.identity);
            findings.push(place(object.origin).error("InvalidIdentity", message).help(HELP));
            continue;
        }
        let entry = match seen.entry(object.identity.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(unique.len());
                unique.push(object);
                continue;
            }
            Entry::Occupied(entry) => entry,
        };
        let Some(first) = unique.get_mut(*entry.get()).filter(|first| first.json != object.json) else {
            continue;
        };
        if first.source == Source::ServiceAccount {
            *first = object;
            continue;
        }
        let message = format!("bundle contains two different objects {}", object.identity);
        let help = format!(
            "the other is at {}; namespaced objects all go into the install namespace, whatever they say",
            first.origin
        );
        findings.push(place(object.origin).error("DuplicateObject", message).help(help));
    }
    if findings.is_empty() { Ok(unique) } else { Err(findings) }
}

/// The place of a finding about a whole object.
fn place(origin: Location) -> Location {
    Location { pointer: origin.pointer.or_else(|| Some(String::new())), ..origin }
}
