//! The version of Chandler that an administrator wants to upgrade to: from an image, an OCI image layout, a directory or a binary.
//!
//! Nothing in an image is run. A binary is run, since it is a file that the user names as a program.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use chandler_content::{ContentError, ImageError, ImageReference, Limits, Store, Tree};
use chandler_core::Digest;
use oci_client::manifest::OciImageManifest;
use serde::Deserialize;
use tokio::{io::AsyncReadExt as _, process::Command};

use super::{
    cache,
    image_layout::{self, ImageLayout},
    origin::Origin,
    registry_settings::RegistryOptions,
    release_files::{self, INDEX, LABEL, ReleaseFiles},
    source,
};
use crate::{
    CommandError,
    view::{invocation::quoted, text::one_line},
};

/// How long a binary may take to write its files. It writes a few megabytes.
const PATIENCE: Duration = Duration::from_mins(1);
/// The bytes that are kept of what a binary prints on standard error.
const STDERR_BYTES: u64 = 4096;

/// A version of Chandler.
pub struct NextRelease {
    /// Where it comes from; an image with its digest.
    pub place: String,
    /// What it contains.
    pub files: ReleaseFiles,
}

/// The limits of an image: the program in it is read over, and its files are few.
fn limits() -> Limits {
    Limits { total_bytes: 128 << 20, file_bytes: 64 << 20, ..Limits::default() }
}

/// Opens the version in an image, in a directory with an image or with the files of a version, or in a binary.
///
/// # Errors
/// It cannot be read, or lacks the files.
pub async fn open(to: &str, cache: &Path, registry: &RegistryOptions) -> Result<NextRelease, CommandError> {
    let directory = cache::content(cache);
    let opened = tokio::task::spawn_blocking(move || Store::open(&directory, limits())).await;
    let failed = || CommandError::failed("failed to open the cache");
    let store = opened.map_err(|error| failed().because(&error))?;
    let store = store.map_err(|error| failed().because(&error).hint("set another directory with --cache-directory"))?;
    let path = Path::new(to);
    let shown = one_line(to);
    let (place, tree) = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() && image_layout::is_layout(path) => {
            (format!("the image in {shown}"), layout(path, store).await?)
        }
        Ok(metadata) if metadata.is_dir() => {
            if !path.join(INDEX).is_file() {
                return Err(CommandError::usage(format!("{shown} is neither an OCI image layout nor has it {INDEX}"))
                    .hint("`chandler provisioners --to DIR` of the new version writes such a directory"));
            }
            (format!("directory {shown}"), imported(path, &store).await?)
        }
        Ok(_) => (format!("binary {shown}"), binary(path, &store).await?),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(CommandError::failed(format!("failed to open {shown}")).because(&error));
        }
        Err(_) => match Origin::parse(to)? {
            Origin::Image(reference) => image(&reference, store, registry).await?,
            _ => {
                return Err(CommandError::usage(format!("{shown} is neither an image nor a file of this machine"))
                    .hint("--to takes an image of the new version, its binary, or a directory with one of them"));
            }
        },
    };
    let files = tokio::task::spawn_blocking(move || release_files::read(&tree)).await;
    let unreadable = || CommandError::failed(format!("failed to read the version in {}", one_line(&place)));
    let files = files.map_err(|error| unreadable().because(&error))?;
    let files = files.map_err(|error| unreadable().because(&error))?;
    Ok(NextRelease { place, files })
}

/// The files in the image, by the digest that its reference has now.
async fn image(
    reference: &ImageReference,
    store: Store,
    registry: &RegistryOptions,
) -> Result<(String, Tree), CommandError> {
    let access = source::access(reference, registry).await?;
    let images = source::images(store, registry)?;
    let fetched = async {
        let resolved = images.resolve(reference, &access).await?;
        let tree = images.fetch_labelled(&resolved, &access, LABEL).await?;
        Ok::<_, ContentError>((resolved, tree))
    };
    let (resolved, tree) = fetched.await.map_err(|error| match &error {
        ContentError::Image { error: ImageError::NoLabel(_), .. } => unlabelled(&format!("image {reference}")),
        error => source::refused(&format!("image {reference}"), error),
    })?;
    Ok((format!("image {reference} ({})", resolved.digest()), tree))
}

/// The error for an image without these files.
fn unlabelled(what: &str) -> CommandError {
    CommandError::failed(format!("{} has no label {LABEL}", one_line(what)))
        .cause(
            "only images of Chandler that also have `chandler preflight` carry their provisioners and CRDs as files"
                .to_owned(),
        )
        .hint("check the image; for an image that another tool made, name the binary: --to FILE")
}

