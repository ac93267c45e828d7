//! The version of a bundle, with its release.

use std::{cmp::Ordering, fmt};

use semver::{BuildMetadata, Prerelease, Version};

/// The version of a bundle. Semantic versioning gives build metadata no order, but bundles use it for rebuilds of one version:
/// `1.0.0+2` is newer than `1.0.0+1`. Build metadata that is a list of identifiers, as a pre-release is, counts as the release;
/// other build metadata has no order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BundleVersion {
    version: Version,
    release: Prerelease,
}

/// A version or a release is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The version is not a semantic version.
    #[error("{text:?} is not a semantic version: {cause}")]
    Version {
        /// The version.
        text: String,
        /// The reason.
        cause: String,
    },
    /// The release is not a list of identifiers.
    #[error("{text:?} is not a release: {cause}")]
    Release {
        /// The release.
        text: String,
        /// The reason.
        cause: String,
    },
}

impl BundleVersion {
    /// Parses a version, and the release beside it if there is one. Without one, build metadata may be the release.
    pub fn parse(version: &str, release: Option<&str>) -> Result<Self, VersionError> {
        let error = |cause: semver::Error| VersionError::Version { text: version.to_owned(), cause: cause.to_string() };
        let mut parsed = Version::parse(version).map_err(error)?;
        if let Some(text) = release.filter(|text| !text.is_empty()) {
            let error =
                |cause: semver::Error| VersionError::Release { text: text.to_owned(), cause: cause.to_string() };
            return Ok(Self { version: parsed, release: Prerelease::new(text).map_err(error)? });
        }
        match Prerelease::new(&parsed.build) {
            Ok(release) => {
                parsed.build = BuildMetadata::EMPTY;
                Ok(Self { version: parsed, release })
            }
            Err(_) => Ok(Self { version: parsed, release: Prerelease::EMPTY }),
        }
    }

    /// The semantic version. Its build metadata is empty unless it cannot be a release.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The release, if there is one.
    pub fn release(&self) -> Option<&str> {
        (!self.release.is_empty()).then(|| self.release.as_str())
    }
}

impl fmt::Display for BundleVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.version)?;
        match self.release() {
            Some(release) if self.version.build.is_empty() => write!(f, "+{release}"),
            // Build metadata may only be combined with an explicit release.
            Some(release) => write!(f, " release {release}"),
            None => Ok(()),
        }
    }
}

impl Ord for BundleVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        let release = match (self.release(), other.release()) {
            // A pre-release is older than none; a release is newer than none.
            (Some(_), Some(_)) => self.release.cmp(&other.release),
            (one, other) => one.is_some().cmp(&other.is_some()),
        };
        // Build metadata without an order comes last, so that only equal versions are equal.
        let build = || self.version.build.cmp(&other.version.build);
        self.version.cmp_precedence(&other.version).then(release).then_with(build)
    }
}

impl PartialOrd for BundleVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> BundleVersion {
        BundleVersion::parse(text, None).unwrap()
    }

    #[test]
    fn releases_order_equal_versions() {
        let ascending =
            ["1.0.0-rc.1", "1.0.0-rc.1+1", "1.0.0", "1.0.0+1", "1.0.0+2", "1.0.0+10", "1.0.0+rc.1", "1.0.1"];
        for pair in ascending.windows(2) {
            assert!(parse(pair[0]) < parse(pair[1]), "{pair:?}");
        }
        // A number with leading zeros is not a numeric identifier, so the metadata stays in the version.
        let other = parse("1.0.0+01");
        assert_eq!((other.release(), other.version().build.as_str()), (None, "01"));
        assert!(other < parse("1.0.0+1"));
    }

    #[test]
    fn an_explicit_release_wins() {
        let version = BundleVersion::parse("1.2.3+build", Some("4")).unwrap();
        assert_eq!((version.release(), version.version().build.as_str()), (Some("4"), "build"));
        assert_eq!(version.to_string(), "1.2.3+build release 4");
        assert_eq!(parse("1.2.3+4").to_string(), "1.2.3+4");
        assert!(matches!(BundleVersion::parse("1.2.3", Some("a/b")), Err(VersionError::Release { .. })));
        assert!(matches!(BundleVersion::parse("v1.2", None), Err(VersionError::Version { .. })));
    }
}
