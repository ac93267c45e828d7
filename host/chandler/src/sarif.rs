//! Findings as SARIF 2.1.0, the format in which code hosts and editors take the results of linters (OASIS standard).

use std::{collections::BTreeSet, fmt::Write as _};

use chandler_core::{Diagnostic, Location, Severity};
use serde_json::{Map, Value, json};

use crate::diagnostics::Sources;

/// A log of one run.
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
    let mut result = json!({"ruleId": diagnostic.code, "level": level, "message": {"text": text}});
    if let (Some(location), Some(result)) = (&diagnostic.location, result.as_object_mut()) {
        result.insert("locations".to_owned(), json!([place(location, sources)]));
    }
    result
}

fn place(location: &Location, sources: &Sources<'_>) -> Value {
    let mut physical = Map::new();
    physical.insert("artifactLocation".to_owned(), json!({"uri": uri(&sources.name(&location.path))}));
    if let Some(line) = location.line {
        let mut region = json!({"startLine": line});
        if let (Some(column), Some(region)) = (location.column, region.as_object_mut()) {
            region.insert("startColumn".to_owned(), column.into());
        }
        physical.insert("region".to_owned(), region);
    }
    let mut place = json!({"physicalLocation": physical});
    if let (Some(pointer), Some(place)) =
        (location.pointer.as_deref().filter(|text| !text.is_empty()), place.as_object_mut())
    {
        place.insert("logicalLocations".to_owned(), json!([{"fullyQualifiedName": pointer}]));
    }
    place
}

/// A relative path as a URI reference (RFC 3986): what may not stand in a path is written as percent and two digits.
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
    fn findings_have_rules_levels_and_places() {
        let location = Location {
            path: "manifests/my csv.yaml".into(),
            line: Some(4),
            column: Some(15),
            pointer: Some("/spec/install".into()),
        };
        let diagnostics = [
            Diagnostic {
                severity: Severity::Error,
                code: "UnknownStrategy".into(),
                message: "no such strategy".into(),
                location: Some(location),
                help: Some("write `deployment`".into()),
            },
            Diagnostic {
                severity: Severity::Info,
                code: "Note".into(),
                message: "by the way".into(),
                location: None,
                help: None,
            },
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
                            "region": {"startLine": 4, "startColumn": 15},
                        },
                        "logicalLocations": [{"fullyQualifiedName": "/spec/install"}],
                    }],
                },
                {"ruleId": "Note", "level": "note", "message": {"text": "by the way"}},
            ]))
        );
    }
}
