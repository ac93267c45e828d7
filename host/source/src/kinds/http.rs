//! An archive on an HTTP server, or a chart in a Helm repository.

use chandler_api::{BundleSource, HttpSource};
use chandler_content::{
    ArchiveUrl, ChartVersion, ContentError, ImageAccess, Images, ResolvedArchive, ResolvedChart, Tree, is_chart_name,
    shown_url,
};
use chandler_core::Digest;
use chandler_versions::Version;

use crate::{Environment, InvalidSource, SourceError, SourceKind, authorization};

/// The newest version that is not a pre-release.
const ANY: &str = "*";
/// The file that users name with the URL of a Helm repository, although it is added.
const INDEX: &str = "/index.yaml";

/// An archive or a chart, with the URL, the version and the digest parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    spec: HttpSource,
    url: ArchiveUrl,
    chart: Option<Chart>,
    digest: Option<Digest>,
    /// The URL, with the digest as a fragment.
    location: String,
}

/// A chart in the Helm repository at the URL.
#[derive(Clone, Debug, PartialEq)]
struct Chart {
    name: String,
    version: ChartVersion,
}

/// An archive or a version of a chart by digest, and how to reach its server.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedHttp {
    spec: HttpSource,
    content: PinnedContent,
}

#[derive(Clone, Debug, PartialEq)]
enum PinnedContent {
    Archive(ResolvedArchive),
    Chart(ResolvedChart),
}

impl Http {
    /// The source, as it was parsed.
    pub fn to_source(&self) -> BundleSource {
        BundleSource::http(self.spec.clone())
    }

    /// The files that the archive or the chart has now, without credentials.
    ///
    /// # Errors
    /// As of [`Archives`](chandler_content::Archives) and [`Charts`](chandler_content::Charts).
    pub async fn files(&self, images: &Images) -> Result<Tree, ContentError> {
        let access = ImageAccess::default();
        let content = self.resolved(images, &access).await?;
        fetched(&content, images, &access).await
    }

    async fn resolved(&self, images: &Images, access: &ImageAccess) -> Result<PinnedContent, ContentError> {
        match (&self.chart, &self.digest) {
            (Some(chart), None) => {
                let resolved = images.charts().resolve((&self.url, &chart.name), &chart.version, access).await?;
                Ok(PinnedContent::Chart(resolved))
            }
            (None, None) => Ok(PinnedContent::Archive(images.archives().resolve(&self.url, access).await?)),
            (chart, Some(digest)) => Ok(self.at(chart.as_ref(), digest.clone())),
        }
    }

    fn at(&self, chart: Option<&Chart>, digest: Digest) -> PinnedContent {
        let url = self.url.clone();
        match chart {
            None => PinnedContent::Archive(ResolvedArchive::new(url, digest)),
            Some(Chart { name, version }) => {
                let (chart, version) = (name.clone(), version.text().to_owned());
                PinnedContent::Chart(ResolvedChart { repository: url, chart, version, digest })
            }
        }
    }

    fn pin(&self, content: PinnedContent) -> PinnedHttp {
        PinnedHttp { spec: self.spec.clone(), content }
    }
}

/// The chart that the fields name, if they name one.
fn chart(spec: &HttpSource) -> Result<Option<Chart>, InvalidSource> {
    let invalid = |field, problem| Err(InvalidSource::Chart { field, problem });
    let Some(name) = &spec.chart else {
        return match &spec.version {
            Some(_) => invalid("version", "only a chart has a version: set chart as well"),
            None => Ok(None),
        };
    };
    if spec.url.split('?').next().is_some_and(|url| url.trim_end_matches('/').ends_with(INDEX)) {
        return invalid("url", "it must not end with /index.yaml, which is added to it");
    }
    if !is_chart_name(name) {
        return invalid("chart", "it is not the name of a chart: at most 250 letters, digits, `-`, `_` and dots");
    }
    let Ok(version) = ChartVersion::parse(spec.version.as_deref().unwrap_or(ANY)) else {
        return invalid("version", "it is neither a version, such as 1.2.3, nor a range, such as ^1.2 or \">=1.2 <2\"");
    };
    if spec.sha256.is_some() && spec.version.as_ref().is_none_or(|version| Version::parse(version).is_err()) {
        return invalid("version", "must be one version, not a range, where chart and sha256 are set");
    }
    Ok(Some(Chart { name: name.clone(), version }))
}

