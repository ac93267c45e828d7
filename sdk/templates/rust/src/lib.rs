//! Installs the Kubernetes objects in `objects/`, with the labels of the configuration.

use std::collections::BTreeMap;

use chandler_sdk::{
    Content, Diagnostic, Facts, Failure, Location, Output, Provisioner, Request, read_documents, yaml::Node,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The format that this provisioner detects.
const FORMAT: &str = "provisioner-template+v0";
/// The directory of the objects.
const OBJECTS: &str = "objects/";
/// Larger files are refused before they are read: memory is limited.
const FILE_BYTES: u64 = 4 << 20;

/// The provisioner.
#[derive(Debug)]
pub struct Plugin;

/// The configuration (`spec.config`).
#[derive(Debug, Default, Deserialize)]
struct Config {
    /// Labels for every object.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl Provisioner for Plugin {
    const FACTS: Facts = Facts::new("provisioner-template", env!("CARGO_PKG_VERSION")).formats(&[FORMAT]);

    fn detect(content: &dyn Content) -> Option<String> {
        (!content.page(OBJECTS, None, 1).is_empty()).then(|| FORMAT.to_owned())
    }

    fn config_schema(_: &dyn Content) -> Result<Option<String>, Failure> {
        let labels = json!({
            "description": "Labels for every object.",
            "type": "object",
            "additionalProperties": {"type": "string"},
        });
        let schema = json!({"type": "object", "additionalProperties": false, "properties": {"labels": labels}});
        Ok(Some(schema.to_string()))
    }

    fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        let config: Config = request.config_as()?;
        let mut findings = Vec::new();
        let mut objects = Vec::new();
        for file in content.files(OBJECTS) {
            if file.size > FILE_BYTES {
                let finding = Diagnostic::error("FileTooLarge", format!("has {} bytes", file.size)).at(&file.path);
                findings.push(finding.help(format!("split it: a file may have {FILE_BYTES} bytes")));
                continue;
            }
            match read_documents(content, &file.path) {
                Ok(documents) => objects.extend(documents.into_iter().map(|document| (file.path.clone(), document))),
                Err(finding) => findings.push(finding),
            }
        }
        if objects.is_empty() && findings.is_empty() {
            findings.push(
                Diagnostic::error("NoObjects", "the directory holds no objects").at(OBJECTS).help("add a YAML file"),
            );
        }
        let labelled = objects.iter().filter_map(|(path, document)| {
            let object = with_labels(path, document, &config.labels).map_err(|finding| findings.push(*finding)).ok()?;
            Some((object, Location::of(path, document)))
        });
        let labelled: Vec<_> = labelled.collect();
        // All findings at once, so that the author of the bundle need not search for them one by one.
        if !findings.is_empty() {
            return Err(Failure::InvalidContent(findings));
        }
        for (object, origin) in labelled {
            output.emit_value(&object, None, Some(origin))?;
        }
        Ok(())
    }
}

chandler_sdk::export!(Plugin);

/// The object of a document, with these labels.
fn with_labels(path: &str, document: &Node, labels: &BTreeMap<String, String>) -> Result<Value, Box<Diagnostic>> {
    let invalid = |message: &str, pointer: &str| {
        Box::new(Diagnostic::error("InvalidObject", message).at(path).within(document, pointer))
    };
    let mut object = document.to_json();
    for field in ["/apiVersion", "/kind", "/metadata/name"] {
        if object.pointer(field).and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(invalid(&format!("has no {}", field.trim_start_matches('/').replace('/', ".")), field));
        }
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        && !labels.is_empty()
    {
        let own = metadata.entry("labels").or_insert_with(|| Map::new().into());
        let own = own.as_object_mut().ok_or_else(|| invalid("labels must be a map", "/metadata/labels"))?;
        own.extend(labels.iter().map(|(key, value)| (key.clone(), value.as_str().into())));
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics fails")]

    use chandler_sdk::testing::{Bundle, run};

    use super::*;

    const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: {app: a}}\n";

    fn request(config: Value) -> Request {
        Request::new().with_config(config.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn objects_get_the_labels_of_the_configuration() {
        let bundle = Bundle::new([("objects/a.yaml", NAMESPACE)]);
        assert_eq!(Plugin::detect(&bundle).as_deref(), Some(FORMAT));
        let release = run::<Plugin>(&bundle, &request(json!({"labels": {"team": "b"}}))).unwrap();
        assert_eq!(release.objects[0].value["metadata"]["labels"], json!({"app": "a", "team": "b"}));
    }

    #[test]
    fn findings_have_a_file_and_a_line() {
        let bundle = Bundle::new([("objects/a.yaml", "kind: Namespace\n"), ("objects/b.yaml", "x: [\n")]);
        let failure = run::<Plugin>(&bundle, &Request::default()).unwrap_err().to_string();
        assert!(failure.contains("objects/a.yaml:1:1"), "{failure}");
        assert!(failure.contains("objects/b.yaml:2:1"), "{failure}");
    }

    #[test]
    fn a_bundle_without_objects_is_refused_and_one_of_another_format_is_not_detected() {
        assert_eq!(Plugin::detect(&Bundle::new([("README.md", "")])), None);
        assert!(run::<Plugin>(&Bundle::new([("objects/a.yaml", "")]), &Request::default()).is_err());
        assert!(run::<Plugin>(&Bundle::default(), &request(json!({"labels": 1}))).is_err());
    }
}
