//! The version of a chart that a source names.

use chandler_core::Digest;
use chandler_versions::{Constraint, Version, VersionError};

use super::index::Published;
use crate::{ArchiveUrl, ArchiveUrlError, ImageReference};

/// The longest version that a message shows.
const SHOWN_BYTES: usize = 64;

/// The version of a chart: one, or the newest in a range, as `helm install --version` reads it.
#[derive(Clone, Debug)]
pub struct ChartVersion {
    text: String,
    range: Constraint,
}

impl ChartVersion {
    /// Reads a version such as `1.2.3`, or a range such as `^1.2`, `>=1.2 <2`, `1.x` or `*`.
    ///
    /// # Errors
    /// The text is neither.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        Ok(Self { range: Constraint::parse(text)?, text: text.to_owned() })
    }

    /// The text that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl PartialEq for ChartVersion {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// A Helm repository does not have the chart that a source names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChartError {
    /// Its index does not list the chart.
    #[error("it does not have the chart {0}")]
    NoChart(String),
    /// Its index lists other versions.
    #[error("it does not have a version {wanted} of the chart {chart}{}", .newest.as_ref().map(|newest| format!("; the newest is {newest}")).unwrap_or_default())]
    NoVersion {
        /// The chart.
        chart: String,
        /// The version or range.
        wanted: String,
        /// The newest version that is not a pre-release.
        newest: Option<String>,
    },
    /// The version has no URL.
    #[error("its index has no URL for version {0}")]
    NoUrl(String),
    /// The URL of the version cannot be used.
    #[error("the URL of version {version} cannot be used: {error}")]
    Url {
        /// The version.
        version: String,
        /// Why.
        error: ArchiveUrlError,
    },
    /// The digest of the version cannot be read.
    #[error("the digest of version {0} is not one of SHA-256")]
    Digest(String),
    /// The archive of the version is in a registry.
    #[error("version {version} is in a registry: set the source to type image, with the ref {image}")]
    InRegistry {
        /// The version.
        version: String,
        /// The image.
        image: String,
    },
    /// The publisher replaced the version.
    #[error("version {version} has another archive: its digest in the index is {found}, not {expected}")]
    Replaced {
        /// The version.
        version: String,
        /// The digest that the source names.
        expected: Digest,
        /// The digest in the index.
        found: Digest,
    },
}

impl ChartError {
    /// A CamelCase word for metrics and events.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NoChart(_) | Self::NoVersion { .. } => "ChartNotFound",
            Self::Replaced { .. } => "ChecksumMismatch",
            Self::NoUrl(_) | Self::Url { .. } | Self::Digest(_) => "InvalidIndex",
            Self::InRegistry { .. } => "ChartInRegistry",
        }
    }
}

/// The version with exactly this text, else the newest in the range. Texts that are not versions are in no range, and of pre-releases those are that
/// the range names.
pub(super) fn select<'a>(
    published: &'a [Published],
    chart: &str,
    wanted: &ChartVersion,
) -> Result<&'a Published, ChartError> {
    exact(published, &wanted.text).or_else(|| newest(published, &wanted.range)).ok_or_else(|| {
        let stable = Constraint::parse("*").ok().and_then(|any| newest(published, &any));
        let newest = stable.map(|newest| shown(&newest.version));
        ChartError::NoVersion { chart: chart.to_owned(), wanted: wanted.text.clone(), newest }
    })
}

/// The version with exactly this text.
pub(super) fn exact<'a>(published: &'a [Published], version: &str) -> Option<&'a Published> {
    published.iter().find(|published| published.version == version)
}

fn newest<'a>(published: &'a [Published], range: &Constraint) -> Option<&'a Published> {
    let versions = published.iter().filter_map(|published| Some((Version::parse(&published.version).ok()?, published)));
    let mut found: Option<(Version, &Published)> = None;
    for (version, published) in versions.filter(|(version, _)| range.check(version)) {
        // Of versions that differ in their build metadata alone, the first one counts.
        if found.as_ref().is_none_or(|(newest, _)| version.compare(newest).is_gt()) {
            found = Some((version, published));
        }
    }
    found.map(|(_, published)| published)
}

impl Published {
    /// Where the archive is.
    pub(super) fn archive(&self, repository: &ArchiveUrl) -> Result<ArchiveUrl, ChartError> {
        let version = || shown(&self.version);
        let url = self.url.as_ref().filter(|url| !url.is_empty()).ok_or_else(|| ChartError::NoUrl(version()))?;
        if let Some(image) = url.strip_prefix("oci://") {
            let image: Option<ImageReference> = image.parse().ok();
            let image = image.map_or_else(|| "REGISTRY/REPOSITORY:TAG".to_owned(), |image| image.to_string());
            return Err(ChartError::InRegistry { version: version(), image });
        }
        repository.referred(url).map_err(|error| ChartError::Url { version: version(), error })
    }

