//! Secrets with generated values.
//!
//! The output of a provisioner is a function of the bundle, so a password in it would be the same for everyone who has
//! the bundle. Instead, a provisioner emits a Secret with [`GENERATE`], which lists keys and the kind of value for
//! each. Before the release is applied, the host fills in the values: the existing values if the Secret is in the cluster, else random ones
//! from the operating system. A value is generated once and kept as long as its Secret; it is stored in the Secret and in the applied
//! release, and nowhere else.
//!
//! Other Secrets of the release, and other keys of the same one, may contain generated values in their text: [`EXPAND`] lists these keys, and
//! the text refers to a value by its Secret and key. These keys always follow the value.

use std::{collections::BTreeMap, io};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_core::{Object, ObjectKey, Release};
use serde_json::{Map, Value, json};

use self::expansion::Expansion;
pub use self::{
    expansion::{EXPAND, ExpansionError},
    kind::{Kind, KindError},
};
use crate::declaration::lines;

mod expansion;
mod kind;

/// On a Secret: the keys that the host generates, as a comma-separated list of `KEY=KIND[:LENGTH]` such as
/// `password=password:32, token=hex`.
pub const GENERATE: &str = "secrets.chandler.dev/generate";

/// The most Secrets of one release with generated values. Each takes one API request in each reconcile.
const MAX_SECRETS: usize = 100;
/// The most generated keys of one Secret.
const MAX_KEYS: usize = 32;
/// The longest key name that the API server accepts.
const KEY_BYTES: usize = 253;
/// The longest existing value that is kept, in bytes of base64.
const VALUE_BYTES: usize = 64 << 10;
/// The most errors that a message lists.
const MAX_LISTED: usize = 10;

/// Why the requests of a release are invalid. Only a change of the release resolves this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeneratedError {
    /// The annotation is not supported on this kind.
    #[error("{0}: annotation {GENERATE} is supported only on Secrets")]
    Kind(Box<ObjectKey>),
    /// An entry of the annotation is invalid.
    #[error("{object}: annotation {GENERATE} contains {part:?}: {problem}")]
    Part {
        /// The Secret.
        object: Box<ObjectKey>,
        /// The entry.
        part: String,
        /// What is wrong with it.
        problem: KindError,
    },
    /// An entry does not start with a key.
    #[error(
        "{object}: annotation {GENERATE} contains {part:?}; it must be KEY=KIND[:LENGTH], where KEY consists of letters, digits, `-`, `_` and `.`"
    )]
    Key {
        /// The Secret.
        object: Box<ObjectKey>,
        /// The entry.
        part: String,
    },
    /// The annotation sets a key that the annotation or the data of the Secret already sets.
    #[error("{object}: annotation {GENERATE} sets key {key:?}, which is already set")]
    Twice {
        /// The Secret.
        object: Box<ObjectKey>,
        /// The key.
        key: String,
    },
    /// The release requests too many values.
    #[error(
        "the release requests more than {MAX_SECRETS} Secrets with generated values, or more than {MAX_KEYS} keys of one Secret"
    )]
    TooMany,
    /// The text of a key does not refer to generated values as it must.
    #[error("{object}: annotation {EXPAND}: {problem}")]
    Expansion {
        /// The Secret.
        object: Box<ObjectKey>,
        /// What is wrong.
        problem: ExpansionError,
    },
    /// Several errors.
    #[error("{}", lines(.0, MAX_LISTED))]
    Several(Vec<GeneratedError>),
}

/// Why the values of a release could not be filled in.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The source of randomness failed.
    #[error(transparent)]
    Random(#[from] io::Error),
    /// The texts with generated values take too much space, because a live value is long.
    #[error("the keys that annotation {EXPAND} lists have more than {} MiB with the generated values", .0 >> 20)]
    TooLarge(usize),
}

/// A Secret with generated values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedSecret {
    /// The Secret, with its namespace.
    pub secret: ObjectKey,
    /// Its index in the release.
    index: usize,
    /// Its keys with generated values.
    keys: BTreeMap<String, Kind>,
}

/// The Secrets of a release with generated values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeneratedSecrets {
    secrets: Vec<GeneratedSecret>,
    expansions: Vec<Expansion>,
}

