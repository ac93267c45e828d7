//! Resolves and fetches charts.

use std::sync::Arc;

use chandler_core::{Content as _, Digest};
use chandler_turns::Requester;

use super::{
    ChartError, ChartVersion,
    index::{self, Published},
    select,
};
use crate::{
    ArchiveUrl, Archives, ContentError, ImageAccess, ResolvedArchive, Tree, blocking,
    image::Inner,
    store::{ImageKey, Place},
};

/// The view of a chart in the keys of the store.
const VIEW: &str = "chart";
/// The file that lists the charts of a repository.
const INDEX: &str = "index.yaml";

/// One version of a chart, with the digest of its archive. Only this content is fetched, whatever the repository has later.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResolvedChart {
    /// The repository: the URL above `index.yaml`.
    pub repository: ArchiveUrl,
    /// The name of the chart.
    pub chart: String,
    /// The version, as the repository writes it.
    pub version: String,
    /// The SHA-256 digest of the archive.
    pub digest: Digest,
}

/// Charts of Helm repositories, cached in a store. A clone shares everything.
///
/// The rules of [`Archives`] hold. The credentials are sent to the server of the repository only. An archive on another server is fetched with the rules for
/// redirects: without credentials, with TLS if the repository has it, and from no host that is nearer to this machine than the repository.
#[derive(Clone)]
pub struct Charts {
    shared: Arc<Inner>,
    requester: Requester,
}

/// The version that is looked for.
enum Wanted {
    /// The newest in a range.
    Newest(ChartVersion),
    /// The one with this text.
    Exactly(String),
}

/// Where the archive of a version is.
struct Found {
    archive: ArchiveUrl,
    version: String,
    /// The digest in the index.
    digest: Option<Digest>,
}

impl Charts {
    pub(crate) fn new(shared: Arc<Inner>, requester: Requester) -> Self {
        Self { shared, requester }
    }

    /// The version of a chart that the repository has now: for one conditional request, if its index is the same as before. If the index has no digest of
    /// the version, its archive is downloaded.
    ///
    /// # Errors
    /// The server is unreachable or refuses access, its answer is not an index, or the index does not have the version.
    pub async fn resolve(
        &self,
        (repository, chart): (&ArchiveUrl, &str),
        version: &ChartVersion,
        access: &ImageAccess,
    ) -> Result<ResolvedChart, ContentError> {
        let found = self.find((repository, chart), Wanted::Newest(version.clone()), access).await?;
        let digest = match found.digest {
            Some(digest) => digest,
            None => self.archives(repository).resolve(&found.archive, access).await?.digest().clone(),
        };
        let (repository, chart) = (repository.clone(), chart.to_owned());
        Ok(ResolvedChart { repository, chart, version: found.version, digest })
    }

    /// The files of a chart. No request is needed if the store has them and the repository gave them to these credentials before.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve), and if the repository replaced the version.
    pub async fn fetch(&self, chart: &ResolvedChart, access: &ImageAccess) -> Result<Tree, ContentError> {
        let ResolvedChart { repository, chart: name, version, digest } = chart;
        let (origin, rest) = repository.parts();
        // A fragment, which no URL of an archive has.
        let place = Place::of_url((origin, format!("{rest}#{name}@{version}")), access);
        let key = ImageKey { image: digest.clone(), view: VIEW.to_owned(), place };
        let reader = self.shared.store.reader(access.credentials.as_ref());
        if let Some(tree) = self.shared.proven_tree(&key, &reader.clone().into()).await? {
            return Ok(tree);
        }
        let found = self.find((repository, name), Wanted::Exactly(version.clone()), access).await?;
        if let Some(other) = found.digest.filter(|found| found != digest) {
            let error = ChartError::Replaced { version: version.clone(), expected: digest.clone(), found: other };
            return Err(refused(repository, error));
        }
        let archive = ResolvedArchive::new(found.archive, digest.clone());
        let tree = self.archives(repository).fetch(&archive, access).await?;
        let (store, kept) = (self.shared.store.clone(), tree.clone());
        blocking::run(move || Ok(store.remember_image(&key, kept.digest(), reader.into())?)).await?;
        Ok(tree)
    }

    /// Where the archive of the selected version is.
    async fn find(
        &self,
        (repository, chart): (&ArchiveUrl, &str),
        wanted: Wanted,
        access: &ImageAccess,
    ) -> Result<Found, ContentError> {
        let url = repository.below(INDEX);
        let is_pinned = matches!(wanted, Wanted::Exactly(_));
        let indexes = Archives::helm_indexes(Arc::clone(&self.shared), self.requester.clone(), is_pinned);
        let index = indexes.resolve(&url, access).await?;
        let tree = indexes.fetch(&index, access).await?;
        let (name, place) = (chart.to_owned(), repository.clone());
        // A chart can have as many versions as an index.
        let turn = self.shared.index_turns.acquire(&self.requester).await;
        let found = blocking::run(move || {
            let _turn = turn;
            Ok(index::versions(&tree, &name).and_then(|versions| wanted.among(&versions, &name)?.found(&place)))
        });
        found.await?.map_err(|error| refused(repository, error))
    }

    /// The archives that a repository names.
    fn archives(&self, repository: &ArchiveUrl) -> Archives {
        Archives::new(Arc::clone(&self.shared), self.requester.clone()).led_by(repository.clone())
    }
}

impl Wanted {
    fn among<'a>(&self, versions: &'a [Published], chart: &str) -> Result<&'a Published, ChartError> {
        match self {
            Self::Newest(range) => select::select(versions, chart, range),
            Self::Exactly(version) => select::exact(versions, version).ok_or_else(|| ChartError::NoVersion {
                chart: chart.to_owned(),
                wanted: version.clone(),
                newest: None,
            }),
        }
    }
}

impl Published {
    fn found(&self, repository: &ArchiveUrl) -> Result<Found, ChartError> {
        let (archive, digest) = (self.archive(repository)?, self.digest()?);
        Ok(Found { archive, digest, version: self.version.clone() })
    }
}

fn refused(repository: &ArchiveUrl, error: ChartError) -> ContentError {
    ContentError::Chart { repository: repository.to_string(), error }
}
