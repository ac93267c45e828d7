//! The schema of the values.

use serde_json::{Map, Value, json};

use super::values::{OWN, PROFILE};
use crate::{ManifestsError, Profile, SETTINGS};

/// `values.schema.json`.
pub(super) fn text() -> Result<String, ManifestsError> {
    let text = serde_json::to_string_pretty(&schema());
    text.map(|text| text + "\n").map_err(|error| ManifestsError::Chart { message: error.to_string() })
}

fn schema() -> Value {
    let mut root = object();
    let profiles = Profile::ALL.map(Profile::name);
    add(&mut root, "profile", json!({"type": "string", "enum": profiles, "description": PROFILE}));
    for setting in SETTINGS.iter().filter(|setting| !setting.chart.is_empty()) {
        let mut schema = setting.form.schema();
        schema.insert(
            "description".to_owned(),
            json!(format!("{} (default: {})", setting.chart_what(), setting.default)),
        );
        add(&mut root, setting.chart, Value::Object(schema));
    }
    for own in OWN {
        add(&mut root, own.key, json!({"type": "boolean", "description": own.what}));
    }
    // Helm gives this to the charts that a chart contains.
    add(&mut root, "global", json!({"type": "object"}));
    root.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
    root.insert("title".to_owned(), json!("Values of the chart of Chandler"));
    Value::Object(root)
}

fn object() -> Map<String, Value> {
    let members = [("type", json!("object")), ("additionalProperties", json!(false)), ("properties", json!({}))];
    members.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()
}

/// Adds the schema of the value at a path with dots.
fn add(schema: &mut Map<String, Value>, path: &str, value: Value) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    match path.split_once('.') {
        None => {
            properties.insert(path.to_owned(), value);
        }
        Some((key, rest)) => {
            let below = properties.entry(key).or_insert_with(|| Value::Object(object()));
            if let Some(below) = below.as_object_mut() {
                add(below, rest, value);
            }
        }
    }
}
