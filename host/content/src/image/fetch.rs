//! Resolves and fetches images.

use std::{fmt, sync::Arc, time::Duration};

use chandler_core::Digest;
use chandler_proxies::Proxies;
use chandler_tls::TlsSettings;
use chandler_turns::{KeyedLocks, Requester, Turns};
use reqwest::{Method, Response, header::HeaderMap};
use tokio::{io::AsyncWriteExt, sync::broadcast};

use super::{
    ImageAccess, ImageError, ImageReference, Platform, RegistrySettings, RequiredSignatures,
    blob::Blob,
    client::Client,
    endpoints::{Asked, Endpoint},
    manifest::{self, ACCEPTED, Descriptor, ImageManifest, Manifest, chart_layer, check_layers, choose, refused},
};
use crate::{
    ArchiveError, Archives, Charts, ContentError, LimitExceeded, Limits, Repositories, Store, StoreError, Tree,
    blocking, chart,
    path::entry_path,
    store::{Asking, FILE, ImageKey, Known, Place, Workspace, own_file},
    transport::{RequestLimits, Silent, SystemRoots},
    unpack::{self, Budget, Dialect, Overlay, RootedAt, UnpackError},
};

/// Settings for requests to registries.
#[derive(Clone, Debug)]
pub struct ImageOptions {
    /// The platform that is selected from an index.
    pub platform: Platform,
    /// Registries, as `host` or `host:port`, that are accessed without TLS, unless the access names certificates or disables their
    /// verification. A registry on this machine need not be listed if it asks for no credentials: it is asked without TLS once a handshake
    /// has shown that it speaks none.
    pub plain_http_registries: Vec<String>,
    /// Mirrors, blocked and insecure registries, and certificates. Default none.
    pub registries: RegistrySettings,
    /// The proxies of the environment. Default none.
    pub proxies: Proxies,
    /// What TLS connections may negotiate. Default: TLS 1.2 and 1.3.
    pub tls: TlsSettings,
    /// The timeout of a connection attempt. Default 10 s.
    pub connect_timeout: Duration,
    /// The longest time without data from a registry. Default 30 s.
    pub idle_timeout: Duration,
    /// The minimum rate of a body in bytes per second, as a mean over [`rate_window`](Self::rate_window). Default 1024.
    pub minimum_rate: u64,
    /// The time over which the rate of a body is measured. Default 30 s.
    pub rate_window: Duration,
    /// The timeout of one call. Default 10 minutes.
    pub total_timeout: Duration,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self {
            platform: Platform::default(),
            plain_http_registries: Vec::new(),
            registries: RegistrySettings::default(),
            proxies: Proxies::default(),
            tls: TlsSettings::default(),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            minimum_rate: 1024,
            rate_window: Duration::from_secs(30),
            total_timeout: Duration::from_mins(10),
        }
    }
}

/// An image with a known digest. The content that is fetched has this digest, even if the tag has moved since.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResolvedImage {
    reference: ImageReference,
    digest: Digest,
}

impl ResolvedImage {
    /// An image that was resolved earlier.
    pub fn new(reference: ImageReference, digest: Digest) -> Self {
        Self { reference, digest }
    }

    /// The reference that was resolved.
    pub fn reference(&self) -> &ImageReference {
        &self.reference
    }

    /// The digest of its manifest or, for an image of several platforms, of its index.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The reference by digest: `registry/repository@sha256:…`.
    pub fn pinned(&self) -> ImageReference {
        self.reference.at(&self.digest)
    }
}

/// Images of registries, cached in a store. A clone shares everything.
#[derive(Clone)]
pub struct Images {
    pub(super) inner: Arc<Inner>,
    /// The store of `inner`, on behalf of the requester.
    store: Store,
    requester: Requester,
}

/// What requests to servers share, for images and for [`Archives`](crate::Archives).
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) options: Arc<ImageOptions>,
    pub(crate) roots: SystemRoots,
    pub(crate) request_limits: RequestLimits,
    pub(crate) silent: Arc<Silent>,
    /// One index of a Helm repository is read at a time: it can take as much memory as it is long.
    pub(crate) index_turns: Turns,
    /// Locked while content is fetched, so that the same content is fetched once.
    pub(crate) fetches: KeyedLocks<ImageKey>,
}

