//! The files that say what this version of Chandler would do: `chandler preflight --to IMAGE` reads them, since it must not run the program in
//! the image.

use std::{collections::BTreeMap, process::Command};

use anyhow::{Context as _, ensure};

use super::{chart, files::Entry};
use crate::command;

/// The label of the image that names the directory of the files, as host/chandler/src/read/release_files.rs reads it.
pub(super) const LABEL: &str = "dev.chandler.release";
/// That directory.
pub(super) const DIRECTORY: &str = "usr/share/chandler";

/// The files that a program writes, which must have the same provisioners as the binary of the image. The program runs on this machine, and
/// the binary may be for another one.
pub(super) fn files(mut program: Command, binary: &[u8]) -> anyhow::Result<Vec<Entry>> {
    let directory = tempfile::tempdir()?;
    let to = directory.path().join("release");
    // The list that it prints is not needed.
    command::output(program.args(["provisioners", "--to"]).arg(&to))?;
    let mut files = BTreeMap::new();
    chart::collect(&to, DIRECTORY, &mut files)?;
    ensure!(files.contains_key(&format!("{DIRECTORY}/release.json")), "the program wrote no release.json");
    for (path, component) in files.iter().filter(|(path, _)| path.contains("/provisioners/")) {
        memchr::memmem::find(binary, component).with_context(|| {
            format!("the binary of the image does not contain {path}: build both from the same sources")
        })?;
    }
    let above = ["usr", "usr/share", DIRECTORY, &format!("{DIRECTORY}/provisioners")].map(Entry::directory);
    let mut entries: Vec<Entry> = above.into_iter().collect();
    entries.extend(files.into_iter().map(|(path, content)| Entry::file(&path, content)));
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;

    use super::*;
    use crate::dist::image::{About, Image};

    #[test]
    fn an_image_has_the_provisioners_of_its_binary_and_a_label_that_names_them() {
        let program = command::tested("chandler");
        let binary = fs::read(&program).unwrap();
        let entries = files(Command::new(&program), &binary).unwrap();
        let paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
        for wanted in ["release.json", "crds.json", "roles.json", "provisioners/", "provisioners/registry.wasm"] {
            assert!(paths.contains(&format!("{DIRECTORY}/{wanted}").as_str()), "{wanted}: {paths:?}");
        }
        for path in &paths {
            let parent = path.trim_end_matches('/').rfind('/').and_then(|end| path.get(..=end));
            assert!(parent.is_none_or(|parent| paths.contains(&parent)), "{path} comes with its directory");
        }
        let image = Image::of_release(b"a small binary".to_vec(), entries, About::of_test("amd64")).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (layout, _) = image.write(directory.path()).unwrap();
        let blobs =
            fs::read_dir(layout.join("blobs/sha256")).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
        let configs = blobs.filter_map(|blob| serde_json::from_slice::<Value>(&blob).ok());
        let labels: Vec<Value> = configs.filter_map(|config| config.pointer("/config/Labels").cloned()).collect();
        assert_eq!(labels[0][LABEL], format!("/{DIRECTORY}"));
    }

    #[test]
    fn a_binary_with_other_provisioners_is_refused() {
        let error = files(Command::new(command::tested("chandler")), b"another binary").unwrap_err();
        assert!(format!("{error:#}").contains("build both from the same sources"), "{error:#}");
    }
}
