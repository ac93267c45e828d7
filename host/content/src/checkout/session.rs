//! Requests to one repository.

use std::path::Path;

use chandler_git::{
    Capabilities, CommitId, FileId, GitError, PackReader, Refs, Revision, Selected,
    protocol::{self, REFS_BYTES},
};

use super::{RepositoryUrl, http::Http, ssh::Ssh, url::Remote};
use crate::{ContentError, ImageAccess, body, image::Inner, store::Room};

/// A repository whose server answered.
pub(super) struct Session<'a> {
    url: &'a RepositoryUrl,
    transport: Transport<'a>,
    capabilities: Capabilities,
    shared: &'a Inner,
}

enum Transport<'a> {
    Http(Http<'a>),
    Ssh(Ssh<'a>),
}

impl<'a> Session<'a> {
    /// Asks the server what it can.
    pub(super) async fn begin(
        url: &'a RepositoryUrl,
        access: &ImageAccess,
        is_pinned: bool,
        shared: &'a Inner,
    ) -> Result<Self, ContentError> {
        let (transport, first) = match url.remote() {
            Remote::Http(remote) => {
                let (http, first) = Http::begin(remote.url(), access, is_pinned, shared).await?;
                (Transport::Http(http), first)
            }
            Remote::Ssh(remote) => {
                let (ssh, first) = Ssh::begin(remote, access, shared).await?;
                (Transport::Ssh(ssh), first)
            }
        };
        let capabilities = Capabilities::parse(&first).map_err(|error| failed(url, error))?;
        Ok(Self { url, transport, capabilities, shared })
    }

    /// The commit that a revision is now.
    pub(super) async fn select(&mut self, revision: &Revision) -> Result<Selected, ContentError> {
        let request = protocol::list(revision);
        let response = match &mut self.transport {
            Transport::Http(http) => http.read(request, REFS_BYTES).await?,
            Transport::Ssh(ssh) => ssh.read(request, REFS_BYTES).await?,
        };
        let selected = Refs::parse(&response).and_then(|refs| refs.select(revision));
        selected.map_err(|error| failed(self.url, error))
    }

    /// Writes the objects of a commit into a file: without its files if only some are wanted and the server can leave them out.
    pub(super) async fn receive(
        &mut self,
        commit: CommitId,
        is_whole: bool,
        file: (&Path, &Room),
    ) -> Result<(), ContentError> {
        let filter = self.capabilities.filter && !is_whole;
        let request = protocol::commit(commit, Capabilities { filter, ..self.capabilities });
        self.receive_pack(request, file).await
    }

    /// Writes objects of files into a file.
    pub(super) async fn receive_files(&mut self, files: &[FileId], file: (&Path, &Room)) -> Result<(), ContentError> {
        self.receive_pack(protocol::files(files), file).await
    }

    async fn receive_pack(&mut self, request: Vec<u8>, file: (&Path, &Room)) -> Result<(), ContentError> {
        let (url, mut reader) = (self.url, PackReader::default());
        let pass =
            |chunk: &[u8], written: &mut Vec<u8>| reader.feed(chunk, written).map_err(|error| failed(url, error));
        match &mut self.transport {
            Transport::Http(http) => http.server.save(http.post(request).await?, file, pass).await?,
            Transport::Ssh(ssh) => {
                ssh.ask(request).await?;
                body::save(ssh, file, self.shared.store.limits().download_bytes, pass).await?;
            }
        }
        reader.end().map_err(|error| failed(self.url, error))
    }
}

fn failed(url: &RepositoryUrl, error: GitError) -> ContentError {
    ContentError::Git { url: url.to_string(), error }
}