impl fmt::Debug for Images {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Images")
            .field("store", &self.inner.store)
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// The tree of content that its server sent to this reader before, if its signatures satisfied the policy.
    pub(crate) async fn proven_tree(&self, key: &ImageKey, asking: &Asking) -> Result<Option<Tree>, ContentError> {
        let (store, key, asking) = (self.store.clone(), key.clone(), asking.clone());
        let known = blocking::run(move || Ok(store.image(&key, &asking)?)).await?;
        Ok(known.and_then(|Known { tree, proven, verified }| (proven && verified).then_some(tree)))
    }

    /// Ends work that takes too long. `what` names the content in the error.
    pub(crate) async fn in_time<T>(
        &self,
        what: impl FnOnce() -> String,
        work: impl Future<Output = Result<T, ContentError>>,
    ) -> Result<T, ContentError> {
        let bound = self.options.total_timeout;
        match tokio::time::timeout(bound, work).await {
            Ok(result) => result,
            Err(_) => Err(ContentError::Timeout { what: what(), seconds: bound.as_secs() }),
        }
    }
}

impl Images {
    /// Images that are kept in `store`.
    pub fn new(store: Store, options: ImageOptions) -> Self {
        let (options, roots, request_limits) = (Arc::new(options), SystemRoots::default(), RequestLimits::default());
        let silent = Arc::default();
        let (store_of, index_turns, fetches) = (store.clone(), Turns::new(1), KeyedLocks::default());
        let inner = Inner { store: store_of, options, roots, request_limits, silent, index_turns, fetches };
        Self { inner: Arc::new(inner), store, requester: Requester::controller() }
    }

    /// These images, for requests on behalf of this account: where requests wait, the accounts take turns,
    /// and what is fetched counts for the share of the account.
    #[must_use]
    pub fn on_behalf_of(&self, requester: Requester) -> Self {
        let store = self.inner.store.on_behalf_of(requester.clone());
        Self { inner: Arc::clone(&self.inner), store, requester }
    }

    /// The store, for content on behalf of the same account.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What the administrator set for registries, which can be replaced.
    pub fn registry_settings(&self) -> &RegistrySettings {
        &self.inner.options.registries
    }

    /// Git repositories on HTTP servers, with the same store, options and limits.
    pub fn repositories(&self) -> Repositories {
        Repositories::new(Arc::clone(&self.inner), self.requester.clone())
    }

    /// Archives of HTTP servers, with the same store, options and limits.
    pub fn archives(&self) -> Archives {
        Archives::new(Arc::clone(&self.inner), self.requester.clone())
    }

    /// Charts of Helm repositories, with the same store, options and limits.
    pub fn charts(&self) -> Charts {
        Charts::new(Arc::clone(&self.inner), self.requester.clone())
    }

    /// Receives each registry or other server that did not answer and answers again, as `host` or `host:port`.
    pub fn returns(&self) -> broadcast::Receiver<String> {
        self.inner.silent.returns()
    }

