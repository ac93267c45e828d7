//! The files of the container.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use flate2::read::GzDecoder;
use serde_json::Value;

use super::super::{
    files::{ENTRYPOINT, USER},
    image::{About, Image},
};
use crate::command;

/// An unpacked image and its configuration.
pub(super) struct RootFileSystem {
    pub(super) directory: tempfile::TempDir,
    /// The `config` of the image's configuration.
    pub(super) config: Value,
}

impl RootFileSystem {
    /// Of the image in a layout.
    pub(super) fn of_layout(layout: &Path) -> Self {
        let read = |path: PathBuf| fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
            read(layout.join("blobs/sha256").join(digest))
        };
        let json = |bytes: Vec<u8>| -> Value { serde_json::from_slice(&bytes).unwrap() };
        let index = json(read(layout.join("index.json")));
        let manifest = json(blob(&index["manifests"][0]));
        let directory = tempfile::tempdir().unwrap();
        for layer in manifest["layers"].as_array().unwrap() {
            let bytes = blob(layer);
            let mut archive = tar::Archive::new(GzDecoder::new(bytes.as_slice()));
            archive.set_preserve_permissions(true);
            archive.set_preserve_ownerships(true);
            archive.unpack(directory.path()).unwrap();
        }
        let owner = fs::metadata(directory.path().join("var/cache/chandler")).unwrap().uid();
        assert_eq!(u64::from(owner), USER, "the layers have the owners of the image");
        // Only its owner may enter what tempfile makes.
        fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        Self { directory, config: json(blob(&manifest["config"]))["config"].clone() }
    }

    /// Of an image with the `chandler` of the tests, which is linked dynamically.
    pub(super) fn of_tests(binary: &Path) -> Self {
        let layout = tempfile::tempdir().unwrap();
        // Compressing the binary of the tests takes longer than all else.
        let image = Image::of_binary(Vec::new(), About::of_test("amd64")).unwrap();
        let (layout, _) = image.write(layout.path()).unwrap();
        let rootfs = Self::of_layout(&layout);
        fs::copy(binary, rootfs.path(Path::new(ENTRYPOINT))).unwrap();
        for library in libraries(binary) {
            let to = rootfs.path(&library);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(library, to).unwrap();
        }
        rootfs
    }

    fn path(&self, path: &Path) -> PathBuf {
        self.directory.path().join(path.strip_prefix("/").unwrap())
    }
}

/// What the loader needs to start a binary, by the paths at which it looks.
fn libraries(binary: &Path) -> Vec<PathBuf> {
    let listed = command::output(Command::new("ldd").arg(binary)).unwrap();
    // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f...)`, and the loader without an arrow.
    let paths = listed.split_whitespace().filter(|word| word.starts_with('/'));
    paths.map(PathBuf::from).collect()
}
