//! Opens catalogs: directories, files, archives, URLs, images and Catalogs of the cluster, each with its index in the cache.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use chandler_catalog::{
    BuildError, Directory, DirectoryError, Index, IndexCatalogs, Indexes, Limits, StoreError, lint, names,
};
use chandler_content::{ContentError, ImageError};
use chandler_core::{Content, Diagnostic, Digest};
use chandler_resolver::Source;
use chandler_source::CATALOG_LABEL;
use kube::Client;

use super::{
    cache,
    cluster::ConnectionOptions,
    cluster_catalogs::{self, CatalogKind, ClusterCatalogs},
    naming,
    origin::{self, Origin},
    registry_settings::RegistryOptions,
    source,
};
use crate::{
    CommandError,
    view::{invocation::quoted, terminal::Terminal, text::one_line},
};

/// The most indexes that the cache keeps.
const KEPT: usize = 32;
/// The most findings about one catalog.
pub const MOST_FINDINGS: usize = 1_000;
/// The most names of packages that a message suggests.
const SUGGESTIONS: usize = 5;

/// Which catalogs are opened, and how.
#[derive(Clone, Debug, Default)]
pub struct CatalogOptions {
    /// Catalogs as `CATALOG` or `NAME=CATALOG`; if there are none, all of the cluster.
    pub catalogs: Vec<String>,
    /// Priorities by the name of the catalog, which replace the Catalogs' own.
    pub priorities: Vec<(String, i32)>,
    /// The kinds of objects that are the catalogs of the cluster.
    pub kinds: Vec<CatalogKind>,
    /// How catalogs are fetched.
    pub fetching: FetchOptions,
    /// The cluster.
    pub connection: ConnectionOptions,
    /// The namespace of the controller, with the ConfigMaps of Catalogs.
    pub system_namespace: String,
}

/// How catalogs are fetched, and where they are kept.
#[derive(Clone, Debug, Default)]
pub struct FetchOptions {
    /// How registries are reached.
    pub registry: RegistryOptions,
    /// The directory of the cache; `None` for the default one.
    pub cache_directory: Option<PathBuf>,
}

/// The files of one catalog.
pub struct CatalogContent {
    /// The files.
    pub content: Arc<dyn Content>,
    /// The directory on disk that holds them, if there is one.
    pub directory: Option<PathBuf>,
}

/// Opens the catalogs of the options: those that they name, else all Catalogs of the cluster.
pub async fn open(options: &CatalogOptions, terminal: &Terminal) -> Result<IndexCatalogs, CommandError> {
    open_with_client(options, terminal).await.map(|(catalogs, _)| catalogs)
}

/// As [`open`], with a client for the cluster if a catalog is one of the cluster.
pub async fn open_with_client(
    options: &CatalogOptions,
    terminal: &Terminal,
) -> Result<(IndexCatalogs, Option<Client>), CommandError> {
    let cluster = ClusterCatalogs::of(options).for_use_with(terminal);
    let catalogs = selected(options, &cluster).await?;
    Ok((catalogs, cluster.connected().cloned()))
}

/// Opens the catalogs that the user selects, else all Catalogs of the cluster.
pub async fn selected(options: &CatalogOptions, cluster: &ClusterCatalogs<'_>) -> Result<IndexCatalogs, CommandError> {
    let mut places: BTreeMap<String, &str> = BTreeMap::new();
    for text in &options.catalogs {
        let (name, place) = named(text);
        let default = || if cluster_catalogs::is_name(place) { place.to_owned() } else { naming::catalog(place) };
        let name = name.map_or_else(default, str::to_owned);
        if let Some(other) = places.insert(name.clone(), place) {
            let (other, place) = (origin::shown(other), origin::shown(place));
            return Err(CommandError::usage(format!("catalogs {other} and {place} are both named {name}"))
                .hint(format!("name one of them: `--catalog other={}`", quoted(&place))));
        }
    }
    let mut opened: Vec<(Source, Arc<Index>)> = Vec::new();
    for (name, place) in &places {
        opened.push(if cluster_catalogs::is_name(place) {
            let (source, index) = cluster.open(place).await?;
            (Source { name: name.clone(), ..source }, index)
        } else {
            (Source { name: name.clone(), ..Source::default() }, index(place, &options.fetching).await?)
        });
    }
    if places.is_empty() {
        opened = cluster.open_all().await?;
    }
    let mut catalogs = IndexCatalogs::new();
    let mut priorities: BTreeMap<&str, i32> =
        options.priorities.iter().map(|(name, it)| (name.as_str(), *it)).collect();
    for (source, index) in opened {
        let priority = priorities.remove(source.name.as_str()).unwrap_or(source.priority);
        catalogs = catalogs.with(Source { priority, ..source }, index);
    }
    if let Some(name) = priorities.keys().next() {
        let known: Vec<String> = catalogs.sources().into_iter().map(|source| source.name).collect();
        return Err(CommandError::usage(format!("--catalog-priority: there is no catalog {name}"))
            .hint(format!("the catalogs are: {}", known.join(", "))));
    }
    Ok(catalogs)
}

