//! Removes what may be secret from objects and logs before they leave the cluster: `chandler must-gather`.
//!
//! A value is hidden for where it is (a configuration, an environment variable), for its name, or for its look (credentials in a URL, tokens,
//! private keys). Rather too much is hidden than too little: in a text, everything behind a telling name to the end of the line. [`Finder`] hides
//! these values in all other files, unless they are short, a plain word, or public ([`Vocabulary`]).

use chandler_values::redaction::{HIDDEN, rewrite};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value};

mod finder;
mod keys;
mod memory;
mod names;
mod text;
mod vocabulary;

use memory::Memory;
use names::is_telling;

pub use self::{finder::Finder, memory::MemoryLimits, vocabulary::Vocabulary};

/// Members whose values are chosen by users: only the names in them are shown.
const OPAQUE: [&str; 5] = ["config", "values", "data", "stringData", "binaryData"];
/// Members that are left out: a copy of the object, or of its field names.
const LEFT_OUT: [&str; 1] = ["managedFields"];
/// A kind whose objects are printed by `chandler manifests`, with examples of URLs: only its metadata may hold a secret.
const PUBLIC: &str = "CustomResourceDefinition";
/// An annotation with a copy of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The domains whose annotations are shown, with their subdomains. Values of others may be anything.
const OURS: [&str; 5] = ["chandler.dev", "rukpak.io", "deppy.io", "applyset.kubernetes.io", "deployment.kubernetes.io"];
/// The least length in bytes of a word that is a credential behind the name of a scheme.
const DISTINCT: usize = 8;

/// Hides what may be secret, and remembers what was hidden.
#[derive(Debug, Default)]
pub struct Scrubber {
    memory: Memory,
}

impl Scrubber {
    /// Values that are in the vocabulary are not remembered, nor more than the limits allow.
    pub fn new(vocabulary: Vocabulary, limits: MemoryLimits) -> Self {
        Self { memory: Memory::new(vocabulary, limits) }
    }

    /// How many values are remembered.
    pub fn remembered(&self) -> usize {
        self.memory.values().len()
    }

    /// Finds what was hidden, to hide it elsewhere; `None` if there were more values than the limits allow: then others may be anywhere.
    pub fn finder(&self) -> Option<Finder<'_>> {
        if self.memory.is_full() { None } else { Finder::new(&self.memory).ok() }
    }

    /// Hides every string and number that may repeat a value, without knowing the values: all but short and public ones, and times.
    pub fn hide_all(&self, value: &mut Value) {
        let is_shown = |text: &str| {
            !memory::is_distinct(text) || self.memory.vocabulary().contains(text) || text.parse::<Timestamp>().is_ok()
        };
        rewrite(value, &|text| if is_shown(text.trim()) { text.into() } else { HIDDEN.to_owned().into() });
    }

    /// Hides values in an object.
    pub fn object(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.object(element)),
            Value::Object(members) => self.members(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn members(&mut self, members: &mut Map<String, Value>) {
        for name in LEFT_OUT {
            members.remove(name);
        }
        if members.get("kind").and_then(Value::as_str) == Some(PUBLIC) {
            return members.get_mut("metadata").into_iter().for_each(|metadata| self.object(metadata));
        }
        // An environment variable, a header of a probe, or any other pair.
        let is_named =
            ["name", "key"].iter().any(|name| members.get(*name).and_then(Value::as_str).is_some_and(is_telling));
        let is_pair = is_named || members.contains_key("name");
        for (name, value) in members.iter_mut() {
            match (name.as_str(), &mut *value) {
                ("annotations", Value::Object(annotations)) => self.annotations(annotations),
                ("args" | "command", Value::Array(words)) => self.words(words),
                ("value", value) if is_pair => self.hide(value),
                // A volume.
                ("secret", value) if value.get("secretName").is_some() => self.object(value),
                (name, value) if OPAQUE.contains(&name) || is_telling(name) => self.hide(value),
                (_, value) => self.object(value),
            }
        }
    }

    fn annotations(&mut self, annotations: &mut Map<String, Value>) {
        annotations.remove(LAST_APPLIED);
        for (name, value) in annotations.iter_mut() {
            if is_ours(name) && !is_telling(name) { self.object(value) } else { self.hide(value) }
        }
    }

    /// The words of a command line.
    fn words(&mut self, words: &mut [Value]) {
        let mut is_value = false;
        for word in words {
            let Some(text) = word.as_str() else { continue };
            let is_name = !text.contains(|c: char| c == '=' || c.is_whitespace()) && is_telling(text);
            if is_value && !text.starts_with("--") {
                self.hide(word);
            } else {
                self.object(word);
            }
            is_value = is_name;
        }
    }

    /// Hides all scalars of a value.
    fn hide(&mut self, value: &mut Value) {
        match value {
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.hide(element)),
            Value::Object(members) => members.values_mut().for_each(|member| self.hide(member)),
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => {
                self.remember(&std::mem::take(text));
                *value = HIDDEN.into();
            }
            Value::Number(number) => {
                self.remember(&number.to_string());
                *value = HIDDEN.into();
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn remember(&mut self, text: &str) {
        if !text.contains(HIDDEN) {
            self.memory.add(text);
        }
    }
}

/// Whether an annotation is of a domain of [`OURS`].
fn is_ours(annotation: &str) -> bool {
    let domain = annotation.split_once('/').map_or("", |(domain, _)| domain);
    OURS.iter().any(|ours| domain.strip_suffix(ours).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

#[cfg(test)]
mod tests;
