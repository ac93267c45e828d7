//! From rendered objects to objects that request values.

use serde_json::Value as Json;

use super::{State, certificates, secrets, token};

/// An object of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// The object.
    pub value: Json,
    /// Its stage.
    pub stage: u32,
    /// The template that it comes from: `CHART/PATH`.
    pub path: String,
}

/// A value that the host cannot generate where the chart needs it: a text that begins with the place of the call, `CHART/PATH:LINE:COLUMN`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{0}")]
pub struct Unresolved(pub(super) String);

impl Emitted {
    /// A text of the object, such as its kind.
    pub(super) fn text(&self, pointer: &str) -> &str {
        self.value.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
    }

    /// Its namespace, if it has one.
    pub(super) fn namespace<'o>(&'o self, default: &'o str) -> &'o str {
        match self.text("/metadata/namespace") {
            "" => default,
            namespace => namespace,
        }
    }

    pub(super) fn is(&self, api_version: &str, kind: &str) -> bool {
        (self.text("/apiVersion"), self.text("/kind")) == (api_version, kind)
    }

    /// Adds an entry to the list that an annotation is.
    pub(super) fn annotate(&mut self, name: &str, entry: &str) {
        let Some(object) = self.value.as_object_mut() else { return };
        let metadata = object.entry("metadata").or_insert_with(|| Json::Object(serde_json::Map::new()));
        let Some(metadata) = metadata.as_object_mut() else { return };
        let annotations = metadata.entry("annotations").or_insert_with(|| Json::Object(serde_json::Map::new()));
        if !annotations.is_object() {
            *annotations = Json::Object(serde_json::Map::new());
        }
        if let Some(annotations) = annotations.as_object_mut() {
            let value = match annotations.get(name).and_then(Json::as_str) {
                Some(before) if before != entry && !before.is_empty() => format!("{before},{entry}"),
                _ => entry.to_owned(),
            };
            annotations.insert(name.to_owned(), Json::String(value));
        }
    }
}

pub(super) fn resolve(state: &State, objects: &mut Vec<Emitted>, namespace: &str) -> Result<(), Vec<Unresolved>> {
    if state.values.is_empty() {
        return Ok(());
    }
    certificates::request(state, objects, namespace);
    let mut unresolved = secrets::request(state, objects, namespace);
    for object in objects {
        let shown = shown(state, object);
        let is_secret = object.is("v1", "Secret");
        let mut rest = Rest { state, shown: &shown, is_secret, unresolved: &mut unresolved };
        rest.walk(&mut object.value, &mut Vec::new());
    }
    unresolved.sort();
    unresolved.dedup();
    if unresolved.is_empty() { Ok(()) } else { Err(unresolved) }
}

/// An object as messages name it.
pub(super) fn shown(state: &State, object: &Emitted) -> String {
    let name = state.replaced(object.text("/metadata/name"), |_| "(generated)".to_owned());
    format!("{} {name} ({})", object.text("/kind"), object.path)
}

/// The places that are neither data of a Secret nor a certificate.
struct Rest<'r> {
    state: &'r State,
    shown: &'r str,
    is_secret: bool,
    unresolved: &'r mut Vec<Unresolved>,
}

impl Rest<'_> {
    fn walk(&mut self, value: &mut Json, path: &mut Vec<String>) {
        match value {
            Json::String(text) => self.text(text, path),
            Json::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    path.push(index.to_string());
                    self.walk(item, path);
                    path.pop();
                }
            }
            Json::Object(entries) => {
                for (key, entry) in entries {
                    path.push(key.clone());
                    let mut name = key.clone();
                    // A key is refused wherever it is.
                    self.text(&mut name, &[String::new()]);
                    if self.is_secret
                        && matches!(path.as_slice(), [data] if matches!(data.as_str(), "data" | "stringData"))
                    {
                        // The values are resolved already, and the names of the keys are not generated.
                        for key in entry.as_object().into_iter().flat_map(serde_json::Map::keys) {
                            self.text(&mut key.clone(), &[String::new()]);
                        }
                    } else {
                        self.walk(entry, path);
                    }
                    path.pop();
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    fn text(&mut self, text: &mut String, path: &[String]) {
        let found = self.state.placeholders(text);
        let in_metadata = |map: &str| matches!(path, [.., metadata, name, _] if metadata == "metadata" && name == map);
        let place = || format!("/{}", path.join("/"));
        if let Some(id) = found.first() {
            if in_metadata("annotations") {
                // It would differ at each upgrade, so that Pods restart. A constant never does.
                *text = self.state.replaced(text, |_| "generated".to_owned());
                return;
            }
            let why = if self.state.is_certificate(*id) {
                format!(", {}", secrets::CERTIFICATES)
            } else {
                "; the host generates values only in Secrets".to_owned()
            };
            let because = format!("would be in {} of {}{why}", place(), self.shown);
            self.unresolved.push(unresolved(self.state, *id, &because));
        } else if self.state.has_digest(text) && !in_metadata("annotations") && !in_metadata("labels") {
            self.unresolved.push(Unresolved(format!(
                "{} of {} contains the digest of a text with a generated value, which would be the same in every cluster",
                place(),
                self.shown
            )));
        } else if token::is_damaged(text, &self.state.salt) {
            self.unresolved.push(Unresolved(format!(
                "{} of {} contains a part of a generated value, which only the cluster has",
                place(),
                self.shown
            )));
        }
    }
}

/// Why a value cannot be generated.
pub(super) fn unresolved(state: &State, id: usize, because: &str) -> Unresolved {
    let (function, place) =
        state.values.get(id).map(|value| (value.function.as_str(), value.place.as_str())).unwrap_or_default();
    Unresolved(format!("{place}: the result of {function} {because}"))
}