/// The parts of an image's configuration that matter.
#[derive(Default, Deserialize)]
struct Configuration {
    #[serde(default)]
    config: Labelled,
}

#[derive(Default, Deserialize)]
struct Labelled {
    #[serde(default, rename = "Labels")]
    labels: Option<std::collections::BTreeMap<String, String>>,
}

/// The files in the first image of a layout that has them: they are alike for all platforms.
async fn layout(path: &Path, store: Store) -> Result<Tree, CommandError> {
    let directory = path.to_owned();
    let found = tokio::task::spawn_blocking(move || labelled(&directory)).await;
    let shown = path.display().to_string();
    let failed = || CommandError::failed(format!("failed to read the image in {}", one_line(&shown)));
    let found = found.map_err(|error| failed().because(&error))??;
    let (below, layers) = found.ok_or_else(|| unlabelled(&format!("the image in {shown}")))?;
    let tree = store.import_layers(one_line(&shown), layers, (LABEL, &below)).await;
    tree.map_err(|error| failed().because(&error))
}

/// The directory that the label names, and the files of the layers.
type LabelledLayers = (String, Vec<(Digest, PathBuf)>);

fn labelled(directory: &Path) -> Result<Option<LabelledLayers>, CommandError> {
    let layout = ImageLayout::open(directory)?;
    for manifest in layout.manifests() {
        // An index has no layers.
        let Ok(image) = serde_json::from_slice::<OciImageManifest>(&manifest.bytes) else { continue };
        let Ok(config) = image.config.digest.parse::<Digest>() else { continue };
        // A configuration is as small as a manifest.
        if image.config.size > i64::try_from(limits().manifest_bytes).unwrap_or(i64::MAX) {
            continue;
        }
        let config: Configuration = serde_json::from_slice(&layout.blob(&config)?).unwrap_or_default();
        let Some(below) = config.config.labels.and_then(|mut labels| labels.remove(LABEL)) else { continue };
        let layers = image.layers.iter().filter_map(|layer| layer.digest.parse::<Digest>().ok());
        let layers = layers.map(|digest| {
            let file = directory.join("blobs/sha256").join(digest.hex());
            (digest, file)
        });
        return Ok(Some((below, layers.collect())));
    }
    Ok(None)
}

async fn imported(path: &Path, store: &Store) -> Result<Tree, CommandError> {
    let tree = store.import_directory(path).await;
    tree.map_err(|error| {
        CommandError::failed(format!("failed to read {}", one_line(&path.display().to_string()))).because(&error)
    })
}

/// The files that a binary writes.
async fn binary(path: &Path, store: &Store) -> Result<Tree, CommandError> {
    let shown = one_line(&path.display().to_string());
    let failed = || CommandError::failed(format!("failed to run {shown}"));
    let program = path.canonicalize().map_err(|error| failed().because(&error))?;
    let directory = tempfile::tempdir().map_err(|error| failed().because(&error))?;
    let to = directory.path().join("release");
    let mut command = Command::new(program);
    command.args(["provisioners", "--to"]).arg(&to).env_clear().kill_on_drop(true);
    // Where it may write temporary files.
    command.envs(["PATH", "TMPDIR"].into_iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        failed().because(&error).hint("--to takes a binary of `chandler` for this machine, or an image of any platform")
    })?;
    let stderr = child.stderr.take();
    let ended = tokio::time::timeout(PATIENCE, async {
        let mut text = Vec::new();
        if let Some(stderr) = stderr {
            let mut kept = stderr.take(STDERR_BYTES);
            let _ = kept.read_to_end(&mut text).await;
            // A program that prints more must not wait for a reader.
            let _ = tokio::io::copy(&mut kept.into_inner(), &mut tokio::io::sink()).await;
        }
        (child.wait().await, text)
    });
    let Ok((status, text)) = ended.await else {
        return Err(failed().cause(format!("it did not end within {} seconds", PATIENCE.as_secs())));
    };
    let status = status.map_err(|error| failed().because(&error))?;
    if !status.success() {
        let text = String::from_utf8_lossy(&text);
        let program = quoted(&shown);
        return Err(failed()
            .cause(format!("{status}: {}", one_line(text.trim())))
            .hint(format!("versions without `chandler preflight` lack this command: `{program} help provisioners`")));
    }
    imported(&to, store).await
}
