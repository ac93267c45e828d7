//! What an administrator sets, and the provider that offers only that.

use std::sync::Arc;

use rustls::{
    CipherSuite, NamedGroup,
    crypto::{CryptoProvider, ring},
};

use crate::names::{self, TlsVersion};

/// Settings that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// No cipher suite has the name.
    #[error("{name:?} is not a cipher suite that Chandler supports; these are {}", names::suites().collect::<Vec<_>>().join(", "))]
    UnknownSuite {
        /// The name.
        name: String,
    },
    /// No group has the name.
    #[error("{name:?} is not a group that Chandler supports; these are {}", names::groups().collect::<Vec<_>>().join(", "))]
    UnknownGroup {
        /// The name.
        name: String,
    },
    /// The minimum version excludes all suites.
    #[error("all of these cipher suites are for TLS 1.2, and the minimum version is TLS 1.3")]
    NoSuite,
    /// A list of groups is empty, or holds none that is supported.
    #[error("no group for key exchange is left")]
    NoGroup,
}

/// What TLS connections may negotiate. Default: TLS 1.2 and 1.3 with all suites and groups of the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    minimum: TlsVersion,
    /// Default: all.
    suites: Option<Vec<CipherSuite>>,
    /// Default: all.
    groups: Option<Vec<NamedGroup>>,
}

impl TlsSettings {
    /// All suites and groups, from this version.
    pub fn from_version(minimum: TlsVersion) -> Self {
        Self { minimum, ..Self::default() }
    }

    /// The settings of an administrator. Empty lists mean all suites and all groups.
    ///
    /// The list of suites is for TLS 1.2 if it names no suite of TLS 1.3: then all suites of TLS 1.3 stay, as in Kubernetes, where they cannot
    /// be set.
    ///
    /// # Errors
    /// A name is unknown, or no suite is left.
    pub fn new(minimum: TlsVersion, suites: &[String], groups: &[String]) -> Result<Self, TlsError> {
        let chosen =
            suites.iter().map(|name| names::suite(name).ok_or_else(|| TlsError::UnknownSuite { name: name.clone() }));
        let chosen: Vec<_> = chosen.collect::<Result<_, _>>()?;
        let groups =
            groups.iter().map(|name| names::group(name).ok_or_else(|| TlsError::UnknownGroup { name: name.clone() }));
        let groups: Vec<_> = groups.collect::<Result<_, _>>()?;
        if minimum == TlsVersion::Tls13 && !chosen.is_empty() && chosen.iter().all(|(_, it)| *it == TlsVersion::Tls12) {
            return Err(TlsError::NoSuite);
        }
        Ok(Self {
            minimum,
            suites: (!chosen.is_empty()).then(|| chosen.into_iter().map(|(id, _)| id).collect()),
            groups: (!groups.is_empty()).then_some(groups),
        })
    }

    /// The settings of a profile, which is for all software of a cluster: suites and groups that Chandler does not support are left out, and
    /// their names are returned. Empty lists mean all suites and all groups.
    ///
    /// # Errors
    /// Groups are listed, and none of them is supported.
    pub(crate) fn supported(
        minimum: TlsVersion,
        suites: &[String],
        groups: &[String],
    ) -> Result<(Self, Vec<String>), TlsError> {
        let known_suites = suites.iter().filter_map(|name| Some(names::suite(name)?.0)).collect();
        let known_groups: Vec<_> = groups.iter().filter_map(|name| names::group(name)).collect();
        if known_groups.is_empty() && !groups.is_empty() {
            return Err(TlsError::NoGroup);
        }
        let left_out = suites.iter().filter(|name| names::suite(name).is_none());
        let left_out = left_out.chain(groups.iter().filter(|name| names::group(name).is_none()));
        let settings = Self {
            minimum,
            // With suites that are all unsupported, TLS 1.3 is left.
            suites: (!suites.is_empty()).then_some(known_suites),
            groups: (!groups.is_empty()).then_some(known_groups),
        };
        Ok((settings, left_out.cloned().collect()))
    }

