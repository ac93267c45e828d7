//! The files of an image in a directory, from which `runc` can run it.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;

use super::{
    files::{ENTRYPOINT, USER},
    image::{About, BLOBS, Image},
    time::BuildTime,
};
use crate::command;

/// The name of the directory with the files.
const ROOT: &str = "rootfs";
/// The name of the file with the `config` of the image's configuration.
const CONFIG: &str = "config.json";

/// Unpacks the first image of a layout into a new directory. Only root can do that, since the files have owners.
pub(crate) fn layout(layout: &Path, directory: &Path) -> anyhow::Result<()> {
    let read = |path: PathBuf| fs::read(&path).with_context(|| format!("failed to read {}", path.display()));
    let blob = |descriptor: Option<&Value>| {
        let digest = descriptor.and_then(|descriptor| descriptor.get("digest")?.as_str()?.strip_prefix("sha256:"));
        read(layout.join(BLOBS).join(digest.context("a descriptor has no digest")?))
    };
    let json = |bytes: Vec<u8>| -> anyhow::Result<Value> { Ok(serde_json::from_slice(&bytes)?) };
    let index = json(read(layout.join("index.json"))?)?;
    let mut manifest = json(blob(index.pointer("/manifests/0"))?)?;
    if let Some(platforms) = manifest.get("manifests").and_then(Value::as_array) {
        let host = command::rustc_version()?.host;
        let ours = super::krew::architecture(&host);
        let is_ours =
            |descriptor: &&Value| descriptor.pointer("/platform/architecture").and_then(Value::as_str) == Some(ours);
        manifest = json(blob(platforms.iter().find(is_ours))?)?;
    }
    let root = directory.join(ROOT);
    fs::create_dir_all(&root).with_context(|| format!("failed to create {}", root.display()))?;
    for layer in manifest.get("layers").and_then(Value::as_array).context("the manifest has no layers")? {
        let bytes = blob(Some(layer))?;
        let mut archive = tar::Archive::new(GzDecoder::new(bytes.as_slice()));
        archive.set_preserve_permissions(true);
        archive.set_preserve_ownerships(true);
        archive.unpack(&root).with_context(|| format!("failed to unpack a layer into {}", root.display()))?;
    }
    let owner = fs::metadata(root.join("var/cache/chandler"))?.uid();
    ensure!(u64::from(owner) == USER, "{} has other owners than the layers: run this as root", root.display());
    // Only its owner may enter what tempfile makes, and the container has another user.
    for path in [directory, &root] {
        fs::set_permissions(path, Permissions::from_mode(0o755))?;
    }
    let config = json(blob(manifest.get("config"))?)?;
    let config = config.get("config").context("the configuration of the image has no `config`")?;
    Ok(fs::write(directory.join(CONFIG), config.to_string())?)
}

/// Unpacks an image with a `chandler` of the tests, which is linked dynamically: the directory also gets the libraries that it needs.
pub(crate) fn of_tests(binary: &Path, directory: &Path) -> anyhow::Result<()> {
    let packed = tempfile::tempdir()?;
    let host = command::rustc_version()?.host;
    let about = About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: None,
        architecture: super::krew::architecture(&host).to_owned(),
        time: BuildTime::from_environment()?,
    };
    // Compressing the binary of the tests takes longer than all else.
    let (packed, _) = Image::of_binary(Vec::new(), about)?.write(packed.path())?;
    layout(&packed, directory)?;
    let path = |path: &Path| directory.join(ROOT).join(path.strip_prefix("/").unwrap_or(path));
    let copy = |from: &Path, to: &Path| {
        fs::copy(from, to).with_context(|| format!("failed to copy {} to {}", from.display(), to.display()))
    };
    copy(binary, &path(Path::new(ENTRYPOINT)))?;
    for library in libraries(binary)? {
        let to = path(&library);
        fs::create_dir_all(to.parent().unwrap_or(&to))?;
        copy(&library, &to)?;
    }
    Ok(())
}

/// What the loader needs to start a binary, by the paths at which it looks.
fn libraries(binary: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = command::output(Command::new("ldd").arg(binary))?;
    // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f...)`, and the loader without an arrow.
    Ok(listed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect())
}