    /// The digest that a reference resolves to now. A reference with a digest needs no request; whether the image exists shows
    /// when it is fetched.
    pub async fn resolve(
        &self,
        reference: &ImageReference,
        access: &ImageAccess,
    ) -> Result<ResolvedImage, ContentError> {
        if let Some(digest) = reference.digest() {
            return Ok(ResolvedImage::new(reference.clone(), digest.clone()));
        }
        // Boxed, since callers nest deeply and compilers give up on types that are too long.
        let resolved: Asked<'_, _> = Box::pin(async {
            let endpoints = self.endpoints(reference, access).await?;
            let digest = self.first(reference, endpoints, |endpoint| Box::pin(self.tagged(endpoint))).await?;
            Ok(ResolvedImage::new(reference.clone(), digest))
        });
        self.in_time(reference, resolved).await
    }

    /// The digest that a tag has at an endpoint.
    async fn tagged(&self, endpoint: Endpoint) -> Result<Digest, ContentError> {
        let reference = &endpoint.image;
        let _permit = self.inner.request_limits.acquire(&self.requester, reference.registry()).await;
        let client = self.client(&endpoint).await?;
        let what = format!("manifests/{}", reference.tag().unwrap_or("latest"));
        // The header is optional.
        let head = client.head(&what, ACCEPTED).await?;
        if let Some(digest) = head.and_then(|head| announced(head.headers())) {
            return Ok(digest);
        }
        let response = client.request(Method::GET, &what, Some(ACCEPTED)).await?;
        Ok(Digest::of(&self.manifest_bytes(&client, reference, response).await?))
    }

    /// The files of an image. No request is needed if the store has them and this repository of this registry served them to
    /// these credentials before. With other credentials, the registry must first serve the manifest. Content of another
    /// repository or registry is fetched from there: a reference with a digest does not prove that the repository has it.
    ///
    /// Layers are applied as `layer.md` of the OCI image specification describes. Images with more than plain files are
    /// refused, such as images of whole systems with devices and links to directories.
    ///
    /// An artifact of `helm push` has the files of its chart.
    pub async fn fetch(&self, image: &ResolvedImage, access: &ImageAccess) -> Result<Tree, ContentError> {
        let view = self.inner.options.platform.to_string();
        let make = |endpoint: Endpoint| -> Asked<'_, Tree> {
            Box::pin(async move {
                let client = self.client(&endpoint).await?;
                let manifest = self.image_manifest(&client, &endpoint.image).await?;
                let kept = if manifest.is_chart() { Kept::Chart } else { Kept::All };
                self.unpacked(&client, endpoint.image, manifest.layers, kept).await
            })
        };
        self.once(&view, image, access, &make).await
    }

    /// The files of an image below the directory that a label of its configuration names, as catalogs have it. Other content of the image,
    /// such as programs, is not read, and may be what [`Images::fetch`] refuses.
    ///
    /// # Errors
    /// [`ImageError::NoLabel`] if the image lacks the label.
    pub async fn fetch_labelled(
        &self,
        image: &ResolvedImage,
        access: &ImageAccess,
        label: &str,
    ) -> Result<Tree, ContentError> {
        let view = format!("{} below {label}", self.inner.options.platform);
        let make = |endpoint: Endpoint| -> Asked<'_, Tree> {
            Box::pin(async move {
                let client = self.client(&endpoint).await?;
                let manifest = self.image_manifest(&client, &endpoint.image).await?;
                let below = self.labelled(&client, &endpoint.image, &manifest, label).await?;
                self.unpacked(&client, endpoint.image, manifest.layers, Kept::Below(below)).await
            })
        };
        self.once(&view, image, access, &make).await
    }

    /// The directory that a label of the configuration names.
    async fn labelled(
        &self,
        client: &Client,
        image: &ImageReference,
        manifest: &ImageManifest,
        label: &str,
    ) -> Result<String, ContentError> {
        let limits = self.inner.store.limits();
        let config = manifest.config().map_err(|error| refused(image, error))?;
        if config.size > limits.manifest_bytes {
            return Err(refused(image, ImageError::ConfigBytes(limits.manifest_bytes)));
        }
        let mut bytes = Vec::new();
        // Not longer than its descriptor states.
        let mut blob = Blob::request(client, image, &config).await?;
        while let Some(chunk) = blob.next().await? {
            bytes.extend_from_slice(&chunk);
        }
        let value = manifest::label(&bytes, label).map_err(|error| refused(image, error))?;
        let value = value.ok_or_else(|| refused(image, ImageError::NoLabel(label.to_owned())))?;
        let path = entry_path(value.trim_start_matches('/').as_bytes(), limits).ok().filter(|path| !path.is_empty());
        path.ok_or_else(|| {
            let value = value.chars().take(200).collect();
            refused(image, ImageError::LabelValue { label: label.to_owned(), value })
        })
    }

    /// Downloads and unpacks layers.
    async fn unpacked(
        &self,
        client: &Client,
        reference: ImageReference,
        layers: Vec<Descriptor>,
        kept: Kept,
    ) -> Result<Tree, ContentError> {
        let limits = self.inner.store.limits();
        let layers = match kept {
            Kept::Chart => chart_layer(layers, limits).map(|layer| vec![layer]),
            Kept::All | Kept::Below(_) => check_layers(&layers, limits).map(|()| layers),
        };
        let layers = layers.map_err(|error| refused(&reference, error))?;
        let store = self.store().clone();
        let work = blocking::run(move || Ok(store.begin()?)).await?;
        for layer in &layers {
            download(client, &reference, layer, &work).await?;
        }
        let limits = self.inner.store.limits().clone();
        let digests: Vec<Digest> = layers.into_iter().map(|layer| layer.digest).collect();
        let image = reference.to_string();
        blocking::run_long(move |cancel| unpack_layers(&image, &digests, kept, work.cancelled_by(cancel), &limits))
            .await
    }

    /// The tree of an image in one view: from the store, if an endpoint gave these credentials access to it, or made by `make` and then
    /// stored. Required signatures are verified before that, unless they were for the same image and policy. Concurrent calls for the
    /// same image wait.
    ///
    /// The store has what each endpoint served, and to whom: a mirror that served an image proves nothing about its source, nor about
    /// credentials for another mirror.
    pub(super) async fn once<'a>(
        &'a self,
        view: &'a str,
        image: &'a ResolvedImage,
        access: &'a ImageAccess,
        make: &'a (dyn Fn(Endpoint) -> Asked<'a, Tree> + Sync),
    ) -> Result<Tree, ContentError> {
        let obtained: Asked<'_, _> = Box::pin(async {
            let pinned = image.pinned();
            let endpoints = self.endpoints(&pinned, access).await?;
            if endpoints.len() > 1 {
                for endpoint in &endpoints {
                    let (key, asking) = self.record_of(view, image, endpoint);
                    if let Some(tree) = self.inner.proven_tree(&key, &asking).await? {
                        return Ok(tree);
                    }
                }
            }
            self.first(&pinned, endpoints, |endpoint| Box::pin(self.once_at(view, image, endpoint, make))).await
        });
        self.in_time(&image.reference, obtained).await
    }

    /// The key of what an endpoint served, and who asks.
    fn record_of(&self, view: &str, image: &ResolvedImage, endpoint: &Endpoint) -> (ImageKey, Asking) {
        let place = Place::new(&endpoint.image, &endpoint.access);
        let key = ImageKey { image: image.digest.clone(), view: view.to_owned(), place };
        let reader = self.inner.store.reader(endpoint.access.credentials.as_ref());
        let proof = endpoint.access.signatures.as_ref().map(RequiredSignatures::proof);
        (key, Asking { reader, proof })
    }

    async fn once_at<'a>(
        &'a self,
        view: &'a str,
        image: &'a ResolvedImage,
        endpoint: Endpoint,
        make: &'a (dyn Fn(Endpoint) -> Asked<'a, Tree> + Sync),
    ) -> Result<Tree, ContentError> {
        let (key, asking) = self.record_of(view, image, &endpoint);
        let _fetch = self.inner.fetches.lock(&key).await;
        let (store, wanted, asked) = (self.inner.store.clone(), key.clone(), asking.clone());
        let known = blocking::run(move || Ok(store.image(&wanted, &asked)?)).await?;
        let tree = match known {
            Some(Known { tree, proven: true, verified: true }) => return Ok(tree),
            known => {
                let _permit = self.inner.request_limits.acquire(&self.requester, endpoint.image.registry()).await;
                match (&known, &endpoint.access.signatures) {
                    (Some(Known { verified: false, .. }) | None, Some(required)) => {
                        Box::pin(self.verify(&endpoint, required)).await?;
                    }
                    (Some(Known { proven: false, .. }), _) => Box::pin(self.prove(&endpoint)).await?,
                    _ => {}
                }
                match known {
                    Some(Known { tree, .. }) => tree,
                    None => make(endpoint).await?,
                }
            }
        };
        let (store, result) = (self.inner.store.clone(), tree.clone());
        blocking::run(move || {
            store.remember_image(&key, chandler_core::Content::digest(&result), asking)?;
            Ok(())
        })
        .await?;
        Ok(tree)
    }

    /// Proves access: the registry must serve the whole manifest, since a header alone proves nothing.
    async fn prove(&self, endpoint: &Endpoint) -> Result<(), ContentError> {
        let client = self.client(endpoint).await?;
        self.manifest(&client, &endpoint.image).await.map(drop)
    }

    async fn in_time<T>(
        &self,
        image: &ImageReference,
        work: impl Future<Output = Result<T, ContentError>>,
    ) -> Result<T, ContentError> {
        self.inner.in_time(|| format!("image {image}"), work).await
    }

    /// The manifest of an image by digest; for an index, the manifest of the image for the platform.
    async fn image_manifest(&self, client: &Client, image: &ImageReference) -> Result<ImageManifest, ContentError> {
        let manifests = match self.manifest(client, image).await? {
            Manifest::Image(manifest) => return Ok(manifest),
            Manifest::Index(manifests) => manifests,
        };
        let entry = choose(&manifests, &self.inner.options.platform).map_err(|error| refused(image, error))?;
        match self.manifest(client, &image.at(&entry.digest)).await? {
            Manifest::Image(manifest) => Ok(manifest),
            Manifest::Index(_) => Err(refused(image, ImageError::NestedIndex)),
        }
    }

    /// The manifest of an image by digest, verified.
    pub(super) async fn manifest(&self, client: &Client, image: &ImageReference) -> Result<Manifest, ContentError> {
        let text = self.manifest_text(client, image).await?;
        Manifest::parse(&text).map_err(|error| refused(image, error))
    }

    /// The bytes of the manifest of an image by digest, verified.
    pub(super) async fn manifest_text(&self, client: &Client, image: &ImageReference) -> Result<Vec<u8>, ContentError> {
        let Some(expected) = image.digest() else {
            return Err(client.protocol("it has no digest to fetch it by").into());
        };
        let response = client.request(Method::GET, &format!("manifests/{expected}"), Some(ACCEPTED)).await?;
        let text = self.manifest_bytes(client, image, response).await?;
        let found = Digest::of(&text);
        if found != *expected {
            let what = "the manifest".to_owned();
            return Err(refused(image, ImageError::DigestMismatch { what, expected: expected.clone(), found }));
        }
        Ok(text)
    }

    async fn manifest_bytes(
        &self,
        client: &Client,
        image: &ImageReference,
        response: Response,
    ) -> Result<Vec<u8>, ContentError> {
        let most = self.inner.store.limits().manifest_bytes;
        let text = client.read(response, most).await?;
        text.ok_or_else(|| refused(image, LimitExceeded::ManifestBytes(most).into()))
    }
}

