//! Catalogs of the cluster: which there are, and their files, fetched with the rights of the user.

use std::{path::Path, sync::Arc};

use chandler_api::{BundleSource, Catalog, ConditionType, OlmCatalogs, find_condition};
use chandler_catalog::{Index, IndexCatalogs};
use chandler_core::Content;
use chandler_resolver::Source;
use chandler_source::{Grantee, Resolutions, Sources, SystemNamespace, Wanted};
use kube::{Api, Client, ResourceExt, api::ListParams};
use tokio::sync::OnceCell;

use super::{
    cache,
    catalogs::{self, CatalogOptions, FetchOptions},
    cluster::{self, ConnectionOptions},
    foreign_catalogs,
    origin::{Origin, is_bundle},
    source,
};
use crate::{
    CommandError,
    view::{cluster_catalogs::inspect, terminal::Terminal, text::one_line},
};

/// Objects that are catalogs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogKind {
    /// Catalogs of Chandler.
    Catalogs,
    /// Catalogs of OLM.
    Olm(OlmCatalogs),
}

/// The Catalogs of a cluster. The command connects when the first one is needed.
pub struct ClusterCatalogs<'a> {
    connection: &'a ConnectionOptions,
    system_namespace: &'a str,
    fetching: &'a FetchOptions,
    client: OnceCell<Client>,
    terminal: Option<&'a Terminal>,
    kinds: &'a [CatalogKind],
}

/// Whether a text is the name of a Catalog of the cluster, and neither a path that exists, nor a URL or an image.
pub fn is_name(text: &str) -> bool {
    !is_bundle(text) && !text.is_empty() && !Path::new(text).exists()
}

impl<'a> ClusterCatalogs<'a> {
    /// The Catalogs of the cluster that the connection selects.
    pub fn new(connection: &'a ConnectionOptions, system_namespace: &'a str, fetching: &'a FetchOptions) -> Self {
        Self {
            connection,
            system_namespace,
            fetching,
            client: OnceCell::new(),
            terminal: None,
            kinds: &[CatalogKind::Catalogs],
        }
    }

    /// The catalogs of the cluster that the options select, of their kinds.
    pub fn of(options: &'a CatalogOptions) -> Self {
        Self::new(&options.connection, &options.system_namespace, &options.fetching).from(&options.kinds)
    }

    /// The Catalogs of a connected cluster.
    #[must_use]
    pub fn with_client(self, client: &Client) -> Self {
        Self { client: OnceCell::new_with(Some(client.clone())), ..self }
    }

    /// Reads objects of these kinds as if they were Catalogs.
    #[must_use]
    pub fn from(self, kinds: &'a [CatalogKind]) -> Self {
        Self { kinds, ..self }
    }

    /// Reports Catalogs that are left out.
    #[must_use]
    pub fn for_use_with(self, terminal: &'a Terminal) -> Self {
        Self { terminal: Some(terminal), ..self }
    }

    /// A client for the cluster.
    pub async fn client(&self) -> Result<&Client, CommandError> {
        self.client.get_or_try_init(|| cluster::client(self.connection)).await
    }

    /// The client, if one was needed until now.
    pub fn connected(&self) -> Option<&Client> {
        self.client.get()
    }

    /// All Catalogs, by name.
    pub async fn list(&self) -> Result<Vec<Catalog>, CommandError> {
        let client = self.client().await?;
        let mut all = Vec::new();
        for (number, kind) in self.kinds.iter().enumerate() {
            // One that is given twice counts once.
            if self.kinds.iter().take(number).any(|before| before == kind) {
                continue;
            }
            match kind {
                CatalogKind::Catalogs => {
                    let catalogs = Api::<Catalog>::all(client.clone()).list(&ListParams::default()).await;
                    let failed =
                        |error| CommandError::failed("failed to list the Catalogs of the cluster").because(&error);
                    all.extend(catalogs.map_err(failed)?.items);
                }
                CatalogKind::Olm(kind) => all.extend(foreign_catalogs::list(client, kind).await?),
            }
        }
        all.sort_by_key(ResourceExt::name_any);
        let twice = all.iter().zip(all.iter().skip(1)).find(|(one, next)| one.name_any() == next.name_any());
        match twice {
            Some((one, _)) => {
                Err(CommandError::failed(format!("two catalogs of the cluster have the name {}", one.name_any()))
                    .hint("name fewer kinds with --catalogs-from"))
            }
            None => Ok(all),
        }
    }

