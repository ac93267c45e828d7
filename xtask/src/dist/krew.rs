//! The plugin for kubectl, `kubectl chandler`: an archive with the binary, and the manifest that krew installs it with.
//! <https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/>

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};

use super::{
    digest::hexadecimal,
    files::Entry,
    image::{archive as tar, compressed},
    time::BuildTime,
};

/// The file with the manifest.
pub(super) const MANIFEST: &str = "krew.yaml";
/// The line before the platforms, which is where manifests of several architectures are joined.
const PLATFORMS: &str = "  platforms:\n";

/// The archive of an architecture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Platform {
    architecture: String,
    sha256: String,
}

impl Platform {
    /// The platform of this archive.
    pub(super) fn of(architecture: &str, archive: &[u8]) -> Self {
        Self { architecture: architecture.to_owned(), sha256: hexadecimal(archive) }
    }
}

/// The architecture of a target, as Kubernetes names it.
pub(super) fn architecture(triple: &str) -> &str {
    match triple.split('-').next().unwrap_or_default() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The name of the archive of an architecture.
fn name(architecture: &str) -> String {
    format!("chandler-linux-{architecture}.tar.gz")
}

/// The archive with the binary and the license, which krew requires, and its name. The same binary makes the same bytes.
pub(super) fn archive(binary: Vec<u8>, architecture: &str) -> anyhow::Result<(String, Vec<u8>)> {
    let mut program = Entry::file("chandler", binary);
    program.mode = 0o755;
    let license = Entry::file("LICENSE", include_str!("../../../LICENSE"));
    let bytes = compressed(&tar(&[license, program], BuildTime::from_environment()?)?)?;
    Ok((name(architecture), bytes))
}

/// The manifest for these archives, which are expected among the files of the release.
pub(super) fn manifest(platforms: &[Platform]) -> String {
    let (version, repository) = (env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_REPOSITORY"));
    let mut text = format!(
        "\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: chandler
spec:
  version: v{version}
  homepage: {repository}
  shortDescription: Install and inspect software bundles
  description: |
    Installs, upgrades and inspects software bundles on a cluster with the Chandler controller, renders and checks bundles
    without a cluster, and migrates from OLM and rukpak.
  caveats: |
    For the completion of kubectl, run:
      kubectl chandler completion kubectl > ~/.krew/bin/kubectl_complete-chandler
      chmod +x ~/.krew/bin/kubectl_complete-chandler
{PLATFORMS}"
    );
    for Platform { architecture, sha256 } in platforms {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "  - selector:
      matchLabels:
        os: linux
        arch: {architecture}
    uri: {repository}/releases/download/v{version}/{}
    sha256: {sha256}
    bin: chandler
    files:
    - from: chandler
      to: .
    - from: LICENSE
      to: .
",
            name(architecture)
        );
    }
    text
}

/// Joins the manifests beside these image layouts, if each has one. An image that was made of a binary has none.
pub(super) fn join(layouts: &[PathBuf], output: &Path) -> anyhow::Result<()> {
    let mut manifests = Vec::new();
    for layout in layouts {
        let path = layout.join("..").join(MANIFEST);
        match fs::read_to_string(&path) {
            Ok(text) => manifests.push(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).with_context(|| format!("failed to read {}", path.display())),
        }
    }
    let path = output.join(MANIFEST);
    fs::write(&path, joined(&manifests)?).with_context(|| format!("failed to write {}", path.display()))
}

fn joined(manifests: &[String]) -> anyhow::Result<String> {
    let mut parts = Vec::new();
    for manifest in manifests {
        parts.push(manifest.split_once(PLATFORMS).with_context(|| format!("a {MANIFEST} has no platforms"))?);
    }
    let head = parts.first().map(|(head, _)| *head).unwrap_or_default();
    ensure!(parts.iter().all(|(other, _)| *other == head), "the {MANIFEST} files are of different versions");
    let mut platforms: Vec<&str> = parts.into_iter().map(|(_, platforms)| platforms).collect();
    // The order in which they are named must not matter.
    platforms.sort_unstable();
    Ok(format!("{head}{PLATFORMS}{}", platforms.concat()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use serde_json::Value;

    use super::*;

    #[test]
    fn the_manifest_is_what_krew_reads_and_has_the_checksums() {
        let (name, bytes) = archive(b"a small binary".to_vec(), "arm64").unwrap();
        let text = manifest(&[Platform::of("arm64", &bytes)]);
        let manifest: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(manifest["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
        assert_eq!(manifest["metadata"]["name"], "chandler");
        let [platform] = manifest["spec"]["platforms"].as_array().unwrap().as_slice() else { panic!("{text}") };
        assert_eq!(platform["selector"]["matchLabels"], serde_json::json!({"os": "linux", "arch": "arm64"}));
        assert!(platform["uri"].as_str().unwrap().ends_with(&format!("/v{}/{name}", env!("CARGO_PKG_VERSION"))));
        assert_eq!(platform["sha256"], hexadecimal(&bytes));
        // krew accepts a description of at most 50 characters.
        assert!(manifest["spec"]["shortDescription"].as_str().unwrap().len() <= 50, "{text}");
    }

    #[test]
    fn the_archive_holds_the_binary_as_a_program() {
        let directory = tempfile::tempdir().unwrap();
        let (name, bytes) = archive(b"#!/bin/sh\necho it runs\n".to_vec(), "amd64").unwrap();
        assert_eq!(archive(b"#!/bin/sh\necho it runs\n".to_vec(), "amd64").unwrap().1, bytes);
        fs::write(directory.path().join(&name), bytes).unwrap();
        let unpacked =
            Command::new("tar").args(["--extract", "--gzip", "--file", &name]).current_dir(directory.path()).status();
        assert!(unpacked.unwrap().success());
        let output = Command::new(directory.path().join("chandler")).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "it runs\n");
        assert!(directory.path().join("LICENSE").exists());
    }

    #[test]
    fn manifests_of_several_architectures_are_joined_in_one_order() {
        let of = |architecture: &str| manifest(&[Platform::of(architecture, architecture.as_bytes())]);
        let (one, two) = (of("amd64"), of("arm64"));
        let text = joined(&[one.clone(), two.clone()]).unwrap();
        assert_eq!(text, joined(&[two, one.clone()]).unwrap());
        assert_eq!(text, manifest(&["amd64", "arm64"].map(|it| Platform::of(it, it.as_bytes()))));
        let other = one.replace("  version: v", "  version: v9");
        assert!(joined(&[one, other]).is_err());
    }
}
