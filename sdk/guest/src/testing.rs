//! Running a provisioner natively, under the rules that the host enforces on what is emitted.
//!
//! See the example at the [top of this crate](crate).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use serde_json::Value;

use crate::{Content, Diagnostic, EmitError, Entry, Failure, Location, Output, Probe, Provisioner, ReadError, Request};

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
                    files.insert(path, fs::read(entry.path())?);
                }
            }
        }
        Ok(Self(files))
    }
}

impl Content for Bundle {
    fn digest(&self) -> String {
        // Natively nothing depends on it but provisioners that put it into an object.
        format!("sha256:{:064x}", self.0.len())
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

/// Keeps what is emitted.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// The objects, as emitted.
    pub objects: Vec<Emitted>,
    /// The probes.
    pub probes: Vec<Probe>,
    /// The findings that did not stop the release.
    pub findings: Vec<Diagnostic>,
    identities: BTreeSet<[String; 4]>,
}

impl Output for Recorder {
    fn emit(&mut self, object: &[u8], stage: Option<u32>, origin: Option<Location>) -> Result<(), EmitError> {
        let value: Value = serde_json::from_slice(object).map_err(|_| EmitError::Malformed)?;
        let identity = identity(&value).ok_or(EmitError::Malformed)?;
        if !self.identities.insert(identity) {
            return Err(EmitError::Duplicate);
        }
        self.objects.push(Emitted { value, stage, origin });
        Ok(())
    }

    fn probe(&mut self, probe: &Probe) -> Result<(), EmitError> {
        self.probes.push(probe.clone());
        Ok(())
    }

    fn report(&mut self, finding: &Diagnostic) {
        self.findings.push(finding.clone());
    }
}

/// Group, kind, namespace and name: what makes an object the same object.
fn identity(value: &Value) -> Option<[String; 4]> {
    let text = |pointer: &str| value.pointer(pointer)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let api_version = text("/apiVersion")?;
    let group = api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
    Some([group, text("/kind")?, text("/metadata/namespace").unwrap_or_default(), text("/metadata/name")?])
}

/// Provisions a bundle.
///
/// # Errors
/// The failure of the provisioner.
pub fn run<P: Provisioner>(content: &dyn Content, request: &Request) -> Result<Recorder, Failure> {
    let mut recorder = Recorder::default();
    P::provision(request, content, &mut recorder)?;
    Ok(recorder)
}