/// The index of a catalog, from the cache or built anew.
pub async fn index(place: &str, fetching: &FetchOptions) -> Result<Arc<Index>, CommandError> {
    let cache = cache::directory(fetching.cache_directory.as_deref())?;
    let opened = content(place, &cache, fetching).await?;
    indexed(place, opened.content, &cache).await
}

/// The index of files, from the cache or built anew.
///
/// # Errors
/// The files are not a catalog, or the cache cannot be written.
pub async fn indexed(place: &str, content: Arc<dyn Content>, cache: &Path) -> Result<Arc<Index>, CommandError> {
    let (what, directory) = (place.to_owned(), cache::catalogs(cache));
    let index = blocking(move || {
        let indexes = Indexes::open(directory).map_err(|error| unusable(&what, &error))?;
        let index = indexes.get_or_build(&*content, &Limits::default());
        let index = index.map_err(|error| unusable(&what, &error))?;
        indexes.keep_newest(KEPT).map_err(|error| unusable(&what, &error))?;
        Ok(index)
    })
    .await?;
    if index.packages().next().is_none() {
        return Err(CommandError::failed(format!("{} holds no catalog: it defines no package", origin::shown(place))).hint(
            "a file-based catalog has YAML or JSON documents of the schemas olm.package, olm.channel and olm.bundle; \
             `opm render` writes one",
        ));
    }
    Ok(Arc::new(index))
}

/// The index of this digest, if the cache has it.
pub(super) async fn cached(digest: &Digest, cache: &Path) -> Result<Option<Arc<Index>>, CommandError> {
    let (digest, directory) = (digest.clone(), cache::catalogs(cache));
    blocking(move || {
        let failed = |error: StoreError| unusable(digest.as_str(), &error);
        let index = Indexes::open(directory).map_err(failed)?.get(&digest).map_err(failed)?;
        Ok(index.map(Arc::new))
    })
    .await
}

/// The files of a catalog.
pub async fn content(place: &str, cache: &Path, fetching: &FetchOptions) -> Result<CatalogContent, CommandError> {
    let is_text = |path: &Path| {
        path.extension().and_then(|it| it.to_str()).is_some_and(|it| matches!(it, "yaml" | "yml" | "json" | "jsonl"))
    };
    match Origin::parse(place)? {
        Origin::Directory(path) => {
            let (root, place) = (path.clone(), place.to_owned());
            let opened = blocking(move || {
                Directory::open(&root, Limits::default().files).map_err(|error| unreadable(&place, &error))
            });
            Ok(CatalogContent { content: Arc::new(opened.await?), directory: Some(path) })
        }
        // A device, a pipe or a socket has no end, or none that can be read twice.
        Origin::Archive(path) if !fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) => {
            Err(CommandError::usage(format!("{} is neither a file nor a directory", origin::shown(place)))
                .hint("write the catalog to a file, and name that"))
        }
        Origin::Archive(path) if is_text(&path) => {
            let (file, place) = (path.clone(), place.to_owned());
            let opened = blocking(move || Directory::file(&file).map_err(|error| unreadable(&place, &error))).await?;
            Ok(CatalogContent { content: Arc::new(opened), directory: path.parent().map(Path::to_owned) })
        }
        Origin::Image(image) => {
            let tree = source::labelled(&image, cache, &fetching.registry, CATALOG_LABEL).await;
            tree.map(|tree| CatalogContent { content: Arc::new(tree), directory: None })
        }
        origin => {
            let opened = source::open_catalog(&origin, cache, &fetching.registry).await?;
            Ok(CatalogContent { content: opened.content, directory: None })
        }
    }
}