    /// A Catalog, and its index.
    pub async fn open(&self, name: &str) -> Result<(Source, Arc<Index>), CommandError> {
        if self.kinds != [CatalogKind::Catalogs] {
            let found = self.list().await?.into_iter().find(|catalog| catalog.name_any() == name);
            let catalog = found.ok_or_else(|| {
                CommandError::not_found(format!("no catalog of the cluster has the name {name}"))
                    .hint("`chandler catalog list` with the same --catalogs-from lists them")
            })?;
            return Ok((resolver_source(&catalog), self.index(&catalog).await?));
        }
        let catalog = Api::<Catalog>::all(self.client().await?.clone()).get(name).await.map_err(|error| {
            let failed = CommandError::failed(format!("failed to read Catalog {name}")).because(&error);
            match &error {
                kube::Error::Api(status) if status.is_not_found() => failed.hint(format!(
                    "`chandler catalog list` lists the Catalogs of the cluster; a directory is written `./{name}`"
                )),
                _ => failed,
            }
        })?;
        Ok((resolver_source(&catalog), self.index(&catalog).await?))
    }

    /// All Catalogs that are in use, and their indexes. Others are reported and left out.
    ///
    /// # Errors
    /// There are none.
    pub async fn open_all(&self) -> Result<Vec<(Source, Arc<Index>)>, CommandError> {
        let catalogs = self.list().await.map_err(|error| {
            error.hint("without a cluster, name a catalog: `--catalog ./catalog`, or an image or a URL")
        })?;
        let mut opened = Vec::new();
        for catalog in &catalogs {
            if is_usable(catalog) {
                opened.push((resolver_source(catalog), self.index(catalog).await?));
            } else if let Some(terminal) = self.terminal {
                let line = format!("Catalog {} is left out: {}", catalog.name_any(), problem(catalog));
                terminal.line(one_line(&line));
            }
        }
        if opened.is_empty() {
            let error = match catalogs.len() {
                0 => CommandError::usage("no catalog is named, and the cluster has none"),
                _ => CommandError::failed("no Catalog of the cluster can be used"),
            };
            return Err(error.hint(
                "name one: `--catalog ./catalog` for a directory, `--catalog quay.io/operatorhubio/catalog:latest` for an image; \
                 or add one to the cluster: `chandler catalog add NAME IMAGE`",
            ));
        }
        Ok(opened)
    }

    /// The Catalogs whose indexes are in the cache of this machine. Nothing is fetched.
    pub async fn all_at_hand(&self) -> Result<IndexCatalogs, CommandError> {
        let mut catalogs = IndexCatalogs::new();
        for catalog in &self.list().await? {
            if let Some(index) = self.at_hand(catalog).await? {
                catalogs = catalogs.with(resolver_source(catalog), index);
            }
        }
        Ok(catalogs)
    }

    /// The index of the content that a Catalog uses, if the cache of this machine has it. Nothing is fetched.
    async fn at_hand(&self, catalog: &Catalog) -> Result<Option<Arc<Index>>, CommandError> {
        let cache = cache::directory(self.fetching.cache_directory.as_deref())?;
        match catalog.status.as_ref().and_then(|status| status.digest.as_ref()?.parse().ok()) {
            Some(digest) => catalogs::cached(&digest, &cache).await,
            None => Ok(None),
        }
    }

