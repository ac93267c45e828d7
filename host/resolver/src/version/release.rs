//! A version with its release.

use std::{cmp::Ordering, fmt};

use semver::{Prerelease, Version};

use super::{BYTES, VersionError};

/// The version of a bundle. Build metadata that consists of dot-separated identifiers is a *release*, and orders what Semantic
/// Versioning leaves equal: `1.0.0+2` is higher than `1.0.0+1`, which is higher than `1.0.0`. Other metadata has no order.
#[derive(Clone, Debug)]
pub struct VersionRelease {
    version: Version,
    release: Prerelease,
    /// Whether the release was given apart from the version.
    apart: bool,
}

impl VersionRelease {
    /// Reads a version. A release that is given apart from it takes the place of the build metadata.
    ///
    /// # Errors
    /// If either is malformed.
    pub fn parse(text: &str, release: Option<&str>) -> Result<Self, VersionError> {
        let malformed = || VersionError::Version(bounded(text));
        if text.len() > BYTES {
            return Err(malformed());
        }
        let version = Version::parse(text).map_err(|_| malformed())?;
        if let Some(release) = release {
            let parsed = identifiers(release).ok_or_else(|| VersionError::Version(bounded(release)))?;
            Ok(Self { version, release: parsed, apart: true })
        } else {
            let release = identifiers(version.build.as_str()).unwrap_or(Prerelease::EMPTY);
            Ok(Self { version, release, apart: false })
        }
    }

    /// The version of a bundle that has none.
    pub(crate) fn none() -> Self {
        Self { version: Version::new(0, 0, 0), release: Prerelease::EMPTY, apart: false }
    }

    /// The version with its build metadata.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The release, if it has one.
    pub fn release(&self) -> Option<&str> {
        (!self.release.is_empty()).then_some(self.release.as_str())
    }

    /// Whether it is a pre-release.
    pub fn is_prerelease(&self) -> bool {
        !self.version.pre.is_empty()
    }
}

/// The identifiers of a release follow the rules for identifiers of a pre-release.
fn identifiers(text: &str) -> Option<Prerelease> {
    (text.len() <= BYTES).then(|| Prerelease::new(text).ok()).flatten()
}

fn bounded(text: &str) -> String {
    text.chars().take(64).collect()
}

impl Ord for VersionRelease {
    fn cmp(&self, other: &Self) -> Ordering {
        let release = |of: &Self| (!of.release.is_empty(), of.release.clone());
        self.version.cmp_precedence(&other.version).then_with(|| release(self).cmp(&release(other)))
    }
}

impl PartialOrd for VersionRelease {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for VersionRelease {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for VersionRelease {}

impl fmt::Display for VersionRelease {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.version)?;
        if self.apart && !self.release.is_empty() { write!(to, " release {}", self.release) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> VersionRelease {
        VersionRelease::parse(text, None).unwrap()
    }

    #[test]
    fn releases_order_equal_versions() {
        let ordered = ["1.0.0-alpha", "1.0.0", "1.0.0+1", "1.0.0+2", "1.0.0+10", "1.0.0+10.1", "1.0.0+a", "1.0.1"];
        for pair in ordered.windows(2) {
            assert!(of(pair[0]) < of(pair[1]), "{pair:?}");
        }
        assert_eq!(of("1.0.0+01"), of("1.0.0"), "a number with a leading zero is not a release");
        assert_eq!(of("1.0.0+01").release(), None);
        assert_eq!(of("1.0.0+01").to_string(), "1.0.0+01");
        let apart = VersionRelease::parse("1.0.0", Some("3")).unwrap();
        assert_eq!(apart, of("1.0.0+3"));
        assert_eq!(apart.to_string(), "1.0.0 release 3");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", "1", "1.0", "v1.0.0", "1.0.0.0", "01.0.0", &"1".repeat(600)] {
            assert!(VersionRelease::parse(text, None).is_err(), "{text}");
        }
        assert!(VersionRelease::parse("1.0.0", Some("01")).is_err());
    }
}
