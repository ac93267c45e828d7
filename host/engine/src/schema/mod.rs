//! Validates the configuration against the JSON Schema of a provisioner.
//!
//! The guest supplies the schema, so its size is limited first: it must not refer to anything outside itself nor be
//! recursive, it must not exceed the limits of [`cost`] after its references are expanded, and its [`patterns`] must
//! fit into a memory budget and match in linear time. Neither compiling nor validating can be interrupted, so both are
//! bounded in advance, and the caller holds a slot of the engine until they end.

mod cache;
mod cost;
mod message;
mod patterns;

use std::time::Instant;

use chandler_core::{Diagnostic, Location, Severity, unique_json};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

pub(crate) use self::cache::Schemas;
use self::{cost::Cost, patterns::Patterns};
use crate::{CallError, InvalidOutput, text::sanitize};

/// The most findings that are reported.
const FINDINGS: usize = 50;

/// The most parts of a schema times values of a configuration: every value may be checked against every part.
const WORK: usize = 50_000_000;

/// The most pattern steps: steps per byte of text times the bytes of the configuration.
const PATTERN_STEPS: usize = 1_000_000_000;

/// How many bytes of patterns count as one part in the cache.
const BYTES_OF_PART: usize = 512;

/// A compiled schema.
pub(crate) struct Schema {
    cost: Cost,
    /// The memory of its patterns.
    pattern_bytes: usize,
    validator: Validator,
}

impl Schema {
    /// Compiles a schema; stops at `deadline`, when the call has ended.
    pub(crate) fn read(text: &str, deadline: Instant) -> Result<Self, CallError> {
        let schema = unique_json::from_slice(text.as_bytes()).map_err(|error| unusable(error.to_string()))?;
        let measured = Patterns::measure(&schema, deadline).map_err(unusable)?;
        let cost = cost::check(&schema, &measured).map_err(unusable)?;
        let patterns = PatternOptions::regex().size_limit(patterns::limit()).dfa_size_limit(measured.share());
        let validator = jsonschema::draft202012::options()
            .offline()
            .with_pattern_options(patterns)
            .build(&schema)
            .map_err(|error| unusable(format!("is not a JSON schema: {error}")))?;
        Ok(Self { cost, pattern_bytes: measured.bytes(), validator })
    }

    /// Its memory use, in parts.
    pub(crate) fn parts(&self) -> usize {
        self.cost.parts.saturating_add(self.pattern_bytes / BYTES_OF_PART)
    }

    /// Validates a configuration and returns why it does not match; empty if it does.
    ///
    /// # Errors
    /// If the validation would exceed the work limit.
    pub(crate) fn check(&self, config: &Value) -> Result<Vec<Diagnostic>, CallError> {
        let work = self.cost.parts.saturating_mul(cost::count(config));
        let steps = self.cost.steps.saturating_mul(cost::text_bytes(config));
        if work > WORK || steps > PATTERN_STEPS {
            return Err(unusable("is too complex for a configuration of this size".into()));
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
    CallError::InvalidOutput(Box::new(InvalidOutput::Schema(sanitize(problem, 1024))))
}

/// A finding about the configuration.
fn finding(pointer: String, message: String) -> Diagnostic {
    let place = Location { path: "config".into(), pointer: Some(sanitize(pointer, 1024)), ..Location::default() };
    let finding = Diagnostic::new(Severity::Error, "InvalidConfiguration", sanitize(message, 2048));
    Diagnostic { location: Some(place), ..finding }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_mins(10)
    }

    fn check(schema: &str, config: &Value) -> Result<(), CallError> {
        match Schema::read(schema, soon())?.check(config)? {
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
    fn the_matching_alternative_is_reported() {
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
        refers to "https://example.com/schema.json", which it does not contain
        refers to "file:///etc/passwd", which it does not contain
        is recursive, or more than 64 levels deep after its references are expanded
        refers to "#/$defs/none", which it does not contain
        uses $dynamicRef, which is not supported
        has more than 100000 parts after its references are expanded
        is not a JSON schema: "nonsense" is not valid under any of the schemas listed in the 'anyOf' keyword
        contains the pattern "(a{1000}){1000}", which takes more than 1 MiB of memory
        uses a dialect other than https://json-schema.org/draft/2020-12/schema
        is neither an object nor a boolean
        is recursive, or more than 64 levels deep after its references are expanded
        is not JSON: EOF while parsing an object at line 1 column 1
        "##);
    }

    #[test]
    fn work_is_bounded() {
        let branches = vec![json!({"type": "string"}); 10_000];
        let schema = json!({"properties": {"a": {"items": {"anyOf": branches}}}});
        assert_eq!(texts(&schema, &json!({"a": ["x"]})), "valid");
        assert!(
            texts(&schema, &json!({"a": vec![1; 10_000]})).contains("is too complex for a configuration of this size")
        );
    }

    #[test]
    fn patterns_take_linear_time() {
        let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
        let config = json!({"a": format!("{}b", "a".repeat(20_000))});
        assert!(texts(&schema, &config).contains("must match pattern"));
    }

    /// Without the budget, 89 KB of schema took 1.9 GB of memory.
    #[test]
    fn patterns_share_one_budget() {
        let schema = |count: usize, pattern: &dyn Fn(usize) -> String| {
            let property = |number| (format!("p{number}"), json!({"pattern": pattern(number)}));
            json!({"properties": (0..count).map(property).collect::<serde_json::Map<_, _>>()})
        };
        let hostile = schema(2000, &|number| format!(".{{800}}N{number}"));
        assert!(hostile.to_string().len() < 89_000);
        let config = json!({"p1": "x"});
        let large = "contains patterns that take more than 16 MiB of memory";
        assert!(texts(&hostile, &config).contains(large), "{}", texts(&hostile, &config));
        // In other places than `pattern`, and in definitions that are not referenced.
        let names: serde_json::Map<_, _> = (0..100).map(|number| (format!(".{{800}}N{number}"), json!(true))).collect();
        assert!(texts(&json!({"patternProperties": names}), &config).contains(large));
        assert!(texts(&json!({"$defs": {"a": hostile}}), &config).contains(large));
        // Realistic patterns in such numbers are accepted.
        let honest = schema(500, &|number| format!("^[a-z0-9]([-a-z0-9]*[a-z0-9])?{number}$"));
        assert!(texts(&honest, &config).contains("must match pattern"), "{}", texts(&honest, &config));
    }

    #[test]
    fn pattern_steps_are_bounded() {
        let schema = json!({"properties": {"a": {"items": {"pattern": "^([a-z]{1,60}x)+$"}}}});
        assert!(texts(&schema, &json!({"a": ["y"]})).contains("must match pattern"));
        let long = json!({"a": vec!["y".repeat(100_000); 100]});
        assert!(texts(&schema, &long).contains("is too complex for a configuration of this size"));
    }

    #[test]
    fn compilation_stops_at_the_deadline() {
        let schema = json!({"pattern": "a"}).to_string();
        let before = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        assert!(Schema::read(&schema, before).is_err());
    }
}