    async fn index(&self, catalog: &Catalog) -> Result<Arc<Index>, CommandError> {
        if let Some(index) = self.at_hand(catalog).await? {
            return Ok(index);
        }
        let name = catalog.name_any();
        let resolved = catalog.status.as_ref().and_then(|status| status.resolved_source.as_ref()).ok_or_else(|| {
            let (command, what) = inspect(catalog);
            CommandError::failed(format!("Catalog {name} cannot be used"))
                .cause(problem(catalog))
                .hint(format!("`{command}` shows {what}"))
        })?;
        let cache = cache::directory(self.fetching.cache_directory.as_deref())?;
        let content = self.content(&name, resolved, &cache).await.map_err(|error| {
            error.hint(format!("Catalog {name} is read from its source, which this machine has to reach"))
        })?;
        catalogs::indexed(&format!("Catalog {name}"), content, &cache).await
    }

    /// The files of a resolved source: images and archives with the credentials of this machine, ConfigMaps from the cluster.
    async fn content(
        &self,
        name: &str,
        resolved: &BundleSource,
        cache: &Path,
    ) -> Result<Arc<dyn Content>, CommandError> {
        let invalid = |error: chandler_source::InvalidSource| {
            CommandError::failed(format!("status.resolvedSource of Catalog {name} is invalid")).because(&error)
        };
        let parsed = chandler_source::Source::parse(resolved).map_err(invalid)?;
        match (&parsed, parsed.location()) {
            (chandler_source::Source::Image(image), _) => {
                let registry = &self.fetching.registry;
                let label = chandler_source::CATALOG_LABEL;
                Ok(Arc::new(source::labelled(image.reference(), cache, registry, label).await?))
            }
            (chandler_source::Source::Http(_), Some(location)) => {
                let origin = Origin::archive(location)?;
                Ok(source::open_catalog(&origin, cache, &self.fetching.registry).await?.content)
            }
            _ => self.stored(name, &parsed, cache).await,
        }
    }

    /// Sources that only the cluster can read: ConfigMaps, and archives with credentials in a Secret.
    async fn stored(
        &self,
        name: &str,
        source: &chandler_source::Source,
        cache: &Path,
    ) -> Result<Arc<dyn Content>, CommandError> {
        let system = SystemNamespace::new(self.client().await?.clone(), self.system_namespace.to_owned(), false);
        let sources = Sources::new(source::catalog_images(cache, &self.fetching.registry).await?, system);
        let resolutions = Resolutions::default();
        let grantee = Grantee::Catalog(name);
        let wanted = Wanted { grantee, source, resolutions: &resolutions, interval: None, in_use: None };
        let obtained = sources.obtain(&wanted).await.map_err(|error| {
            CommandError::failed(format!("failed to read the files of Catalog {name}"))
                .because(&error)
                .hint("--system-namespace names the controller's namespace")
        })?;
        Ok(Arc::new(obtained.tree))
    }
}

/// A Catalog as the resolver knows it.
fn resolver_source(catalog: &Catalog) -> Source {
    Source {
        name: catalog.name_any(),
        priority: catalog.spec.priority,
        labels: catalog.labels().clone(),
        ..Source::default()
    }
}

/// Whether the controller uses content of the Catalog.
fn is_usable(catalog: &Catalog) -> bool {
    catalog.status.as_ref().is_some_and(|status| status.resolved_source.is_some())
}

/// Why a Catalog has no content in use.
fn problem(catalog: &Catalog) -> String {
    let conditions = catalog.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ready = find_condition(conditions, ConditionType::Ready);
    ready.map_or_else(|| "the controller has not looked at it yet".to_owned(), |ready| ready.message.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path_no_url_and_no_image() {
        for (text, expected) in [
            ("operatorhub", true),
            ("src", false),
            ("./operatorhub", false),
            ("quay.io/operatorhubio/catalog:latest", false),
            ("catalog:v1", false),
            ("catalog.yaml", false),
            ("", false),
        ] {
            assert_eq!(is_name(text), expected, "{text}");
        }
    }
}
