//! What TLS connections of the controller may negotiate.

use chandler_tls::{TlsError, TlsSettings, TlsVersion};

/// What TLS connections of the controller may negotiate.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TlsArguments {
    /// Minimum version of TLS, for connections that the controller opens and accepts: VersionTLS12 or VersionTLS13
    #[arg(long, value_name = "VERSION", default_value = "VersionTLS12")]
    pub tls_min_version: TlsVersion,

    /// Cipher suites, separated by commas, with the names of the IANA or of OpenSSL [default: all that are supported]
    ///
    /// If no suite of TLS 1.3 is listed, all suites of TLS 1.3 stay.
    #[arg(long, value_name = "SUITES", value_delimiter = ',')]
    pub tls_cipher_suites: Vec<String>,

    /// Groups for key exchange, separated by commas: X25519, secp256r1, secp384r1 [default: all]
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    pub tls_groups: Vec<String>,

    /// Accept connections within the TLS profile of an OpenShift cluster, the APIServer `cluster` (config.openshift.io/v1), and follow its
    /// changes [default: within the other options of TLS]
    ///
    /// The controller needs permission to list and watch APIServers: deploy/rbac-openshift.yaml. Until it has read the profile, it accepts only
    /// TLS 1.3.
    #[arg(long, value_enum, value_name = "KIND")]
    pub tls_profile_from: Option<ProfileKind>,
}

/// A kind that has a TLS profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ProfileKind {
    /// APIServers of config.openshift.io/v1
    Apiservers,
}

impl TlsArguments {
    /// The settings.
    ///
    /// # Errors
    /// A name is unknown, or nothing is left.
    pub fn settings(&self) -> Result<TlsSettings, TlsError> {
        TlsSettings::new(self.tls_min_version, &self.tls_cipher_suites, &self.tls_groups)
    }
}
