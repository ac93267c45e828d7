//! Requests to one repository on an HTTP server.

use chandler_git::{
    GitError,
    protocol::{self, ADVERTISEMENT, ADVERTISEMENT_BYTES, ADVERTISEMENT_TYPE, REQUEST_TYPE, UPLOAD_PACK},
};
use reqwest::{
    Response, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};

use crate::{
    ContentError, Downloaded, ImageAccess,
    image::Inner,
    server::{Asked, Server},
};

/// A repository whose server answered.
pub(super) struct Http<'a> {
    pub(super) server: Server<'a>,
    /// The repository, after redirects of the first request.
    base: Url,
}

impl<'a> Http<'a> {
    /// Asks the server what it can. Returns its first response, too.
    pub(super) async fn begin(
        url: &'a Url,
        access: &ImageAccess,
        is_pinned: bool,
        shared: &'a Inner,
    ) -> Result<(Self, Vec<u8>), ContentError> {
        let asked = Asked { what: Downloaded::Repository, url, pin: "ref.commit", is_pinned };
        let server = Server::new(asked, access, shared)?;
        let first = below(url, ADVERTISEMENT).ok_or_else(|| failed(&server, GitError::Version))?;
        let response = server.successful(server.get(&first, headers(None)).await?)?;
        let is_git = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == ADVERTISEMENT_TYPE);
        // The target of a redirect serves the following requests, as in git.
        let base = response.url().as_str().strip_suffix(ADVERTISEMENT).and_then(|base| Url::parse(base).ok());
        let base = base.filter(|_| is_git).ok_or_else(|| failed(&server, GitError::Version))?;
        let body = read(&server, response, ADVERTISEMENT_BYTES).await?;
        Ok((Self { server, base }, body))
    }

    /// The whole response to a request.
    pub(super) async fn read(&self, body: Vec<u8>, most: u64) -> Result<Vec<u8>, ContentError> {
        read(&self.server, self.post(body).await?, most).await
    }

    pub(super) async fn post(&self, body: Vec<u8>) -> Result<Response, ContentError> {
        let url = below(&self.base, UPLOAD_PACK).ok_or_else(|| failed(&self.server, GitError::Version))?;
        self.server.successful(self.server.post(&url, headers(Some(REQUEST_TYPE)), body).await?)
    }
}

/// The URL of a request.
fn below(base: &Url, rest: &str) -> Option<Url> {
    Url::parse(&format!("{}{rest}", base.as_str().trim_end_matches('/'))).ok()
}

fn headers(content_type: Option<&'static str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("git-protocol"), HeaderValue::from_static(protocol::VERSION));
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    headers
}

async fn read(server: &Server<'_>, response: Response, most: u64) -> Result<Vec<u8>, ContentError> {
    let body = server.connection.read(response, most).await.map_err(|error| server.failed(error))?;
    body.ok_or_else(|| failed(server, GitError::Protocol("a response is too long")))
}

fn failed(server: &Server<'_>, error: GitError) -> ContentError {
    ContentError::Git { url: server.url(), error }
}
