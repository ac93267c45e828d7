//! Versions of the cluster, and the limits that bundles set to them.

use std::fmt;

use semver::Version;
use serde_json::Value;

/// The first minor version of OpenShift 4 that equals one of OpenShift 5: 4.23 is 5.0.
const FIVE: u64 = 23;

/// A version of OpenShift without its patch. 4.23 and 5.0 are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenShift {
    major: u64,
    minor: u64,
}

impl OpenShift {
    /// Reads a version such as `4.20` or `4.20.3`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().trim_start_matches('v').splitn(3, '.');
        Some(Self::normal(number(parts.next()?)?, number(parts.next()?)?))
    }

    /// The minor version after this one.
    pub fn next_minor(self) -> Self {
        Self::normal(self.major, self.minor.saturating_add(1))
    }

    fn normal(major: u64, minor: u64) -> Self {
        let five = major == 4 && minor >= FIVE;
        if five { Self { major: 5, minor: minor - FIVE } } else { Self { major, minor } }
    }

    /// Reads the value of a property `olm.maxOpenShiftVersion`: `"4.20"`, which may be quoted twice. A number is refused,
    /// since 4.20 would be 4.2.
    ///
    /// # Errors
    /// With a message for people.
    pub fn from_property(value: &Value) -> Result<Self, String> {
        let text = value.as_str().ok_or_else(|| format!("{value} is not a string such as \"4.20\""))?;
        let text = text.trim_matches('"');
        let parsed = Self::parse(text).filter(|_| text.split('.').count() == 2);
        parsed.ok_or_else(|| format!("{text:?} is not a version such as \"4.20\""))
    }
}

fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl fmt::Display for OpenShift {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}.{}", self.major, self.minor)
    }
}

/// A version of Kubernetes: `v1.36.2`, `1.36` or `1.36.2+vendor`. Vendors' suffixes after the patch version have no order.
pub fn kubernetes(text: &str) -> Option<Version> {
    let text = text.trim().trim_start_matches('v');
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let mut parts = text.get(..end)?.split('.').map(number);
    let (major, minor) = (parts.next()??, parts.next()??);
    let patch = parts.next().unwrap_or(Some(0))?;
    parts.next().is_none().then(|| Version::new(major, minor, patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_of_the_platform_are_read() {
        assert_eq!(OpenShift::parse("4.23"), OpenShift::parse("5.0.1"));
        assert!(OpenShift::parse("4.9") < OpenShift::parse("4.10"));
        assert_eq!(OpenShift::parse("4.22").map(OpenShift::next_minor), OpenShift::parse("5.0"));
        assert_eq!(OpenShift::from_property(&json!("\"4.20\"")), Ok(OpenShift { major: 4, minor: 20 }));
        for value in [json!(4.20), json!("4"), json!("4.20.1"), json!("a.b"), json!("")] {
            assert!(OpenShift::from_property(&value).is_err(), "{value}");
        }
        assert_eq!(kubernetes("v1.36.2+k3s1"), Some(Version::new(1, 36, 2)));
        assert_eq!(kubernetes("1.36"), Some(Version::new(1, 36, 0)));
        assert_eq!((kubernetes("one"), kubernetes("1.2.3.4"), kubernetes("")), (None, None, None));
    }
}
