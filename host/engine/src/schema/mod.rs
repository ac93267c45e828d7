//! The configuration against the schema that a provisioner gives.
//!
//! The schema comes from the guest, so it is bounded before it is used: it refers to nothing outside itself, it is not
//! recursive, it is not larger than [`cost`] allows when its references are expanded, and its patterns are matched in
//! linear time.

mod cost;
mod kept;
mod message;

use chandler_core::{Diagnostic, Location, Severity};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

pub(crate) use self::kept::Schemas;
use crate::{CallError, InvalidOutput, text::tame};

/// The most findings that are reported.
const FINDINGS: usize = 50;

/// The most parts of a schema times values of a configuration: every value may be held against every part.
const WORK: usize = 50_000_000;

/// The memory that one compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;

/// A schema that was read and is ready for use.
pub(crate) struct Schema {
    /// How many parts it has when its references are expanded.
    parts: usize,
    validator: Validator,
}

impl Schema {
    /// Reads a schema.
    pub(crate) fn read(text: &str) -> Result<Self, CallError> {
        let schema: Value = serde_json::from_str(text).map_err(|error| unusable(format!("is not JSON: {error}")))?;
        let parts = cost::check(&schema).map_err(unusable)?;
        let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
        let validator = jsonschema::draft202012::options()
            .offline()
            .with_pattern_options(patterns)
            .build(&schema)
            .map_err(|error| unusable(format!("is not a JSON schema: {error}")))?;
        Ok(Self { parts, validator })
    }

    /// How much of the host it takes, in parts.
    pub(crate) fn parts(&self) -> usize {
        self.parts
    }

    /// Checks a configuration: why it does not match, or nothing.
    ///
    /// # Errors
    /// When the check would be too much work.
    pub(crate) fn check(&self, config: &Value) -> Result<Vec<Diagnostic>, CallError> {
        if self.parts.saturating_mul(cost::count(config)) > WORK {
            return Err(unusable("is too large for a configuration of this size".into()));
        }
        let mut findings: Vec<Diagnostic> =
            self.validator.iter_errors(config).flat_map(|error| message::findings(&error)).take(FINDINGS).collect();
        findings.sort();
        findings.dedup();
        Ok(findings)
    }
}

/// The error for a schema that cannot be used.
pub(crate) fn unusable(problem: String) -> CallError {
    CallError::InvalidOutput(Box::new(InvalidOutput::Schema(tame(problem, 1024))))
}

