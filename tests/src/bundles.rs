//! The sample bundles and small changes to them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use chandler_test_support::needs::fixture;
use tempfile::TempDir;

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A sample bundle, such as `registry/harbour-operator.v0.1.0`.
pub fn sample(name: &str) -> Bundle {
    Bundle::copy_of(&workspace().join("tests/fixtures").join(name))
}

/// The sample `plain/lighthouse` with an image that cannot be pulled: its workload stage never becomes healthy.
pub fn stalled_lighthouse() -> Bundle {
    sample("plain/lighthouse").replacing(
        "manifests/0000_50_lighthouse_keeper.yaml",
        "registry.k8s.io/pause:3.10",
        "registry.invalid/keeper:v1",
    )
}

/// A ConfigMap for a bundle, with `from` in its data.
pub fn config_map(name: &str, from: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{from: {from}}}\n")
}

/// A real bundle of the shared fixtures, if the machine has them.
pub fn shared(name: &str) -> Option<Bundle> {
    fixture(name).map(|path| Bundle::copy_of(&path))
}

/// A bundle directory that a test may change.
pub struct Bundle(TempDir);

impl Bundle {
    /// An empty one.
    pub fn empty() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    /// A copy.
    pub fn copy_of(source: &Path) -> Self {
        let bundle = Self::empty();
        copy(source, bundle.path());
        bundle
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file.
    pub fn with(self, path: &str, text: &str) -> Self {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a file has a parent directory")).expect("a directory");
        fs::write(path, text).expect("a file");
        self
    }

    /// Removes a file.
    pub fn without(self, path: &str) -> Self {
        fs::remove_file(self.path().join(path)).expect("the file exists");
        self
    }

    /// Replaces a text in a file. The file must contain it.
    pub fn replacing(self, path: &str, from: &str, to: &str) -> Self {
        let text = fs::read_to_string(self.path().join(path)).expect("the file exists");
        assert!(text.contains(from), "{path} does not contain {from:?}");
        let text = text.replace(from, to);
        self.with(path, &text)
    }
}

fn copy(source: &Path, target: &Path) {
    fs::create_dir_all(target).expect("a directory");
    for entry in fs::read_dir(source).expect("the bundle exists") {
        let entry = entry.expect("an entry");
        let to = target.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("a copy");
        }
    }
}
