//! A chart in a Helm repository.

use chandler_api::{BundleSource, HelmRepositorySource};
use chandler_content::{
    ArchiveUrl, ChartVersion, ContentError, ImageAccess, Images, ResolvedChart, Tree, is_chart_name, shown_url,
};
use chandler_core::Digest;

use crate::{Environment, InvalidSource, SourceError, SourceKind, authorization};

/// The newest version that is not a pre-release.
const ANY: &str = "*";
/// The file that users name with the URL, although Helm adds it.
const INDEX: &str = "/index.yaml";

/// A chart, with the URL of its repository, the version and the digest parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct HelmRepository {
    spec: HelmRepositorySource,
    url: ArchiveUrl,
    version: ChartVersion,
    digest: Option<Digest>,
}

/// One version of a chart by digest, and how to reach its repository.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedChart {
    spec: HelmRepositorySource,
    chart: ResolvedChart,
}

impl HelmRepository {
    /// The source, as it was parsed.
    pub fn to_source(&self) -> BundleSource {
        BundleSource::helm_repository(self.spec.clone())
    }

    /// The files that the chart has now, without credentials.
    ///
    /// # Errors
    /// As [`Charts::resolve`](chandler_content::Charts::resolve) and [`Charts::fetch`](chandler_content::Charts::fetch).
    pub async fn files(&self, images: &Images) -> Result<Tree, ContentError> {
        let access = ImageAccess::default();
        let chart = self.resolved(images, &access).await?;
        images.charts().fetch(&chart, &access).await
    }

    async fn resolved(&self, images: &Images, access: &ImageAccess) -> Result<ResolvedChart, ContentError> {
        if let Some(digest) = &self.digest {
            return Ok(self.at(self.version.text(), digest.clone()));
        }
        images.charts().resolve((&self.url, &self.spec.chart), &self.version, access).await
    }

    fn at(&self, version: &str, digest: Digest) -> ResolvedChart {
        let (repository, chart) = (self.url.clone(), self.spec.chart.clone());
        ResolvedChart { repository, chart, version: version.to_owned(), digest }
    }

    fn pin(&self, chart: ResolvedChart) -> PinnedChart {
        PinnedChart { spec: self.spec.clone(), chart }
    }
}

impl SourceKind for HelmRepository {
    const TYPE: &'static str = BundleSource::HELM_REPOSITORY;
    type Spec = HelmRepositorySource;
    type Pin = PinnedChart;
    type Access = ImageAccess;

    fn parse(spec: &HelmRepositorySource) -> Result<Self, InvalidSource> {
        let invalid = |field, problem: String| InvalidSource::HelmRepository { field, problem };
        let url: ArchiveUrl = spec.url.parse().map_err(InvalidSource::HelmRepositoryUrl)?;
        if spec.url.split('?').next().is_some_and(|url| url.trim_end_matches('/').ends_with(INDEX)) {
            return Err(invalid("url", "it must not end with /index.yaml, which is added to it".to_owned()));
        }
        if !is_chart_name(&spec.chart) {
            let problem = "it is not the name of a chart: at most 250 letters, digits, `-`, `_` and dots";
            return Err(invalid("chart", problem.to_owned()));
        }
        let version = ChartVersion::parse(spec.version.as_deref().unwrap_or(ANY));
        let version = version.map_err(|_| {
            let problem = "it is neither a version, such as 1.2.3, nor a range, such as ^1.2 or \">=1.2 <2\"";
            invalid("version", problem.to_owned())
        })?;
        let digest = spec.sha256.as_ref().map(|hex| format!("sha256:{hex}").parse::<Digest>()).transpose();
        let digest =
            digest.map_err(|_| invalid("sha256", "it is not 64 hexadecimal digits in lower case".to_owned()))?;
        if digest.is_some() && spec.version.is_none() {
            return Err(invalid("version", "must be set where sha256 is".to_owned()));
        }
        Ok(Self { spec: spec.clone(), url, version, digest })
    }

    fn describe(spec: &HelmRepositorySource) -> String {
        let version = spec.version.as_deref().unwrap_or(ANY);
        format!("chart {} {version} of {}", spec.chart, shown_url(&spec.url))
    }

    fn can_move(&self) -> bool {
        self.digest.is_none()
    }

    async fn access(&self, environment: Environment<'_>) -> Result<ImageAccess, SourceError> {
        let (auth, certificates) = (self.spec.auth.as_ref(), self.spec.certificate_data.as_ref());
        authorization::access(environment, auth, &self.url.server(), certificates).await
    }

    async fn resolve(&self, access: &ImageAccess, environment: Environment<'_>) -> Result<PinnedChart, SourceError> {
        // Boxed, since every caller's future would hold these large ones.
        Ok(self.pin(Box::pin(self.resolved(environment.images, access)).await?))
    }

    async fn fetch(pin: PinnedChart, access: &ImageAccess, environment: Environment<'_>) -> Result<Tree, SourceError> {
        let charts = environment.images.charts();
        Ok(Box::pin(charts.fetch(&pin.chart, access)).await?)
    }

    fn to_api(pin: &PinnedChart) -> BundleSource {
        let (version, sha256) = (Some(pin.chart.version.clone()), Some(pin.chart.digest.hex().to_owned()));
        BundleSource::helm_repository(HelmRepositorySource { version, sha256, ..pin.spec.clone() })
    }

    /// A digest of another chart says nothing about this one.
    fn recorded_pin(&self, recorded: &Self) -> Option<PinnedChart> {
        let is_same = self.url == recorded.url && self.spec.chart == recorded.spec.chart;
        let digest = recorded.digest.clone().filter(|_| is_same)?;
        Some(self.pin(self.at(recorded.version.text(), digest)))
    }

    fn remove_certificates(spec: &mut HelmRepositorySource) {
        spec.certificate_data = None;
    }

    fn with_certificates_of(mut self, current: &Self) -> Self {
        self.spec.certificate_data.clone_from(&current.spec.certificate_data);
        self
    }
}
