//! Packs the files of a bundle into ConfigMaps, so that a directory reaches a cluster without a registry. Pure.
//!
//! A ConfigMap holds files of one directory: its keys cannot contain a slash. Its name contains the digest of the content, so that the
//! same content has the same names, and changed content others.

use std::collections::BTreeMap;

use chandler_api::{ConfigMapSource, LocalObjectReference};
use chandler_core::{Content, ReadError};
use k8s_openapi::{ByteString, api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};

/// The label on ConfigMaps with files: the name of the BundleDeployment or the Catalog.
pub const CONTENT_OF: &str = "chandler.dev/content-of";
/// The largest file, in bytes: the API server accepts no more in one ConfigMap.
const LARGEST_FILE: u64 = 1 << 20;
/// The bytes of several files in one ConfigMap. Less than the API server accepts, since keys count for etcd, too.
const FULL: usize = 900 << 10;
/// The most ConfigMaps of one bundle: the limit in the CRD of BundleDeployments.
const MOST: usize = 256;
/// The longest key, in characters.
const LONGEST_KEY: usize = 253;
/// How many entries are read at once.
const PAGE: usize = 1000;
/// The number of digits of the digest in a name.
const DIGITS: usize = 12;

/// The object that files are packed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User<'a> {
    /// The BundleDeployment of this name.
    BundleDeployment(&'a str),
    /// The Catalog of this name.
    Catalog(&'a str),
}

impl User<'_> {
    fn name(&self) -> &str {
        let (Self::BundleDeployment(name) | Self::Catalog(name)) = self;
        name
    }

    /// What the names of its ConfigMaps begin with.
    fn prefix(&self) -> String {
        match self {
            Self::BundleDeployment(name) => (*name).to_owned(),
            Self::Catalog(name) => format!("catalog-{name}"),
        }
    }

    /// The annotation that lists the objects of its kind that may use a ConfigMap.
    fn grant(&self) -> &'static str {
        match self {
            Self::BundleDeployment(_) => "chandler.dev/bundledeployments",
            Self::Catalog(_) => "chandler.dev/catalogs",
        }
    }
}

/// The files of a bundle in ConfigMaps, and the source that refers to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packed {
    /// The ConfigMaps.
    pub config_maps: Vec<ConfigMap>,
    /// The value of `spec.source.configMaps`.
    pub sources: Vec<ConfigMapSource>,
}

