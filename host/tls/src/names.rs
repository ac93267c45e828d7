//! The names of versions, cipher suites and groups: as in the registries of the IANA, and as OpenSSL and Kubernetes write them.

use std::{fmt, str::FromStr};

use rustls::{CipherSuite, NamedGroup};

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// A text that is not the name of a version that can be offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write VersionTLS12 or VersionTLS13")]
pub struct UnknownVersion;

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tls12 => "VersionTLS12",
            Self::Tls13 => "VersionTLS13",
        })
    }
}

impl FromStr for TlsVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        match text {
            "VersionTLS12" | "1.2" => Ok(Self::Tls12),
            "VersionTLS13" | "1.3" => Ok(Self::Tls13),
            _ => Err(UnknownVersion),
        }
    }
}

/// A cipher suite with its version, its name in the registry of the IANA, and its name in OpenSSL.
type Suite = (CipherSuite, TlsVersion, &'static str, &'static str);

/// The suites of the provider.
const SUITES: &[Suite] = &[
    (CipherSuite::TLS13_AES_128_GCM_SHA256, TlsVersion::Tls13, "TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
    (CipherSuite::TLS13_AES_256_GCM_SHA384, TlsVersion::Tls13, "TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
    (
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        TlsVersion::Tls13,
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_CHACHA20_POLY1305_SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        TlsVersion::Tls12,
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        TlsVersion::Tls12,
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        TlsVersion::Tls12,
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        TlsVersion::Tls12,
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-RSA-AES128-GCM-SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        TlsVersion::Tls12,
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        TlsVersion::Tls12,
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-RSA-CHACHA20-POLY1305",
    ),
];

/// The groups of the provider with their names in the registry of the IANA, and other names.
const GROUPS: &[(NamedGroup, &str, &[&str])] = &[
    (NamedGroup::X25519, "X25519", &["x25519"]),
    (NamedGroup::secp256r1, "secp256r1", &["P-256", "prime256v1"]),
    (NamedGroup::secp384r1, "secp384r1", &["P-384"]),
];

/// The cipher suite with this name of the IANA or of OpenSSL, and its version.
pub(crate) fn suite(name: &str) -> Option<(CipherSuite, TlsVersion)> {
    SUITES
        .iter()
        .find(|(_, _, iana, openssl)| [*iana, *openssl].contains(&name))
        .map(|(id, version, ..)| (*id, *version))
}

/// The group with this name.
pub(crate) fn group(name: &str) -> Option<NamedGroup> {
    GROUPS.iter().find(|(_, iana, others)| *iana == name || others.contains(&name)).map(|(id, ..)| *id)
}

/// The names of all suites, by the IANA.
pub fn suites() -> impl Iterator<Item = &'static str> {
    SUITES.iter().map(|(_, _, iana, _)| *iana)
}

/// The names of all groups, by the IANA.
pub fn groups() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(_, iana, _)| *iana)
}

#[cfg(test)]
mod tests {
    use rustls::crypto::ring;

    use super::*;

    #[test]
    fn every_suite_and_group_of_the_provider_has_names() {
        let provider = ring::default_provider();
        let offered: Vec<_> = provider.cipher_suites.iter().map(rustls::SupportedCipherSuite::suite).collect();
        assert_eq!(offered.len(), SUITES.len());
        for (id, version, iana, openssl) in SUITES {
            assert!(offered.contains(id), "{iana}");
            assert_eq!(suite(iana), Some((*id, *version)));
            assert_eq!(suite(openssl), Some((*id, *version)));
            let is_13 = provider.cipher_suites.iter().any(|it| it.suite() == *id && it.tls13().is_some());
            assert_eq!(is_13, *version == TlsVersion::Tls13, "{iana}");
        }
        let offered: Vec<_> = provider.kx_groups.iter().map(|group| group.name()).collect();
        assert_eq!(offered.len(), GROUPS.len());
        for (id, iana, others) in GROUPS {
            assert!(offered.contains(id), "{iana}");
            assert!(others.iter().chain([iana]).all(|name| group(name) == Some(*id)), "{iana}");
        }
    }

    #[test]
    fn versions_have_the_names_of_kubernetes() {
        assert_eq!("VersionTLS12".parse(), Ok(TlsVersion::Tls12));
        assert_eq!("1.3".parse(), Ok(TlsVersion::Tls13));
        for unknown in ["", "VersionTLS11", "1.1", "tls1.2", "VersionTLS14"] {
            assert_eq!(unknown.parse::<TlsVersion>(), Err(UnknownVersion), "{unknown}");
        }
    }
}
