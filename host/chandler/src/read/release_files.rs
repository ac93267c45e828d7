//! The files that say what a version of Chandler would do: its provisioners, CRDs and roles. They are in its image, for readers that must not
//! run the program in the image, and `chandler provisioners --to` writes them.
//!
//! Everything that is read is untrusted: sizes and counts are bounded, digests are verified, and nothing is run but components in the sandbox.

use std::collections::BTreeMap;

use chandler_builtin::BUILTINS;
use chandler_core::{Content, Digest};
use chandler_engine::{EngineOptions, Facts, LoadError};
use chandler_manifests::{ManifestsError, Profile, Settings};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The label of an image that names the directory of these files. `cargo xtask dist` sets it.
pub const LABEL: &str = "dev.chandler.release";
/// The file that lists the others.
pub const INDEX: &str = "release.json";
/// The format of [`INDEX`]: it changes only if earlier versions of this command could not read it.
const FORMAT: u32 = 1;
/// The first minor version of Kubernetes 1 that this version supports.
const KUBERNETES_MINOR: u32 = 30;

/// The largest [`INDEX`], in bytes.
const INDEX_BYTES: u64 = 64 << 10;
/// The largest file with objects, in bytes; the CRDs of this version have 300 KiB.
const OBJECTS_BYTES: u64 = 8 << 20;
/// The most objects in such a file.
const OBJECTS: usize = 500;
/// The most provisioners.
const PROVISIONERS: usize = 16;
/// The longest name, version or format, in bytes.
const NAME_BYTES: usize = 100;

/// The text of [`INDEX`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    format: u32,
    version: String,
    kubernetes_minor: u32,
    /// In the order in which they detect formats.
    provisioners: Vec<Listed>,
    crds: Checked,
    roles: Checked,
}

/// A provisioner that a version of Chandler contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The class.
    pub class: String,
    /// The name of the format.
    pub format: String,
    /// The version of the contract that the component is built against.
    pub contract: String,
    /// The size of the component in bytes.
    pub size: u64,
    /// The file, and the digest of the component.
    #[serde(flatten)]
    pub checked: Checked,
}

/// A file with its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The path below the directory of [`INDEX`].
    pub file: String,
    /// The digest of its bytes.
    pub digest: String,
}

/// What a version of Chandler contains.
pub struct ReleaseFiles {
    /// The version.
    pub version: String,
    /// The first minor version of Kubernetes 1 that it supports.
    pub kubernetes_minor: u32,
    /// The provisioners with their components, in the order in which they detect formats.
    pub provisioners: Vec<(Listed, Vec<u8>)>,
    /// The CRDs.
    pub crds: Vec<Value>,
    /// The ClusterRoles and Roles of the controller.
    pub roles: Vec<Value>,
}

