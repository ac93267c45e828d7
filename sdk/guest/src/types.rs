//! Types of fields that every API server checks and that YAML gets wrong easily: in `port: 5432` the value is a number.
//!
//! The rules are the types of `ObjectMeta`, `Secret` and `ConfigMap` in k8s.io/api/core/v1. The API server knows the types of all other
//! fields, too, and refuses an object whose fields have another type; but the values of a Secret are often moved or merged before they reach
//! it, and are then lost without a message.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_yaml::{Node, pointer_segment};

use crate::Diagnostic;

/// What the values of a map are.
#[derive(Clone, Copy)]
enum Values {
    Text,
    Base64,
}

/// The maps of every object.
const METADATA: &[(&str, Values)] = &[("/metadata/labels", Values::Text), ("/metadata/annotations", Values::Text)];
const SECRET: &[(&str, Values)] = &[("/data", Values::Base64), ("/stringData", Values::Text)];
const CONFIG_MAP: &[(&str, Values)] = &[("/data", Values::Text), ("/binaryData", Values::Base64)];

/// An error for each label, annotation, and value of a Secret or ConfigMap that is not text, or not base64 where it must be; with the code
/// `InvalidType`. No message has a value.
pub fn check_types(object: &Node, path: &str) -> Vec<Diagnostic> {
    let text = |name| object.get(name).and_then(Node::as_str);
    let of_kind = match (text("apiVersion"), text("kind")) {
        (Some("v1"), Some("Secret")) => SECRET,
        (Some("v1"), Some("ConfigMap")) => CONFIG_MAP,
        _ => &[],
    };
    METADATA.iter().chain(of_kind).flat_map(|(pointer, values)| check_map(object, path, pointer, *values)).collect()
}

fn check_map(object: &Node, path: &str, pointer: &str, values: Values) -> Vec<Diagnostic> {
    let Some(map) = object.at(pointer).filter(|map| !map.is_null()) else { return Vec::new() };
    let error = |at: &str, node: &Node, problem: String, help: &str| {
        let field = at.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~");
        let finding = Diagnostic::error("InvalidType", format!("{field} {problem}")).at(path).node(node).pointer(at);
        finding.help(help)
    };
    let Some(entries) = map.as_mapping() else {
        let problem = format!("must be an object, and is {}", map.article_and_type());
        return vec![error(pointer, map, problem, "the API server refuses anything else")];
    };
    let mut findings = Vec::new();
    for entry in entries {
        let at = format!("{pointer}/{}", pointer_segment(&entry.key));
        match (&entry.value, values) {
            (value, _) if value.is_null() => {}
            (value, Values::Text) if value.as_str().is_some() => {}
            (value, Values::Base64) if value.as_str().is_some_and(is_base64) => {}
            (value, Values::Base64) if value.as_str().is_some() => {
                let plain = if pointer == "/data" { "stringData" } else { "data" };
                let help = format!("encode it, or move it to {plain}, where text is written as it is");
                findings.push(error(&at, value, "must be base64".to_owned(), &help));
            }
            (value, _) => {
                let problem = format!("must be text, and is {}", value.article_and_type());
                findings.push(error(&at, value, problem, "put the value into quotes"));
            }
        }
    }
    findings
}

/// Whether Go's `base64.StdEncoding` decodes a text: it skips line breaks.
pub fn is_base64(text: &str) -> bool {
    let text: String = text.chars().filter(|char| !matches!(char, '\r' | '\n')).collect();
    STANDARD.decode(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::parse_documents;

    fn findings(yaml: &str) -> Vec<String> {
        let nodes = parse_documents(yaml.as_bytes(), "manifests/a.yaml").unwrap();
        let findings = nodes.iter().flat_map(|node| check_types(node, "manifests/a.yaml"));
        findings.map(|finding| format!("{}: {}", finding.location.clone().unwrap(), finding.message)).collect()
    }

    #[test]
    fn values_that_yaml_reads_as_something_else_are_found_with_their_place() {
        let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, labels: {a: yes, tls.example.com/x: true}}\nstringData:\n  \
                      user: harbour\n  port: 5432\n  none: null\n  list: [a]\ndata:\n  ok: aGFyYm91cg==\n  lines: |\n    aGFy\n    \
                      Ym91cg==\n  plain: harbour!\n  number: 1\n";
        insta::assert_snapshot!(findings(secret).join("\n"), @"
        manifests/a.yaml:3:33 (/metadata/labels/a): metadata.labels.a must be text, and is a boolean
        manifests/a.yaml:3:57 (/metadata/labels/tls.example.com~1x): metadata.labels.tls.example.com/x must be text, and is a boolean
        manifests/a.yaml:14:10 (/data/plain): data.plain must be base64
        manifests/a.yaml:15:11 (/data/number): data.number must be text, and is an integer
        manifests/a.yaml:6:9 (/stringData/port): stringData.port must be text, and is an integer
        manifests/a.yaml:8:9 (/stringData/list): stringData.list must be text, and is an array
        ");
    }

    #[test]
    fn config_maps_and_maps_of_another_type_are_checked_and_other_kinds_are_not() {
        let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s, annotations: [a]}\ndata: {a: 1.5, b: text}\nbinaryData: {c: '%'}\n";
        insta::assert_snapshot!(findings(config).join("\n"), @"
        manifests/a.yaml:3:34 (/metadata/annotations): metadata.annotations must be an object, and is an array
        manifests/a.yaml:4:11 (/data/a): data.a must be text, and is a number
        manifests/a.yaml:5:17 (/binaryData/c): binaryData.c must be base64
        ");
        let others = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, labels: null}\ndata: null\n---\napiVersion: example.com/v1\nkind: \
                      Secret\nmetadata: {name: s}\ndata: {port: 1}\n---\ntext\n";
        assert!(findings(others).is_empty(), "{:?}", findings(others));
    }
}
