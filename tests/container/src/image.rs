//! An unpacked image: what `cargo xtask test --container` prepares.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// The directory with the files of an image, and its configuration.
#[derive(Clone, Debug)]
pub struct Image {
    /// The directory that becomes `/` of containers. They share it, since they cannot write to it.
    pub root: PathBuf,
    /// The `config` of the image's configuration.
    pub config: Value,
}

impl Image {
    /// The name of the directory with the files.
    pub const ROOT: &str = "rootfs";
    /// The name of the file with the configuration.
    pub const CONFIG: &str = "config.json";

    /// The image in a directory with [`ROOT`](Self::ROOT) and [`CONFIG`](Self::CONFIG).
    pub fn read(directory: &Path) -> Self {
        let config = directory.join(Self::CONFIG);
        let config = fs::read(&config).unwrap_or_else(|error| panic!("failed to read {}: {error}", config.display()));
        Self {
            root: directory.join(Self::ROOT),
            config: serde_json::from_slice(&config).expect("the configuration is JSON"),
        }
    }
}
