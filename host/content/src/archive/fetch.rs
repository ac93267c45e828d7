//! Resolves and fetches archives.

use std::sync::Arc;

use chandler_core::{Content as _, Digest};
use chandler_turns::{KeyedGuard, Requester};
use reqwest::Response;

use super::{
    ArchiveUrl,
    download::{ARCHIVE, Download, Validators},
    form::Form,
};
use crate::{
    ContentError, ImageAccess, StoreError, Tree, blocking,
    image::Inner,
    store::{ImageKey, Latest, Place, Reader},
};

/// An archive with a known digest. Only this content is fetched, whatever the URL names later.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResolvedArchive {
    url: ArchiveUrl,
    digest: Digest,
}

impl ResolvedArchive {
    /// An archive by URL and digest.
    pub fn new(url: ArchiveUrl, digest: Digest) -> Self {
        Self { url, digest }
    }

    /// Where it is.
    pub fn url(&self) -> &ArchiveUrl {
        &self.url
    }

    /// The SHA-256 digest of its bytes.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}

/// Archives of HTTP servers, cached in a store. A clone shares everything.
///
/// The rules of [`Images`](crate::Images) hold: timeouts, the minimum rate, addresses, redirects, TLS, and that cached content
/// grants no access. Of the credentials, a user name with a password and a token are sent, to the server of the URL only.
#[derive(Clone)]
pub struct Archives {
    shared: Arc<Inner>,
    requester: Requester,
    form: Form,
    /// The server that named the URLs, where no source does.
    led_by: Option<ArchiveUrl>,
    /// Whether the source names the content that a URL leads to by its digest.
    is_pinned: bool,
}

/// An archive that was downloaded and unpacked.
struct Fetched {
    tree: Tree,
    latest: Latest,
}

impl Archives {
    pub(crate) fn new(shared: Arc<Inner>, requester: Requester) -> Self {
        Self { shared, requester, form: Form::Archive, led_by: None, is_pinned: false }
    }

    /// Indexes of Helm repositories. If the source has the digest of the chart, no one on the way can replace it with another index.
    pub(crate) fn helm_indexes(shared: Arc<Inner>, requester: Requester, is_pinned: bool) -> Self {
        Self { form: Form::HelmIndex, is_pinned, ..Self::new(shared, requester) }
    }

    /// Archives whose URLs the server of this URL named. The access is for this server, and an archive must not be nearer to this machine than it is.
    pub(crate) fn led_by(self, home: ArchiveUrl) -> Self {
        Self { led_by: Some(home), ..self }
    }

    /// The archive that a URL names now.
    ///
    /// Downloads and unpacks it, since nothing else identifies it. If it was downloaded before with the same credentials, and the
    /// server sent an entity tag or a time of change, one conditional request shows whether it is still the same.
    pub async fn resolve(&self, url: &ArchiveUrl, access: &ImageAccess) -> Result<ResolvedArchive, ContentError> {
        let digest = self.in_time(url, async {
            let place = Place::of_url(url.parts(), access);
            let _fetch = self.lock(&place).await;
            let reader = self.shared.store.reader(access.credentials.as_ref());
            let known = self.known(&place, &reader).await?;
            let _permit = self.shared.request_limits.acquire(&self.requester, &url.server()).await;
            let download = self.download(url, access, self.is_pinned).await?;
            let response = match known {
                None => download.get().await?,
                Some(known) => match download.get_if_changed(&known).await? {
                    None => return Ok(known.archive),
                    Some(response) => response,
                },
            };
            let fetched = self.save(&download, response, url, None).await?;
            let digest = fetched.latest.archive.clone();
            self.remember(place, reader, fetched).await?;
            Ok(digest)
        });
        Ok(ResolvedArchive::new(url.clone(), digest.await?))
    }

    /// Whether a URL still names this archive, as far as one request without a download shows. False if that is unknown.
    pub async fn is_unchanged(&self, archive: &ResolvedArchive, access: &ImageAccess) -> Result<bool, ContentError> {
        let url = &archive.url;
        self.in_time(url, async {
            let place = Place::of_url(url.parts(), access);
            let reader = self.shared.store.reader(access.credentials.as_ref());
            let known = self.known(&place, &reader).await?.filter(|known| known.archive == archive.digest);
            let Some(known) = known.filter(|known| known.etag.is_some() || known.last_modified.is_some()) else {
                return Ok(false);
            };
            let _permit = self.shared.request_limits.acquire(&self.requester, &url.server()).await;
            let download = self.download(url, access, self.is_pinned).await?;
            Ok(download.get_if_changed(&known).await?.is_none())
        })
        .await
    }

