//! The memory that a release takes.
//!
//! An estimate of the allocated bytes that is good enough to bound a cache. A release takes about ten times the size of its JSON;
//! the exact factor depends on the number of small maps.

use serde_json::{Map, Value};

use crate::{Description, Diagnostic, Location, Object, Probe, Property, Related};

/// The bytes that the allocator adds to each allocation, and the multiple that it rounds up to.
const OVERHEAD: usize = 8;
const GRAIN: usize = 16;
/// A node of the B-tree of a map, its capacity, and its entries in a large map: maps are filled in order, which leaves nodes
/// half full.
const NODE: usize = 640;
const NODE_ENTRIES: usize = 11;
const FILLED_ENTRIES: usize = 6;

/// The bytes of the parts of a release.
pub(crate) fn of(objects: &[Object], probes: &[Probe], findings: &[Diagnostic]) -> usize {
    objects.iter().map(object).chain(probes.iter().map(probe)).chain(findings.iter().map(finding)).sum()
}

/// The bytes that a description takes in addition to its struct.
pub(crate) fn of_description(description: &Description) -> usize {
    let property = |property: &Property| text(&property.kind) + size_of_val(property) + value(&property.value);
    description.properties.iter().map(property).sum()
}

fn probe(probe: &Probe) -> usize {
    let Probe { selector, rule, message, message_expression } = probe;
    let optional = [&selector.namespace, &selector.name, message, message_expression].into_iter().flatten();
    let labels = selector.labels.iter().flat_map(|(name, value)| [name, value]);
    let texts = [&selector.group, &selector.kind, rule].into_iter().chain(optional).chain(labels);
    let nodes = selector.labels.len().div_ceil(FILLED_ENTRIES) * allocated(NODE);
    size_of_val(probe) + nodes + texts.map(|of| text(of)).sum::<usize>()
}

fn object(object: &Object) -> usize {
    let key = &object.key;
    let names = text(&key.group) + text(&key.kind) + text(&key.version) + text(&key.name);
    let namespace = key.namespace.as_deref().map_or(0, text);
    let origin = object.origin.as_ref().map_or(0, location);
    size_of_val(object) + names + namespace + origin + map(&object.value)
}

fn finding(finding: &Diagnostic) -> usize {
    let help = finding.help.as_deref().map_or(0, text);
    let url = finding.url.as_deref().map_or(0, text);
    let place = finding.location.as_ref().map_or(0, location);
    let related = |related: &Related| size_of_val(related) + location(&related.location) + text(&related.message);
    let related = finding.related.iter().map(related).sum::<usize>();
    size_of_val(finding) + text(&finding.code) + text(&finding.message) + help + url + place + related
}

fn location(location: &Location) -> usize {
    text(&location.path) + location.pointer.as_deref().map_or(0, text)
}

/// The bytes that a value takes in addition to its struct.
fn value(of: &Value) -> usize {
    match of {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(of) => text(of),
        Value::Array(of) => allocated(of.capacity() * size_of::<Value>()) + of.iter().map(value).sum::<usize>(),
        Value::Object(of) => map(of),
    }
}

fn map(of: &Map<String, Value>) -> usize {
    let nodes = if of.len() <= NODE_ENTRIES { usize::from(!of.is_empty()) } else { of.len().div_ceil(FILLED_ENTRIES) };
    nodes * allocated(NODE) + of.iter().map(|(name, member)| text(name) + value(member)).sum::<usize>()
}

fn text(of: &str) -> usize {
    allocated(of.len())
}

/// The bytes that the allocator takes for an allocation of this size.
fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + OVERHEAD).next_multiple_of(GRAIN) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Release;

    /// A typical object of a release: many small maps, long descriptions, lists.
    fn text_of_a_crd(number: usize) -> String {
        let properties: Map<String, Value> = (0..40)
            .map(|field| {
                let schema = json!({
                    "description": "what this field is for, in a sentence or two, as generated CRDs have it",
                    "type": "array", "items": {"type": "string", "enum": ["a", "b"]},
                });
                (format!("field{field}"), schema)
            })
            .collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("kind{number}.example.com"), "labels": {"app": "example"}},
            "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}]},
        })
        .to_string()
    }

    #[test]
    fn the_estimate_is_close_to_the_allocated_bytes() {
        let texts: Vec<String> = (0..20).map(text_of_a_crd).collect();
        let mut estimate = 0;
        // Only the release is still allocated at the end.
        let mut kept = None;
        let measured = allocation_counter::measure(|| {
            let objects = texts.iter().map(|text| Object::parse(text.as_bytes(), 0, None).unwrap()).collect();
            let release = Release::new(objects, vec![], vec![]);
            estimate = release.memory();
            kept = Some(release);
        });
        let allocated = usize::try_from(measured.bytes_current).unwrap();
        assert!(kept.is_some());
        assert!(
            (allocated..allocated * 3 / 2).contains(&estimate),
            "{estimate} bytes are estimated, {allocated} were allocated"
        );
    }
}
