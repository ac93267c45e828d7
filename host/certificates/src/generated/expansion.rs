//! Generated values within the text of other keys.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_core::Object;
use serde_json::{Map, Value, json};

use super::{FillError, GeneratedError, GeneratedSecret, MAX_KEYS};

/// On a Secret: its keys whose text contains references to generated values, separated by commas. A reference is
/// `$(secrets.chandler.dev/SECRET/KEY)`, or `$(secrets.chandler.dev/SECRET/KEY:base64)` for the value in base64. The Secret must be in the
/// same release and namespace, and generate the key.
pub const EXPAND: &str = "secrets.chandler.dev/expand";

/// The beginning of a reference.
const BEGIN: &[u8] = b"$(secrets.chandler.dev/";
/// The longest reference, in bytes: the names of a Secret and of a key, and what is between.
const REFERENCE_BYTES: usize = 600;
/// The most references in the text of one key.
const MAX_REFERENCES: usize = 100;
/// The most bytes of all texts with references of a release, with the values. Live values may be long.
const MAX_BYTES: usize = 8 << 20;

/// What is wrong with an expansion. Texts are not shown, since they may contain secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpansionError {
    /// The annotation is not supported on this kind.
    #[error("it is supported only on Secrets")]
    Kind,
    /// The Secret lacks the key.
    #[error("the Secret has no text under key {0:?}")]
    Missing(String),
    /// The text of the key does not have the form of a reference.
    #[error(
        "the text of key {0:?} contains a malformed reference; it must be $(secrets.chandler.dev/SECRET/KEY) or $(secrets.chandler.dev/SECRET/KEY:base64)"
    )]
    Malformed(String),
    /// The release generates no such value in this namespace.
    #[error(
        "key {key:?} refers to key {value:?} of Secret {secret:?}, which no Secret of the release in this namespace generates"
    )]
    Unknown {
        /// The key with the reference.
        key: String,
        /// The Secret that it names.
        secret: String,
        /// The key that it names.
        value: String,
    },
    /// Too many keys or references.
    #[error("it lists more than {MAX_KEYS} keys, or the text of one has more than {MAX_REFERENCES} references")]
    TooMany,
}

/// A key of a Secret whose text contains generated values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expansion {
    /// The index of the Secret in the release.
    index: usize,
    key: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    /// A value: the index of its Secret among those with generated values, its key, and whether it is encoded in base64.
    Value(usize, String, bool),
}

impl Expansion {
    /// The expansions of an object.
    pub(super) fn read(
        object: &Object,
        index: usize,
        secrets: &[GeneratedSecret],
        install_namespace: &str,
    ) -> Result<Vec<Self>, GeneratedError> {
        let Some(annotation) = object.annotation(EXPAND) else { return Ok(Vec::new()) };
        let read = || {
            if (object.key.group.as_str(), object.key.kind.as_str()) != ("", "Secret") {
                return Err(ExpansionError::Kind);
            }
            let namespace = object.key.namespace.as_deref().unwrap_or(install_namespace);
            let keys: BTreeSet<&str> = annotation.split(',').map(str::trim).filter(|key| !key.is_empty()).collect();
            if keys.len() > MAX_KEYS {
                return Err(ExpansionError::TooMany);
            }
            let parse = |key: &str| {
                let shown = || key.chars().take(100).collect::<String>();
                let text = text(&object.value, key).ok_or_else(|| ExpansionError::Missing(shown()))?;
                let parts = parts(&text, &shown(), (secrets, namespace))?;
                Ok(Self { index, key: key.to_owned(), parts })
            };
            keys.into_iter().map(parse).collect()
        };
        read().map_err(|problem| GeneratedError::Expansion { object: Box::new(object.key.clone()), problem })
    }
}

/// Writes the texts with their values into the Secrets. The generated values are there already.
pub(super) fn expand(
    expansions: &[Expansion],
    secrets: &[GeneratedSecret],
    objects: &mut [Object],
) -> Result<(), FillError> {
    let mut left = MAX_BYTES;
    for expansion in expansions {
        let mut text = Vec::new();
        for part in &expansion.parts {
            let value = match part {
                Part::Text(text) => text.clone(),
                Part::Value(secret, key, encoded) => value(secrets, objects, *secret, key, *encoded),
            };
            left = left.checked_sub(value.len()).ok_or(FillError::TooLarge(MAX_BYTES))?;
            text.extend(value);
        }
        let Some(object) = objects.get_mut(expansion.index) else { continue };
        if let Some(Value::Object(data)) = object.value.get_mut("stringData") {
            data.remove(&expansion.key);
        }
        let data = object.value.entry("data").or_insert_with(|| json!({}));
        if !data.is_object() {
            *data = json!({});
        }
        if let Value::Object(data) = data {
            data.insert(expansion.key.clone(), json!(STANDARD.encode(text)));
        }
    }
    Ok(())
}

/// A generated value that was filled in.
fn value(secrets: &[GeneratedSecret], objects: &[Object], secret: usize, key: &str, encoded: bool) -> Vec<u8> {
    let filled = secrets.get(secret).and_then(|secret| objects.get(secret.index));
    let value = filled.and_then(|object| object.value.get("data")?.get(key)?.as_str()).unwrap_or_default();
    if encoded { value.as_bytes().to_vec() } else { STANDARD.decode(value).unwrap_or_default() }
}

/// The text of a key. `stringData` wins, as in the API server.
fn text(secret: &Map<String, Value>, key: &str) -> Option<Vec<u8>> {
    let entry = |data: &str| secret.get(data)?.get(key)?.as_str();
    match entry("stringData") {
        Some(text) => Some(text.as_bytes().to_vec()),
        None => STANDARD.decode(entry("data")?).ok(),
    }
}

fn parts(
    mut text: &[u8],
    key: &str,
    (secrets, namespace): (&[GeneratedSecret], &str),
) -> Result<Vec<Part>, ExpansionError> {
    let malformed = || ExpansionError::Malformed(key.to_owned());
    let (mut parts, mut references) = (Vec::new(), 0);
    while let Some(at) = text.windows(BEGIN.len()).position(|bytes| bytes == BEGIN) {
        references += 1;
        if references > MAX_REFERENCES {
            return Err(ExpansionError::TooMany);
        }
        let (before, rest) = text.split_at(at);
        let rest = rest.get(BEGIN.len()..).unwrap_or_default();
        let end = rest.iter().take(REFERENCE_BYTES).position(|byte| *byte == b')').ok_or_else(malformed)?;
        let reference = rest.get(..end).and_then(|bytes| str::from_utf8(bytes).ok()).ok_or_else(malformed)?;
        let (secret, value) = reference.split_once('/').ok_or_else(malformed)?;
        let (value, encoded) = match value.split_once(':') {
            None => (value, false),
            Some((value, "base64")) => (value, true),
            Some(_) => return Err(malformed()),
        };
        if secret.is_empty() || !super::is_key(value) {
            return Err(malformed());
        }
        let generates = |candidate: &GeneratedSecret| {
            let key = &candidate.secret;
            key.name == secret && key.namespace.as_deref() == Some(namespace) && candidate.keys.contains_key(value)
        };
        let index = secrets.iter().position(generates).ok_or_else(|| ExpansionError::Unknown {
            key: key.to_owned(),
            secret: secret.chars().take(253).collect(),
            value: value.to_owned(),
        })?;
        parts.push(Part::Text(before.to_vec()));
        parts.push(Part::Value(index, value.to_owned(), encoded));
        text = rest.get(end + 1..).unwrap_or_default();
    }
    parts.push(Part::Text(text.to_vec()));
    Ok(parts)
}
