//! Everything that is made of a binary, made twice in two directories, has the same bytes. The binary itself takes half an hour, so that no
//! test builds it twice (docs/install.md says how to).

use std::{collections::BTreeMap, path::PathBuf};

use super::{image::tests::tree, *};

/// Makes the files of a release below a new directory, with the image of another architecture joined to the image of this one.
fn made(program: &Path, components: &[u8], modified: &[u8]) -> BTreeMap<PathBuf, Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let rustc = command::rustc_version().unwrap();
    let target = Target::new(None, &rustc).unwrap();
    let sources = Sources::of_checkout().unwrap();
    let mut layouts = Vec::new();
    for architecture in ["amd64", "arm64"] {
        let output = directory.path().join(architecture);
        fs::create_dir(&output).unwrap();
        fs::write(output.join("chandler"), modified).unwrap();
        let chart = chart::package(program, BuildTime::from_environment().unwrap()).unwrap();
        fs::write(output.join(chart::NAME), chart).unwrap();
        let release = release::files(Command::new(program), components).unwrap();
        let image = Image::of_release(modified.to_vec(), release, About::of_test(architecture)).unwrap();
        written(&image, &output).unwrap();
        documents(&output, &crates::tests::small(), &image, &target, &rustc, &sources).unwrap();
        layouts.push(output.join("image"));
    }
    let joined = join::joined(&layouts, BuildTime::from_environment().unwrap()).unwrap();
    written(&joined, directory.path()).unwrap();
    tree(directory.path())
}

#[test]
fn everything_that_is_made_of_a_binary_is_the_same_in_two_directories() {
    let program = command::tested("chandler");
    let components = fs::read(&program).unwrap();
    let first = made(&program, &components, b"a small binary");
    let second = made(&program, &components, b"a small binary");
    assert!(first.keys().eq(second.keys()), "{:?}\n{:?}", first.keys(), second.keys());
    let different: Vec<&PathBuf> =
        first.iter().filter(|(path, bytes)| second.get(*path) != Some(*bytes)).map(|(path, _)| path).collect();
    assert!(different.is_empty(), "{different:?}");
    for file in
        ["image.tar", "amd64/SHA256SUMS", "amd64/chandler.spdx.json", "arm64/provenance.json", "amd64/krew.yaml"]
    {
        assert!(first.contains_key(Path::new(file)), "{file}: {:?}", first.keys());
    }
    // Another binary makes other files, so the comparison compares something.
    let other = made(&program, &components, b"another binary");
    for file in ["image.tar", "image/index.json", "amd64/SHA256SUMS"] {
        assert_ne!(first[Path::new(file)], other[Path::new(file)], "{file}");
    }
}
