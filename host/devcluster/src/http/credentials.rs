//! The authority, the serving certificate, the token; and the kubeconfig that holds what a client needs of them.

use std::{net::SocketAddr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use uuid::Uuid;

use crate::authentication::{
    Authenticator,
    jwt::{KeyError, SigningKey},
};

/// Why no credentials could be made.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A key or a certificate could not be made.
    #[error("cannot make the certificate of the development cluster")]
    Certificate(#[from] rcgen::Error),
    /// TLS does not take the certificate.
    #[error("cannot configure TLS with the certificate of the development cluster")]
    Tls(#[from] rustls::Error),
    /// No key for the tokens of ServiceAccounts.
    #[error(transparent)]
    Key(#[from] KeyError),
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

    /// What tells users by their credentials: the administrator by the token, ServiceAccounts by tokens of a new key.
    ///
    /// # Errors
    /// When the cryptography fails.
    pub fn authenticator(&self, url: &str) -> Result<Authenticator, CredentialsError> {
        Ok(Authenticator::new(&self.token, SigningKey::generate()?, url))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubeconfig_holds_the_token_and_debug_output_does_not() {
        let credentials = Credentials::generate(([127, 0, 0, 1], 0).into(), Some("secret-token".into())).unwrap();
        let authenticator = credentials.authenticator("https://127.0.0.1:1").unwrap();
        assert!(!format!("{credentials:?}{authenticator:?}").contains("secret"));
        let text = credentials.kubeconfig("https://127.0.0.1:1");
        assert!(text.contains("secret-token"));
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(kubeconfig.current_context.as_deref(), Some("chandler-dev"));
    }
}
