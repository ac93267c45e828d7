//! Opens a bundle: a directory, an archive, an image, or an archive of an HTTP server.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use chandler_content::{
    ArchiveError, ArchiveUrl, ArchiveUrlError, ContentError, DownloadError, FailureClass, ImageAccess, ImageOptions,
    ImageReference, Images, Limits, RegistryError, ResolvedArchive, ServerFailure, Store, Tree,
    pull_secret_credentials,
};
use chandler_core::{Content, Digest};

use super::{cache, catalogs, file};
use crate::{CommandError, arguments::registry::RegistryArguments};

/// The largest file with registry credentials, in bytes.
const CREDENTIALS_LIMIT: u64 = 1 << 20;

/// Where a bundle is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A directory on this machine.
    Directory(PathBuf),
    /// An archive on this machine.
    Archive(PathBuf),
    /// An image in a registry.
    Image(Box<ImageReference>),
    /// An archive on an HTTP server, and its digest if it is known.
    Http(Box<ArchiveUrl>, Option<Digest>),
}

/// An open bundle.
pub struct Bundle {
    /// Its files.
    pub content: Arc<dyn Content>,
    /// The directory on disk that holds them, if there is one.
    pub directory: Option<PathBuf>,
}

impl Origin {
    /// Parses the argument: a path that exists, else a URL or an image reference.
    pub fn parse(text: &str) -> Result<Self, CommandError> {
        let path = Path::new(text);
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Ok(Self::Directory(path.to_owned())),
            Ok(_) => return Ok(Self::Archive(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(CommandError::failed(format!("failed to open {text}"))
                    .because(&error)
                    .hint(format!("check the permissions: `ls -ld {text}`")));
            }
            // The text cannot be a path, for example because it is too long.
            Err(_) => {}
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            return Self::parse_url(text, scheme, rest);
        }
        let missing = || CommandError::usage(format!("{text}: no such file or directory"));
        if !is_like_an_image(text) {
            return Err(missing().hint("write an image with its registry and tag: `quay.io/example/bundle:v1`"));
        }
        match text.parse() {
            Ok(image) => Ok(Self::Image(Box::new(image))),
            Err(error) => {
                Err(CommandError::usage(format!("{text} is neither a file nor a directory, and no valid image either"))
                    .because(&error)
                    .hint(image_hint(text)))
            }
        }
    }
}

impl Origin {
    /// Parses a URL: of an archive, with its digest as a fragment `#sha256=…`.
    fn parse_url(text: &str, scheme: &str, rest: &str) -> Result<Self, CommandError> {
        let last = rest.rsplit('/').next().unwrap_or_default();
        if !matches!(scheme, "http" | "https") || rest.contains('/') && last.contains([':', '@']) {
            return Err(CommandError::usage(format!(
                "{text} is a URL, not a directory, an archive or an image"
            ))
            .hint(format!(
                "write an image without `{scheme}://`: `{}`; archives have URLs such as https://example.com/bundle.tgz",
                rest.trim_end_matches('/')
            )));
        }
        let (url, fragment) = text.split_once('#').map_or((text, None), |(url, fragment)| (url, Some(fragment)));
        let digest = fragment.map(|fragment| {
            let hex = fragment.strip_prefix("sha256=").unwrap_or_default();
            format!("sha256:{hex}").parse::<Digest>().map_err(|_| {
                CommandError::usage(format!("{url} has a fragment that is not a digest")).hint(
                    "write the digest as `#sha256=` and 64 hexadecimal digits in lower case, as `sha256sum` prints it",
                )
            })
        });
        let url = url.parse().map_err(|error| match error {
            // The text may have a password.
            ArchiveUrlError::Credentials => CommandError::usage("the URL of the bundle has a user name or a password")
                .hint("download the archive with `curl --netrc -O URL`, and use the file"),
            error => CommandError::usage(format!("{url} is not the URL of an archive")).because(&error),
        })?;
        Ok(Self::Http(Box::new(url), digest.transpose()?))
    }
}

/// What is most likely wrong with an image that cannot be parsed.
fn image_hint(text: &str) -> &'static str {
    match text.split_once('@') {
        Some((_, digest)) if digest.len() != "sha256:".len() + 64 => "a digest is `sha256:` and 64 hexadecimal digits",
        _ if text.contains(|c: char| c.is_ascii_uppercase()) => "write the repository in lower case",
        _ => "write an image with its registry and tag: `quay.io/example/bundle:v1`",
    }
}

/// Whether a text that is not a path looks like an image reference: it has a registry, a tag or a digest. Container tools would look
/// for anything else on Docker Hub, but a mistyped path is more likely.
fn is_like_an_image(text: &str) -> bool {
    let (registry, path) = text.split_once('/').unwrap_or(("", text));
    let path_only = text.starts_with(['/', '.']);
    !path_only && (registry.contains(['.', ':']) || registry == "localhost" || path.contains([':', '@']))
}

/// Opens a bundle, and fetches it if it is an image or a URL. The content is copied into the cache first, so that it does not change while it is
/// rendered.
pub async fn open(origin: &Origin, cache: &Path, registry: &RegistryArguments) -> Result<Bundle, CommandError> {
    open_into(store(cache).await?, origin, registry).await
}

