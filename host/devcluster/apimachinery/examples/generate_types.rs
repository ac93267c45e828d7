//! Generates the table of built-in types from the JSON schema that the Python package `kubernetes-validate` carries.
//!
//! ```console
//! $ cargo run -p chandler-devcluster-apimachinery --example generate_types -- <path to _definitions.json> <package version> [--check]
//! ```
//!
//! With `--check` nothing is written; the exit status reports whether the committed table is up to date.

use std::{
    io::{Read as _, Write as _},
    path::Path,
};

use serde_json::{Map, Value, json};

type Error = Box<dyn std::error::Error>;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/schema/generated/kubernetes-v1.36.json.gz");

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [definitions, version, rest @ ..] = arguments.as_slice() else {
        return Err("usage: generate <path to _definitions.json> <version of kubernetes-validate> [--check]".into());
    };
    let table = table(Path::new(definitions), version)?;
    if rest.iter().any(|argument| argument == "--check") {
        let mut committed = String::new();
        flate2::read::GzDecoder::new(std::fs::File::open(TABLE)?).read_to_string(&mut committed)?;
        return if committed == table {
            Ok(())
        } else {
            Err(format!("{TABLE} is not what {definitions} yields").into())
        };
    }
    let mut encoder = flate2::write::GzEncoder::new(std::fs::File::create(TABLE)?, flate2::Compression::best());
    encoder.write_all(table.as_bytes())?;
    encoder.finish()?;
    Ok(())
}

fn table(path: &Path, version: &str) -> Result<String, Error> {
    let source: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let definitions = source.get("$defs").and_then(Value::as_object).ok_or("no $defs in the source")?;
    let compact: Map<String, Value> =
        definitions.iter().map(|(name, schema)| (name.clone(), compact(schema))).collect();
    let table = json!({
        "header": {
            "kubernetes": "1.36.0",
            "license": "Apache-2.0",
            "package": format!("kubernetes-validate {version}"),
            "path": "kubernetes_validate/kubernetes-json-schema/v1.36.0-local/_definitions.json",
        },
        "definitions": compact,
    });
    Ok(serde_json::to_string(&table)? + "\n")
}

/// Keeps types, formats, keys and extensions; drops prose and the nulls that the package adds to optional types.
fn compact(schema: &Value) -> Value {
    let Some(schema) = schema.as_object() else { return schema.clone() };
    let mut kept = Map::new();
    for (key, value) in schema {
        let value = match key.as_str() {
            "description" => continue,
            "$ref" => Value::from(value.as_str().unwrap_or_default().trim_start_matches("#/$defs/")),
            "type" => plain_type(value),
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                Value::Object(properties.map(|(name, property)| (name.clone(), compact(property))).collect())
            }
            "items" | "additionalProperties" => compact(value),
            "oneOf" => Value::Array(value.as_array().into_iter().flatten().map(compact).collect()),
            _ => value.clone(),
        };
        kept.insert(key.clone(), value);
    }
    Value::Object(kept)
}

fn plain_type(value: &Value) -> Value {
    match value.as_array().map(Vec::as_slice) {
        Some([only, null]) if null == "null" => only.clone(),
        _ => value.clone(),
    }
}
