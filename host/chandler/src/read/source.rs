//! Opens a bundle, wherever it is.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use chandler_content::{
    AccessError, ArchiveError, ArchiveUrl, ChartError, ContentError, DownloadError, Downloaded, FailureClass,
    ImageAccess, ImageOptions, ImageReference, Images, Limits, RegistryError, ResolvedArchive, ServerFailure, Store,
    Tree,
};
use chandler_core::{Content, Digest};
use chandler_proxies::Proxies;

use super::{
    cache, catalogs,
    chart_files::ChartFiles,
    credentials::UserCredentials,
    origin::Origin,
    registry_settings::{self, RegistryOptions},
    text_file,
};
use crate::{CommandError, view::invocation::quoted};

/// The file at the root of each chart.
pub(super) const CHART: &str = "Chart.yaml";
/// What helps where the settings for registries forbid to contact one.
const BLOCKED_HINT: &str = "see registries.conf; --registries-conf names another file";

/// An open bundle.
pub struct Bundle {
    /// Its files.
    pub content: Arc<dyn Content>,
    /// The directory on disk that holds them, if there is one.
    pub directory: Option<PathBuf>,
}

/// Opens a bundle, and fetches it if it is an image or a URL. The content is copied into the cache first, so that it does not change while it is
/// rendered.
pub async fn open(origin: &Origin, cache: &Path, registry: &RegistryOptions) -> Result<Bundle, CommandError> {
    open_into(store(cache).await?, origin, registry).await
}

/// Like [`open`], for a catalog, which may be larger.
pub async fn open_catalog(origin: &Origin, cache: &Path, registry: &RegistryOptions) -> Result<Bundle, CommandError> {
    open_into(store_with(cache, Limits::for_catalogs()).await?, origin, registry).await
}

async fn open_into(store: Store, origin: &Origin, registry: &RegistryOptions) -> Result<Bundle, CommandError> {
    let (tree, directory) = match origin {
        Origin::Directory(path) => {
            let (tree, path) = directory(&store, path).await?;
            (tree, Some(path))
        }
        Origin::Archive(path) => {
            if let Some(error) = text_file::error(path) {
                return Err(error);
            }
            let tree = store.import_archive(path).await;
            (tree.map_err(|error| refused(&format!("archive {}", path.display()), &error))?, None)
        }
        Origin::Image(image) => {
            let tree = pull(image, store, registry).await;
            (tree?, None)
        }
        Origin::Http(url, digest) => {
            let tree = download(url, digest.as_ref(), &images(store, registry)?).await;
            (tree.map_err(|error| refused(&format!("archive {url}"), &error))?, None)
        }
        Origin::Git(git) => {
            let tree = Box::pin(git.files(&images(store, registry)?)).await;
            (tree.map_err(|error| refused(&chandler_source::describe(&git.to_source()), &error))?, None)
        }
        Origin::Chart(chart) => {
            let tree = Box::pin(chart.files(&images(store, registry)?)).await;
            (tree.map_err(|error| refused(&chandler_source::describe(&chart.to_source()), &error))?, None)
        }
    };
    Ok(Bundle { content: Arc::new(tree), directory })
}

/// The files of a directory, and the directory that they begin in: like an archive, a directory that has nothing but the directory of a chart is
/// the chart. A chart has the files that `helm package` would pack, so that an archive of it has the same digest.
async fn directory(store: &Store, path: &Path) -> Result<(Tree, PathBuf), CommandError> {
    let import = async |path: &Path| {
        if let Some(chart) = ChartFiles::of(path)? {
            return chart.import(store).await;
        }
        let tree = store.import_directory(path).await;
        tree.map_err(|error| refused(&format!("directory {}", path.display()), &error))
    };
    let tree = import(path).await?;
    match only_chart(&tree) {
        Some(chart) => {
            let path = path.join(chart);
            Ok((import(&path).await?, path))
        }
        None => Ok((tree, path.to_owned())),
    }
}

/// The directory that has all files, if it is the directory of a chart.
fn only_chart(tree: &dyn Content) -> Option<String> {
    let first = tree.entries("", None, 1).into_iter().next()?;
    let (directory, _) = first.path.split_once('/')?;
    let below = format!("{directory}/");
    // Paths are in order: what is not below the directory comes before all that is, or after it.
    if !tree.entries("", Some(&format!("{below}{}", char::MAX)), 1).is_empty() {
        return None;
    }
    let chart = format!("{below}{CHART}");
    tree.entries(&chart, None, 1).first().filter(|entry| entry.path == chart).map(|_| directory.to_owned())
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
    registry: &RegistryOptions,
    label: &str,
) -> Result<Tree, CommandError> {
    let access = access(image, registry).await?;
    let images = catalog_images(cache, registry).await?;
    let fetched = async { images.fetch_labelled(&images.resolve(image, &access).await?, &access, label).await };
    fetched.await.map_err(|error| {
        let failed = CommandError::failed(format!("failed to read catalog image {image}")).because(&error);
        failed.hint(catalogs::image_hint(&error).map_or_else(|| hint(&error), str::to_owned))
    })
}