/// The same for a catalog, which may be larger.
pub async fn open_catalog(origin: &Origin, cache: &Path, registry: &RegistryArguments) -> Result<Bundle, CommandError> {
    open_into(store_with(cache, Limits::for_catalogs()).await?, origin, registry).await
}

async fn open_into(store: Store, origin: &Origin, registry: &RegistryArguments) -> Result<Bundle, CommandError> {
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
        Origin::Http(url, digest) => {
            let tree = download(url, digest.as_ref(), store, registry).await;
            (tree.map_err(|error| refused(&format!("archive {url}"), &error))?, None)
        }
    };
    Ok(Bundle { content: Arc::new(tree), directory })
}

/// The store of content in the cache.
pub async fn store(cache: &Path) -> Result<Store, CommandError> {
    store_with(cache, Limits::default()).await
}

async fn store_with(cache: &Path, limits: Limits) -> Result<Store, CommandError> {
    let directory = cache::content(cache);
    tokio::task::spawn_blocking(move || Store::open(&directory, limits))
        .await
        .map_err(|error| CommandError::failed("failed to open the cache").because(&error))?
        .map_err(|error| {
            CommandError::failed("failed to open the cache")
                .because(&error)
                .hint("set another directory with --cache-directory")
        })
}

/// The files of an image below the directory that a label names.
pub async fn labelled(
    image: &ImageReference,
    cache: &Path,
    registry: &RegistryArguments,
    label: &str,
) -> Result<Tree, CommandError> {
    let access = access(image, registry)?;
    let images = catalog_images(cache, registry).await?;
    let fetched = async { images.fetch_labelled(&images.resolve(image, &access).await?, &access, label).await };
    fetched.await.map_err(|error| {
        let failed = CommandError::failed(format!("failed to read catalog image {image}")).because(&error);
        failed.hint(catalogs::image_hint(&error).map_or_else(|| hint(&error), str::to_owned))
    })
}

async fn pull(image: &ImageReference, store: Store, registry: &RegistryArguments) -> Result<Tree, CommandError> {
    let access = access(image, registry)?;
    let images = images(store, registry);
    let fetched = async { images.fetch(&images.resolve(image, &access).await?, &access).await };
    fetched.await.map_err(|error| refused(&format!("image {image}"), &error))
}

/// The client for catalogs, with the limits for them.
pub(super) async fn catalog_images(cache: &Path, registry: &RegistryArguments) -> Result<Images, CommandError> {
    Ok(images(store_with(cache, Limits::for_catalogs()).await?, registry))
}

/// The credentials for a registry.
fn access(image: &ImageReference, registry: &RegistryArguments) -> Result<ImageAccess, CommandError> {
    let credentials = match credentials(registry)? {
        Some((path, text)) => pull_secret_credentials(&text, image).map_err(|error| {
            CommandError::failed(format!("failed to read the credentials in {}", path.display()))
                .because(&error)
                .hint("`docker login` writes such a file; --registry-config names another one")
        })?,
        None => None,
    };
    Ok(ImageAccess { credentials, ..ImageAccess::default() })
}

async fn download(
    url: &ArchiveUrl,
    digest: Option<&Digest>,
    store: Store,
    registry: &RegistryArguments,
) -> Result<Tree, ContentError> {
    let (archives, access) = (images(store, registry).archives(), ImageAccess::default());
    let archive = match digest {
        Some(digest) => ResolvedArchive::new(url.clone(), digest.clone()),
        None => archives.resolve(url, &access).await?,
    };
    archives.fetch(&archive, &access).await
}

fn images(store: Store, registry: &RegistryArguments) -> Images {
    let plain_http_registries = registry.plain_http_registries.clone();
    Images::new(store, ImageOptions { plain_http_registries, ..ImageOptions::default() })
}

/// The file with registry credentials and its content, if it exists.
fn credentials(registry: &RegistryArguments) -> Result<Option<(PathBuf, Vec<u8>)>, CommandError> {
    let chosen = registry.registry_config.clone();
    let is_chosen = chosen.is_some();
    let Some(path) = chosen.or_else(|| env::home_dir().map(|home| home.join(".docker/config.json"))) else {
        return Ok(None);
    };
    match file::read_trusted(&path, CREDENTIALS_LIMIT) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if error.is_missing() && !is_chosen => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn refused(what: &str, error: &ContentError) -> CommandError {
    CommandError::failed(format!("failed to read {what}")).because(error).hint(hint(error))
}

/// What helps.
fn hint(error: &ContentError) -> String {
    let text = match error {
        ContentError::Registry(error) => return registry_hint(error),
        ContentError::Download(error) => return download_hint(error),
        ContentError::Checksum { .. } => {
            "check the digest, or download the archive and look at it; the server may have replaced it"
        }
        ContentError::Archive(error)
        | ContentError::DownloadedArchive { error, .. }
        | ContentError::Checkout { error, .. } => archive_hint(error),
        ContentError::Git { .. } => "check the URL of the repository and its ref: `git ls-remote URL`",
        ContentError::Access(_) | ContentError::Reference(_) => {
            "check the image and --registry-config; `docker login` writes the default file"
        }
        ContentError::Image { .. } | ContentError::Layer { .. } if error.class() == FailureClass::Permanent => {
            "check that the image is a bundle, and not that of a program: its layers hold manifests/"
        }
        ContentError::Store(_) => "set another cache directory with --cache-directory",
        _ => "try again; the transfer was not complete",
    };
    text.to_owned()
}

fn archive_hint(error: &ArchiveError) -> &'static str {
    match error {
        ArchiveError::Malformed(_) | ArchiveError::MalformedZip(_) => {
            "a bundle is a directory, an archive (.tar, .tar.gz, .tgz, .tar.zst, .zip) or an image"
        }
        ArchiveError::Entry { .. } => "remove the entry from the bundle, or replace it by a regular file",
        ArchiveError::Limit(_) => "make the bundle smaller",
    }
}

