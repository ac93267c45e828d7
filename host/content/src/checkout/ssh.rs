//! Requests to one repository on an SSH server.
//!
//! The rules of requests over HTTP hold: addresses, time limits, the minimum rate, the limit on a download. Instead of TLS, the
//! server's host key is checked, always.

use std::time::Instant;

use bytes::Bytes;
use chandler_git::{
    Framed, GitError,
    protocol::{self, ADVERTISEMENT_BYTES, REFS_BYTES, VERSION, VERSION_VARIABLE},
};
use chandler_ssh::{Command, Options, Output, SshError};

use super::ssh_url::SshUrl;
use crate::{
    AccessError, ContentError, Credentials, DownloadError, Downloaded, ImageAccess, ServerFailure,
    body::Body,
    image::Inner,
    transport::{ConnectionError, Pace, connect},
};

/// The user where neither the URL nor the Secret names one, as for all large hosts.
const USER: &str = "git";
/// The bytes of a connection in addition to the responses: the protocol of SSH, and an eighth of a response for its packets.
const OVERHEAD: u64 = 4 << 20;

/// A repository that a command on the server serves.
pub(super) struct Ssh<'a> {
    url: &'a SshUrl,
    shared: &'a Inner,
    /// None once it ended.
    command: Option<Command>,
    /// The response that is being read; none once it ended.
    response: Option<(Framed, Pace)>,
}

impl<'a> Ssh<'a> {
    /// Connects, and starts the command. Returns its first response, too.
    pub(super) async fn begin(
        url: &'a SshUrl,
        access: &ImageAccess,
        shared: &'a Inner,
    ) -> Result<(Self, Vec<u8>), ContentError> {
        let Some(Credentials::SshKey(key)) = &access.credentials else { return Err(AccessError::SshKey.into()) };
        let mut ssh = Self { url, shared, command: None, response: None };
        let limits = shared.store.limits();
        let most = limits.download_bytes.max(REFS_BYTES);
        let options = Options {
            // Before a connection: without a key there is nothing that it could show.
            known: key.known_hosts().of(url.host(), url.port()).map_err(|error| ssh.failed(&error.into()))?,
            user: url.user().or(key.username()).unwrap_or(USER).to_owned(),
            identity: key.identity().clone(),
            begin_timeout: shared.options.idle_timeout,
            idle_timeout: shared.options.idle_timeout,
            bytes: most.saturating_add(most / 8).saturating_add(OVERHEAD),
        };
        let name = url.server();
        let stream = connect(url.endpoint(), url.port(), &name, &shared.options).await;
        let stream = stream.map_err(|error| ssh.refused(error))?;
        let command = protocol::upload_pack(url.path());
        let command = Command::run(stream, options, &command, &[(VERSION_VARIABLE, VERSION)]).await;
        if !matches!(command, Err(SshError::Closed | SshError::TimedOut)) {
            shared.silent.answered(&name);
        }
        ssh.command = Some(command.map_err(|error| ssh.failed(&error))?);
        let first = ssh.first().await?;
        Ok((ssh, first))
    }

    /// What the server sends without being asked.
    async fn first(&mut self) -> Result<Vec<u8>, ContentError> {
        self.response = Some(self.beginning());
        let mut first = Vec::new();
        loop {
            let chunk = self.chunk().await.map_err(|error| match error {
                // A shell may greet users, or something else runs than git.
                ContentError::Git { error: GitError::Protocol(_), .. } => self.git(GitError::Version),
                error => error,
            })?;
            let Some(chunk) = chunk else { return Ok(first) };
            first.extend_from_slice(&chunk);
            if protocol::is_old(&first) {
                return Err(self.git(GitError::OldVersion));
            }
            self.check_length(&first, ADVERTISEMENT_BYTES)?;
        }
    }

    /// Sends a request.
    pub(super) async fn ask(&mut self, request: Vec<u8>) -> Result<(), ContentError> {
        let Some(command) = &mut self.command else { return Err(self.failed(&SshError::Closed).into()) };
        let written = command.write(request).await;
        written.map_err(|error| self.failed(&error))?;
        self.response = Some(self.beginning());
        Ok(())
    }

    /// The whole response to a request.
    pub(super) async fn read(&mut self, request: Vec<u8>, most: u64) -> Result<Vec<u8>, ContentError> {
        self.ask(request).await?;
        let mut response = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            response.extend_from_slice(&chunk);
            self.check_length(&response, most)?;
        }
        Ok(response)
    }

    fn beginning(&self) -> (Framed, Pace) {
        let options = &self.shared.options;
        (Framed::default(), Pace::new(options.minimum_rate, options.rate_window))
    }

    fn check_length(&self, response: &[u8], most: u64) -> Result<(), ContentError> {
        let is_short = response.len() as u64 <= most;
        if is_short { Ok(()) } else { Err(self.git(GitError::Protocol("a response is too long"))) }
    }

    fn git(&self, error: GitError) -> ContentError {
        ContentError::Git { url: self.url.to_string(), error }
    }

    fn failed(&self, error: &SshError) -> DownloadError {
        let failure = match error {
            SshError::Closed | SshError::TimedOut => ServerFailure::Network,
            SshError::HostKey(_) => ServerFailure::HostKey,
            SshError::Denied { .. } | SshError::NoCommand { .. } | SshError::Sha1 => ServerFailure::Unauthorized,
            _ => ServerFailure::Protocol,
        };
        let server = self.url.server();
        let message = match failure {
            ServerFailure::HostKey => format!("the host key of {server} is not trusted: {error}"),
            ServerFailure::Unauthorized => format!("access is denied: {server} {error}"),
            _ => format!("{server} {error}"),
        };
        self.refused(ConnectionError::new(failure, message))
    }

    fn refused(&self, error: ConnectionError) -> DownloadError {
        let server = self.url.server();
        self.shared.silent.failed(&server, error.failure);
        let ConnectionError { failure, message, .. } = error;
        let (what, url) = (Downloaded::Repository, self.url.to_string());
        DownloadError { what, url, server, failure, message, retry_after: None }
    }
}

impl Body for Ssh<'_> {
    async fn chunk(&mut self) -> Result<Option<Bytes>, ContentError> {
        let Some(command) = self.command.as_mut().filter(|_| self.response.is_some()) else { return Ok(None) };
        let since = Instant::now();
        let output = command.read().await.map_err(|error| self.failed(&error))?;
        let Output::Bytes(bytes) = output else {
            let said = match self.command.take() {
                Some(command) => GitError::said(&command.into_standard_error().await),
                None => None,
            };
            return Err(self.git(said.unwrap_or(GitError::Truncated)));
        };
        let Some((framed, pace)) = &mut self.response else { return Ok(None) };
        let is_fast = pace.note(since.elapsed(), bytes.len());
        let has_ended = framed.feed(&bytes);
        if !is_fast {
            let rate = self.shared.options.minimum_rate;
            let message = format!("{} sent less than {rate} bytes a second", self.url.server());
            return Err(self.refused(ConnectionError::new(ServerFailure::TooSlow, message)).into());
        }
        if has_ended.map_err(|error| self.git(error))? {
            self.response = None;
        }
        Ok(Some(bytes))
    }
}
