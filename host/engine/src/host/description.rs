//! The guest's description of a bundle, bounded so that it fits into a status.

use chandler_core::{Description, Property, unique_json};

use crate::{contract::bindings::chandler::provisioner::output::Description as GuestDescription, text::sanitize};

/// Bytes of a name, a version and the type of a property.
const NAME_BYTES: usize = 256;
/// The most properties that are kept.
const PROPERTIES: usize = 256;
/// Total bytes of the types and values of all kept properties, as the guest wrote them.
const BYTES: usize = 16 << 10;

/// The description with the properties that fit. Properties that exceed the remaining bytes, are not JSON or have duplicate keys are dropped
/// and counted.
pub(super) fn bounded(description: GuestDescription) -> Description {
    let GuestDescription { name, package_name, version, properties } = description;
    let text = |text: Option<String>| text.filter(|text| !text.is_empty()).map(|text| sanitize(text, NAME_BYTES));
    let total = properties.len();
    let mut kept = Vec::new();
    let mut left = BYTES;
    for property in properties {
        let size = property.type_.len().saturating_add(property.value.len());
        if kept.len() == PROPERTIES || size > left || property.type_.is_empty() {
            continue;
        }
        let Ok(value) = unique_json::from_slice(property.value.as_bytes()) else { continue };
        left -= size;
        kept.push(Property { kind: sanitize(property.type_, NAME_BYTES), value });
    }
    let omitted = (total - kept.len()) as u64;
    Description { name: text(name), package: text(package_name), version: text(version), properties: kept, omitted }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::bindings::chandler::provisioner::output::Property as GuestProperty;

    fn property(kind: &str, value: String) -> GuestProperty {
        GuestProperty { type_: kind.to_owned(), value }
    }

    fn description(properties: Vec<GuestProperty>) -> GuestDescription {
        let name = Some("a\u{1b}".to_owned());
        GuestDescription { name, package_name: Some(String::new()), version: Some("v".repeat(1000)), properties }
    }

    #[test]
    fn dropped_properties_are_counted() {
        let kept = bounded(description(vec![
            property("olm.package", r#"{"packageName":"p"}"#.to_owned()),
            property("large", format!("{:?}", "x".repeat(BYTES))),
            property("not-json", "{".to_owned()),
            property("deep", "[".repeat(10_000)),
            property("", "1".to_owned()),
            property("small", "1".to_owned()),
        ]));
        assert_eq!((kept.name.as_deref(), kept.package.as_deref()), (Some("a\\u{001B}"), None));
        assert!(kept.version.is_some_and(|version| version.len() <= NAME_BYTES));
        let properties: Vec<_> = kept.properties.iter().map(|kept| (kept.kind.as_str(), kept.value.clone())).collect();
        assert_eq!(properties, [("olm.package", json!({"packageName": "p"})), ("small", json!(1))]);
        assert_eq!(kept.omitted, 4);
        let many = bounded(description(vec![property("p", "1".to_owned()); 1000]));
        assert_eq!((many.properties.len(), many.omitted), (PROPERTIES, 1000 - PROPERTIES as u64));
    }
}