    /// The digest of the archive, if the index has it.
    pub(super) fn digest(&self) -> Result<Option<Digest>, ChartError> {
        let Some(digest) = self.digest.as_ref().filter(|digest| !digest.is_empty()) else { return Ok(None) };
        let hex = digest.strip_prefix("sha256:").unwrap_or(digest).to_ascii_lowercase();
        let parsed = format!("sha256:{hex}").parse();
        parsed.map(Some).map_err(|_| ChartError::Digest(shown(&self.version)))
    }
}

/// A version as a message shows it: of an untrusted text only what versions are made of.
fn shown(version: &str) -> String {
    let usable = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
    version.chars().filter(usable).take(SHOWN_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(versions: &[&str]) -> Vec<Published> {
        versions.iter().map(|version| Published { version: (*version).to_owned(), url: None, digest: None }).collect()
    }

    #[test]
    fn the_newest_version_of_a_range_is_selected_as_by_helm() {
        let all = list(&["1.2.0", "2.0.0-rc.1", "1.10.0", "v1.9.0", "nightly", "1.10.0+b", "0.9", "3.0.0-alpha"]);
        for (wanted, expected) in [
            ("*", Some("1.10.0")),
            ("", Some("1.10.0")),
            ("1.2.0", Some("1.2.0")),
            ("1.2", Some("1.2.0")),
            ("1.9.0", Some("v1.9.0")),
            ("v1.2.0", Some("1.2.0")),
            ("^1.2", Some("1.10.0")),
            (">=1.2 <1.10", Some("v1.9.0")),
            ("1.10.0+b", Some("1.10.0+b")),
            ("2.0.0-rc.1", Some("2.0.0-rc.1")),
            (">=1.2.0-0", Some("3.0.0-alpha")),
            ("<1", Some("0.9")),
            ("0.9", Some("0.9")),
            ("^4", None),
        ] {
            let selected = select(&all, "web", &ChartVersion::parse(wanted).unwrap());
            assert_eq!(selected.ok().map(|published| published.version.as_str()), expected, "{wanted}");
        }
        let refused = select(&all, "web", &ChartVersion::parse("^4").unwrap()).unwrap_err();
        assert_eq!(refused.to_string(), "it does not have a version ^4 of the chart web; the newest is 1.10.0");
        let refused = select(&list(&["nightly"]), "web", &ChartVersion::parse("1").unwrap()).unwrap_err();
        assert_eq!(refused.to_string(), "it does not have a version 1 of the chart web");
    }

    #[test]
    fn an_archive_is_where_helm_looks_for_it() {
        let at = |repository: &str, url: &str| {
            let published = Published {
                version: "1.2.3".to_owned(),
                url: Some(url.to_owned()).filter(|_| url != "-"),
                digest: None,
            };
            let archive = published.archive(&repository.parse().unwrap());
            archive.map(|url| url.text().to_owned()).map_err(|error| error.to_string())
        };
        let (plain, token) = ("https://example.com/charts", "https://example.com/charts/?token=x");
        for (repository, url, expected) in [
            (plain, "web-1.2.3.tgz", "https://example.com/charts/web-1.2.3.tgz"),
            (plain, "a/web.tgz", "https://example.com/charts/a/web.tgz"),
            (plain, "/web.tgz", "https://example.com/web.tgz"),
            (plain, "../web.tgz", "https://example.com/web.tgz"),
            (plain, "https://cdn.example.com/web.tgz", "https://cdn.example.com/web.tgz"),
            (token, "web.tgz", "https://example.com/charts/web.tgz?token=x"),
            (token, "https://cdn.example.com/web.tgz", "https://cdn.example.com/web.tgz"),
            (token, "//cdn.example.com/web.tgz", "https://cdn.example.com/web.tgz"),
        ] {
            assert_eq!(at(repository, url), Ok(expected.to_owned()), "{repository} {url}");
        }
        for (url, expected) in [
            ("-", "its index has no URL for version 1.2.3"),
            ("", "its index has no URL for version 1.2.3"),
            (
                "oci://ghcr.io/example/web:1.2.3",
                "version 1.2.3 is in a registry: set the source to type image, with the ref ghcr.io/example/web:1.2.3",
            ),
            ("file:///etc/passwd", "the URL of version 1.2.3 cannot be used: its scheme is neither https nor http"),
        ] {
            assert_eq!(at(plain, url), Err(expected.to_owned()), "{url}");
        }
        assert!(at(plain, "https://user:s3cret@example.com/a.tgz").is_err_and(|error| !error.contains("s3cret")));
    }

    #[test]
    fn a_digest_is_of_sha256() {
        let of = |digest: &str| {
            let digest = Some(digest.to_owned());
            Published { version: "1\u{1b}[2J".to_owned(), url: None, digest }
                .digest()
                .map_err(|error| error.to_string())
        };
        let hex = "ab".repeat(32);
        let expected: Digest = format!("sha256:{hex}").parse().unwrap();
        for text in [hex.clone(), format!("sha256:{hex}"), hex.to_uppercase()] {
            assert_eq!(of(&text), Ok(Some(expected.clone())));
        }
        assert_eq!(of(""), Ok(None));
        assert_eq!(of("md5:00"), Err("the digest of version 12J is not one of SHA-256".to_owned()));
    }
}
