//! The configuration of a BundleDeployment: `images`, the images that stand in for those of the bundle.

use std::collections::BTreeMap;

use chandler_sdk::{Content, Diagnostic, Failure, Location};
use serde_json::{Map, Value, json};

use crate::images::references;

/// Images by the names that `image-references` gives them.
pub(crate) type Images = BTreeMap<String, String>;

/// The longest image that is taken.
const LONGEST: usize = 512;

/// What an image may consist of. Which registries there are, and whether they have it, nobody knows here.
const PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$";

/// The JSON Schema for a bundle.
pub(crate) fn schema(content: &dyn Content) -> Value {
    let image = |description: Option<String>| {
        let mut schema = json!({"type": "string", "maxLength": LONGEST, "pattern": PATTERN});
        if let (Some(description), Some(members)) = (description, schema.as_object_mut()) {
            members.insert("description".to_owned(), Value::String(description));
        }
        schema
    };
    let known: Map<String, Value> = references(content)
        .tags
        .into_iter()
        .map(|tag| (tag.name, image(Some(format!("Stands in for {}.", tag.source)))))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of a plain+v0 bundle",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "images": {
                "description": "Images that stand in for those of the bundle, by the names that its file image-references gives them.",
                "type": ["object", "null"],
                "properties": known,
                "additionalProperties": image(None),
            },
        },
    })
}

/// Reads a configuration. The host enforces the schema before; a host that forgot must not make a difference.
pub(crate) fn parse(config: &Map<String, Value>) -> Result<Images, Failure> {
    let mut images = Images::new();
    let mut findings = Vec::new();
    let wrong = |code: &str, message: String, pointer: &str| {
        Diagnostic::error(code, message).at(Location::CONFIG).pointer(pointer)
    };
    for key in config.keys().filter(|key| *key != "images") {
        let finding = wrong("UnknownField", format!("unknown field {key:?}"), &format!("/{}", escape(key)));
        findings.push(finding.help("the only key is images"));
    }
    match config.get("images") {
        None | Some(Value::Null) => {}
        Some(Value::Object(members)) => {
            for (name, image) in members {
                if let Some(image) = image.as_str().filter(|image| is_image(image)) {
                    images.insert(name.clone(), image.to_owned());
                } else {
                    let message = format!("image {name:?} is not a reference to an image");
                    let finding = wrong("InvalidImage", message, &format!("/images/{}", escape(name)));
                    findings.push(finding.help("write it as registry.example.com/repository@sha256:..."));
                }
            }
        }
        Some(_) => {
            let finding = wrong("InvalidType", "images is not an object".to_owned(), "/images");
            findings.push(finding.help("write it as {name: image}"));
        }
    }
    if findings.is_empty() { Ok(images) } else { Err(Failure::InvalidConfig(findings)) }
}

/// The rule of [`PATTERN`].
fn is_image(text: &str) -> bool {
    text.len() <= LONGEST
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '/' | '@' | '+' | '-'))
}

/// A part of a JSON pointer.
pub(crate) fn escape(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}
