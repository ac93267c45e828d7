//! The configuration of a BundleDeployment: replacements for the images and versions of the bundle.
//!
//! The host enforces the schema before it provisions a bundle. This module checks the same rules, so that the result does not depend on the
//! host.

use chandler_sdk::{Content, Diagnostic, Failure, Location, yaml::pointer_segment};
use serde_json::{Map, Value, json};

use crate::{
    images::Images,
    payload::is_payload,
    references::references,
    release_config::{self, Cluster},
    versions::{Versions, is_component, semantic},
};

/// The maximum length of an image or version.
pub(crate) const LONGEST: usize = 512;

/// The characters of an image. Whether a registry has it is not known here.
pub(crate) const IMAGE: &str = "^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$";

/// A semantic version; [`semantic`] has the same rule.
const VERSION: &str = r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$";

/// The name of a component; [`is_component`] has the same rule.
const COMPONENT: &str = "^[a-z0-9][a-z0-9-]*[a-z0-9]$";

/// A parsed configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    /// Images by the names that `image-references` gives them.
    pub(crate) images: Images,
    /// Versions.
    pub(crate) versions: Versions,
    /// The cluster, if the bundle is installed as an OpenShift release.
    pub(crate) release: Option<Cluster>,
}

/// The JSON Schema for a bundle.
pub(crate) fn schema(content: &dyn Content) -> Value {
    let image = json!({"type": "string", "maxLength": LONGEST, "pattern": IMAGE});
    let described = |source: &str| {
        let mut schema = image.clone();
        if let Some(members) = schema.as_object_mut() {
            members.insert("description".to_owned(), Value::String(format!("Replaces {source}.")));
        }
        schema
    };
    let known: Map<String, Value> = references(content, is_payload(content))
        .tags
        .into_iter()
        .map(|tag| (tag.name, described(&tag.source)))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of a plain+v0 bundle",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "images": {
                "description": "Replacements for the images of the bundle, by their names in its file image-references.",
                "type": ["object", "null"],
                "properties": known,
                "additionalProperties": image,
            },
            "releaseVersion": {
                "description": "The version that replaces 0.0.1-snapshot; build metadata is omitted.",
                "type": ["string", "null"],
                "maxLength": LONGEST,
                "pattern": VERSION,
            },
            "componentVersions": {
                "description": "The versions that replace 0.0.1-snapshot-<component>, by component; build metadata is omitted.",
                "type": ["object", "null"],
                "propertyNames": {"pattern": COMPONENT},
                "additionalProperties": {"type": "string", "maxLength": LONGEST, "pattern": VERSION},
            },
            "release": release_config::schema(),
        },
    })
}

/// Parses a configuration, and reports all errors.
pub(crate) fn parse(config: &Map<String, Value>) -> Result<Config, Failure> {
    let mut parsed = Config::default();
    let mut findings = Vec::new();
    for (key, value) in config {
        match (key.as_str(), value) {
            ("images" | "releaseVersion" | "componentVersions" | "release", Value::Null) => {}
            ("release", Value::Object(members)) => parsed.release = Some(Cluster::parse(members, &mut findings)),
            ("release", _) => {
                let finding = config_error("InvalidType", "release is not an object".to_owned(), "/release");
                findings.push(finding.help("write it as {clusterProfile: self-managed-high-availability}"));
            }
            ("images", Value::Object(members)) => images(members, &mut parsed.images, &mut findings),
            ("releaseVersion", Value::String(text)) => match version(text) {
                Some(version) => parsed.versions.release = Some(version),
                None => findings.push(invalid_version("releaseVersion", "/releaseVersion")),
            },
            ("componentVersions", Value::Object(members)) => components(members, &mut parsed.versions, &mut findings),
            ("images" | "componentVersions", _) => {
                let finding = config_error("InvalidType", format!("{key} is not an object"), &format!("/{key}"));
                findings.push(finding.help(if key == "images" {
                    "write it as {name: image}"
                } else {
                    "write it as {component: version}"
                }));
            }
            ("releaseVersion", _) => {
                let finding =
                    config_error("InvalidType", "releaseVersion is not a string".to_owned(), "/releaseVersion");
                findings.push(finding.help("put it into quotes"));
            }
            _ => {
                let finding = config_error(
                    "UnknownField",
                    format!("unknown field {key:?}"),
                    &format!("/{}", pointer_segment(key)),
                );
                findings.push(finding.help("the keys are images, releaseVersion, componentVersions and release"));
            }
        }
    }
    if findings.is_empty() { Ok(parsed) } else { Err(Failure::InvalidConfig(findings)) }
}

fn config_error(code: &str, message: String, pointer: &str) -> Diagnostic {
    Diagnostic::error(code, message).at(Location::CONFIG).pointer(pointer)
}

fn images(members: &Map<String, Value>, images: &mut Images, findings: &mut Vec<Diagnostic>) {
    for (name, image) in members {
        if let Some(image) = image.as_str().filter(|image| is_image(image)) {
            images.insert(name.clone(), image.to_owned());
        } else {
            let message = format!("image {name:?} is not a reference to an image");
            let finding = config_error("InvalidImage", message, &format!("/images/{}", pointer_segment(name)));
            findings.push(finding.help("write it as registry.example.com/repository@sha256:..."));
        }
    }
}

fn components(members: &Map<String, Value>, versions: &mut Versions, findings: &mut Vec<Diagnostic>) {
    for (name, value) in members {
        let pointer = format!("/componentVersions/{}", pointer_segment(name));
        if !is_component(name) {
            let message = format!("{name:?} is not a component name");
            let help = "use two or more lower-case letters, digits and dashes, and no dash at its ends";
            findings.push(config_error("InvalidComponent", message, &pointer).help(help));
        }
        match value.as_str().and_then(version) {
            Some(version) => {
                versions.components.insert(name.clone(), version);
            }
            None => findings.push(invalid_version(&format!("the version of {name:?}"), &pointer)),
        }
    }
}

fn invalid_version(what: &str, pointer: &str) -> Diagnostic {
    config_error("InvalidVersion", format!("{what} is not a semantic version"), pointer)
        .help("write it as 4.20.1, in quotes")
}

fn version(text: &str) -> Option<String> {
    semantic(text).filter(|_| text.len() <= LONGEST).map(str::to_owned)
}

/// The rule of [`IMAGE`].
pub(crate) fn is_image(text: &str) -> bool {
    text.len() <= LONGEST
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '/' | '@' | '+' | '-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    proptest! {
        /// The schema and the parser must agree, so that an error is not reported in two ways.
        #[test]
        fn patterns_and_rules_are_the_same(text in "[0-9a-zA-Z.+:/@_-]{0,12}|[0-2]\\.[0-1]{1,2}\\.[0-2](-[0-1a.-]{0,4})?(\\+[a.]{0,3})?") {
            prop_assert_eq!(Regex::new(IMAGE).unwrap().is_match(&text), is_image(&text));
            prop_assert_eq!(Regex::new(VERSION).unwrap().is_match(&text), semantic(&text).is_some());
            prop_assert_eq!(Regex::new(COMPONENT).unwrap().is_match(&text), is_component(&text));
        }
    }
}