/// A finding about the configuration.
fn finding(pointer: String, message: String) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code: "InvalidConfiguration".into(),
        message: tame(message, 2048),
        location: Some(Location { path: "config".into(), pointer: Some(tame(pointer, 1024)), ..Location::default() }),
        help: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &str, config: &Value) -> Result<(), CallError> {
        match Schema::read(schema)?.check(config)? {
            findings if findings.is_empty() => Ok(()),
            findings => Err(CallError::InvalidConfiguration(findings)),
        }
    }

    fn texts(schema: &Value, config: &Value) -> String {
        match check(&schema.to_string(), config) {
            Ok(()) => "valid".into(),
            Err(error) => error.to_string(),
        }
    }

    fn watch_namespace() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": false,
            "required": ["watchNamespace"],
            "properties": {
                "watchNamespace": {
                    "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
                },
                "replicas": {"type": "integer", "minimum": 1, "maximum": 5},
                "mode": {"enum": ["Own", "Single"]},
                "deployment": {"type": "object", "properties": {"tolerations": {"type": "array", "items": {"type": "object"}}}},
            }
        })
    }

    #[test]
    fn messages_name_fields() {
        let schema = watch_namespace();
        assert_eq!(texts(&schema, &json!({"watchNamespace": "a"})), "valid");
        insta::assert_snapshot!(texts(&schema, &json!({})), @r#"invalid configuration: config: required field "watchNamespace" is missing"#);
        insta::assert_snapshot!(texts(&schema, &json!({"watchNamespace": null})), @r#"invalid configuration: config: required field "watchNamespace" is missing"#);
        insta::assert_snapshot!(texts(&schema, &json!({"watchNamespace": 7})), @r#"invalid configuration: config (/watchNamespace): invalid type for field "watchNamespace": got number, want string"#);
        insta::assert_snapshot!(texts(&schema, &json!({"watchNamespace": "A b"})), @r#"invalid configuration: config (/watchNamespace): field "watchNamespace" must match pattern "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$""#);
        insta::assert_snapshot!(texts(&schema, &json!({"watchNamespace": "a".repeat(70)})), @r#"invalid configuration: config (/watchNamespace): field "watchNamespace" must have maximum length of 63 (len=70)"#);
        let several = json!({
            "watchNamespace": "a", "x": 1, "y/z": 2, "replicas": 9, "mode": "All", "deployment": {"tolerations": [1]}
        });
        insta::assert_snapshot!(texts(&schema, &several), @r#"
        invalid configuration: multiple errors found:
          - config (/mode): field "mode" must be one of ["Own","Single"]
          - config (/replicas): field "replicas" must be at most 5
          - config (/deployment/tolerations/0): invalid type for field "deployment.tolerations[0]": got number, want object
          - config (/x): unknown field "x"
          - config (/y~1z): unknown field "y/z"
        "#);
    }

    #[test]
    fn the_root_is_checked_too() {
        let schema = json!({"type": "object", "minProperties": 1});
        insta::assert_snapshot!(texts(&schema, &json!({})), @"invalid configuration: config: {} has less than 1 property");
    }

    #[test]
    fn the_alternative_that_was_meant_speaks() {
        let name = json!({"type": "string", "pattern": "^[a-z]+$"});
        let schema = json!({"properties": {
            "a": {"anyOf": [{"type": "null"}, name]},
            "b": {"oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
            "c": {"anyOf": [{"required": ["x", "y"]}, {"required": ["z"]}]},
        }});
        assert_eq!(texts(&schema, &json!({"a": null})), "valid");
        insta::assert_snapshot!(texts(&schema, &json!({"a": "A"})), @r#"invalid configuration: config (/a): field "a" must match pattern "^[a-z]+$""#);
        insta::assert_snapshot!(texts(&schema, &json!({"a": 1})), @r#"invalid configuration: config (/a): invalid type for field "a": got number, want null or string"#);
        insta::assert_snapshot!(texts(&schema, &json!({"b": {}})), @r#"invalid configuration: config (/b): required field "b.x" or "b.y" is missing"#);
        insta::assert_snapshot!(texts(&schema, &json!({"c": {}})), @r#"invalid configuration: config (/c): invalid value for field "c": {} is not valid under any of the schemas listed in the 'anyOf' keyword"#);
    }

    #[test]
    fn schemas_that_cannot_be_bounded_are_refused() {
        let mut doubling = serde_json::Map::new();
        for level in 0..18 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            doubling.insert(format!("d{level}"), json!({"allOf": [next, next]}));
        }
        doubling.insert("d18".into(), json!(true));
        let mut deep = json!(true);
        for _ in 0..100 {
            deep = json!({"not": deep});
        }
        let schemas = [
            json!({"$ref": "https://example.com/schema.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"$ref": "#"}),
            json!({"$ref": "#/$defs/none"}),
            json!({"$dynamicRef": "#a"}),
            json!({"$defs": doubling, "$ref": "#/$defs/d0"}),
            json!({"type": "nonsense"}),
            json!({"properties": {"a": {"pattern": "(a{1000}){1000}"}}}),
            json!({"$schema": "https://example.com/meta"}),
            json!(7),
        ];
        let config = json!({"a": "b"});
        let mut lines: Vec<String> = schemas.iter().map(|schema| texts(schema, &config)).collect();
        lines.push(texts(&deep, &config));
        lines.push(check("{", &config).unwrap_err().to_string());
        let text = lines.join("\n").replace("the output of the provisioner is invalid: the configuration schema ", "");
        insta::assert_snapshot!(text, @r##"
        refers to "https://example.com/schema.json", which is not in it
        refers to "file:///etc/passwd", which is not in it
        is recursive, or more than 64 levels deep when its references are expanded
        refers to "#/$defs/none", which is not in it
        uses $dynamicRef, which is not supported
        has more than 100000 parts when its references are expanded
        is not a JSON schema: "nonsense" is not valid under any of the schemas listed in the 'anyOf' keyword
        is not a JSON schema: "(a{1000}){1000}" is not a "regex"
        names another dialect than https://json-schema.org/draft/2020-12/schema
        is neither an object nor a boolean
        is recursive, or more than 64 levels deep when its references are expanded
        is not JSON: EOF while parsing an object at line 1 column 1
        "##);
    }

    #[test]
    fn work_is_bounded() {
        let branches = vec![json!({"type": "string"}); 10_000];
        let schema = json!({"properties": {"a": {"items": {"anyOf": branches}}}});
        assert_eq!(texts(&schema, &json!({"a": ["x"]})), "valid");
        assert!(
            texts(&schema, &json!({"a": vec![1; 10_000]})).contains("is too large for a configuration of this size")
        );
    }

    #[test]
    fn patterns_take_linear_time() {
        let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
        let config = json!({"a": format!("{}b", "a".repeat(20_000))});
        assert!(texts(&schema, &config).contains("must match pattern"));
    }
}
