//! Where the binary and the image come from: a statement in the format of in-toto and SLSA, which the releaser signs.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{CLUSTER, digest};
use crate::command::{self, Rustc};

/// The sources that a build reads.
pub(super) struct Sources {
    /// The commit of the checkout; `None` without a git repository.
    pub(super) commit: Option<String>,
    /// Whether files differ from the commit.
    pub(super) is_modified: bool,
    /// The SHA-256 of Cargo.lock, which has the hash of each dependency.
    lock: String,
}

impl Sources {
    pub(super) fn of_checkout() -> anyhow::Result<Self> {
        let git = |arguments: &[&str]| {
            let mut git = std::process::Command::new("git");
            command::output(git.current_dir(command::root()).args(arguments))
        };
        let commit = git(&["rev-parse", "HEAD"]).ok();
        let is_modified = commit.is_none() || !git(&["status", "--porcelain"])?.is_empty();
        let lock = std::fs::read(command::root().join("Cargo.lock")).context("failed to read Cargo.lock")?;
        Ok(Self { commit, is_modified, lock: digest::hexadecimal(&lock) })
    }

    /// The commit, if it says which files were built.
    pub(super) fn revision(&self) -> Option<&str> {
        self.commit.as_deref().filter(|_| !self.is_modified)
    }
}

/// A file or an image that was built: its name, and its SHA-256 in hexadecimal.
pub(super) type Product = (String, String);

/// An in-toto statement with the provenance of SLSA: <https://slsa.dev/spec/v1.0/provenance>. Without the time and the machine, so that the
/// same sources give the same statement.
pub(super) fn statement(products: &[Product], target: &str, rustc: &Rustc, sources: &Sources) -> Value {
    let subject: Vec<Value> =
        products.iter().map(|(name, hash)| json!({"name": name, "digest": {"sha256": hash}})).collect();
    let mut dependencies = Vec::new();
    if let Some(commit) = &sources.commit {
        dependencies.push(json!({
            "uri": format!("git+{}", env!("CARGO_PKG_REPOSITORY")),
            "digest": {"gitCommit": commit},
            "annotations": {"modified": sources.is_modified},
        }));
    }
    dependencies.push(json!({"name": "Cargo.lock", "digest": {"sha256": sources.lock}}));
    dependencies.push(json!({
        "uri": "git+https://github.com/rust-lang/rust",
        "digest": {"gitCommit": rustc.commit},
        "annotations": {"version": rustc.version, "host": rustc.host},
    }));
    let source = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/xtask/src/dist.rs");
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subject,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": source,
                "externalParameters": {"command": "cargo xtask dist", "target": target},
                "internalParameters": {"profile": "dist", "arguments": CLUSTER},
                "resolvedDependencies": dependencies,
            },
            "runDetails": {
                // A build on the machine of a developer: nothing but the signature of the releaser vouches for it.
                "builder": {"id": source, "version": {"xtask": env!("CARGO_PKG_VERSION")}},
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_has_the_fields_of_the_specifications() {
        let rustc = command::rustc_version().unwrap();
        let sources = Sources { commit: Some("c0ffee".to_owned()), is_modified: false, lock: "11".repeat(32) };
        let products = [("chandler".to_owned(), "22".repeat(32))];
        let statement = statement(&products, &rustc.host, &rustc, &sources);
        assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
        assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
        assert_eq!(statement["subject"], json!([{"name": "chandler", "digest": {"sha256": "22".repeat(32)}}]));
        let definition = &statement["predicate"]["buildDefinition"];
        assert!(definition["buildType"].as_str().unwrap().starts_with("https://"), "{definition}");
        assert_eq!(definition["externalParameters"]["target"], rustc.host.as_str());
        let dependencies = definition["resolvedDependencies"].as_array().unwrap();
        assert_eq!(dependencies[0]["digest"]["gitCommit"], "c0ffee");
        assert!(dependencies.iter().all(|it| it["digest"].as_object().is_some_and(|it| it.len() == 1)), "{definition}");
        assert!(statement["predicate"]["runDetails"]["builder"]["id"].as_str().unwrap().starts_with("https://"));
    }

    #[test]
    fn changed_files_are_not_attributed_to_a_commit() {
        let changed = Sources { commit: Some("c0ffee".to_owned()), is_modified: true, lock: String::new() };
        assert_eq!(changed.revision(), None);
        let rustc = command::rustc_version().unwrap();
        let statement = statement(&[], &rustc.host, &rustc, &changed);
        let dependencies = &statement["predicate"]["buildDefinition"]["resolvedDependencies"];
        assert_eq!(dependencies[0]["annotations"]["modified"], true);
        // A checkout says which commit it has.
        Sources::of_checkout().unwrap();
    }
}
