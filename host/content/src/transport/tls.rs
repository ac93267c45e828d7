//! TLS, set up without the process-wide defaults of any library.

use std::sync::{Arc, OnceLock};

use chandler_registries::certificates::HostCertificates;
use chandler_tls::TlsSettings;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::trust;
use crate::AccessError;

/// How a server is authenticated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trust<'a> {
    /// PEM certificates that are trusted in addition to the system's.
    pub(crate) certificate_authority: Option<&'a [u8]>,
    /// Whether any certificate is accepted.
    pub(crate) insecure_skip_tls_verify: bool,
    /// What the administrator set for the server.
    pub(crate) host: Option<&'a HostCertificates>,
}

/// The certificates of the system, read once.
#[derive(Debug, Default)]
pub(crate) struct SystemRoots(OnceLock<RootCertStore>);

impl SystemRoots {
    fn get(&self) -> RootCertStore {
        self.0.get_or_init(chandler_tls::system_roots).clone()
    }
}

/// TLS within these settings, with the certificates of the system and those that are trusted in addition.
pub(crate) fn config(
    trust: Trust<'_>,
    settings: &TlsSettings,
    system: &SystemRoots,
) -> Result<ClientConfig, AccessError> {
    let provider = settings.provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder =
        builder.with_safe_default_protocol_versions().map_err(|error| AccessError::Connection(error.to_string()))?;
    // Parsed even if it is not needed, so that an invalid certificate is reported before verification is enabled.
    let authorities = trust.host.and_then(|host| host.authorities.as_deref());
    let mut extra = Vec::new();
    for pem in trust.certificate_authority.into_iter().chain(authorities) {
        extra.extend(certificates(pem)?);
    }
    let client = trust.host.and_then(|host| host.client.as_ref()).map(identity).transpose()?;
    let builder = if trust.insecure_skip_tls_verify {
        let verifier = Arc::new(AnyCertificate(provider));
        builder.dangerous().with_custom_certificate_verifier(verifier)
    } else if extra.is_empty() {
        builder.with_root_certificates(system.get())
    } else {
        let mut roots = system.get();
        for certificate in &extra {
            roots.add(certificate.clone()).map_err(|error| unusable(&error))?;
        }
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
        let usual = usual.map_err(|error| AccessError::Connection(error.to_string()))?;
        builder.dangerous().with_custom_certificate_verifier(Arc::new(PinnedOrSigned { pinned: extra, usual }))
    };
    match client {
        None => Ok(builder.with_no_client_auth()),
        Some((chain, key)) => {
            let config = builder.with_client_auth_cert(chain, key);
            config.map_err(|error| AccessError::Connection(format!("the certificate of the client: {error}")))
        }
    }
}

/// The certificate and the key of a client.
fn identity(
    (chain, key): &(Vec<u8>, Vec<u8>),
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), AccessError> {
    // Without the error of the parser, which may quote the key.
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|_| AccessError::Connection("the key of the client's certificate is not a key in PEM".to_owned()))?;
    Ok((certificates(chain)?, key))
}

/// The error for additional certificates that cannot be used.
fn unusable(error: &rustls::Error) -> AccessError {
    let reason = trust::problem(error).unwrap_or_else(|| error.to_string());
    AccessError::CertificateAuthority(reason)
}

/// Accepts what the authorities signed, and in addition a server that presents one of the pinned certificates itself.
///
/// `openssl req -x509` makes a self-signed certificate with `CA:TRUE`, which webpki refuses as a server certificate, even if it is trusted
/// by name. Its host name, its time and the server's key are checked as for any other certificate.
#[derive(Debug)]
struct PinnedOrSigned {
    pinned: Vec<CertificateDer<'static>>,
    usual: Arc<WebPkiServerVerifier>,
}

impl PinnedOrSigned {
    fn verify_pinned(
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        let bad = || rustls::Error::InvalidCertificate(CertificateError::BadEncoding);
        let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| bad())?;
        let now = i64::try_from(now.as_secs()).map_err(|_| bad())?;
        if now < parsed.validity().not_before.timestamp() {
            return Err(CertificateError::NotValidYet.into());
        }
        if now > parsed.validity().not_after.timestamp() {
            return Err(CertificateError::Expired.into());
        }
        Ok(ServerCertVerified::assertion())
    }
}

impl ServerCertVerifier for PinnedOrSigned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let refused = match self.usual.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(refused) => refused,
            verified => return verified,
        };
        if self.pinned.iter().any(|pinned| pinned == certificate) {
            return Self::verify_pinned(certificate, name, now);
        }
        Err(refused)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// All certificates of a PEM file. One invalid certificate makes the file unusable: ignoring it would only show as a failed
/// connection.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, AccessError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = read.map_err(|error| AccessError::CertificateAuthority(error.to_string()))?;
    if certificates.is_empty() {
        return Err(AccessError::CertificateAuthority("it holds no certificate in PEM".to_owned()));
    }
    Ok(certificates)
}

/// Accepts any certificate, for [`Trust::insecure_skip_tls_verify`]. The server must still own its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
