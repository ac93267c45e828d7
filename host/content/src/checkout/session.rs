//! Requests to one repository.

use chandler_git::{
    Capabilities, CommitId, GitError, PackReader, Refs, Revision, Selected,
    protocol::{self, ADVERTISEMENT, ADVERTISEMENT_BYTES, ADVERTISEMENT_TYPE, REFS_BYTES, REQUEST_TYPE, UPLOAD_PACK},
};
use reqwest::{
    Response, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use tokio::io::AsyncWriteExt;

use super::RepositoryUrl;
use crate::{
    ArchiveError, ContentError, Downloaded, ImageAccess, LimitExceeded, StoreError,
    image::Inner,
    server::{Asked, Server},
    store::Workspace,
};

/// The name of the pack in a workspace.
pub(super) const PACK: &str = "received";

/// A repository whose server answered.
pub(super) struct Session<'a> {
    server: Server<'a>,
    /// The repository, after redirects of the first request.
    base: Url,
    capabilities: Capabilities,
}

impl<'a> Session<'a> {
    /// Asks the server what it can.
    pub(super) async fn begin(
        url: &'a RepositoryUrl,
        access: &ImageAccess,
        is_pinned: bool,
        shared: &'a Inner,
    ) -> Result<Self, ContentError> {
        let asked = Asked { what: Downloaded::Repository, url: url.url(), pin: "ref.commit", is_pinned };
        let server = Server::new(asked, access, shared)?;
        let first = below(url.url(), ADVERTISEMENT).ok_or_else(|| failed(&server, GitError::Version))?;
        let response = server.successful(server.get(&first, headers(None)).await?)?;
        let is_git = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == ADVERTISEMENT_TYPE);
        // What a redirect leads to serves the requests that follow, as for git.
        let base = response.url().as_str().strip_suffix(ADVERTISEMENT).and_then(|base| Url::parse(base).ok());
        let base = base.filter(|_| is_git).ok_or_else(|| failed(&server, GitError::Version))?;
        let body = read(&server, response, ADVERTISEMENT_BYTES).await?;
        let capabilities = Capabilities::parse(&body).map_err(|error| failed(&server, error))?;
        Ok(Self { server, base, capabilities })
    }

    /// The commit that a revision is now.
    pub(super) async fn select(&self, revision: &Revision) -> Result<Selected, ContentError> {
        let response = self.post(protocol::list(revision)).await?;
        let body = read(&self.server, response, REFS_BYTES).await?;
        let selected = Refs::parse(&body).and_then(|refs| refs.select(revision));
        selected.map_err(|error| failed(&self.server, error))
    }

    /// Writes the objects of a commit into the workspace.
    pub(super) async fn receive(&self, commit: CommitId, work: &Workspace) -> Result<(), ContentError> {
        let Server { connection, shared, .. } = &self.server;
        let mut response = self.post(protocol::fetch(commit, self.capabilities)).await?;
        let most = shared.store.limits().download_bytes;
        let path = work.path().join(PACK);
        let mut file = tokio::fs::File::create_new(&path).await.map_err(StoreError::at("create", &path))?;
        let (mut reader, mut pace, mut size, mut bytes) = (PackReader::default(), connection.pace(), 0_u64, Vec::new());
        loop {
            let chunk = connection.chunk(&mut response, &mut pace).await;
            let Some(chunk) = chunk.map_err(|error| self.server.failed(error))? else { break };
            size = size.saturating_add(chunk.len() as u64);
            if size > most {
                let error = ArchiveError::Limit(LimitExceeded::ArchiveBytes(most));
                return Err(ContentError::Checkout { url: self.server.url(), commit, error });
            }
            bytes.clear();
            reader.feed(&chunk, &mut bytes).map_err(|error| failed(&self.server, error))?;
            file.write_all(&bytes).await.map_err(StoreError::at("write to", &path))?;
        }
        file.flush().await.map_err(StoreError::at("write to", &path))?;
        reader.end().map_err(|error| failed(&self.server, error))
    }

    async fn post(&self, body: Vec<u8>) -> Result<Response, ContentError> {
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
