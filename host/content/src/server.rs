//! A server of archives or repositories, and the rules for sending it credentials.

use std::path::Path;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use reqwest::{
    Method, Response, StatusCode, Url,
    header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, HeaderMap, HeaderValue},
};

use crate::{
    ContentError, Credentials, DownloadError, Downloaded, ImageAccess, ServerFailure,
    body::{self, Body},
    image::{Inner, may_be_plain},
    shown_url,
    store::Room,
    transport::{Connection, ConnectionError, Pace, authority, failure_of, is_here, retry_after},
};

/// What is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) what: Downloaded,
    pub(crate) url: &'a Url,
    /// The field that pins the content.
    pub(crate) pin: &'static str,
    /// Whether the source names the content by a digest, so that no host on the way can replace it.
    pub(crate) is_pinned: bool,
}

/// A client for one archive or repository.
pub(crate) struct Server<'a> {
    pub(crate) connection: Connection,
    pub(crate) shared: &'a Inner,
    asked: Asked<'a>,
    authorization: Option<HeaderValue>,
}

impl<'a> Server<'a> {
    /// A client. Without TLS, the source must pin the content, or the server be on this machine or listed: a server on the network path
    /// could replace the content.
    pub(crate) fn new(asked: Asked<'a>, access: &ImageAccess, shared: &'a Inner) -> Result<Self, ContentError> {
        let name = authority(asked.url);
        let connection = Connection::new(asked.url.clone(), &name, access.trust(), &shared.options, &shared.roots)?;
        let mut server = Self { connection, shared, asked, authorization: None };
        if server.connection.is_plain() {
            server.check_replaceable()?;
            if access.credentials.is_some() && !is_here(asked.url) {
                return Err(server.plaintext("others could read the credentials; use https"));
            }
        }
        server.authorization = access.credentials.as_ref().and_then(authorization).transpose()?;
        Ok(server)
    }

    /// A client for what a server, `home`, named. As for a redirect from there: the credentials are sent to `home` alone, the target is not nearer to this
    /// machine than `home` is, and TLS is not left.
    pub(crate) async fn led_by(
        home: &Url,
        asked: Asked<'a>,
        access: &ImageAccess,
        shared: &'a Inner,
    ) -> Result<Self, ContentError> {
        let at_home = Asked { url: home, ..asked };
        let Server { connection, authorization, .. } = Server::new(at_home, access, shared)?;
        let server = Self { connection, shared, asked, authorization };
        if asked.url.scheme() == "http" {
            if !server.connection.is_plain() {
                let message = format!("{} refers to a URL without TLS", authority(home));
                return Err(server.failed(ConnectionError::new(ServerFailure::Protocol, message)).into());
            }
            server.check_replaceable()?;
        }
        server.connection.locate().await.map_err(|error| server.failed(error))?;
        Ok(server)
    }

    /// Refuses a URL without TLS whose content anyone on the network path could replace.
    fn check_replaceable(&self) -> Result<(), ContentError> {
        let Asked { what, url, pin, is_pinned } = self.asked;
        if is_pinned || may_be_plain(&authority(url), &self.shared.options.plain_http_registries) {
            return Ok(());
        }
        Err(self.plaintext(&format!("others could replace the {what}; use https, or set {pin}")))
    }

    /// The URL that was asked for.
    pub(crate) fn url(&self) -> String {
        shown_url(self.asked.url.as_str())
    }

    /// Sends a request for the URL, and follows redirects.
    pub(crate) async fn send(&self, headers: HeaderMap) -> Result<Response, ContentError> {
        self.get(self.asked.url, headers).await
    }

    /// Sends a request, and follows redirects.
    pub(crate) async fn get(&self, url: &Url, mut headers: HeaderMap) -> Result<Response, ContentError> {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let sent = self.connection.send(&Method::GET, url, &headers, self.authorization.as_ref()).await;
        self.answered(sent)
    }

    /// Sends a request with a body. Redirects are not followed, and credentials are for the server of the source only.
    pub(crate) async fn post(&self, url: &Url, headers: HeaderMap, body: Vec<u8>) -> Result<Response, ContentError> {
        let mut request = self.connection.request(Method::POST, url).headers(headers).body(body);
        request = request.header(ACCEPT_ENCODING, "identity");
        if let Some(authorization) = self.authorization.as_ref().filter(|_| self.connection.is_home(url)) {
            request = request.header(AUTHORIZATION, authorization);
        }
        let sent = self.connection.one(url, request).await;
        self.answered(sent)
    }

