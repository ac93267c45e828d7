//! The configuration schema: valid, and enforced.

use chandler_core::{Request, pointer};
use chandler_engine::{CallError, InvalidOutput, Limits, Provisioner};
use serde_json::{Value, json};

use super::Check;
use crate::Case;

pub(super) async fn check(provisioner: &Provisioner, cases: &[Case], limits: &Limits) -> [Check; 2] {
    let mut valid = Check::new("schema", "has a configuration schema that the host accepts, or none");
    let mut enforced = Check::new(
        "schema-enforced",
        "has a schema that refuses values of another type, with the field in the finding",
    );
    for case in cases {
        let schema = match provisioner.config_schema(case.content.clone(), limits).await {
            Ok(schema) => schema,
            Err(error) => {
                valid.record(Some(format!("{}: {error}", case.name)));
                continue;
            }
        };
        let Some(schema) = schema else { continue };
        // The host reads the schema in each call.
        let outcome = provisioner.provision(&case.request, case.content.clone(), limits).await;
        valid.record(match &outcome {
            Err(error @ CallError::InvalidOutput(output)) if matches!(**output, InvalidOutput::Schema(_)) => {
                Some(format!("{}: {error}", case.name))
            }
            _ => None,
        });
        for (field, value) in mistyped(&schema) {
            let mut request: Request = case.request.clone();
            request.config.insert(field.clone(), value.clone());
            let outcome = provisioner.provision(&request, case.content.clone(), limits).await;
            let names_field = |error: &CallError| {
                let mut pointers =
                    error.diagnostics().iter().filter_map(|finding| finding.location.as_ref()?.pointer.as_deref());
                pointers.any(|pointer| pointer.contains(&pointer_part(&field)))
            };
            enforced.record(match &outcome {
                Err(error @ CallError::InvalidConfiguration(_)) if names_field(error) => None,
                Err(CallError::InvalidConfiguration(_)) => {
                    Some(format!("{}: with {field}={value}, no finding names the field", case.name))
                }
                // The content cannot be installed with any configuration.
                Err(CallError::InvalidContent(_) | CallError::UnsupportedContent(_)) => None,
                Err(error) => Some(format!("{}: with {field}={value}: {error}", case.name)),
                Ok(_) => {
                    Some(format!("{}: {field}={value} is accepted, although its schema has another type", case.name))
                }
            });
        }
    }
    [valid, enforced]
}

/// A field as a part of a JSON pointer.
fn pointer_part(field: &str) -> String {
    format!("/{}", pointer::escape(field))
}

/// Each property of the schema that names one type, with a value of another one.
fn mistyped(schema: &str) -> Vec<(String, Value)> {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let wrong = |schema: &Value| match schema.get("type")?.as_str()? {
        "string" => Some(json!([1])),
        "object" | "array" | "integer" | "number" | "boolean" | "null" => Some(json!("a text")),
        _ => None,
    };
    properties.iter().filter_map(|(field, schema)| Some((field.clone(), wrong(schema)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_another_type_than_the_property() {
        let schema = json!({"properties": {
            "a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": ["string", "null"]}, "d": {"$ref": "#/x"},
        }});
        assert_eq!(mistyped(&schema.to_string()), [("a".to_owned(), json!([1])), ("b".to_owned(), json!("a text"))]);
        assert_eq!(mistyped("true"), []);
        assert_eq!(mistyped("{"), []);
        assert_eq!(pointer_part("a/b~"), "/a~1b~0");
    }
}