impl GeneratedSecrets {
    /// The requests of a release; objects without a namespace are in `install_namespace`.
    pub fn of(release: &Release, install_namespace: &str) -> Result<Self, GeneratedError> {
        let (mut secrets, mut faults) = (Vec::new(), Vec::new());
        for (index, object) in release.objects().iter().enumerate() {
            let Some(annotation) = object.annotation(GENERATE) else { continue };
            match GeneratedSecret::read(object, index, annotation, install_namespace) {
                Ok(secret) => secrets.push(secret),
                Err(fault) => faults.push(fault),
            }
        }
        if secrets.len() > MAX_SECRETS {
            faults.push(GeneratedError::TooMany);
        }
        let mut expansions = Vec::new();
        // References to the keys of a Secret whose annotation is invalid would be reported as well.
        if faults.is_empty() {
            for (index, object) in release.objects().iter().enumerate() {
                match Expansion::read(object, index, &secrets, install_namespace) {
                    Ok(found) => expansions.extend(found),
                    Err(fault) => faults.push(fault),
                }
            }
        }
        match faults.len() {
            0 => Ok(Self { secrets, expansions }),
            1 => Err(faults.remove(0)),
            _ => Err(GeneratedError::Several(faults)),
        }
    }

    /// Whether nothing is requested.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// The Secrets.
    pub fn secrets(&self) -> &[GeneratedSecret] {
        &self.secrets
    }

    /// The release to apply. `live` contains the existing Secrets in the order of [`secrets`](Self::secrets): their
    /// values are kept, and missing ones are generated from the source of randomness.
    ///
    /// # Errors
    /// If the source fails, or if the texts with the values take too much space.
    pub fn fill(
        &self,
        release: &Release,
        live: &[Option<Value>],
        random: &mut dyn FnMut(&mut [u8]) -> io::Result<()>,
    ) -> Result<Release, FillError> {
        let mut objects = release.objects().to_vec();
        for (secret, live) in self.secrets.iter().zip(live) {
            if let Some(object) = objects.get_mut(secret.index) {
                secret.fill(object, live.as_ref(), random)?;
            }
        }
        expansion::expand(&self.expansions, &self.secrets, &mut objects)?;
        Ok(Release::new(objects, release.probes().to_vec(), release.findings().to_vec())
            .described(release.description().clone()))
    }
}

impl GeneratedSecret {
    fn read(object: &Object, index: usize, annotation: &str, install_namespace: &str) -> Result<Self, GeneratedError> {
        let key = || Box::new(object.key.clone());
        if (object.key.group.as_str(), object.key.kind.as_str()) != ("", "Secret") {
            return Err(GeneratedError::Kind(key()));
        }
        let mut keys = BTreeMap::new();
        for part in annotation.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let shown = || part.chars().take(100).collect::<String>();
            let named = part.split_once('=').filter(|(name, _)| is_key(name));
            let (name, kind) = named.ok_or_else(|| GeneratedError::Key { object: key(), part: shown() })?;
            let kind = kind.parse();
            let kind = kind.map_err(|problem| GeneratedError::Part { object: key(), part: shown(), problem })?;
            let given = ["data", "stringData"].iter().any(|data| has_entry(&object.value, data, name));
            if given || keys.insert(name.to_owned(), kind).is_some() {
                return Err(GeneratedError::Twice { object: key(), key: name.to_owned() });
            }
            if keys.len() > MAX_KEYS {
                return Err(GeneratedError::TooMany);
            }
        }
        let mut secret = object.key.clone();
        secret.namespace.get_or_insert_with(|| install_namespace.to_owned());
        Ok(Self { secret, index, keys })
    }

    fn fill(
        &self,
        object: &mut Object,
        live: Option<&Value>,
        random: &mut dyn FnMut(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut values = Map::new();
        for (name, kind) in &self.keys {
            let value = match live.and_then(|live| kept(live, name)) {
                Some(kept) => kept.to_owned(),
                None => STANDARD.encode(kind.make(random)?),
            };
            values.insert(name.clone(), json!(value));
        }
        match object.value.get_mut("data") {
            Some(Value::Object(data)) => data.extend(values),
            _ => {
                object.value.insert("data".to_owned(), Value::Object(values));
            }
        }
        Ok(())
    }
}

/// The existing value of a key in a Secret. Empty or malformed values count as missing.
fn kept<'a>(live: &'a Value, name: &str) -> Option<&'a str> {
    let value = live.get("data")?.get(name)?.as_str()?;
    let usable = value.len() <= VALUE_BYTES && STANDARD.decode(value).is_ok_and(|bytes| !bytes.is_empty());
    usable.then_some(value)
}

fn has_entry(value: &Map<String, Value>, data: &str, name: &str) -> bool {
    value.get(data).and_then(|data| data.get(name)).is_some()
}

/// Whether the API server accepts a name as the key of a Secret.
fn is_key(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= KEY_BYTES && name.bytes().all(legal) && !name.starts_with("..") && name != "."
}

/// The random number generator of the operating system.
pub fn operating_system(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let filled = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())?;
        bytes = bytes.get_mut(filled..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
