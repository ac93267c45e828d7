//! Sends a message to a server that an administrator names, under the rules of all connections: proxies, TLS settings, addresses.

use std::{sync::Arc, time::Duration};

use reqwest::{Method, Url, header::HeaderMap};

use crate::{
    ImageOptions, ServerFailure,
    transport::{Connection, SystemRoots, Trust, retry_after},
};

/// Posts messages. Clones share the certificates of the system.
#[derive(Clone)]
pub struct Posts {
    options: Arc<ImageOptions>,
    roots: Arc<SystemRoots>,
}

/// What a server answered. Its body is not read, so that nothing of it can reach a status or a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status of the answer. Redirects are not followed: theirs is returned.
    pub status: u16,
    /// How long the server asks clients to wait, at most an hour.
    pub retry_after: Option<Duration>,
}

/// A message could not be sent. It holds no text, since the URL may be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// The connection failed.
    Connection(ServerFailure),
    /// The additional certificates cannot be used.
    Certificates,
}

impl Posts {
    /// Sends under these rules. Of the options, the proxies, the TLS settings and the timeouts of connections count.
    pub fn new(options: ImageOptions) -> Self {
        Self { options: Arc::new(options), roots: Arc::default() }
    }

    /// Posts a message once, with these headers, to a server that is trusted with the certificates of the system and these. A connection is
    /// used for one message.
    ///
    /// # Errors
    /// No answer was received.
    pub async fn post(
        &self,
        url: &Url,
        certificates: Option<&[u8]>,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Answer, PostError> {
        let trust = Trust { certificate_authority: certificates, insecure_skip_tls_verify: false, host: None };
        let connection = Connection::new(url.clone(), "the server", trust, &self.options, &self.roots)
            .map_err(|_| PostError::Certificates)?;
        let request = connection.request(Method::POST, url).headers(headers).body(body);
        let response = connection.one(url, request).await.map_err(|error| PostError::Connection(error.failure))?;
        Ok(Answer { status: response.status().as_u16(), retry_after: retry_after(response.headers()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_of_machines_of_clouds_get_nothing_and_no_error_has_a_text() {
        let posts = Posts::new(ImageOptions::default());
        for (url, expected) in [
            ("http://169.254.169.254/latest", PostError::Connection(ServerFailure::Address)),
            ("https://[fe80::1]/", PostError::Connection(ServerFailure::Address)),
            ("https://0xa9fea9fe/", PostError::Connection(ServerFailure::Address)),
            ("http://127.0.0.1:1/s3cret", PostError::Connection(ServerFailure::Network)),
        ] {
            let posted = posts.post(&Url::parse(url).unwrap(), None, HeaderMap::new(), Vec::new()).await;
            assert_eq!(posted, Err(expected), "{url}");
        }
        let url = Url::parse("https://127.0.0.1:1/").unwrap();
        let posted = posts.post(&url, Some(b"no certificate"), HeaderMap::new(), Vec::new()).await;
        assert_eq!(posted, Err(PostError::Certificates));
    }
}