    /// A provider that offers only what these settings allow, in the order of preference of rustls.
    pub fn provider(&self) -> Arc<CryptoProvider> {
        let mut provider = ring::default_provider();
        let listed = self.suites.as_deref();
        let lists_13 = provider
            .cipher_suites
            .iter()
            .any(|suite| suite.tls13().is_some() && listed.is_some_and(|listed| listed.contains(&suite.suite())));
        provider.cipher_suites.retain(|suite| {
            let is_13 = suite.tls13().is_some();
            let is_listed = listed.is_none_or(|listed| listed.contains(&suite.suite()));
            (is_listed || is_13 && !lists_13) && (is_13 || self.minimum == TlsVersion::Tls12)
        });
        provider.kx_groups.retain(|group| self.groups.as_ref().is_none_or(|listed| listed.contains(&group.name())));
        Arc::new(provider)
    }

    /// Makes these settings the default of all connections of this process that rustls sets up without a provider, such as connections to the
    /// API server. Only the first call has an effect.
    pub fn install(&self) {
        // An error holds the provider that is installed already.
        let _ = Arc::unwrap_or_clone(self.provider()).install_default();
    }
}

/// The provider that [`TlsSettings::install`] made the default of this process, or one that offers everything.
pub fn provider() -> Arc<CryptoProvider> {
    CryptoProvider::get_default().cloned().unwrap_or_else(|| TlsSettings::default().provider())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// The names of what is offered.
    fn offered(settings: &TlsSettings) -> (Vec<CipherSuite>, Vec<NamedGroup>) {
        let provider = settings.provider();
        let suites = provider.cipher_suites.iter().map(rustls::SupportedCipherSuite::suite).collect();
        (suites, provider.kx_groups.iter().map(|group| group.name()).collect())
    }

    #[test]
    fn the_provider_offers_only_what_is_set() {
        let all = offered(&TlsSettings::default());
        assert_eq!((all.0.len(), all.1.len()), (9, 3));
        let modern = TlsSettings::from_version(TlsVersion::Tls13);
        assert_eq!(offered(&modern).0.len(), 3);
        let one = TlsSettings::new(TlsVersion::Tls12, &owned(&["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]), &[]).unwrap();
        let (suites, groups) = offered(&one);
        assert_eq!((suites.len(), groups.len()), (4, 3), "the suites of TLS 1.3 stay: {suites:?}");
        let strict = ["TLS_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"];
        let strict = TlsSettings::new(TlsVersion::Tls12, &owned(&strict), &owned(&["P-384"])).unwrap();
        assert_eq!(
            offered(&strict),
            (
                vec![CipherSuite::TLS13_AES_256_GCM_SHA384, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384],
                vec![NamedGroup::secp384r1]
            )
        );
    }

    #[test]
    fn mistakes_are_named() {
        let error = TlsSettings::new(TlsVersion::Tls12, &owned(&["TLS_RSA_WITH_RC4_128_SHA"]), &[]).unwrap_err();
        assert!(error.to_string().starts_with("\"TLS_RSA_WITH_RC4_128_SHA\" is not a cipher suite"), "{error}");
        let error = TlsSettings::new(TlsVersion::Tls12, &[], &owned(&["X25519MLKEM768"])).unwrap_err();
        assert!(error.to_string().contains("X25519, secp256r1, secp384r1"), "{error}");
        let old = owned(&["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]);
        assert_eq!(TlsSettings::new(TlsVersion::Tls13, &old, &[]), Err(TlsError::NoSuite));
    }

    proptest! {
        /// Whatever is set, a connection can be negotiated: every accepted setting leaves a suite of TLS 1.3 or of the minimum, and a group.
        #[test]
        fn something_is_left(
            suites in proptest::collection::vec(proptest::sample::select(names::suites().collect::<Vec<_>>()), 0..4),
            groups in proptest::collection::vec(proptest::sample::select(names::groups().collect::<Vec<_>>()), 0..3),
            modern: bool,
        ) {
            let minimum = if modern { TlsVersion::Tls13 } else { TlsVersion::Tls12 };
            if let Ok(settings) = TlsSettings::new(minimum, &owned(&suites), &owned(&groups)) {
                let (offered_suites, offered_groups) = offered(&settings);
                prop_assert!(!offered_suites.is_empty() && !offered_groups.is_empty());
                let mut listed = suites.iter().filter_map(|name| names::suite(name));
                let kept = listed.all(|(id, version)| offered_suites.contains(&id) || version < minimum);
                prop_assert!(kept, "{suites:?}");
            }
        }
    }
}