    /// The files of an archive. No request is needed if the store has them and the server sent them to these credentials before.
    pub async fn fetch(&self, archive: &ResolvedArchive, access: &ImageAccess) -> Result<Tree, ContentError> {
        let url = &archive.url;
        self.in_time(url, async {
            let place = Place::of_url(url.parts(), access);
            let _fetch = self.lock(&place).await;
            let reader = self.shared.store.reader(access.credentials.as_ref());
            if let Some(tree) =
                self.shared.proven_tree(&self.key(&archive.digest, &place), &reader.clone().into()).await?
            {
                return Ok(tree);
            }
            let _permit = self.shared.request_limits.acquire(&self.requester, &url.server()).await;
            let download = self.download(url, access, true).await?;
            let response = download.get().await?;
            let fetched = self.save(&download, response, url, Some(&archive.digest)).await?;
            let tree = fetched.tree.clone();
            self.remember(place, reader, fetched).await?;
            Ok(tree)
        })
        .await
    }

    /// What the URL named last, if the store still has its tree.
    async fn known(&self, place: &Place, reader: &Reader) -> Result<Option<Latest>, ContentError> {
        let (store, asked, asking) = (self.shared.store.clone(), place.clone(), reader.clone());
        let latest = blocking::run(move || Ok(store.latest_archive(&asked, &asking)?)).await?;
        let Some(latest) = latest else { return Ok(None) };
        let stored = self.shared.proven_tree(&self.key(&latest.archive, place), &reader.clone().into()).await?;
        Ok(stored.map(|_| latest))
    }

    async fn download<'a>(
        &'a self,
        url: &'a ArchiveUrl,
        access: &ImageAccess,
        is_pinned: bool,
    ) -> Result<Download<'a>, ContentError> {
        Download::new((url, self.led_by.as_ref()), access, is_pinned, (self.form, &self.shared)).await
    }

    /// Downloads the archive of a response, checks its digest, and unpacks it.
    async fn save(
        &self,
        download: &Download<'_>,
        response: Response,
        url: &ArchiveUrl,
        expected: Option<&Digest>,
    ) -> Result<Fetched, ContentError> {
        let validators = Validators::of(response.headers());
        let store = self.shared.store.on_behalf_of(self.requester.clone());
        let work = blocking::run(move || Ok(store.begin()?)).await?;
        let refused = |error| match error {
            ContentError::Archive(error) => {
                ContentError::DownloadedArchive { what: self.form.downloaded(), url: url.to_string(), error }
            }
            error => error,
        };
        let archive = download.save(response, &work).await.map_err(refused)?;
        if let Some(expected) = expected.filter(|expected| **expected != archive) {
            let (url, expected) = (url.to_string(), expected.clone());
            return Err(ContentError::Checksum { url, expected, found: archive });
        }
        let (limits, form) = (self.shared.store.limits().clone(), self.form);
        let turn = match form {
            Form::Archive => None,
            Form::HelmIndex => Some(self.shared.index_turns.acquire(&self.requester).await),
        };
        let unpacked = blocking::run_long(move |cancel| {
            let _turn = turn;
            let mut work = work.cancelled_by(cancel);
            let path = work.path().join(ARCHIVE);
            let file = std::fs::File::open(&path).map_err(StoreError::at("open", &path))?;
            let files = form.unpack(file, &path, &mut work, &limits)?;
            work.commit(files)
        });
        let tree = unpacked.await.map_err(refused)?;
        let Validators { etag, last_modified } = validators;
        let latest = Latest { archive, tree: tree.digest().clone(), etag, last_modified };
        Ok(Fetched { tree, latest })
    }

    async fn remember(&self, place: Place, reader: Reader, fetched: Fetched) -> Result<(), ContentError> {
        let (store, key) = (self.shared.store.clone(), self.key(&fetched.latest.archive, &place));
        blocking::run(move || {
            // The tree stays open until its records are written, so that it is not removed in between.
            let Fetched { tree, latest } = fetched;
            store.remember_image(&key, tree.digest(), reader.clone().into())?;
            store.remember_latest(&place, &reader, latest)?;
            Ok(())
        })
        .await
    }

    /// Waits its turn: a URL is downloaded once at a time.
    async fn lock(&self, place: &Place) -> KeyedGuard<'_, ImageKey> {
        self.shared.fetches.lock(&self.key(&Digest::of(b""), place)).await
    }

    async fn in_time<T>(
        &self,
        url: &ArchiveUrl,
        work: impl Future<Output = Result<T, ContentError>>,
    ) -> Result<T, ContentError> {
        self.shared.in_time(|| format!("{} {url}", self.form.downloaded()), work).await
    }

    fn key(&self, archive: &Digest, place: &Place) -> ImageKey {
        ImageKey { image: archive.clone(), view: self.form.view().to_owned(), place: place.clone() }
    }
}