async fn fetched(content: &PinnedContent, images: &Images, access: &ImageAccess) -> Result<Tree, ContentError> {
    match content {
        PinnedContent::Archive(archive) => images.archives().fetch(archive, access).await,
        PinnedContent::Chart(chart) => images.charts().fetch(chart, access).await,
    }
}

impl SourceKind for Http {
    const TYPE: &'static str = BundleSource::HTTP;
    type Spec = HttpSource;
    type Pin = PinnedHttp;
    type Access = ImageAccess;

    fn parse(spec: &HttpSource) -> Result<Self, InvalidSource> {
        let url: ArchiveUrl = spec.url.parse()?;
        let chart = chart(spec)?;
        let digest = spec.sha256.as_ref().map(|hex| format!("sha256:{hex}").parse::<Digest>());
        let digest = digest.transpose().map_err(|_| InvalidSource::Sha256)?;
        let fragment = spec.sha256.as_ref().map(|hex| format!("#sha256={hex}")).unwrap_or_default();
        Ok(Self { location: format!("{}{fragment}", url.text()), spec: spec.clone(), url, chart, digest })
    }

    fn describe(spec: &HttpSource) -> String {
        if let Some(chart) = &spec.chart {
            return format!("chart {chart} {} of {}", spec.version.as_deref().unwrap_or(ANY), shown_url(&spec.url));
        }
        match spec.sha256.as_ref().filter(|hex| hex.chars().all(|c| c.is_ascii_hexdigit())) {
            Some(hex) => format!("archive {} (sha256:{hex:.12})", shown_url(&spec.url)),
            None => format!("archive {}", shown_url(&spec.url)),
        }
    }

    /// A chart, and an archive that needs credentials or certificates, are not found by their URL alone.
    fn location(&self) -> Option<&str> {
        let plain = self.spec.auth.is_none() && self.spec.certificate_data.is_none() && self.chart.is_none();
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
        // Boxed, since every caller's future would hold these large ones.
        Ok(self.pin(Box::pin(self.resolved(environment.images, access)).await?))
    }

    async fn poll(
        &self,
        pin: &PinnedHttp,
        access: &ImageAccess,
        environment: Environment<'_>,
    ) -> Result<Option<PinnedHttp>, SourceError> {
        let PinnedContent::Archive(archive) = &pin.content else {
            return self.resolve(access, environment).await.map(Some);
        };
        let unchanged = Box::pin(environment.images.archives().is_unchanged(archive, access)).await?;
        Ok(unchanged.then(|| pin.clone()))
    }

    async fn fetch(pin: PinnedHttp, access: &ImageAccess, environment: Environment<'_>) -> Result<Tree, SourceError> {
        Ok(Box::pin(fetched(&pin.content, environment.images, access)).await?)
    }

    fn to_api(pin: &PinnedHttp) -> BundleSource {
        let (version, digest) = match &pin.content {
            PinnedContent::Archive(archive) => (None, archive.digest()),
            PinnedContent::Chart(chart) => (Some(chart.version.clone()), &chart.digest),
        };
        BundleSource::http(HttpSource { version, sha256: Some(digest.hex().to_owned()), ..pin.spec.clone() })
    }

    /// A digest of another URL or chart says nothing about this one.
    fn recorded_pin(&self, recorded: &Self) -> Option<PinnedHttp> {
        let is_same = self.url == recorded.url && self.spec.chart == recorded.spec.chart;
        let digest = recorded.digest.clone().filter(|_| is_same)?;
        Some(self.pin(self.at(recorded.chart.as_ref(), digest)))
    }

    fn remove_certificates(spec: &mut HttpSource) {
        spec.certificate_data = None;
    }

    fn with_certificates_of(mut self, current: &Self) -> Self {
        self.spec.certificate_data.clone_from(&current.spec.certificate_data);
        self
    }
}
