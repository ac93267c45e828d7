//! Findings as SARIF 2.1.0 (OASIS), the format that code hosts and editors read from linters.

use std::{collections::BTreeSet, fmt::Write as _};

use chandler_core::{Diagnostic, Location, Related, Severity};
use serde_json::{Map, Value, json};

use super::diagnostics::Sources;

/// A SARIF log of one run.
pub fn log(diagnostics: &[Diagnostic], sources: &Sources<'_>) -> Value {
    let rules: BTreeSet<&str> = diagnostics.iter().map(|diagnostic| diagnostic.code.as_str()).collect();
    let rules: Vec<Value> = rules.into_iter().map(|code| json!({"id": code})).collect();
    let results: Vec<Value> = diagnostics.iter().map(|diagnostic| result(diagnostic, sources)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "chandler", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            // Columns are counted in Unicode scalar values.
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(diagnostic: &Diagnostic, sources: &Sources<'_>) -> Value {
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    };
    let text = match &diagnostic.help {
        Some(help) => format!("{} (help: {help})", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let mut result = Map::new();
    result.insert("ruleId".to_owned(), diagnostic.code.clone().into());
    result.insert("level".to_owned(), level.into());
    result.insert("message".to_owned(), json!({"text": text}));
    if let Some(location) = &diagnostic.location {
        result.insert("locations".to_owned(), json!([sarif_location(location, sources)]));
    }
    if !diagnostic.related.is_empty() {
        result.insert(
            "relatedLocations".to_owned(),
            diagnostic.related.iter().map(|other| related(other, sources)).collect(),
        );
    }
    // SARIF has a help URI for rules only, not for results.
    if let Some(url) = &diagnostic.url {
        result.insert("properties".to_owned(), json!({"helpUri": url}));
    }
    result.into()
}

fn related(related: &Related, sources: &Sources<'_>) -> Value {
    let mut shown = sarif_location(&related.location, sources);
    if let Some(fields) = shown.as_object_mut() {
        fields.insert("message".to_owned(), json!({"text": related.message}));
    }
    shown
}

fn sarif_location(location: &Location, sources: &Sources<'_>) -> Value {
    let mut physical = Map::new();
    physical.insert("artifactLocation".to_owned(), json!({"uri": uri(&sources.name(&location.path))}));
    if let Some(line) = location.line {
        let mut region = Map::from_iter([("startLine".to_owned(), line.into())]);
        for (name, number) in
            [("startColumn", location.column), ("endLine", location.end_line), ("endColumn", location.end_column)]
        {
            region.extend(number.map(|number| (name.to_owned(), number.into())));
        }
        physical.insert("region".to_owned(), region.into());
    }
    let mut shown = json!({"physicalLocation": physical});
    if let (Some(pointer), Some(fields)) =
        (location.pointer.as_deref().filter(|text| !text.is_empty()), shown.as_object_mut())
    {
        fields.insert("logicalLocations".to_owned(), json!([{"fullyQualifiedName": pointer}]));
    }
    shown
}

/// A relative path as a URI reference (RFC 3986), percent-encoded.
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'@' | b'+' | b',' => {
                uri.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn findings_have_rules_levels_and_locations() {
        let location = Location {
            path: "manifests/my csv.yaml".into(),
            line: Some(4),
            column: Some(15),
            end_line: Some(4),
            end_column: Some(19),
            pointer: Some("/spec/install".into()),
        };
        let other = Location { path: "manifests/a.yaml".into(), line: Some(1), ..Location::default() };
        let diagnostics = [
            Diagnostic {
                location: Some(location),
                related: vec![Related { location: other, message: "the first one".into() }],
                help: Some("write `deployment`".into()),
                url: Some("https://example.com/strategies".into()),
                ..Diagnostic::new(Severity::Error, "UnknownStrategy", "no such strategy")
            },
            Diagnostic::new(Severity::Info, "Note", "by the way"),
        ];
        let directory = PathBuf::from("./harbour");
        let sources = Sources { directory: Some(&directory), ..Sources::default() };
        let log = log(&diagnostics, &sources);
        assert_eq!(log.pointer("/runs/0/tool/driver/rules"), Some(&json!([{"id": "Note"}, {"id": "UnknownStrategy"}])));
        assert_eq!(
            log.pointer("/runs/0/results"),
            Some(&json!([
                {
                    "ruleId": "UnknownStrategy", "level": "error",
                    "message": {"text": "no such strategy (help: write `deployment`)"},
                    "locations": [{
                        "physicalLocation": {
                            "artifactLocation": {"uri": "harbour/manifests/my%20csv.yaml"},
                            "region": {"startLine": 4, "startColumn": 15, "endLine": 4, "endColumn": 19},
                        },
                        "logicalLocations": [{"fullyQualifiedName": "/spec/install"}],
                    }],
                    "relatedLocations": [{
                        "physicalLocation": {
                            "artifactLocation": {"uri": "harbour/manifests/a.yaml"}, "region": {"startLine": 1},
                        },
                        "message": {"text": "the first one"},
                    }],
                    "properties": {"helpUri": "https://example.com/strategies"},
                },
                {"ruleId": "Note", "level": "note", "message": {"text": "by the way"}},
            ]))
        );
    }
}
