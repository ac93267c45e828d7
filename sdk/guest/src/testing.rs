//! Running a provisioner natively, under the rules that the host enforces on what is emitted.
//!
//! See the example at the [top of this crate](crate).

use std::{collections::BTreeMap, fs, io, path::Path};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{
    Content, Description, Diagnostic, EmitError, Entry, Failure, Location, Output, Probe, Provisioner, ReadError,
    Request,
};

/// A bundle in memory.
#[derive(Clone, Debug, Default)]
pub struct Bundle(BTreeMap<String, Vec<u8>>);

impl Bundle {
    /// A bundle of these files.
    pub fn new<P: Into<String>, B: Into<Vec<u8>>>(files: impl IntoIterator<Item = (P, B)>) -> Self {
        Self(files.into_iter().map(|(path, bytes)| (path.into(), bytes.into())).collect())
    }

    /// The regular files below a directory.
    ///
    /// # Errors
    /// What cannot be read, and names that are not UTF-8.
    pub fn from_directory(directory: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        let mut directories = vec![(directory.to_path_buf(), String::new())];
        while let Some((directory, prefix)) = directories.pop() {
            for entry in fs::read_dir(&directory)? {
                let entry = entry?;
                let name = entry.file_name().into_string();
                let name = name.map_err(|name| io::Error::other(format!("{}: not UTF-8", name.display())))?;
                let path = format!("{prefix}{name}");
                if entry.file_type()?.is_dir() {
                    directories.push((entry.path(), format!("{path}/")));
                } else {
                    // Links are followed, so that a harness may link what it shares.
                    files.insert(path, fs::read(entry.path())?);
                }
            }
        }
        Ok(Self(files))
    }
}

impl Content for Bundle {
    /// The digest that the host computes: of the lines `<path> NUL <size> NUL <hex hash of the bytes> LF`, sorted by path.
    fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (path, bytes) in &self.0 {
            hash.update(format!("{path}\0{}\0{:x}\n", bytes.len(), Sha256::digest(bytes)));
        }
        format!("sha256:{:x}", hash.finalize())
    }

    fn page(&self, prefix: &str, after: Option<&str>, limit: u32) -> Vec<Entry> {
        self.0
            .iter()
            .filter(|(path, _)| path.starts_with(prefix) && after.is_none_or(|after| path.as_str() > after))
            .take(limit as usize)
            .map(|(path, bytes)| Entry { path: path.clone(), size: bytes.len() as u64 })
            .collect()
    }

    fn read_at(&self, path: &str, offset: u64, len: u32) -> Result<Vec<u8>, ReadError> {
        let Some(bytes) = self.0.get(path) else {
            return Err(if self.exists(path) { ReadError::NotAFile } else { ReadError::NotFound });
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(len.min(1 << 20) as usize).min(bytes.len());
        Ok(bytes.get(start..end).unwrap_or_default().to_vec())
    }
}

/// An object that was emitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// The object.
    pub value: Value,
    /// Its stage.
    pub stage: Option<u32>,
    /// Where it comes from.
    pub origin: Option<Location>,
}

/// Keeps what is emitted, under the rules of the host: after a refusal it refuses everything, and [`run`] fails.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// The objects, as emitted.
    pub objects: Vec<Emitted>,
    /// The probes.
    pub probes: Vec<Probe>,
    /// The findings that did not stop the release.
    pub findings: Vec<Diagnostic>,
    /// The last description.
    pub description: Description,
    identities: BTreeMap<Identity, usize>,
    refusal: Option<(EmitError, String)>,
}

impl Recorder {
    /// Why something was refused, if anything was.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_ref().map(|(_, reason)| reason.as_str())
    }

    fn refuse(&mut self, error: EmitError, reason: String) -> EmitError {
        self.refusal = Some((error, reason));
        error
    }
}

impl Output for Recorder {
    fn emit(&mut self, object: &[u8], stage: Option<u32>, origin: Option<Location>) -> Result<(), EmitError> {
        if let Some((error, _)) = &self.refusal {
            return Err(*error);
        }
        let index = self.objects.len();
        let read: Result<Value, String> =
            serde_json::from_slice(object).map_err(|error| format!("is not JSON: {error}"));
        let (value, identity) = read
            .and_then(|value| identity(&value).map(|identity| (value, identity)))
            .map_err(|reason| self.refuse(EmitError::Malformed, format!("object {index} {reason}")))?;
        if let Some(first) = self.identities.get(&identity) {
            let [group, kind, namespace, name] = &identity;
            let reason = format!("object {index} is object {first} again: {kind}.{group} {namespace}/{name}");
            return Err(self.refuse(EmitError::Duplicate, reason));
        }
        self.identities.insert(identity, index);
        self.objects.push(Emitted { value, stage, origin });
        Ok(())
    }

    fn probe(&mut self, probe: &Probe) -> Result<(), EmitError> {
        if let Some((error, _)) = &self.refusal {
            return Err(*error);
        }
        self.probes.push(probe.clone());
        Ok(())
    }

    fn report(&mut self, finding: &Diagnostic) {
        self.findings.push(finding.clone());
    }

    fn describe(&mut self, bundle: &Description) {
        self.description = bundle.clone();
    }
}

/// Group, kind, namespace and name: what makes an object the same object.
type Identity = [String; 4];

/// The identity of an object, or why the host refuses it.
fn identity(value: &Value) -> Result<Identity, String> {
    if !value.is_object() {
        return Err("is not a JSON object".to_owned());
    }
    let text = |pointer: &str| value.pointer(pointer)?.as_str().filter(|text| !text.is_empty());
    let required = |pointer: &str, field: &str| text(pointer).ok_or_else(|| format!("has no {field}"));
    let (api_version, kind) = (required("/apiVersion", "apiVersion")?, required("/kind", "kind")?);
    let name = required("/metadata/name", "metadata.name")?;
    let namespace = match value.pointer("/metadata/namespace") {
        None | Some(Value::Null) => "",
        Some(Value::String(namespace)) => namespace,
        Some(_) => return Err("has a metadata.namespace that is not text".to_owned()),
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let legal = [
        ("apiVersion", api_version, (group.is_empty() || is_segment(group)) && is_segment(version)),
        ("kind", kind, kind.bytes().all(|byte| byte.is_ascii_alphanumeric())),
        ("metadata.name", name, is_segment(name)),
        ("metadata.namespace", namespace, namespace.is_empty() || is_segment(namespace)),
    ];
    match legal.iter().find(|(.., legal)| !legal) {
        Some((field, text, _)) => Err(format!("has an illegal {field}: {text:?}")),
        None => Ok([group, kind, namespace, name].map(str::to_owned)),
    }
}

/// Whether a name can stand in a URL: `IsValidPathSegmentName` in `k8s.io/apimachinery/pkg/api/validation/path`.
fn is_segment(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && name.len() <= 253
        && !name.contains(['/', '%'])
        && !name.chars().any(char::is_control)
}

/// Provisions a bundle.
///
/// # Errors
/// The failure of the provisioner; [`Failure::Internal`] if it emitted something that the host refuses.
pub fn run<P: Provisioner>(content: &dyn Content, request: &Request) -> Result<Recorder, Failure> {
    let mut recorder = Recorder::default();
    let result = P::provision(request, content, &mut recorder);
    if let Some(reason) = recorder.refusal() {
        return Err(Failure::Internal(format!("the host refuses this: {reason}")));
    }
    result.map(|()| recorder)
}

#[cfg(test)]
mod tests;
