//! Runs a provisioner natively, with the checks of the host.
//!
//! [`run`] enforces what can be checked without the sandbox, with the host's default limits ([`Limits`]):
//!
//! | the host refuses | [`run`] refuses |
//! |---|---|
//! | invalid and duplicate objects | the same |
//! | more objects, bytes of objects, probes and bytes of probes than a limit | the same |
//! | reading more of the bundle than a limit | the same |
//! | a schema that is not JSON, and a probe without kind or rule | the same |
//! | a configuration that does not match the schema, and an invalid schema | with the feature `checks` the same, without the host's limits on the size of a schema and its patterns |
//! | expressions of a probe that are not CEL | with the feature `checks` the same, but not the host's limits on functions and steps |
//! | a failure without findings | the same |
//! | a call that takes too much time or memory, logs too much, or asks for secure randomness | nothing: this needs the sandbox, as in `chandler render --provisioner FILE.wasm` |
//!
//! The feature `checks` of this crate compiles a CEL interpreter and a JSON Schema validator, which takes minutes once. Tests of a
//! provisioner that emits probes or has a schema should use it:
//!
//! ```toml
//! [dev-dependencies]
//! chandler-sdk = { version = "0.1", features = ["checks"] }
//! ```
//!
//! See the example at the [top of this crate](crate).

mod reading;
mod recorder;
mod schema;

use std::{collections::BTreeMap, fs, io, path::Path};

use sha2::{Digest as _, Sha256};

pub use self::recorder::{Emitted, Recorder};
use crate::{Content, Entry, Failure, Provisioner, ReadError, Request};

/// A bundle in memory.
#[derive(Clone, Debug, Default)]
pub struct Bundle(BTreeMap<String, Vec<u8>>);

impl Bundle {
    /// A bundle with these files.
    pub fn new<P: Into<String>, B: Into<Vec<u8>>>(files: impl IntoIterator<Item = (P, B)>) -> Self {
        Self(files.into_iter().map(|(path, bytes)| (path.into(), bytes.into())).collect())
    }

    /// The regular files below a directory.
    ///
    /// # Errors
    /// I/O errors, and names that are not UTF-8.
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
                    // Links are followed, so that a test can link shared files.
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

/// The limits of one call. The defaults are the host's; an administrator may set others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one object as JSON. Default 3 MiB.
    pub object_bytes: u64,
    /// Bytes of all objects as JSON. Default 32 MiB.
    pub output_bytes: u64,
    /// Objects. Default 5000.
    pub objects: u32,
    /// Probes. Default 200.
    pub probes: u32,
    /// The least that may be read from a bundle, in bytes, however small it is. Default 64 MiB.
    pub read_bytes: u64,
    /// How often the whole bundle may be read. Default 4.
    pub read_factor: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            object_bytes: 3 << 20,
            output_bytes: 32 << 20,
            objects: 5000,
            probes: 200,
            read_bytes: 64 << 20,
            read_factor: 4,
        }
    }
}

/// Provisions a bundle with the host's default limits.
///
/// # Errors
/// The failure of the provisioner; [`Failure::InvalidConfig`] if the configuration does not match the schema;
/// [`Failure::Internal`] if the host would refuse the result for another reason.
pub fn run<P: Provisioner>(content: &dyn Content, request: &Request) -> Result<Recorder, Failure> {
    run_within::<P>(content, request, &Limits::default())
}

/// Provisions a bundle with these limits.
///
/// # Errors
/// Like [`run`].
pub fn run_within<P: Provisioner>(
    content: &dyn Content,
    request: &Request,
    limits: &Limits,
) -> Result<Recorder, Failure> {
    let refused = |reason: &str| Failure::internal(format!("the host refuses this: {reason}"));
    let content = reading::Counted::new(content, limits);
    let checked = P::config_schema(&content)
        .map(|schema| schema::check(schema.as_deref(), request.config()))
        .and_then(|checked| checked.map_err(|reason| refused(&reason)));
    let mut recorder = Recorder::new(limits.clone());
    let result = match &checked {
        Ok(_) => P::provision(request, &content, &mut recorder),
        Err(failure) => Err(failure.clone()),
    };
    if let Some(reason) = recorder.refusal().or_else(|| content.exceeded()) {
        return Err(refused(reason));
    }
    if let Err(failure) = &result
        && failure.diagnostics().is_empty()
    {
        return Err(refused("a failure without findings"));
    }
    // The host shows both. The provisioner's findings about its configuration are usually more specific.
    match (checked.unwrap_or_default(), result) {
        (mismatch, Ok(()) | Err(Failure::Internal(_) | Failure::Other { .. })) if !mismatch.is_empty() => {
            Err(Failure::InvalidConfig(mismatch))
        }
        (_, result) => result.map(|()| recorder),
    }
}

#[cfg(test)]
mod tests;
