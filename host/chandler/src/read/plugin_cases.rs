//! The cases of a provisioner: directories with a bundle, a request, and what the provisioner returns.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use chandler_conformance::{Case, Rendering};
use chandler_core::{Request, Target};
use chandler_yaml::{Limits, from_node, parse};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Map;

use super::{configuration::Configuration, file, naming, origin::Origin, registry_settings::RegistryOptions, source};
use crate::{CommandError, view::text::one_line};

/// The directory of the bundle in the directory of a case.
pub const BUNDLE: &str = "bundle";
/// The request.
const REQUEST: &str = "case.yaml";
/// The configuration, in one of these files.
const CONFIGURATIONS: [&str; 2] = ["config.yaml", "config.json"];
/// What the provisioner returns.
pub const EXPECTED: &str = "expected.yaml";
/// The largest file of a case, except for the files of the bundle, in bytes.
const FILE_BYTES: u64 = 64 << 20;
/// The most values in such a file.
const VALUES: usize = 4_000_000;

/// A case on the disk.
pub struct StoredCase {
    /// The bundle and the request.
    pub case: Case,
    /// What the provisioner must return; `None` if the case does not say so yet.
    pub expected: Option<Rendering>,
    /// The file that has it.
    pub file: PathBuf,
}

/// The request of a case. Everything has a default.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct CaseFile {
    name: Option<String>,
    namespace: Option<String>,
    kubernetes_version: String,
    api_kinds: Vec<String>,
}

/// The directories of cases: this one, or those below it, by name.
pub fn directories(directory: &Path) -> Result<Vec<PathBuf>, CommandError> {
    if directory.join(BUNDLE).is_dir() {
        return Ok(vec![directory.to_owned()]);
    }
    let mut cases = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| unreadable(directory, &error))? {
        let path = entry.map_err(|error| unreadable(directory, &error))?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if is_hidden || !path.is_dir() {
            continue;
        }
        if !path.join(BUNDLE).is_dir() {
            return Err(CommandError::usage(format!("the case {} has no bundle", shown(&path)))
                .hint(format!("a case is a directory with the files of a bundle in {BUNDLE}/")));
        }
        cases.push(path);
    }
    cases.sort();
    if cases.is_empty() {
        return Err(CommandError::usage(format!("{} has no cases", shown(directory))).hint(format!(
            "a case is a directory with the files of a bundle in {BUNDLE}/: `{}/NAME/{BUNDLE}`",
            shown(directory)
        )));
    }
    Ok(cases)
}

/// Reads a case.
pub async fn read(directory: &Path, cache: &Path) -> Result<StoredCase, CommandError> {
    let name = directory.file_name().map_or_else(|| shown(directory), |name| one_line(&name.to_string_lossy()));
    let request = request(directory)?;
    let bundle = source::open(&Origin::Directory(directory.join(BUNDLE)), cache, &RegistryOptions::default()).await?;
    let file = directory.join(EXPECTED);
    let expected = optional(&file, yaml::<Rendering>)?;
    Ok(StoredCase { case: Case { name, content: bundle.content, request }, expected, file })
}

fn request(directory: &Path) -> Result<Request, CommandError> {
    let CaseFile { name, namespace, kubernetes_version, mut api_kinds } =
        optional(&directory.join(REQUEST), yaml)?.unwrap_or_default();
    let mut config = Map::new();
    for file in CONFIGURATIONS {
        if let Some(configuration) = optional(&directory.join(file), Configuration::read)? {
            config = configuration.value;
        }
    }
    let name = name.unwrap_or_else(|| naming::deployment(&directory.to_string_lossy()));
    let namespace = namespace.unwrap_or_else(|| naming::namespace(&name));
    api_kinds.sort_unstable();
    Ok(Request { config, target: Target { name, namespace, kubernetes_version, api_kinds } })
}

/// What a file holds; `None` if it does not exist.
fn optional<T>(path: &Path, read: impl FnOnce(&Path) -> Result<T, CommandError>) -> Result<Option<T>, CommandError> {
    if path.exists() { read(path).map(Some) } else { Ok(None) }
}

/// The one YAML document of a file.
fn yaml<T: DeserializeOwned>(path: &Path) -> Result<T, CommandError> {
    let bytes = file::read(path, FILE_BYTES).map_err(|error| unreadable(path, &error))?;
    document(&bytes).map_err(|problem| {
        CommandError::usage(format!("{} is invalid", shown(path)))
            .cause(problem)
            .hint("docs/plugins.md describes the files of a case; `chandler plugin test --bless` writes expected.yaml")
    })
}

/// The one YAML document of a text.
pub fn document<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let limits = Limits { bytes: bytes.len(), nodes: VALUES, ..Limits::default() };
    let documents =
        parse(bytes, &limits).map_err(|error| format!("{}:{}: {}", error.line, error.column, error.message))?;
    let [document] = documents.as_slice() else {
        return Err(format!("it has {} YAML documents instead of one", documents.len()));
    };
    from_node(&document.root).map_err(|error| error.to_string())
}

fn unreadable(path: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(format!("failed to read {}", shown(path))).because(error)
}

fn shown(path: &Path) -> String {
    one_line(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_the_directories_with_a_bundle() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path();
        assert!(directories(root).unwrap_err().to_string().contains("has no cases"));
        for case in ["b", "a"] {
            fs::create_dir_all(root.join(case).join(BUNDLE)).unwrap();
        }
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join("README.md"), "").unwrap();
        assert_eq!(directories(root).unwrap(), [root.join("a"), root.join("b")]);
        assert_eq!(directories(&root.join("a")).unwrap(), [root.join("a")]);
        fs::create_dir(root.join("mistyped")).unwrap();
        assert!(directories(root).unwrap_err().to_string().contains("mistyped has no bundle"));
        assert!(directories(&root.join("absent")).is_err());
    }

    #[test]
    fn the_request_has_defaults_and_mistakes_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let case = home.path().join("harbour");
        fs::create_dir(&case).unwrap();
        let target = request(&case).unwrap().target;
        assert_eq!((target.name.as_str(), target.namespace.as_str()), ("harbour", "harbour-system"));
        fs::write(
            case.join(REQUEST),
            "namespace: port\nkubernetesVersion: v1.36.0\napiKinds: [v1/Pod, apps/v1/Deployment]\n",
        )
        .unwrap();
        fs::write(case.join("config.json"), r#"{"a": 1}"#).unwrap();
        let read = request(&case).unwrap();
        assert_eq!(read.target.api_kinds, ["apps/v1/Deployment", "v1/Pod"]);
        assert_eq!((read.target.namespace.as_str(), read.target.kubernetes_version.as_str()), ("port", "v1.36.0"));
        assert_eq!(read.config["a"], 1);
        fs::write(case.join(REQUEST), "kubernetes: v1.36.0\n").unwrap();
        let refused = request(&case).unwrap_err().to_string();
        assert!(refused.contains("unknown field"), "{refused}");
        assert!(document::<CaseFile>(b"a: 1\n---\nb: 1\n").unwrap_err().contains("2 YAML documents"));
    }
}
