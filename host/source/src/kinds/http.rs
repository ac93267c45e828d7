//! An archive on an HTTP server.

use chandler_api::{BundleSource, HttpSource};
use chandler_content::{ArchiveUrl, ImageAccess, ResolvedArchive, Tree, shown_url};
use chandler_core::Digest;

use crate::{Environment, InvalidSource, SourceError, SourceKind, authorization};

/// An archive, with the URL and the digest parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    spec: HttpSource,
    url: ArchiveUrl,
    digest: Option<Digest>,
    /// The URL, with the digest as a fragment.
    location: String,
}

/// An archive by digest, and how to reach its server.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedHttp {
    spec: HttpSource,
    archive: ResolvedArchive,
}

impl Http {
    fn pin(&self, archive: ResolvedArchive) -> PinnedHttp {
        PinnedHttp { spec: self.spec.clone(), archive }
    }
}

impl SourceKind for Http {
    const TYPE: &'static str = BundleSource::HTTP;
    type Spec = HttpSource;
    type Pin = PinnedHttp;
    type Access = ImageAccess;

    fn parse(spec: &HttpSource) -> Result<Self, InvalidSource> {
        let url: ArchiveUrl = spec.url.parse()?;
        let digest = spec.sha256.as_ref().map(|hex| format!("sha256:{hex}").parse::<Digest>());
        let digest = digest.transpose().map_err(|_| InvalidSource::Sha256)?;
        let fragment = spec.sha256.as_ref().map(|hex| format!("#sha256={hex}")).unwrap_or_default();
        Ok(Self { location: format!("{}{fragment}", url.text()), spec: spec.clone(), url, digest })
    }

    fn describe(spec: &HttpSource) -> String {
        match spec.sha256.as_ref().filter(|hex| hex.chars().all(|c| c.is_ascii_hexdigit())) {
            Some(hex) => format!("archive {} (sha256:{hex:.12})", shown_url(&spec.url)),
            None => format!("archive {}", shown_url(&spec.url)),
        }
    }

    /// An archive that needs credentials or certificates is not found by its URL alone.
    fn location(&self) -> Option<&str> {
        let plain = self.spec.auth.is_none() && self.spec.certificate_data.is_none();
        plain.then_some(self.location.as_str())
    }

    fn can_move(&self) -> bool {
        self.digest.is_none()
    }

    async fn access(&self, environment: Environment<'_>) -> Result<ImageAccess, SourceError> {
        let (auth, certificates) = (self.spec.auth.as_ref(), self.spec.certificate_data.as_ref());
        authorization::access(environment, auth, &self.url.server(), certificates).await
    }

    async fn resolve(&self, access: &ImageAccess, environment: Environment<'_>) -> Result<PinnedHttp, SourceError> {
        if let Some(digest) = &self.digest {
            return Ok(self.pin(ResolvedArchive::new(self.url.clone(), digest.clone())));
        }
        Ok(self.pin(environment.images.archives().resolve(&self.url, access).await?))
    }

    async fn poll(
        &self,
        pin: &PinnedHttp,
        access: &ImageAccess,
        environment: Environment<'_>,
    ) -> Result<Option<PinnedHttp>, SourceError> {
        let unchanged = environment.images.archives().is_unchanged(&pin.archive, access).await?;
        Ok(unchanged.then(|| pin.clone()))
    }

    async fn fetch(pin: PinnedHttp, access: &ImageAccess, environment: Environment<'_>) -> Result<Tree, SourceError> {
        Ok(environment.images.archives().fetch(&pin.archive, access).await?)
    }

    fn to_api(pin: &PinnedHttp) -> BundleSource {
        let sha256 = Some(pin.archive.digest().hex().to_owned());
        BundleSource::http(HttpSource { sha256, ..pin.spec.clone() })
    }

    /// A digest of another URL says nothing about this one.
    fn recorded_pin(&self, recorded: &Self) -> Option<PinnedHttp> {
        let digest = recorded.digest.clone().filter(|_| self.url == recorded.url)?;
        Some(self.pin(ResolvedArchive::new(self.url.clone(), digest)))
    }

    fn remove_certificates(spec: &mut HttpSource) {
        spec.certificate_data = None;
    }

    fn with_certificates_of(mut self, current: &Self) -> Self {
        self.spec.certificate_data.clone_from(&current.spec.certificate_data);
        self
    }
}