/// Why the files of a version cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseFilesError {
    /// A file is missing or cannot be read.
    #[error("{file} cannot be read: {message}")]
    File {
        /// The file.
        file: String,
        /// Why.
        message: String,
    },
    /// A file exceeds a limit.
    #[error("{file} is larger than {limit} bytes")]
    TooLarge {
        /// The file.
        file: String,
        /// The limit.
        limit: u64,
    },
    /// There are too many of something.
    #[error("{file} lists more than {limit} {what}")]
    TooMany {
        /// The file.
        file: String,
        /// What.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A file is not what the index says.
    #[error("{0} has another digest than release.json says")]
    Digest(String),
    /// A text is not a name.
    #[error("release.json has {0:?} where a name or a version belongs")]
    Name(String),
    /// The index has another format.
    #[error("release.json has format {0}, and this command knows format {FORMAT}: use the command of the new version")]
    Format(u32),
    /// A component of this program is not valid, which is a bug.
    #[error(transparent)]
    Component(#[from] LoadError),
    /// The manifests in this program are wrong, which is a bug.
    #[error(transparent)]
    Manifests(#[from] ManifestsError),
    /// An object could not be serialized, which is a bug.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// The provisioners that this program contains.
///
/// # Errors
/// A component is not valid, which is a bug.
pub fn embedded() -> Result<Vec<Listed>, ReleaseFilesError> {
    BUILTINS
        .iter()
        .map(|builtin| {
            let name = builtin.class.rsplit('-').next().unwrap_or(builtin.class);
            Ok(Listed {
                class: builtin.class.to_owned(),
                format: builtin.format.to_owned(),
                contract: Facts::of(builtin.component)?.contract,
                size: builtin.component.len() as u64,
                checked: Checked {
                    file: format!("provisioners/{name}.wasm"),
                    digest: Digest::of(builtin.component).to_string(),
                },
            })
        })
        .collect()
}

/// The files of this version, by path.
///
/// # Errors
/// Something in this program is not valid, which is a bug.
pub fn files() -> Result<BTreeMap<String, Vec<u8>>, ReleaseFilesError> {
    let mut files = BTreeMap::new();
    let provisioners = embedded()?;
    for (listed, builtin) in provisioners.iter().zip(BUILTINS) {
        files.insert(listed.checked.file.clone(), builtin.component.to_vec());
    }
    let crds: Vec<Value> = chandler_api::crds().iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    let roles = chandler_manifests::objects(&Settings::of(Profile::Standalone))?;
    let is_role = |object: &Value| matches!(kind(object), "ClusterRole" | "Role");
    let roles: Vec<Value> = roles.into_iter().filter(is_role).collect();
    let mut list = |file: &str, objects: Vec<Value>| -> Result<Checked, ReleaseFilesError> {
        let bytes = serde_json::to_vec_pretty(&json!({"apiVersion": "v1", "kind": "List", "items": objects}))?;
        let checked = Checked { file: file.to_owned(), digest: Digest::of(&bytes).to_string() };
        files.insert(file.to_owned(), bytes);
        Ok(checked)
    };
    let index = Index {
        format: FORMAT,
        version: chandler_manifests::VERSION.to_owned(),
        kubernetes_minor: KUBERNETES_MINOR,
        provisioners,
        crds: list("crds.json", crds)?,
        roles: list("roles.json", roles)?,
    };
    files.insert(INDEX.to_owned(), serde_json::to_vec_pretty(&index)?);
    Ok(files)
}

/// Reads the files of a version. Fields of the index that this command does not know are ignored.
///
/// # Errors
/// A file is missing, is damaged or exceeds a limit.
pub fn read(content: &dyn Content) -> Result<ReleaseFiles, ReleaseFilesError> {
    let index: Value = parsed(INDEX, &bytes(content, INDEX, INDEX_BYTES)?)?;
    // First, since another format may have other fields.
    let format = index.get("format").and_then(Value::as_u64).unwrap_or_default();
    if format != u64::from(FORMAT) {
        return Err(ReleaseFilesError::Format(u32::try_from(format).unwrap_or(u32::MAX)));
    }
    let index: Index = serde_json::from_value(index)
        .map_err(|error| ReleaseFilesError::File { file: INDEX.to_owned(), message: error.to_string() })?;
    if index.provisioners.len() > PROVISIONERS {
        let file = INDEX.to_owned();
        return Err(ReleaseFilesError::TooMany { file, what: "provisioners", limit: PROVISIONERS });
    }
    check_name(&index.version)?;
    let mut provisioners = Vec::new();
    for listed in index.provisioners {
        [&listed.class, &listed.format, &listed.contract].into_iter().try_for_each(|text| check_name(text))?;
        let component = verified(content, &listed.checked, EngineOptions::default().component_bytes)?;
        provisioners.push((listed, component));
    }
    Ok(ReleaseFiles {
        version: index.version,
        kubernetes_minor: index.kubernetes_minor,
        provisioners,
        crds: objects(content, &index.crds)?,
        roles: objects(content, &index.roles)?,
    })
}

fn kind(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

/// Names and versions are shown, and compared with names of the cluster.
fn check_name(text: &str) -> Result<(), ReleaseFilesError> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-+_".contains(&byte);
    if text.is_empty() || text.len() > NAME_BYTES || !text.bytes().all(is_part) {
        return Err(ReleaseFilesError::Name(text.chars().take(NAME_BYTES).collect()));
    }
    Ok(())
}

/// A file of at most `limit` bytes.
fn bytes(content: &dyn Content, file: &str, limit: u64) -> Result<Vec<u8>, ReleaseFilesError> {
    let most = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
    let failed = |message: String| ReleaseFilesError::File { file: file.chars().take(200).collect(), message };
    let bytes = content.read(file, 0, most).map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > limit {
        return Err(ReleaseFilesError::TooLarge { file: file.to_owned(), limit });
    }
    Ok(bytes)
}

fn verified(content: &dyn Content, checked: &Checked, limit: u64) -> Result<Vec<u8>, ReleaseFilesError> {
    let bytes = bytes(content, &checked.file, limit)?;
    if Digest::of(&bytes).as_str() != checked.digest {
        return Err(ReleaseFilesError::Digest(checked.file.clone()));
    }
    Ok(bytes)
}

fn parsed(file: &str, bytes: &[u8]) -> Result<Value, ReleaseFilesError> {
    let failed =
        |error: serde_json::Error| ReleaseFilesError::File { file: file.to_owned(), message: error.to_string() };
    serde_json::from_slice(bytes).map_err(failed)
}

/// The objects of a list.
fn objects(content: &dyn Content, checked: &Checked) -> Result<Vec<Value>, ReleaseFilesError> {
    let file = checked.file.clone();
    let mut list = parsed(&file, &verified(content, checked, OBJECTS_BYTES)?)?;
    let Some(Value::Array(items)) = list.get_mut("items").map(Value::take) else {
        return Err(ReleaseFilesError::File { file, message: "it has no items".to_owned() });
    };
    if items.len() > OBJECTS {
        return Err(ReleaseFilesError::TooMany { file, what: "objects", limit: OBJECTS });
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use chandler_core::content::MemoryContent;
    use proptest::prelude::*;

    use super::*;

    fn changed(change: impl FnOnce(&mut BTreeMap<String, Vec<u8>>)) -> Result<ReleaseFiles, ReleaseFilesError> {
        let mut files = files().unwrap();
        change(&mut files);
        read(&MemoryContent::new(files))
    }

    fn error(change: impl FnOnce(&mut BTreeMap<String, Vec<u8>>)) -> String {
        changed(change).err().unwrap().to_string()
    }

    fn edited(files: &mut BTreeMap<String, Vec<u8>>, edit: impl FnOnce(&mut Value)) {
        let mut index: Value = serde_json::from_slice(&files[INDEX]).unwrap();
        edit(&mut index);
        files.insert(INDEX.to_owned(), serde_json::to_vec(&index).unwrap());
    }

    #[test]
    fn the_files_of_this_version_are_read_as_written() {
        let read = changed(|_| ()).unwrap();
        assert_eq!(read.version, chandler_manifests::VERSION);
        let classes: Vec<&str> = read.provisioners.iter().map(|(listed, _)| listed.class.as_str()).collect();
        assert_eq!(classes, BUILTINS.iter().map(|builtin| builtin.class).collect::<Vec<_>>(), "in order of detection");
        for ((listed, component), builtin) in read.provisioners.iter().zip(BUILTINS) {
            assert_eq!((component.as_slice(), listed.size), (builtin.component, component.len() as u64));
            assert_eq!(listed.contract, "0.1.0");
        }
        assert_eq!(read.crds.len(), chandler_api::crds().len());
        assert!(read.roles.len() > 3, "{}", read.roles.len());
        // A later version adds fields, and this command ignores them.
        assert!(changed(|files| edited(files, |index| index["later"] = json!({"a": 1}))).is_ok());
    }

    #[test]
    fn files_that_are_damaged_missing_or_too_large_are_refused() {
        assert_eq!(error(|files| drop(files.remove(INDEX))).split(':').next().unwrap(), "release.json cannot be read");
        let altered = error(|files| files.get_mut("provisioners/plain.wasm").unwrap().push(0));
        assert_eq!(altered, "provisioners/plain.wasm has another digest than release.json says");
        let missing = error(|files| drop(files.remove("crds.json")));
        assert!(missing.starts_with("crds.json cannot be read: "), "{missing}");
        let large = error(|files| drop(files.insert(INDEX.to_owned(), vec![b' '; 1 << 20])));
        assert_eq!(large, "release.json is larger than 65536 bytes");
        let format = error(|files| edited(files, |index| *index = json!({"format": 2})));
        assert!(format.starts_with("release.json has format 2"), "{format}");
        let name = error(|files| edited(files, |index| index["version"] = json!("1\u{1b}[2J")));
        assert_eq!(name, "release.json has \"1\\u{1b}[2J\" where a name or a version belongs");
        let many = error(|files| {
            edited(files, |index| index["provisioners"] = json!(vec![index["provisioners"][0].clone(); 17]));
        });
        assert_eq!(many, "release.json lists more than 16 provisioners");
    }

    proptest! {
        #[test]
        fn no_index_panics(text in "\\PC{0,200}", number in any::<u32>()) {
            drop(read(&MemoryContent::new([(INDEX, text.clone().into_bytes())])));
            let index = json!({"format": 1, "version": text, "kubernetesMinor": number, "provisioners": [], "crds":
                {"file": text, "digest": text}, "roles": {"file": text, "digest": text}});
            drop(read(&MemoryContent::new([(INDEX, serde_json::to_vec(&index).unwrap())])));
        }
    }
}