    fn answered(&self, sent: Result<Response, ConnectionError>) -> Result<Response, ContentError> {
        let response = sent.map_err(|error| self.failed(error))?;
        if !response.status().is_server_error() {
            self.shared.silent.answered(&authority(self.asked.url));
        }
        Ok(response)
    }

    /// The error for a status that is not successful. Pages of servers are not shown: they have no specified form.
    pub(crate) fn refused(&self, response: &Response) -> DownloadError {
        let (host, status) = (authority(response.url()), response.status());
        let failure = failure_of(status);
        let message = match failure {
            ServerFailure::Unauthorized => format!("access is denied: {host} answered {status}"),
            _ => format!("{host} answered {status}"),
        };
        let retry_after = retry_after(response.headers());
        DownloadError { retry_after, ..self.failed(ConnectionError::new(failure, message)) }
    }

    /// The response, if it is successful.
    pub(crate) fn successful(&self, response: Response) -> Result<Response, ContentError> {
        if response.status() == StatusCode::OK { Ok(response) } else { Err(self.refused(&response).into()) }
    }

    /// Writes the body of a response to a new file, up to the limit for downloads ([`save_at_most`](Self::save_at_most)).
    pub(crate) async fn save(
        &self,
        response: Response,
        file: (&Path, &Room),
        pass: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), ContentError>,
    ) -> Result<(), ContentError> {
        self.save_at_most(self.shared.store.limits().download_bytes, response, file, pass).await
    }

    /// Writes the body of a response to a new file. `pass` appends what is written of a chunk to its second argument.
    ///
    /// # Errors
    /// The transfer fails, `pass` fails, the cache is full, or the body is longer than `most` bytes, which is [`ContentError::Archive`].
    pub(crate) async fn save_at_most(
        &self,
        most: u64,
        response: Response,
        file: (&Path, &Room),
        pass: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), ContentError>,
    ) -> Result<(), ContentError> {
        let announced =
            response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|announced| announced > most) {
            return Err(body::too_large(most));
        }
        let pace = self.connection.pace();
        body::save(&mut Arriving { server: self, response, pace }, file, most, pass).await
    }

    fn plaintext(&self, why: &str) -> ContentError {
        let message = format!("{} is asked without TLS, where {why}", authority(self.asked.url));
        self.failed(ConnectionError::new(ServerFailure::Plaintext, message)).into()
    }

    pub(crate) fn failed(&self, error: ConnectionError) -> DownloadError {
        let server = authority(self.asked.url);
        self.shared.silent.failed(&server, error.failure);
        let (what, url) = (self.asked.what, self.url());
        DownloadError { what, url, server, failure: error.failure, message: error.message, retry_after: None }
    }
}

/// The body of a response.
struct Arriving<'a> {
    server: &'a Server<'a>,
    response: Response,
    pace: Pace,
}

impl Body for Arriving<'_> {
    async fn chunk(&mut self) -> Result<Option<Bytes>, ContentError> {
        let chunk = self.server.connection.chunk(&mut self.response, &mut self.pace).await;
        Ok(chunk.map_err(|error| self.server.failed(error))?)
    }
}

/// The header with the credentials.
fn authorization(credentials: &Credentials) -> Option<Result<HeaderValue, ContentError>> {
    let text = match credentials {
        Credentials::Basic { username, password } => {
            format!("Basic {}", STANDARD.encode(format!("{username}:{password}")))
        }
        Credentials::RegistryToken(token) => format!("Bearer {token}"),
        // Only a registry trades it for a token.
        Credentials::IdentityToken(_) => return None,
        Credentials::SshKey(_) => {
            let problem = "the Secret has a private key for SSH, and the URL is one of http".to_owned();
            return Some(Err(crate::AccessError::Connection(problem).into()));
        }
    };
    let unusable = |_| crate::AccessError::Connection("the credentials cannot be sent in a header".to_owned()).into();
    Some(HeaderValue::from_str(&text).map_err(unusable).map(|mut header| {
        header.set_sensitive(true);
        header
    }))
}
