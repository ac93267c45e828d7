//! The CA, the serving certificate, the token, and the kubeconfig that a client needs.

use std::{net::SocketAddr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use uuid::Uuid;

use crate::{
    authentication::{
        Authenticator,
        jwt::{KeyError, SigningKey},
    },
    store::{OpenError, Secrets},
};

/// Why no credentials could be made.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A key or a certificate could not be made.
    #[error("failed to create the certificate of the development cluster")]
    Certificate(#[from] rcgen::Error),
    /// TLS does not take the certificate.
    #[error("cannot configure TLS with the certificate of the development cluster")]
    Tls(#[from] rustls::Error),
    /// No key for the tokens of ServiceAccounts.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The stored credentials are unusable.
    #[error(transparent)]
    Kept(#[from] OpenError),
}

/// The name under which the key and the certificate of the authority are kept.
const AUTHORITY: &str = "authority.pem";
/// The name under which the administrator's token is kept.
const TOKEN: &str = "administrator.token";
/// The name under which the key that signs tokens of ServiceAccounts is kept.
const SIGNING_KEY: &str = "service-accounts.pem";

/// The credentials with which clients and the listener trust each other.
pub struct Credentials {
    /// The certificate of the authority, PEM.
    pub authority_pem: String,
    /// The TLS configuration of the listener.
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
    /// An authority, a certificate of it for an address, and a token, which is random unless stated. Credentials of an earlier start are
    /// used again; the certificate itself is made anew, since the address may be another one.
    ///
    /// # Errors
    /// When the cryptography fails, or what was kept is of no use.
    pub fn new(address: SocketAddr, token: Option<String>, secrets: &Secrets) -> Result<Self, CredentialsError> {
        let (issuer, authority_pem) = authority(secrets)?;

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
        let token = match token {
            Some(token) => token,
            None => secrets.get_or_make(TOKEN, || Ok::<_, CredentialsError>(random()))?,
        };
        Ok(Self { authority_pem, tls: Arc::new(tls), token })
    }

    /// Authenticates users: the administrator by the token, ServiceAccounts by tokens of a key that is stored
    /// where secrets are kept.
    ///
    /// # Errors
    /// When the cryptography fails, or what was kept is of no use.
    pub fn authenticator(&self, url: &str, secrets: &Secrets) -> Result<Authenticator, CredentialsError> {
        let make = || Ok::<_, CredentialsError>(SigningKey::generate()?.pem().to_owned());
        let pem = secrets.get_or_make(SIGNING_KEY, make)?;
        let key = SigningKey::from_pem(&pem).map_err(|error| secrets.damaged(SIGNING_KEY, error))?;
        Ok(Authenticator::new(&self.token, key, url))
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

/// The authority and its certificate, PEM.
fn authority(secrets: &Secrets) -> Result<(Issuer<'static, KeyPair>, String), CredentialsError> {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "chandler devcluster authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let make = || {
        let key = KeyPair::generate()?;
        Ok::<_, CredentialsError>(format!("{}{}", key.serialize_pem(), authority.self_signed(&key)?.pem()))
    };
    let kept = secrets.get_or_make(AUTHORITY, make)?;
    let damaged = |what: &str| CredentialsError::from(secrets.damaged(AUTHORITY, what));
    let split = kept.find("-----BEGIN CERTIFICATE-----").ok_or_else(|| damaged("it holds no certificate"))?;
    let (key, certificate) = kept.split_at(split);
    let key = KeyPair::from_pem(key).map_err(|_| damaged("it holds no key"))?;
    // Signed certificates name the CA by these parameters, which equal its certificate's.
    Ok((Issuer::new(authority, key), certificate.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubeconfig_holds_the_token_and_debug_output_does_not() {
        let credentials =
            Credentials::new(([127, 0, 0, 1], 0).into(), Some("secret-token".into()), &Secrets::Fresh).unwrap();
        let authenticator = credentials.authenticator("https://127.0.0.1:1", &Secrets::Fresh).unwrap();
        assert!(!format!("{credentials:?}{authenticator:?}").contains("secret"));
        let text = credentials.kubeconfig("https://127.0.0.1:1");
        assert!(text.contains("secret-token"));
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(kubeconfig.current_context.as_deref(), Some("chandler-dev"));
    }
}
