//! Fetches the public keys of an OpenID Connect issuer, under the rules of all connections: proxies, TLS settings, addresses.

use std::{sync::Arc, time::Duration};

use reqwest::{Method, Url};
use serde::Deserialize;

use crate::{
    ImageOptions, ServerFailure,
    transport::{Connection, ConnectionError, SystemRoots, Trust},
};

/// The most bytes of a document of an issuer.
const DOCUMENT: u64 = 256 << 10;
/// The time for both documents.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Where an issuer describes itself (OpenID Connect Discovery 1.0).
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// Fetches keys of issuers. Clones share the certificates of the system.
#[derive(Clone)]
pub struct Issuers {
    options: Arc<ImageOptions>,
    roots: Arc<SystemRoots>,
}

/// The keys of an issuer could not be fetched. Holds nothing that the issuer sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssuerError {
    /// The issuer, or the URL of its keys, is not an https URL.
    #[error("its URL, or the URL of its keys, is not an https URL without user")]
    Url,
    /// The additional certificates cannot be used.
    #[error("the additional certificates are not PEM, or cannot be used")]
    Certificates,
    /// The connection failed.
    #[error("the connection failed: {}", .0.reason())]
    Connection(ServerFailure),
    /// Another answer than 200. Redirects are not followed.
    #[error("it answers {0}")]
    Status(u16),
    /// The document is too large, or not what an issuer publishes.
    #[error("its document has more than 256 KiB, or is not a document of an OpenID Connect issuer")]
    Document,
    /// The document is about another issuer.
    #[error("its document names another issuer")]
    OtherIssuer,
    /// It took too long.
    #[error("it took more than 10 s")]
    TimedOut,
}

impl From<ConnectionError> for IssuerError {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error.failure)
    }
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl Issuers {
    /// Fetches under these rules. Of the options, the proxies, the TLS settings and the timeouts of connections count.
    pub fn new(options: ImageOptions) -> Self {
        Self { options: Arc::new(options), roots: Arc::default() }
    }

    /// Checks the URL of an issuer and the certificates that are trusted for it in addition to the system's, in PEM. Connects to nothing.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn check(&self, issuer: &str, certificates: Option<&[u8]>) -> Result<(), IssuerError> {
        self.connection(issuer, certificates).map(drop)
    }

    /// The document with the keys of an issuer, which is trusted with the certificates of the system and these. The issuer is connected to wherever
    /// its name leads, except to link-local addresses and their likes; its keys may be at another host that is not nearer to this machine.
    ///
    /// # Errors
    /// It cannot be fetched.
    pub async fn keys(&self, issuer: &str, certificates: Option<&[u8]>) -> Result<Vec<u8>, IssuerError> {
        let connection = self.connection(issuer, certificates)?;
        tokio::time::timeout(TIMEOUT, fetch(&connection, issuer)).await.unwrap_or(Err(IssuerError::TimedOut))
    }

    fn connection(&self, issuer: &str, certificates: Option<&[u8]>) -> Result<Connection, IssuerError> {
        let trust = Trust { certificate_authority: certificates, insecure_skip_tls_verify: false, host: None };
        Connection::new(url(issuer)?, "the issuer", trust, &self.options, &self.roots)
            .map_err(|_| IssuerError::Certificates)
    }
}

async fn fetch(connection: &Connection, issuer: &str) -> Result<Vec<u8>, IssuerError> {
    let description = url(&format!("{}{DISCOVERY}", issuer.trim_end_matches('/')))?;
    let found: Discovery =
        serde_json::from_slice(&document(connection, &description).await?).map_err(|_| IssuerError::Document)?;
    if found.issuer != issuer {
        return Err(IssuerError::OtherIssuer);
    }
    document(connection, &url(&found.jwks_uri)?).await
}

async fn document(connection: &Connection, url: &Url) -> Result<Vec<u8>, IssuerError> {
    let response = connection.one(url, connection.request(Method::GET, url)).await?;
    if response.status().as_u16() != 200 {
        return Err(IssuerError::Status(response.status().as_u16()));
    }
    connection.read(response, DOCUMENT).await?.ok_or(IssuerError::Document)
}

fn url(text: &str) -> Result<Url, IssuerError> {
    let url = Url::parse(text).ok().filter(Url::has_host).ok_or(IssuerError::Url)?;
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    if url.scheme() == "https" && !has_credentials { Ok(url) } else { Err(IssuerError::Url) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_servers_with_tls_outside_of_the_services_of_a_cloud_are_connected_to() {
        let issuers = Issuers::new(ImageOptions::default());
        for (issuer, expected) in [
            ("http://accounts.example.com", IssuerError::Url),
            ("http://127.0.0.1:1", IssuerError::Url),
            ("file:///etc/passwd", IssuerError::Url),
            ("https://ann:s3cret@accounts.example.com", IssuerError::Url),
            ("https://169.254.169.254", IssuerError::Connection(ServerFailure::Address)),
            ("https://[fe80::1]", IssuerError::Connection(ServerFailure::Address)),
            ("https://0xa9fea9fe/", IssuerError::Connection(ServerFailure::Address)),
            ("https://127.0.0.1:1", IssuerError::Connection(ServerFailure::Network)),
        ] {
            assert_eq!(issuers.keys(issuer, None).await, Err(expected), "{issuer}");
        }
        let issuer = "https://accounts.example.com";
        assert_eq!(issuers.check(issuer, None), Ok(()));
        assert_eq!(issuers.check(issuer, Some(b"no certificate")), Err(IssuerError::Certificates));
        assert_eq!(issuers.check("http://accounts.example.com", None), Err(IssuerError::Url));
    }
}