async fn pull(image: &ImageReference, store: Store, registry: &RegistryOptions) -> Result<Tree, CommandError> {
    let access = access(image, registry).await?;
    let images = images(store, registry)?;
    let fetched = async { images.fetch(&images.resolve(image, &access).await?, &access).await };
    fetched.await.map_err(|error| refused(&format!("image {image}"), &error))
}

/// The client for catalogs, with the limits for them.
pub(super) async fn catalog_images(cache: &Path, registry: &RegistryOptions) -> Result<Images, CommandError> {
    images(store_with(cache, Limits::for_catalogs()).await?, registry)
}

/// The credentials for a registry, and those for mirrors.
pub async fn access(image: &ImageReference, registry: &RegistryOptions) -> Result<ImageAccess, CommandError> {
    let user = UserCredentials::read(registry)?;
    let credentials = user.find(image).await.map_err(|error| {
        CommandError::failed(format!("failed to read the credentials for {}", image.registry_name()))
            .because(&error)
            .hint("`docker login` writes such a file; --registry-config names another one")
    })?;
    Ok(ImageAccess { credentials, keyring: Some(Arc::new(user)), ..ImageAccess::default() })
}

async fn download(url: &ArchiveUrl, digest: Option<&Digest>, images: &Images) -> Result<Tree, ContentError> {
    let (archives, access) = (images.archives(), ImageAccess::default());
    let archive = match digest {
        Some(digest) => ResolvedArchive::new(url.clone(), digest.clone()),
        None => archives.resolve(url, &access).await?,
    };
    archives.fetch(&archive, &access).await
}

/// A client with the settings of this machine.
pub fn images(store: Store, registry: &RegistryOptions) -> Result<Images, CommandError> {
    Ok(Images::new(store, image_options(registry)?))
}

/// How registries are reached from this machine, to pull and to push.
pub fn image_options(registry: &RegistryOptions) -> Result<ImageOptions, CommandError> {
    let plain_http_registries = registry.plain_http_registries.clone();
    let registries = registry_settings::of(registry)?;
    let proxies = Proxies::from_environment();
    Ok(ImageOptions { plain_http_registries, registries, proxies, ..ImageOptions::default() })
}

/// The error for content that could not be read, with what helps.
pub(super) fn refused(what: &str, error: &ContentError) -> CommandError {
    CommandError::failed(format!("failed to read {what}")).because(error).hint(hint(error))
}

/// What helps.
pub fn hint(error: &ContentError) -> String {
    let text = match error {
        ContentError::Registry(error) => return registry_hint(error),
        ContentError::Endpoints { decisive, .. } => return hint(decisive),
        ContentError::Blocked { .. } => BLOCKED_HINT,
        ContentError::Download(error) => return download_hint(error),
        ContentError::Checksum { .. } => {
            "check the digest, or download the archive and look at it; the server may have replaced it"
        }
        ContentError::DownloadedArchive { what: Downloaded::HelmIndex, .. } => {
            "check the URL of the repository, which `helm repo add NAME URL` must accept as well; for an archive, write its URL without `helm+`"
        }
        ContentError::Archive(error)
        | ContentError::DownloadedArchive { error, .. }
        | ContentError::Checkout { error, .. } => archive_hint(error),
        ContentError::Chart { error: ChartError::InRegistry { image, .. }, .. } => {
            return format!("name the image instead: `{}`", quoted(image));
        }
        ContentError::Chart { repository, .. } => {
            return format!(
                "check the chart and its version in the index: `curl -sL {}`",
                quoted(&format!("{}/index.yaml", repository.trim_end_matches('/')))
            );
        }
        ContentError::Git { .. } => {
            "check the URL of the repository, its revision and its directory: `git ls-remote URL`"
        }
        ContentError::Access(AccessError::HostCertificates { registry, .. }) => {
            return format!(
                "check the files in ~/.config/containers/certs.d/{registry}, or in /etc/containers/certs.d"
            );
        }
        ContentError::Access(_) | ContentError::Reference(_) => {
            "check the image and --registry-config; `docker login` writes the default file"
        }
        ContentError::Image { .. } | ContentError::Layer { .. } if error.class() == FailureClass::Permanent => {
            "check that the image is a bundle, and not a program: the layers of a bundle hold manifests/"
        }
        ContentError::Store(_) => "set another cache directory with --cache-directory",
        _ => "try again; the transfer was not complete",
    };
    text.to_owned()
}

