//! What the user calls a bundle: a directory, an archive or an image.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use chandler_content::{
    ContentError, FailureClass, ImageAccess, ImageOptions, ImageReference, Images, Limits, Store,
    pull_secret_credentials,
};
use chandler_core::Content;

use crate::{CommandError, cache};

/// The longest file with the credentials of registries, in bytes.
const CREDENTIALS: u64 = 1 << 20;

/// Where a bundle is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A directory on this machine.
    Directory(PathBuf),
    /// A tar archive on this machine.
    Archive(PathBuf),
    /// An image in a registry.
    Image(Box<ImageReference>),
}

/// How registries are spoken to.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RegistryOptions {
    /// A registry (host or host:port) to speak HTTP with; may be given several times. Those on loopback need not be named
    #[arg(long = "plain-http-registry", value_name = "HOST")]
    pub plain_http_registries: Vec<String>,

    /// The credentials of registries [default: ~/.docker/config.json, if it is there]
    #[arg(long, value_name = "FILE", env = "REGISTRY_AUTH_FILE", hide_env_values = true)]
    pub registry_config: Option<PathBuf>,
}

/// A bundle that was opened.
pub struct Bundle {
    /// Its files.
    pub content: Arc<dyn Content>,
    /// Where they are on the disk, if they can be opened there.
    pub directory: Option<PathBuf>,
}

impl Origin {
    /// What the user means: what is there on the disk first, then an image.
    pub fn parse(text: &str) -> Result<Self, CommandError> {
        let path = Path::new(text);
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Ok(Self::Directory(path.to_owned())),
            Ok(_) => return Ok(Self::Archive(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Not even a name that a file could have, for instance because it is too long.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(CommandError::failed(format!("failed to open {text}")).because(&error));
            }
            Err(_) => {}
        }
        let missing = || CommandError::usage(format!("{text}: no such file or directory"));
        if !is_like_an_image(text) {
            return Err(missing().hint("an image is written with its registry or tag: `quay.io/example/bundle:v1`"));
        }
        match text.parse() {
            Ok(image) => Ok(Self::Image(Box::new(image))),
            Err(error) => Err(missing().because(&error)),
        }
    }
}

/// Whether a text that is no file is meant as an image: it has a registry, a tag or a digest. All else, though container
/// tools would look for it on Docker Hub, is more likely a path with a mistake in it.
fn is_like_an_image(text: &str) -> bool {
    let (registry, path) = text.split_once('/').unwrap_or(("", text));
    let path_only = text.starts_with(['/', '.']);
    !path_only && (registry.contains(['.', ':']) || registry == "localhost" || path.contains([':', '@']))
}

/// Opens a bundle, and pulls it if it is an image. Whatever it is, its content is copied into the cache first, so that it
/// does not change while it is rendered.
pub async fn open(origin: &Origin, cache: &Path, registry: &RegistryOptions) -> Result<Bundle, CommandError> {
    let directory = cache::content(cache);
    let store = tokio::task::spawn_blocking(move || Store::open(&directory, Limits::default()))
        .await
        .map_err(|error| CommandError::failed("failed to open the cache").because(&error))?
        .map_err(|error| {
            CommandError::failed("failed to open the cache")
                .because(&error)
                .hint("name another directory with --cache-directory")
        })?;
    let (tree, directory) = match origin {
        Origin::Directory(path) => {
            let tree = store.import_directory(path).await;
            (tree.map_err(|error| refused(&format!("directory {}", path.display()), &error))?, Some(path.clone()))
        }
        Origin::Archive(path) => {
            let tree = store.import_archive(path).await;
            (tree.map_err(|error| refused(&format!("archive {}", path.display()), &error))?, None)
        }
        Origin::Image(image) => {
            let tree = pull(image, store, registry).await;
            (tree?, None)
        }
    };
    Ok(Bundle { content: Arc::new(tree), directory })
}

async fn pull(
    image: &ImageReference,
    store: Store,
    registry: &RegistryOptions,
) -> Result<chandler_content::Tree, CommandError> {
    let credentials = match credentials(registry)? {
        Some((path, text)) => pull_secret_credentials(&text, image).map_err(|error| {
            CommandError::failed(format!("failed to read the credentials in {}", path.display())).because(&error)
        })?,
        None => None,
    };
    let access = ImageAccess { credentials, ..ImageAccess::default() };
    let options =
        ImageOptions { plain_http_registries: registry.plain_http_registries.clone(), ..ImageOptions::default() };
    let images = Images::new(store, options);
    let fetched = async { images.fetch(&images.resolve(image, &access).await?, &access).await };
    fetched.await.map_err(|error| refused(&format!("image {image}"), &error))
}

/// The file with the credentials of registries, if there is one.
fn credentials(registry: &RegistryOptions) -> Result<Option<(PathBuf, Vec<u8>)>, CommandError> {
    let chosen = registry.registry_config.clone();
    let is_chosen = chosen.is_some();
    let Some(path) = chosen.or_else(|| env::home_dir().map(|home| home.join(".docker/config.json"))) else {
        return Ok(None);
    };
    match crate::file::read_trusted(&path, CREDENTIALS) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if error.is_missing() && !is_chosen => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn refused(what: &str, error: &ContentError) -> CommandError {
    let refused = CommandError::failed(format!("failed to read {what}")).because(error);
    match error.class() {
        FailureClass::Transient => refused.hint("try again; this kind of failure passes"),
        FailureClass::Unavailable => refused
            .hint("check the name and the credentials (--registry-config); `docker login` writes the default file"),
        FailureClass::Permanent => refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn what_is_on_the_disk_comes_first_and_the_rest_must_look_like_an_image() {
        assert_eq!(Origin::parse("src").unwrap(), Origin::Directory("src".into()));
        assert_eq!(Origin::parse("Cargo.toml").unwrap(), Origin::Archive("Cargo.toml".into()));
        for image in [
            "quay.io/example/bundle:v1",
            "localhost/bundle",
            "registry:5000/bundle",
            "busybox:1",
            "example/bundle@sha256:",
        ] {
            assert!(is_like_an_image(image), "{image}");
        }
        assert!(matches!(Origin::parse("quay.io/example/bundle:v1").unwrap(), Origin::Image(_)));
        for text in ["./not-there", "/not/there", "not-there", "a/b:c:d", "not/there", "X.io/../y", &"x/".repeat(5000)]
        {
            assert_eq!(Origin::parse(text).unwrap_err().kind(), Kind::Usage, "{text}");
        }
    }
}
