//! The authority, the serving certificate, the token; and the kubeconfig that holds what a client needs of them.

use std::{net::SocketAddr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Why no credentials could be made.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A key or a certificate could not be made.
    #[error("cannot make the certificate of the development cluster")]
    Certificate(#[from] rcgen::Error),
    /// TLS does not take the certificate.
    #[error("cannot configure TLS with the certificate of the development cluster")]
    Tls(#[from] rustls::Error),
}

/// Fresh credentials; nothing of them is written to disk here.
pub struct Credentials {
    /// The certificate of the authority, PEM.
    pub authority_pem: String,
    /// What the listener serves with.
    pub tls: Arc<ServerConfig>,
    /// The bearer token of the administrator.
    token: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Makes an authority and a certificate for an address; the token is random unless stated.
    ///
    /// # Errors
    /// When the cryptography fails.
    pub fn generate(address: SocketAddr, token: Option<String>) -> Result<Self, CredentialsError> {
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "chandler devcluster authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);

        let key = KeyPair::generate()?;
        let mut serving = CertificateParams::new(vec!["localhost".to_owned(), "kubernetes.default.svc".to_owned()])?;
        serving.distinguished_name.push(DnType::CommonName, "chandler devcluster");
        for ip in [address.ip(), [127, 0, 0, 1].into()] {
            let name = SanType::IpAddress(ip);
            if !serving.subject_alt_names.contains(&name) {
                serving.subject_alt_names.push(name);
            }
        }
        let certificate = serving.signed_by(&key, &issuer)?;

        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let private_key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private_key)?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];

        // Two random UUIDs hold 244 random bits.
        let random = || format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let token = token.unwrap_or_else(random);
        Ok(Self { authority_pem: authority_certificate.pem(), tls: Arc::new(tls), token })
    }

    /// A check of `Authorization` headers that holds no token.
    pub fn verifier(&self) -> Verifier {
        Verifier { digest: Sha256::digest(format!("Bearer {}", self.token)).into() }
    }

    /// A kubeconfig for the administrator, YAML. It holds the token: treat it as a secret.
    pub fn kubeconfig(&self, url: &str) -> String {
        let authority = STANDARD.encode(&self.authority_pem);
        let token = &self.token;
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             current-context: chandler-dev\n\
             clusters:\n\
             - name: chandler-dev\n\
             \x20 cluster:\n\
             \x20   server: {url}\n\
             \x20   certificate-authority-data: {authority}\n\
             contexts:\n\
             - name: chandler-dev\n\
             \x20 context:\n\
             \x20   cluster: chandler-dev\n\
             \x20   user: chandler-dev\n\
             \x20   namespace: default\n\
             users:\n\
             - name: chandler-dev\n\
             \x20 user:\n\
             \x20   token: {token:?}\n"
        )
    }
}

/// Checks `Authorization` headers.
#[derive(Clone)]
pub struct Verifier {
    digest: [u8; 32],
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

impl Verifier {
    /// Whether a header carries the token. The time it takes says nothing about the token: digests are compared, and all of
    /// their bytes.
    pub fn accepts(&self, authorization: &[u8]) -> bool {
        let digest: [u8; 32] = Sha256::digest(authorization).into();
        let difference =
            digest.iter().zip(self.digest).fold(0, |difference, (left, right)| difference | (left ^ right));
        std::hint::black_box(difference) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_is_accepted_and_debug_output_hides_it() {
        let credentials = Credentials::generate(([127, 0, 0, 1], 0).into(), Some("secret-token".into())).unwrap();
        let verifier = credentials.verifier();
        assert!(verifier.accepts(b"Bearer secret-token"));
        for wrong in [&b""[..], b"Bearer ", b"secret-token", b"Bearer secret-toke", b"Basic secret-token"] {
            assert!(!verifier.accepts(wrong));
        }
        assert!(!format!("{credentials:?}{verifier:?}").contains("secret"));
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&credentials.kubeconfig("https://127.0.0.1:1")).unwrap();
        assert_eq!(kubeconfig.current_context.as_deref(), Some("chandler-dev"));
    }
}
