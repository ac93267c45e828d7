//! The TLS profile of an OpenShift cluster: `spec.tlsSecurityProfile` of the APIServer `cluster` (`config.openshift.io/v1`).
//!
//! Its fields and the meaning of its types come from the API of OpenShift. Suites have the names of OpenSSL.

use serde::Deserialize;

use crate::{TlsError, TlsSettings, TlsVersion};

/// The profile, as far as Chandler follows it. Fields of types that are not selected are ignored, as in OpenShift.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Profile {
    /// `Old`, `Intermediate`, `Modern` or `Custom`. OpenShift takes `Intermediate` if it is not set.
    #[serde(default, rename = "type")]
    pub type_: Option<String>,
    /// What `Custom` allows.
    #[serde(default)]
    pub custom: Option<Custom>,
}

/// A custom profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Custom {
    /// The suites.
    #[serde(default)]
    pub ciphers: Vec<String>,
    /// The groups. Default: all.
    #[serde(default)]
    pub groups: Vec<String>,
    /// `VersionTLS10` to `VersionTLS13`.
    #[serde(default, rename = "minTLSVersion")]
    pub minimum: Option<String>,
}

/// The most names that a list of a profile may have: the API server bounds objects only by their size.
const MAX_NAMES: usize = 200;

/// A profile that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The type is unknown, such as one of a newer OpenShift.
    #[error("{0:?} is not a type of TLS profiles that Chandler knows")]
    UnknownType(String),
    /// The minimum version is unknown.
    #[error("{0:?} is not a version of TLS that Chandler knows")]
    UnknownVersion(String),
    /// A list is too long.
    #[error("a list of the TLS profile has more than {MAX_NAMES} names")]
    TooLong,
    /// Nothing that Chandler supports is left.
    #[error(transparent)]
    Settings(#[from] TlsError),
}

impl Profile {
    /// The settings, and the names of suites and groups that Chandler does not support and leaves out.
    ///
    /// `Old` allows versions that Chandler never offers: the minimum is TLS 1.2.
    ///
    /// # Errors
    /// The profile comes from a newer OpenShift, or Chandler supports none of its groups.
    pub fn settings(&self) -> Result<(TlsSettings, Vec<String>), ProfileError> {
        let from_version = |version| (TlsSettings::from_version(version), Vec::new());
        match self.type_.as_deref() {
            // Their suites include all that are offered.
            None | Some("" | "Old" | "Intermediate") => Ok(from_version(TlsVersion::Tls12)),
            Some("Modern") => Ok(from_version(TlsVersion::Tls13)),
            Some("Custom") => {
                let Custom { ciphers, groups, minimum } = self.custom.clone().unwrap_or_default();
                if ciphers.len().max(groups.len()) > MAX_NAMES {
                    return Err(ProfileError::TooLong);
                }
                let minimum = match minimum.as_deref() {
                    None | Some("" | "VersionTLS10" | "VersionTLS11" | "VersionTLS12") => TlsVersion::Tls12,
                    Some("VersionTLS13") => TlsVersion::Tls13,
                    Some(other) => return Err(ProfileError::UnknownVersion(other.to_owned())),
                };
                Ok(TlsSettings::supported(minimum, &ciphers, &groups)?)
            }
            Some(other) => Err(ProfileError::UnknownType(other.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn settings(profile: Value) -> Result<(TlsSettings, Vec<String>), ProfileError> {
        serde_json::from_value::<Profile>(profile).unwrap().settings()
    }

    /// How many suites and groups are offered.
    fn offered(profile: Value) -> (usize, usize) {
        let provider = settings(profile).unwrap().0.provider();
        (provider.cipher_suites.len(), provider.kx_groups.len())
    }

    #[test]
    fn types_allow_what_openshift_says() {
        for intermediate in
            [json!({}), json!({"type": "Intermediate", "intermediate": {}}), json!({"type": "Old", "old": {}})]
        {
            assert_eq!(offered(intermediate), (9, 3));
        }
        assert_eq!(offered(json!({"type": "Modern", "modern": {}})), (3, 3));
        let custom = json!({"type": "Custom", "custom": {"minTLSVersion": "VersionTLS11",
            "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256", "AES128-GCM-SHA256"]}});
        assert_eq!(offered(custom.clone()), (4, 3));
        assert_eq!(settings(custom).unwrap().1, ["AES128-GCM-SHA256"]);
        let listed = json!({"type": "Custom", "custom": {"minTLSVersion": "VersionTLS13", "ciphers": ["TLS_AES_256_GCM_SHA384"],
            "groups": ["X25519MLKEM768", "secp384r1"]}});
        assert_eq!(offered(listed), (1, 1));
    }

    #[test]
    fn suites_that_are_all_unsupported_leave_tls_13() {
        assert_eq!(offered(json!({"type": "Custom", "custom": {"ciphers": ["AES128-SHA"]}})), (3, 3));
    }

    #[test]
    fn a_profile_that_cannot_be_followed_is_an_error() {
        for (profile, expected) in [
            (json!({"type": "Future"}), "\"Future\" is not a type"),
            (
                json!({"type": "Custom", "custom": {"minTLSVersion": "VersionTLS14"}}),
                "\"VersionTLS14\" is not a version",
            ),
            (json!({"type": "Custom", "custom": {"groups": ["X25519MLKEM768"]}}), "no group for key exchange is left"),
            (json!({"type": "Custom", "custom": {"ciphers": vec!["x"; 201]}}), "more than 200 names"),
        ] {
            let error = settings(profile).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