/// The digest that a response announces, if it is a SHA-256 digest.
fn announced(headers: &HeaderMap) -> Option<Digest> {
    headers.get("docker-content-digest")?.to_str().ok()?.parse().ok()
}

/// The name of a layer in the workspace.
pub(super) fn blob_name(digest: &Digest) -> String {
    format!("blob-{}", digest.hex())
}

/// Downloads a layer into the workspace, and verifies its size and digest.
async fn download(
    client: &Client,
    image: &ImageReference,
    layer: &Descriptor,
    work: &Workspace,
) -> Result<(), ContentError> {
    let path = work.path().join(blob_name(&layer.digest));
    if path.exists() {
        return Ok(());
    }
    work.room().take_for(FILE).await?;
    let mut file =
        tokio::fs::OpenOptions::from(own_file()).open(&path).await.map_err(StoreError::at("create", &path))?;
    let mut blob = Blob::request(client, image, layer).await?;
    while let Some(chunk) = blob.next().await? {
        work.room().take_for(chunk.len() as u64).await?;
        file.write_all(&chunk).await.map_err(StoreError::at("write to", &path))?;
    }
    file.flush().await.map_err(|error| StoreError::at("write to", &path)(error).into())
}

/// What is kept of the layers of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// Everything.
    All,
    /// The files below a directory.
    Below(String),
    /// The chart in the directory of the only layer, which is an archive of `helm package`.
    Chart,
}