/// Why files cannot be packed into ConfigMaps.
#[derive(Debug, thiserror::Error)]
pub enum PackingError {
    /// There are no files.
    #[error("there are no files")]
    Empty,
    /// A file does not fit.
    #[error("{path} has {size} bytes; a ConfigMap holds at most {LARGEST_FILE}")]
    TooLarge {
        /// The file.
        path: String,
        /// Its size.
        size: u64,
    },
    /// There are too many files or directories.
    #[error("the files ({bytes} bytes) need {needed} ConfigMaps; a source refers to at most {MOST}")]
    TooMany {
        /// The size of all files.
        bytes: u64,
        /// The number of ConfigMaps.
        needed: usize,
    },
    /// The name of a file cannot be a key.
    #[error("{0:?} cannot be in a ConfigMap: a key has at most {LONGEST_KEY} letters, digits and `-`, `_` or `.`")]
    Name(String),
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Packs the files for this object.
pub fn pack(user: User<'_>, system_namespace: &str, content: &dyn Content) -> Result<Packed, PackingError> {
    let groups = groups(content)?;
    if groups.is_empty() {
        return Err(PackingError::Empty);
    }
    if groups.len() > MOST {
        return Err(PackingError::TooMany { bytes: content.total_bytes(), needed: groups.len() });
    }
    let digits: String = content.digest().hex().chars().take(DIGITS).collect();
    let mut packed = Packed::default();
    for (number, Group { directory, files, .. }) in groups.into_iter().enumerate() {
        let name = format!("{}-{digits}-{number}", user.prefix());
        packed.sources.push(ConfigMapSource {
            config_map: LocalObjectReference { name: name.clone() },
            path: (!directory.is_empty()).then_some(directory),
        });
        packed.config_maps.push(config_map(user, system_namespace, name, files));
    }
    Ok(packed)
}

/// Files of one directory that share a ConfigMap.
struct Group {
    directory: String,
    bytes: usize,
    files: BTreeMap<String, Vec<u8>>,
}

fn groups(content: &dyn Content) -> Result<Vec<Group>, PackingError> {
    // The last group of each directory is the one that may have room.
    let mut groups: BTreeMap<String, Vec<Group>> = BTreeMap::new();
    let mut after: Option<String> = None;
    loop {
        let page = content.entries("", after.as_deref(), PAGE);
        let Some(last) = page.last() else { break };
        after = Some(last.path.clone());
        for entry in page {
            let (directory, name) = entry.path.rsplit_once('/').unwrap_or(("", &entry.path));
            if !is_key(name) {
                return Err(PackingError::Name(entry.path));
            }
            if entry.size > LARGEST_FILE {
                return Err(PackingError::TooLarge { path: entry.path, size: entry.size });
            }
            let bytes = content.read_all(&entry.path)?;
            let of_directory = groups.entry(directory.to_owned()).or_default();
            if of_directory.last().is_none_or(|group| group.bytes + bytes.len() > FULL) {
                of_directory.push(Group { directory: directory.to_owned(), bytes: 0, files: BTreeMap::new() });
            }
            if let Some(group) = of_directory.last_mut() {
                group.bytes += bytes.len();
                group.files.insert(name.to_owned(), bytes);
            }
        }
    }
    Ok(groups.into_values().flatten().collect())
}

fn is_key(name: &str) -> bool {
    let valid = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    // Kubernetes refuses `.`, `..` and what begins with `..`.
    valid && !name.is_empty() && name.len() <= LONGEST_KEY && name != "." && !name.starts_with("..")
}

fn config_map(user: User<'_>, namespace: &str, name: String, files: BTreeMap<String, Vec<u8>>) -> ConfigMap {
    let (mut data, mut binary_data) = (BTreeMap::new(), BTreeMap::new());
    for (key, bytes) in files {
        match String::from_utf8(bytes) {
            Ok(text) => drop(data.insert(key, text)),
            Err(error) => drop(binary_data.insert(key, ByteString(error.into_bytes()))),
        }
    }
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
            labels: Some([(CONTENT_OF.to_owned(), user.name().to_owned())].into()),
            annotations: Some([(user.grant().to_owned(), user.name().to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: (!data.is_empty()).then_some(data),
        binary_data: (!binary_data.is_empty()).then_some(binary_data),
        immutable: Some(true),
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::MemoryContent;

    use super::*;

    fn packed(files: &[(&str, Vec<u8>)]) -> Result<Packed, PackingError> {
        pack(User::BundleDeployment("harbour"), "chandler-system", &MemoryContent::new(files.iter().cloned()))
    }

    #[test]
    fn each_directory_has_its_config_map() {
        let packed = packed(&[
            ("manifests/a.yaml", b"a: 1".to_vec()),
            ("manifests/b.bin", vec![0xff]),
            ("metadata/annotations.yaml", b"b: 1".to_vec()),
            ("README", b"c".to_vec()),
        ])
        .unwrap();
        let paths: Vec<Option<&str>> = packed.sources.iter().map(|source| source.path.as_deref()).collect();
        assert_eq!(paths, [None, Some("manifests"), Some("metadata")]);
        let manifests = &packed.config_maps[1];
        assert_eq!(manifests.data.as_ref().unwrap()["a.yaml"], "a: 1");
        assert_eq!(manifests.binary_data.as_ref().unwrap()["b.bin"].0, [0xff]);
        assert_eq!(manifests.immutable, Some(true));
        assert_eq!(manifests.metadata.name.as_deref(), Some(packed.sources[1].config_map.name.as_str()));
        assert_eq!(manifests.metadata.annotations.as_ref().unwrap()["chandler.dev/bundledeployments"], "harbour");
    }

    #[test]
    fn names_change_with_the_content_only() {
        let name = |text: &str| packed(&[("a", text.into())]).unwrap().sources[0].config_map.name.clone();
        assert_eq!(name("x"), name("x"));
        assert_ne!(name("x"), name("y"));
        assert!(name("x").starts_with("harbour-") && name("x").ends_with("-0"), "{}", name("x"));
    }

    #[test]
    fn a_directory_that_is_too_large_for_one_config_map_has_several() {
        let packed = packed(&[("m/a", vec![b'a'; 600 << 10]), ("m/b", vec![b'b'; 600 << 10]), ("m/c", vec![b'c'; 10])]);
        let packed = packed.unwrap();
        let keys = |number: usize| {
            packed.config_maps[number].data.as_ref().unwrap().keys().map(String::as_str).collect::<Vec<_>>()
        };
        assert_eq!((packed.sources.len(), keys(0), keys(1)), (2, vec!["a"], vec!["b", "c"]));
    }

    #[test]
    fn what_no_config_map_holds_is_refused_by_name() {
        let refused = |files: &[(&str, Vec<u8>)]| packed(files).unwrap_err().to_string();
        insta::assert_snapshot!(refused(&[]), @"there are no files");
        insta::assert_snapshot!(refused(&[("m/a", vec![0; (1 << 20) + 1])]), @"m/a has 1048577 bytes; a ConfigMap holds at most 1048576");
        insta::assert_snapshot!(refused(&[("m/a b", vec![])]), @r#""m/a b" cannot be in a ConfigMap: a key has at most 253 letters, digits and `-`, `_` or `.`"#);
        let directories: Vec<String> = (0..300).map(|number| format!("{number}/a")).collect();
        let files: Vec<(&str, Vec<u8>)> = directories.iter().map(|path| (path.as_str(), vec![1])).collect();
        insta::assert_snapshot!(refused(&files), @"the files (300 bytes) need 300 ConfigMaps; a source refers to at most 256");
    }
}