fn archive_hint(error: &ArchiveError) -> &'static str {
    match error {
        ArchiveError::Malformed(_) | ArchiveError::MalformedZip(_) | ArchiveError::HelmIndex(_) => {
            "a bundle is a directory, an archive (.tar, .tar.gz, .tgz, .tar.zst, .zip) or an image"
        }
        ArchiveError::Entry { .. } => "remove the entry from the bundle, or replace it by a regular file",
        ArchiveError::Limit(_) => "make the bundle smaller",
    }
}

/// What helps if no file descriptor is left.
const NO_DESCRIPTOR_HINT: &str = "raise the limit before you try again: `ulimit -n`";

fn download_hint(error: &DownloadError) -> String {
    let DownloadError { what, failure, .. } = error;
    // Servers choose where they redirect to.
    let (url, server) = (quoted(&error.url), quoted(&error.server));
    match failure {
        ServerFailure::NotFound | ServerFailure::Protocol | ServerFailure::Unauthorized
            if *what == Downloaded::Repository =>
        {
            format!(
                "check the URL: `git ls-remote {url}`; clone a repository that needs credentials, and use the directory"
            )
        }
        ServerFailure::Network | ServerFailure::Unavailable => {
            format!("try again when the server is up; to check it: `curl -iL {url}`")
        }
        ServerFailure::NameNotResolved => {
            format!("check the spelling of {server} and the DNS of this machine: `getent hosts {server}`")
        }
        ServerFailure::NoDescriptor => NO_DESCRIPTOR_HINT.to_owned(),
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
        ServerFailure::HostKey => {
            "compare the key in ssh-knownhosts of the Secret with the one that the host publishes".to_owned()
        }
        ServerFailure::Plaintext if *what == Downloaded::HelmIndex => {
            format!(
                "use https, or name one version with its digest (&version=…&sha256=…), or allow the server: --plain-http-registry {server}"
            )
        }
        ServerFailure::Plaintext => {
            format!(
                "use https, or add the digest: `{url}#sha256=…`, or allow the server: --plain-http-registry {server}"
            )
        }
        ServerFailure::Address => format!("check the address of {server}, and where it redirects: `curl -iL {url}`"),
        ServerFailure::Blocked => BLOCKED_HINT.to_owned(),
    }
}

fn registry_hint(error: &RegistryError) -> String {
    let image: Option<ImageReference> = error.image.parse().ok();
    let host = image.as_ref().map_or("HOST", ImageReference::registry);
    let repository = image.as_ref().map_or("REPOSITORY", ImageReference::repository);
    let scheme = if error.is_plain { "http" } else { "https" };
    match error.failure {
        ServerFailure::Network | ServerFailure::Unavailable => {
            format!("try again when the registry is up; to check it: `curl -i {scheme}://{host}/v2/`")
        }
        ServerFailure::NameNotResolved => {
            format!("check the spelling of {host} and the DNS of this machine: `getent hosts {host}`")
        }
        ServerFailure::NoDescriptor => NO_DESCRIPTOR_HINT.to_owned(),
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
        ServerFailure::Tls => format!(
            "trust the authority of the registry: put its certificate into ~/.config/containers/certs.d/{host}/ca.crt"
        ),
        ServerFailure::Plaintext => {
            format!("give {host} a certificate; on this machine, --plain-http-registry {host} allows to send them")
        }
        ServerFailure::Protocol => format!("check that {host} is an OCI registry: `curl -i {scheme}://{host}/v2/`"),
        ServerFailure::Blocked => BLOCKED_HINT.to_owned(),
        // Registries have no host key.
        ServerFailure::Address | ServerFailure::HostKey => {
            format!("check the address of {host}, and where it redirects: `curl -iL {scheme}://{host}/v2/`")
        }
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::MemoryContent;

    use super::*;

    #[test]
    fn a_directory_with_one_chart_is_the_chart() {
        let of =
            |paths: &[&str]| only_chart(&MemoryContent::new(paths.iter().map(|path| (*path, "")))).unwrap_or_default();
        assert_eq!(of(&["web/.helmignore", "web/Chart.yaml", "web/charts/a/Chart.yaml"]), "web");
        for paths in [
            &[][..],
            &["Chart.yaml", "templates/a.yaml"],
            &["web/Chart.yaml", "README.md"],
            &["web/Chart.yaml", "web-2/a.yaml"],
            &["web/Chart.yaml", "web0"],
            &["web/Chart.yaml.bak"],
            &["charts/web/Chart.yaml"],
            &["manifests/a.yaml", "metadata/annotations.yaml"],
        ] {
            assert_eq!(of(paths), "", "{paths:?}");
        }
        let many = (0..3000).map(|number| format!("web/{number:05}")).chain(["web/Chart.yaml".to_owned()]);
        let many: Vec<String> = many.collect();
        let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(of(&many), "web");
        many.push("zoo");
        assert_eq!(of(&many), "");
    }
}
