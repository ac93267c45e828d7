//! The Helm chart, which the binary writes, as the archive that registries of charts take.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::Context as _;

use super::{
    files::Entry,
    image::{archive, compressed},
    time::BuildTime,
};
use crate::command;

/// The name of the archive.
pub(super) const NAME: &str = concat!("chandler-", env!("CARGO_PKG_VERSION"), ".tgz");

/// The archive of the chart that this binary writes. The binary must run on this machine.
pub(super) fn package(binary: &Path, time: BuildTime) -> anyhow::Result<Vec<u8>> {
    let directory = tempfile::tempdir()?;
    command::run(Command::new(binary).args(["manifests", "--format", "chart", "--to"]).arg(directory.path()))?;
    let mut files = BTreeMap::new();
    collect(directory.path(), "chandler", &mut files)?;
    // Helm reads the description of a chart first.
    let first = files.remove_entry("chandler/Chart.yaml").context("the binary wrote no Chart.yaml")?;
    let entries = [first].into_iter().chain(files).map(|(path, content)| Entry::file(&path, content));
    compressed(&archive(&entries.collect::<Vec<_>>(), time)?)
}

/// The files below a directory, by their path in the archive.
pub(super) fn collect(directory: &Path, path: &str, files: &mut BTreeMap<String, Vec<u8>>) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = format!("{path}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &path, files)?;
        } else {
            files.insert(path, fs::read(entry.path())?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn the_archive_has_the_files_of_the_chart_and_is_reproducible() {
        let binary = command::tested("chandler");
        let time = super::super::time::tests::of_test();
        let packed = package(&binary, time).unwrap();
        assert_eq!(packed, package(&binary, time).unwrap());
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed.as_slice()));
        let mut files = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            files.push((entry.path().unwrap().to_string_lossy().into_owned(), text));
        }
        let (path, text) = &files[0];
        assert_eq!(path, "chandler/Chart.yaml");
        assert!(text.contains("\nname: chandler\n") && text.contains(env!("CARGO_PKG_VERSION")), "{text}");
        for wanted in ["chandler/values.yaml", "chandler/templates/crds/bundledeployments.core.rukpak.io.yaml"] {
            assert!(files.iter().any(|(path, _)| path == wanted), "{wanted}");
        }
    }
}