fn download_hint(error: &DownloadError) -> String {
    let DownloadError { url, server, failure, .. } = error;
    match failure {
        ServerFailure::Network | ServerFailure::Unavailable => {
            format!("try again when the server is up; to check it: `curl -iL {url}`")
        }
        ServerFailure::NameNotResolved => {
            format!("check the spelling of {server} and the DNS of this machine: `getent hosts {server}`")
        }
        ServerFailure::RateLimited => "wait before you try again".to_owned(),
        ServerFailure::TooSlow => "try again; the connection is slow".to_owned(),
        ServerFailure::NotFound | ServerFailure::Protocol => format!("check the URL: `curl -iL {url}`"),
        ServerFailure::Unauthorized => {
            "check the URL; if it needs credentials, download the archive with `curl --netrc -O URL`, and use the file"
                .to_owned()
        }
        ServerFailure::Tls => {
            "trust the authority of the server: set SSL_CERT_FILE to a file with its certificate".to_owned()
        }
        ServerFailure::Plaintext => {
            format!(
                "use https, or add the digest: `{url}#sha256=…`, or allow the server: --plain-http-registry {server}"
            )
        }
        ServerFailure::Address => format!("check the address of {server}, and where it redirects: `curl -iL {url}`"),
    }
}

fn registry_hint(error: &RegistryError) -> String {
    let image: Option<ImageReference> = error.image.parse().ok();
    let host = image.as_ref().map_or("HOST", ImageReference::registry);
    let repository = image.as_ref().map_or("REPOSITORY", ImageReference::repository);
    match error.failure {
        ServerFailure::Network | ServerFailure::Unavailable => {
            format!("try again when the registry is up; to check it: `curl -i https://{host}/v2/`")
        }
        ServerFailure::NameNotResolved => {
            format!("check the spelling of {host} and the DNS of this machine: `getent hosts {host}`")
        }
        ServerFailure::RateLimited => {
            format!("wait before you try again; `docker login {host}` raises the limit of many registries")
        }
        ServerFailure::TooSlow => "try again; the connection is slow".to_owned(),
        ServerFailure::NotFound => {
            format!("check the name; to list the tags: `skopeo list-tags docker://{host}/{repository}`")
        }
        ServerFailure::Unauthorized => format!(
            "check the name and the credentials (--registry-config): `docker login {host}` writes the default file; many registries \
             deny access to a repository that does not exist"
        ),
        ServerFailure::Tls => {
            "trust the authority of the registry: set SSL_CERT_FILE to a file with its certificate".to_owned()
        }
        ServerFailure::Protocol => format!("check that {host} is an OCI registry: `curl -i https://{host}/v2/`"),
        ServerFailure::Address | ServerFailure::Plaintext => {
            format!("check the address of {host}, and whether it needs --plain-http-registry")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::error::FailureKind;

    #[test]
    fn a_path_that_exists_comes_first_and_any_other_text_must_look_like_an_image() {
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
        let archive = "https://example.com/harbour.tgz";
        let digest = "0".repeat(64);
        let parsed = Origin::parse(&format!("{archive}#sha256={digest}")).unwrap();
        assert_eq!(parsed, Origin::Http(Box::new(archive.parse().unwrap()), format!("sha256:{digest}").parse().ok()));
        assert!(matches!(Origin::parse("http://localhost:8080/harbour.zip?x=1").unwrap(), Origin::Http(_, None)));
        for text in [
            "https://quay.io/example/bundle:v1",
            "oci://quay.io/example/bundle",
            "ftp://example.com/a.tgz",
            "https://user:s3cret@example.com/a.tgz",
            "https://example.com/a.tgz#sha256=0",
            "https://example.com/a.tgz#md5=0",
        ] {
            let error = Origin::parse(text).unwrap_err();
            assert_eq!(error.kind(), FailureKind::Usage, "{text}");
        }
        for text in ["./not-there", "/not/there", "not-there", "a/b:c:d", "not/there", "X.io/../y", &"x/".repeat(5000)]
        {
            assert_eq!(Origin::parse(text).unwrap_err().kind(), FailureKind::Usage, "{text}");
        }
    }
}
