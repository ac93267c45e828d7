//! Versions of Kubernetes and of OpenShift.

use std::fmt;

/// A version, without any suffix of its numbers, which distributions add (`v1.30.2+k3s1`, `v1.29.4-gke.1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) major: u64,
    pub(super) minor: u64,
    patch: u64,
}

impl Version {
    /// Parses `1.29.0`, `v1.29.0-gke.1` and `1.29`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let numbers = text.split(['-', '+']).next()?;
        let mut parts = numbers.split('.');
        let mut number = |default: Option<u64>| match parts.next() {
            Some(part) if part.bytes().all(|byte| byte.is_ascii_digit()) => part.parse().ok(),
            Some(_) => None,
            None => default,
        };
        let version = Self { major: number(None)?, minor: number(None)?, patch: number(Some(0))? };
        parts.next().is_none().then_some(version)
    }

    /// The minor version of the OpenShift 4 with this Kubernetes. Each since 4.3 has the next Kubernetes.
    pub(super) fn openshift_minor(self) -> Option<u64> {
        const OFFSET: u64 = 13;
        const FIRST: u64 = 3;
        let minor = self.minor.checked_sub(OFFSET)?;
        (self.major == 1 && minor >= FIRST).then_some(minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_and_compared_numerically() {
        let version = |text: &str| Version::parse(text).map(|version| version.to_string());
        for (text, want) in [
            ("1.29.0", Some("1.29.0")),
            ("v1.36.0-chandler.devcluster", Some("1.36.0")),
            ("v1.30.2+k3s1", Some("1.30.2")),
            (" 1.16 ", Some("1.16.0")),
            ("1", None),
            ("", None),
            ("1.x.0", None),
            ("1.2.3.4", None),
            ("1..0", None),
            ("+1.2.3", None),
        ] {
            assert_eq!(version(text).as_deref(), want, "{text:?}");
        }
        assert!(Version::parse("1.9.0") < Version::parse("1.10.0"));
        assert!(Version::parse("1.29.4-gke.1") >= Version::parse("1.29.4"));
    }

    #[test]
    fn the_openshift_of_a_kubernetes() {
        for (kubernetes, openshift) in
            [("1.16.2", Some(3)), ("1.25.0", Some(12)), ("1.33.1", Some(20)), ("1.13.0", None)]
        {
            assert_eq!(Version::parse(kubernetes).unwrap().openshift_minor(), openshift, "{kubernetes}");
        }
    }
}
