//! Validates the configuration against the provisioner's schema.

use chandler_yaml::unique_json;
use serde_json::{Map, Value};

use crate::Diagnostic;

/// The maximum size of a schema, in bytes.
const BYTES: usize = 1 << 20;

/// The mismatches of a configuration and its schema.
///
/// # Errors
/// The host would not accept the schema.
pub(super) fn check(schema: Option<&str>, config: &Map<String, Value>) -> Result<Vec<Diagnostic>, String> {
    let Some(text) = schema else { return Ok(Vec::new()) };
    let unusable = |problem: String| format!("the configuration schema {problem}");
    if text.len() > BYTES {
        return Err(unusable(format!("is larger than {BYTES} bytes")));
    }
    let schema = unique_json::from_slice(text.as_bytes()).map_err(|error| unusable(error.to_string()))?;
    mismatches(&schema, config).map_err(unusable)
}

/// Without the feature `checks`, only the sandbox validates.
#[cfg(not(feature = "checks"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature, the schema may be invalid")]
fn mismatches(_: &Value, _: &Map<String, Value>) -> Result<Vec<Diagnostic>, String> {
    Ok(Vec::new())
}

#[cfg(feature = "checks")]
fn mismatches(schema: &Value, config: &Map<String, Value>) -> Result<Vec<Diagnostic>, String> {
    use crate::Location;

    let validator = jsonschema::draft202012::options()
        .offline()
        .build(schema)
        .map_err(|error| format!("is not a JSON schema: {error}"))?;
    let config = Value::Object(config.clone());
    let finding = |error: jsonschema::ValidationError<'_>| {
        let finding = Diagnostic::error("InvalidConfiguration", error.to_string()).at(Location::CONFIG);
        finding.pointer(error.instance_path().to_string()).help("set the values that the configuration schema requires")
    };
    Ok(validator.iter_errors(&config).map(finding).collect())
}