/// Unpacks the layers of these digests, which are in the workspace.
pub(super) fn unpack_layers(
    image: &str,
    layers: &[Digest],
    kept: Kept,
    mut work: Workspace,
    limits: &Limits,
) -> Result<Tree, ContentError> {
    let (mut overlay, dialect, root) = match &kept {
        Kept::All => (Overlay::new(limits), Dialect::Layer, RootedAt::Tree),
        Kept::Below(directory) => (Overlay::below(limits, directory.clone()), Dialect::Layer, RootedAt::Tree),
        Kept::Chart => (Overlay::new(limits), Dialect::Archive, RootedAt::Nothing),
    };
    let mut budget = Budget::new(limits, work.cancel());
    for layer in layers {
        let path = work.path().join(blob_name(layer));
        let file = std::fs::File::open(&path).map_err(StoreError::at("open", &path))?;
        let unpacked = unpack::layer(file, &path, dialect, &mut work, limits, &mut overlay, &mut budget);
        unpacked.map_err(|error| match error {
            UnpackError::Refused(error) => ContentError::Layer { image: image.to_owned(), layer: layer.clone(), error },
            UnpackError::Store(error) => error.into(),
        })?;
    }
    let refused = |error: ImageError| ContentError::Image { image: image.to_owned(), error };
    let files = overlay.finish(root).map_err(|error: ArchiveError| refused(error.into()))?;
    if kept != Kept::Chart {
        return work.commit(files);
    }
    let had_root = files.contains_key(chart::CHART);
    let files = chart::at_root(files);
    if had_root || !files.contains_key(chart::CHART) {
        return Err(refused(ImageError::NoChart));
    }
    work.commit(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Controllers spawn these.
    #[expect(dead_code, reason = "it is only compiled")]
    fn futures_can_move_between_threads(images: &Images, image: &ResolvedImage, access: &ImageAccess) {
        fn check(_: impl Send) {}
        check(images.resolve(image.reference(), access));
        check(images.fetch(image, access));
        check(images.fetch_component(image, access, 1));
    }
}