/// What is wrong with the documents of a catalog, and with the packages that they define. Blocks on the disk.
///
/// # Errors
/// The files or the cache cannot be read.
pub fn findings(place: &str, content: &dyn Content, cache: &Path) -> Result<Vec<Diagnostic>, CommandError> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        CommandError::failed(format!("failed to check the catalog {}", origin::shown(place))).because(error)
    };
    let indexes = Indexes::open(cache::catalogs(cache)).map_err(|error| failed(&error))?;
    let built = indexes.build_for_lint(content, &Limits::default(), MOST_FINDINGS);
    let (index, mut findings) = built.map_err(|error| failed(&error))?;
    let left = MOST_FINDINGS.saturating_sub(findings.len());
    findings.extend(lint::catalog(&index, left).map_err(|error| failed(&error))?);
    findings.sort_by(|one, other| one.place.cmp(&other.place));
    Ok(findings.iter().map(chandler_catalog::Finding::diagnostic).collect())
}

/// What to do about an image that is not a catalog.
pub(super) fn image_hint(error: &ContentError) -> Option<&'static str> {
    match error {
        ContentError::Image { error: ImageError::NoLabel(_), .. } => Some(
            "the image is not a catalog: `opm generate dockerfile` writes a Dockerfile with the label; \
             `chandler render IMAGE` reads the image of a bundle",
        ),
        ContentError::Image { error: ImageError::LabelValue { .. } | ImageError::Config(_), .. } => {
            Some("build the image anew, with the Dockerfile of `opm generate dockerfile`")
        }
        _ => None,
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CommandError> + Send + 'static,
) -> Result<T, CommandError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| CommandError::failed("failed to read the catalog").because(&error))?
}

fn unreadable(place: &str, error: &DirectoryError) -> CommandError {
    let hint = match error {
        DirectoryError::NotAFile(_) => "replace links by what they point to, and remove devices",
        DirectoryError::Files(_) | DirectoryError::Depth(_) => "name the directory of the catalog, not one above it",
        DirectoryError::Name(_) => "rename the file",
        DirectoryError::Io { .. } => "check the permissions with `ls -l`",
    };
    CommandError::failed(format!("failed to read the catalog {}", origin::shown(place))).because(error).hint(hint)
}

fn unusable(place: &str, error: &StoreError) -> CommandError {
    let place = origin::shown(place);
    let failed = CommandError::failed(format!("{place} is not a catalog that can be read")).because(error);
    match error {
        StoreError::Build(BuildError::Finding(finding)) => failed
            .hint(finding.problem.help())
            .hint(format!("`chandler catalog lint {}` prints everything that is wrong", quoted(&place))),
        StoreError::Build(_) => failed,
        StoreError::Io { .. } | StoreError::Index(_) => {
            failed.hint("set another cache directory with --cache-directory")
        }
    }
}

/// No catalog has a package: the names that the user may have meant.
pub fn unknown_package(package: &str, catalogs: &IndexCatalogs) -> CommandError {
    let mut known = Vec::new();
    let mut searched = Vec::new();
    for (name, index) in catalogs.indexes() {
        searched.push(name);
        known.extend(index.packages().filter_map(Result::ok).map(|entry| entry.name));
    }
    let word = if searched.len() == 1 { "catalog" } else { "catalogs" };
    let error = CommandError::not_found(format!("no package {package} in {word} {}", searched.join(", ")));
    let similar = names::similar(package, known.iter().map(String::as_str), SUGGESTIONS);
    if similar.is_empty() {
        error.hint("`chandler catalog list --packages` lists all packages, `chandler catalog search TEXT` searches; both take --catalog too")
    } else {
        error.hint(format!("similar names: {}", one_line(&similar.join(", "))))
    }
}

/// An index that cannot be read any more.
pub fn damaged(error: &chandler_catalog::IndexError) -> CommandError {
    CommandError::failed("failed to read the index of a catalog")
        .because(error)
        .hint("run the command again: a damaged index is built anew")
}

/// The name, if there is one, and the place of a catalog. A name has only the characters of a DNS label or a dot, so that no path and
/// no URL with `=` is cut.
fn named(text: &str) -> (Option<&str>, &str) {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    match text.split_once('=') {
        Some((name, place)) if is_name(name) => (Some(name), place),
        _ => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_before_the_first_equals_sign() {
        for (text, expected) in [
            ("./catalog", (None, "./catalog")),
            ("mine=./catalog", (Some("mine"), "./catalog")),
            ("mine=./a=b", (Some("mine"), "./a=b")),
            ("./a=b", (None, "./a=b")),
            ("https://example.com/c.tgz?x=1", (None, "https://example.com/c.tgz?x=1")),
            ("=./catalog", (None, "=./catalog")),
        ] {
            assert_eq!(named(text), expected, "{text}");
        }
    }
}
