//! A bundle and a request in one text format, so that inputs can be read and mutated as text.
//!
//! A line `-- path --` starts a file, which extends to the next such line. Text before the first one is ignored. The file `request`
//! is not part of the bundle: it holds the configuration and the target, as JSON. Any bytes are a valid archive.

use std::collections::BTreeMap;

use chandler_core::{Request, Target};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The name of the file that is the request.
const REQUEST: &str = "request";

/// A bundle and a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Archive {
    /// Files by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The configuration and the target.
    pub request: RawRequest,
}

/// The request in its JSON form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RawRequest {
    /// The configuration.
    #[serde(default)]
    pub config: Map<String, Value>,
    /// The target.
    #[serde(default)]
    pub target: Target,
}

impl Archive {
    /// Parses a text. Files with paths that no source can have are left out; an unreadable request becomes an empty one.
    pub fn read(text: &[u8]) -> Self {
        let mut archive = Self::default();
        let mut current: Option<(String, Vec<u8>)> = None;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if let Some(path) = path_of(line) {
                archive.add(current.replace((path.to_owned(), Vec::new())));
            } else if let Some((_, bytes)) = &mut current {
                bytes.extend_from_slice(line);
            }
        }
        archive.add(current);
        archive
    }

    fn add(&mut self, file: Option<(String, Vec<u8>)>) {
        match file {
            Some((path, bytes)) if path == REQUEST => self.request = serde_json::from_slice(&bytes).unwrap_or_default(),
            Some((path, bytes)) => self.insert(path, bytes),
            None => {}
        }
    }

    /// Adds a file, unless no source can have it: its path is illegal, or names both a file and a directory.
    pub fn insert(&mut self, path: String, bytes: Vec<u8>) {
        let below = format!("{path}/");
        let is_directory = self.files.keys().any(|other| other.starts_with(&below));
        let is_below = path.match_indices('/').any(|(at, _)| self.files.contains_key(&path[..at]));
        if is_path(&path) && !is_directory && !is_below {
            self.files.insert(path, bytes);
        }
    }

    /// The text.
    ///
    /// # Panics
    /// Never: every request can be serialized.
    pub fn write(&self) -> Vec<u8> {
        let mut text = format!("-- {REQUEST} --\n{}\n", serde_json::to_string(&self.request).unwrap()).into_bytes();
        for (path, bytes) in &self.files {
            text.extend_from_slice(format!("-- {path} --\n").as_bytes());
            text.extend_from_slice(bytes);
            if bytes.last().is_some_and(|last| *last != b'\n') {
                text.push(b'\n');
            }
        }
        text
    }

    /// The request in the form of the host.
    pub fn request(&self) -> Request {
        Request { config: self.request.config.clone(), target: self.request.target.clone() }
    }

    /// The request in the form of a provisioner.
    pub fn guest_request(&self) -> chandler_sdk::Request {
        let Target { name, namespace, kubernetes_version, api_kinds } = self.request.target.clone();
        let request = chandler_sdk::Request::new().with_config(self.request.config.clone());
        let request = request.with_name(name).with_namespace(namespace).with_api_kinds(api_kinds);
        match kubernetes_version.as_str() {
            "" => request,
            version => request.with_kubernetes_version(version),
        }
    }
}

fn path_of(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line).ok()?.trim_end_matches(['\r', '\n']);
    line.strip_prefix("-- ")?.strip_suffix(" --").filter(|path| !path.is_empty())
}

/// Whether a source can have a file with this path: the rules of the reader of archives.
fn is_path(path: &str) -> bool {
    path.len() <= 1024
        && !path.chars().any(char::is_control)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_round_trips() {
        let text = b"a note\n-- request --\n{\"config\":{\"a\":1}}\n-- manifests/a --\nx\n-- ../b --\nx\n-- b --\n\xff";
        let archive = Archive::read(text);
        assert_eq!(archive.request().config["a"], 1);
        assert_eq!(archive.files.keys().collect::<Vec<_>>(), ["b", "manifests/a"]);
        let again = Archive::read(&archive.write());
        assert_eq!(again.request, archive.request);
        assert_eq!(again.files["manifests/a"], b"x\n");
        assert_eq!(again.files["b"], b"\xff\n");
    }

    #[test]
    fn a_path_is_not_both_file_and_directory() {
        let archive = Archive::read(b"-- a --\n-- a/b --\n-- c/d --\n-- c --\n-- c/d/e --\n");
        assert_eq!(archive.files.keys().collect::<Vec<_>>(), ["a", "c/d"]);
    }

    #[test]
    fn any_bytes_are_an_archive() {
        assert_eq!(Archive::read(b""), Archive::default());
        assert_eq!(Archive::read(b"\0\xff-- \n--  --\n-- request --\n[").request, RawRequest::default());
    }
}
