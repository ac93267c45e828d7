//! Secrets whose values the host generates.
//!
//! A provisioner is a function of the bundle, so a password that it makes is the same for everyone who has the bundle. It
//! emits a Secret with [`GENERATE`] instead, which names keys and what each is to hold. On the way to the cluster the host
//! fills them: with what the Secret in the cluster holds already, else with randomness of the operating system. A value is
//! made once and kept as long as its Secret; it is in the Secret and in the release that is applied, and nowhere else.

use std::{collections::BTreeMap, io};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_core::{Object, ObjectKey, Release};
use serde_json::{Map, Value, json};

pub use self::kind::{Kind, KindError};
use crate::declaration::lines;

mod kind;

/// On a Secret: which keys the host fills, as `KEY=KIND[:LENGTH]` with commas between, such as `password=password:32,
/// token=hex`.
pub const GENERATE: &str = "secrets.chandler.dev/generate";

/// The most Secrets of one release with generated values. Each takes a request in each pass.
const MOST_SECRETS: usize = 100;
/// The most generated keys of one Secret.
const MOST_KEYS: usize = 32;
/// The longest name of a key that the API server takes.
const KEY_BYTES: usize = 253;
/// The longest value that is kept, in bytes as base64.
const VALUE_BYTES: usize = 64 << 10;
/// How many faults a message names.
const NAMED: usize = 10;

/// What is wrong with what a release asks for. Only another release helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeneratedError {
    /// The annotation is on a kind that has nothing to do with it.
    #[error("{0}: annotation {GENERATE} means nothing on this kind, want it on a Secret")]
    Kind(Box<ObjectKey>),
    /// A part of the annotation cannot be read.
    #[error("{object}: annotation {GENERATE} holds {part:?}: {problem}")]
    Part {
        /// The Secret.
        object: Box<ObjectKey>,
        /// The part.
        part: String,
        /// What is wrong with it.
        problem: KindError,
    },
    /// A part does not begin with the name of a key.
    #[error(
        "{object}: annotation {GENERATE} holds {part:?}, want KEY=KIND[:LENGTH] where KEY is a name of letters, digits, `-`, `_` and `.`"
    )]
    Key {
        /// The Secret.
        object: Box<ObjectKey>,
        /// The part.
        part: String,
    },
    /// A key is there twice, in the annotation or in it and in the data.
    #[error("{object}: annotation {GENERATE} names {key:?}, which is there already")]
    Twice {
        /// The Secret.
        object: Box<ObjectKey>,
        /// The key.
        key: String,
    },
    /// There are more than there may be.
    #[error(
        "the release asks for more than {MOST_SECRETS} Secrets with generated values, or one with more than {MOST_KEYS}"
    )]
    TooMany,
    /// Several of these.
    #[error("{}", lines(.0, NAMED))]
    Several(Vec<GeneratedError>),
}

/// A Secret with values that the host generates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedSecret {
    /// The Secret, with its namespace.
    pub secret: ObjectKey,
    /// Its position in the release.
    index: usize,
    keys: BTreeMap<String, Kind>,
}

/// The Secrets of a release with values that the host generates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeneratedSecrets(Vec<GeneratedSecret>);

impl GeneratedSecrets {
    /// What a release asks for; objects that name no namespace are in `install_namespace`.
    pub fn of(release: &Release, install_namespace: &str) -> Result<Self, GeneratedError> {
        let (mut secrets, mut faults) = (Vec::new(), Vec::new());
        for (index, object) in release.objects().iter().enumerate() {
            let Some(annotation) = object.annotation(GENERATE) else { continue };
            match GeneratedSecret::read(object, index, annotation, install_namespace) {
                Ok(secret) => secrets.push(secret),
                Err(fault) => faults.push(fault),
            }
        }
        if secrets.len() > MOST_SECRETS {
            faults.push(GeneratedError::TooMany);
        }
        match faults.len() {
            0 => Ok(Self(secrets)),
            1 => Err(faults.remove(0)),
            _ => Err(GeneratedError::Several(faults)),
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The Secrets.
    pub fn secrets(&self) -> &[GeneratedSecret] {
        &self.0
    }

    /// The release as it is applied, with the Secrets that are in the cluster, in the order of
    /// [`secrets`](Self::secrets). What they hold is kept; what they lack is taken from the source of randomness.
    ///
    /// # Errors
    /// When the source fails.
    pub fn fill(
        &self,
        release: &Release,
        live: &[Option<Value>],
        random: &mut dyn FnMut(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<Release> {
        let mut objects = release.objects().to_vec();
        for (secret, live) in self.0.iter().zip(live) {
            if let Some(object) = objects.get_mut(secret.index) {
                secret.fill(object, live.as_ref(), random)?;
            }
        }
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
            if keys.len() > MOST_KEYS {
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

/// What a Secret in the cluster holds under this name, as it stands there. What is empty or no base64 counts as nothing.
fn kept<'a>(live: &'a Value, name: &str) -> Option<&'a str> {
    let value = live.get("data")?.get(name)?.as_str()?;
    let usable = value.len() <= VALUE_BYTES && STANDARD.decode(value).is_ok_and(|bytes| !bytes.is_empty());
    usable.then_some(value)
}

fn has_entry(value: &Map<String, Value>, data: &str, name: &str) -> bool {
    value.get(data).and_then(|data| data.get(name)).is_some()
}

/// Whether the API server takes this name for a key of a Secret.
fn is_key(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= KEY_BYTES && name.bytes().all(legal) && !name.starts_with("..") && name != "."
}

/// Randomness of the operating system.
pub fn operating_system(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let filled = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())?;
        bytes = bytes.get_mut(filled..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
