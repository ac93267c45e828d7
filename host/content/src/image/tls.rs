//! TLS, set up without the process-wide defaults of any library.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

use super::{AccessError, ImageAccess};

/// The certificates of the system, read once.
#[derive(Debug, Default)]
pub(super) struct SystemRoots(OnceLock<RootCertStore>);

impl SystemRoots {
    fn get(&self) -> RootCertStore {
        let load = || {
            let found = rustls_native_certs::load_native_certs();
            for error in &found.errors {
                tracing::warn!(%error, "certificates of the system could not be read");
            }
            let mut roots = RootCertStore::empty();
            let (_, ignored) = roots.add_parsable_certificates(found.certs);
            if ignored > 0 {
                tracing::debug!(ignored, "certificates of the system could not be parsed");
            }
            roots
        };
        self.0.get_or_init(load).clone()
    }
}

/// TLS 1.2 or newer, with the certificates of the system and of the access.
pub(super) fn config(access: &ImageAccess, system: &SystemRoots) -> Result<ClientConfig, AccessError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder =
        builder.with_safe_default_protocol_versions().map_err(|error| AccessError::Connection(error.to_string()))?;
    // Parsed even if it is not needed, so that an invalid certificate is reported before verification is enabled.
    let extra = access.certificate_authority.as_deref().map(certificates).transpose()?;
    if access.insecure_skip_tls_verify {
        let verifier = Arc::new(AnyCertificate(provider));
        return Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth());
    }
    let mut roots = system.get();
    for certificate in extra.unwrap_or_default() {
        roots.add(certificate).map_err(|error| AccessError::CertificateAuthority(error.to_string()))?;
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
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

/// Accepts any certificate, for [`ImageAccess::insecure_skip_tls_verify`]. The server must still own its key.
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
