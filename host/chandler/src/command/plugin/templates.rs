//! The files of a new provisioner. They are in sdk/templates, where the one in Rust is compiled and tested.

use std::{collections::BTreeMap, path::PathBuf};

/// The name in the templates that the name of the provisioner replaces.
const NAME: &str = "provisioner-template";
/// The name of the crate in Rust.
const CRATE: &str = "provisioner_template";
/// The repository of the SDK.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
/// The tag of this version in it. Another version of the SDK could have another contract.
const TAG: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// The contract, for languages without an SDK.
const CONTRACT: &str = include_str!("../../../../../wit/0.1.0/provisioner.wit");

/// The language, and what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// Rust, with the crate of the SDK in this directory, or in its repository.
    Rust {
        /// The directory.
        sdk: Option<PathBuf>,
    },
    /// JavaScript.
    JavaScript,
    /// Python.
    Python,
}

macro_rules! template {
    ($($path:literal = $file:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../../sdk/templates/", $file)))),*]
    };
}

const RUST: &[(&str, &str)] = template! {
    ".gitignore" = "rust/gitignore",
    "Cargo.toml" = "rust/package.toml",
    "Makefile" = "rust/Makefile",
    "README.md" = "rust/README.md",
    "src/lib.rs" = "rust/src/lib.rs",
    "cases/invalid-yaml/bundle/objects/broken.yaml" = "rust/cases/invalid-yaml/bundle/objects/broken.yaml",
    "cases/invalid-yaml/expected.yaml" = "rust/cases/invalid-yaml/expected.yaml",
    "cases/labels/bundle/objects/greeting.yaml" = "rust/cases/labels/bundle/objects/greeting.yaml",
    "cases/labels/case.yaml" = "rust/cases/labels/case.yaml",
    "cases/labels/config.yaml" = "rust/cases/labels/config.yaml",
    "cases/labels/expected.yaml" = "rust/cases/labels/expected.yaml",
};

const JAVASCRIPT: &[(&str, &str)] = template! {
    ".gitignore" = "javascript/gitignore",
    "Makefile" = "javascript/Makefile",
    "README.md" = "javascript/README.md",
    "package.json" = "javascript/package.json",
    "provisioner.js" = "javascript/provisioner.js",
};

const PYTHON: &[(&str, &str)] = template! {
    ".gitignore" = "python/gitignore",
    "Makefile" = "python/Makefile",
    "README.md" = "python/README.md",
    "app.py" = "python/app.py",
    "requirements.txt" = "python/requirements.txt",
};

/// The cases of the languages whose standard library reads JSON and no YAML.
const JSON_CASES: &[(&str, &str)] = template! {
    "cases/invalid-json/bundle/objects/broken.json" = "json-cases/invalid-json/bundle/objects/broken.json",
    "cases/invalid-json/expected.yaml" = "json-cases/invalid-json/expected.yaml",
    "cases/labels/bundle/objects/greeting.json" = "json-cases/labels/bundle/objects/greeting.json",
    "cases/labels/case.yaml" = "json-cases/labels/case.yaml",
    "cases/labels/config.yaml" = "json-cases/labels/config.yaml",
    "cases/labels/expected.yaml" = "json-cases/labels/expected.yaml",
};

/// The files of a provisioner with this name, by path.
pub(super) fn files(name: &str, language: &Language) -> BTreeMap<String, String> {
    let (own, sdk) = match language {
        Language::Rust { sdk } => (vec![RUST], dependency(sdk.as_ref())),
        Language::JavaScript => (vec![JAVASCRIPT, JSON_CASES], String::new()),
        Language::Python => (vec![PYTHON, JSON_CASES], String::new()),
    };
    let crate_name = name.replace('-', "_");
    let filled = |text: &str| text.replace(NAME, name).replace(CRATE, &crate_name);
    let mut files: BTreeMap<String, String> =
        own.into_iter().flatten().map(|(path, text)| ((*path).to_owned(), filled(text))).collect();
    match language {
        Language::Rust { .. } => {
            if let Some(manifest) = files.get_mut("Cargo.toml") {
                *manifest = manifest.replace("chandler-sdk = SDK", &format!("chandler-sdk = {sdk}"));
            }
        }
        Language::JavaScript | Language::Python => {
            files.insert("wit/provisioner.wit".to_owned(), CONTRACT.to_owned());
        }
    }
    files
}

/// The SDK as a dependency in Cargo.toml.
fn dependency(sdk: Option<&PathBuf>) -> String {
    match sdk {
        // A string of JSON is one of TOML, too.
        Some(path) => format!("{{ path = {} }}", serde_json::Value::from(path.display().to_string())),
        None => format!("{{ git = {REPOSITORY:?}, tag = {TAG:?} }}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_replaces_the_one_of_the_template_everywhere() {
        let sdk = Some(PathBuf::from("/src/a \"b\"/sdk/guest"));
        for language in [Language::Rust { sdk: None }, Language::Rust { sdk }, Language::JavaScript, Language::Python] {
            let files = files("sail-2", &language);
            for (path, text) in &files {
                assert!(!text.contains(NAME) && !text.contains(CRATE), "{path}");
                assert!(text.ends_with('\n'), "{path}");
            }
            assert!(files["Makefile"].contains("COMPONENT := sail-2.wasm"));
            assert!(files["cases/labels/expected.yaml"].contains("format: sail-2+v0"));
        }
    }

    #[test]
    fn the_sdk_is_a_dependency_by_path_or_by_repository() {
        let manifest =
            |sdk: Option<&str>| files("sail", &Language::Rust { sdk: sdk.map(PathBuf::from) })["Cargo.toml"].clone();
        let tagged = concat!(
            "chandler-sdk = { git = \"https://github.com/chandler-dev/chandler\", tag = \"v",
            env!("CARGO_PKG_VERSION"),
            "\" }\n"
        );
        assert!(manifest(None).contains(tagged));
        assert!(manifest(Some("/a \"b\"")).contains("chandler-sdk = { path = \"/a \\\"b\\\"\" }\n"));
    }

    #[test]
    fn the_guide_for_authors_names_the_dependency_of_new_projects() {
        let guide = include_str!("../../../../../sdk/README.md");
        let dependency = format!("chandler-sdk = {}", dependency(None));
        let with_feature = dependency.replace(" }", ", features = [\"checks\"] }");
        assert!(guide.contains(&dependency) && guide.contains(&with_feature), "{dependency}");
        assert_eq!(guide.matches("chandler-sdk = {").count(), 2);
    }
}
