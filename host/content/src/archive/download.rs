//! One request for an archive.

use base64::{Engine, engine::general_purpose::STANDARD};
use chandler_core::Digest;
use reqwest::{
    Method, Response, StatusCode,
    header::{
        ACCEPT_ENCODING, CONTENT_LENGTH, DATE, ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
        LAST_MODIFIED,
    },
};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt;

use super::{ArchiveUrl, DownloadError};
use crate::{
    ContentError, Credentials, ImageAccess, LimitExceeded, ServerFailure, StoreError,
    image::{Inner, may_be_plain},
    store::{Latest, Workspace},
    transport::{Connection, ConnectionError, authority, failure_of, is_here, retry_after},
};

/// The name of the archive in a workspace.
pub(super) const ARCHIVE: &str = "archive";
/// The longest entity tag or time that is kept.
const VALIDATOR_BYTES: usize = 1024;

/// A client for one archive.
pub(super) struct Download<'a> {
    connection: Connection,
    url: &'a ArchiveUrl,
    authorization: Option<HeaderValue>,
    shared: &'a Inner,
}

/// What a server sends to recognize an archive by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Validators {
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
}

impl<'a> Download<'a> {
    /// A client for an archive. Without TLS, the source must name the archive by its digest, or the server be on this machine or
    /// listed: anyone on the way could replace the archive.
    pub(super) fn new(
        url: &'a ArchiveUrl,
        access: &ImageAccess,
        is_pinned: bool,
        shared: &'a Inner,
    ) -> Result<Self, ContentError> {
        let (home, server) = (url.url(), url.server());
        let connection = Connection::new(home.clone(), &server, access.trust(), &shared.options, &shared.roots)?;
        let mut download = Self { connection, url, authorization: None, shared };
        if download.connection.is_plain() {
            let listed = &shared.options.plain_http_registries;
            if !is_pinned && !may_be_plain(&server, listed) {
                return Err(download.plaintext("others could replace the archive; use https, or set sha256"));
            }
            if access.credentials.is_some() && !is_here(home) {
                return Err(download.plaintext("others could read the credentials; use https"));
            }
        }
        download.authorization = access.credentials.as_ref().and_then(authorization).transpose()?;
        Ok(download)
    }

    /// Requests the archive.
    pub(super) async fn get(&self) -> Result<Response, ContentError> {
        let response = self.send(HeaderMap::new()).await?;
        if response.status() == StatusCode::OK { Ok(response) } else { Err(self.refused(&response).into()) }
    }

    /// Requests the archive if it is not the known one; none if it is.
    pub(super) async fn get_if_changed(&self, known: &Latest) -> Result<Option<Response>, ContentError> {
        let conditions = conditions(known);
        if conditions.is_empty() {
            return self.get().await.map(Some);
        }
        let response = self.send(conditions).await?;
        // Some servers ignore the condition. The body is not read then, which closes the connection.
        let is_same =
            |etag: &String| !etag.starts_with("W/") && response.headers().get(ETAG).is_some_and(|it| it == etag);
        match response.status() {
            StatusCode::NOT_MODIFIED => Ok(None),
            StatusCode::OK if known.etag.as_ref().is_some_and(is_same) => Ok(None),
            StatusCode::OK => Ok(Some(response)),
            _ => Err(self.refused(&response).into()),
        }
    }

    async fn send(&self, mut headers: HeaderMap) -> Result<Response, ContentError> {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let sent = self.connection.send(&Method::GET, self.url.url(), &headers, self.authorization.as_ref()).await;
        let response = sent.map_err(|error| self.failed(error))?;
        if !response.status().is_server_error() {
            self.shared.silent.answered(&self.url.server());
        }
        Ok(response)
    }

    /// Writes the archive into the workspace, and returns its digest.
    pub(super) async fn save(&self, mut response: Response, work: &Workspace) -> Result<Digest, ContentError> {
        let most = self.shared.store.limits().download_bytes;
        let too_large = || ContentError::DownloadedArchive {
            url: self.url.to_string(),
            error: LimitExceeded::ArchiveBytes(most).into(),
        };
        let announced =
            response.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|announced| announced > most) {
            return Err(too_large());
        }
        let path = work.path().join(ARCHIVE);
        let mut file = tokio::fs::File::create_new(&path).await.map_err(StoreError::at("create", &path))?;
        let (mut hash, mut size, mut pace) = (Sha256::new(), 0_u64, self.connection.pace());
        loop {
            let chunk = self.connection.chunk(&mut response, &mut pace).await;
            let Some(chunk) = chunk.map_err(|error| self.failed(error))? else { break };
            size = size.saturating_add(chunk.len() as u64);
            if size > most {
                return Err(too_large());
            }
            hash.update(&chunk);
            file.write_all(&chunk).await.map_err(StoreError::at("write to", &path))?;
        }
        file.flush().await.map_err(StoreError::at("write to", &path))?;
        Ok(Digest::from_hash(hash.finalize().into()))
    }

    /// The error for a status that is not successful. Pages of servers are not shown: they have no specified form.
    fn refused(&self, response: &Response) -> DownloadError {
        let (host, status) = (authority(response.url()), response.status());
        let failure = failure_of(status);
        let message = match failure {
            ServerFailure::Unauthorized => format!("access is denied: {host} answered {status}"),
            _ => format!("{host} answered {status}"),
        };
        let retry_after = retry_after(response.headers());
        DownloadError { retry_after, ..self.failed(ConnectionError::new(failure, message)) }
    }

    fn plaintext(&self, why: &str) -> ContentError {
        let message = format!("{} is asked without TLS, where {why}", self.url.server());
        self.failed(ConnectionError::new(ServerFailure::Plaintext, message)).into()
    }

    fn failed(&self, error: ConnectionError) -> DownloadError {
        let (url, server) = (self.url.to_string(), self.url.server());
        self.shared.silent.failed(&server, error.failure);
        DownloadError { url, server, failure: error.failure, message: error.message, retry_after: None }
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
    };
    let unusable = |_| crate::AccessError::Connection("the credentials cannot be sent in a header".to_owned()).into();
    Some(HeaderValue::from_str(&text).map_err(unusable).map(|mut header| {
        header.set_sensitive(true);
        header
    }))
}

/// The headers that ask for the archive only if it is not the known one.
fn conditions(known: &Latest) -> HeaderMap {
    let header = |text: &Option<String>| text.as_ref().and_then(|text| HeaderValue::from_str(text).ok());
    // A server that knows entity tags ignores the time (RFC 9110, 13.1.3).
    let etag = header(&known.etag).map(|value| (IF_NONE_MATCH, value));
    let time = header(&known.last_modified).map(|value| (IF_MODIFIED_SINCE, value));
    etag.into_iter().chain(time).collect()
}

impl Validators {
    /// Those of a response. A time of change counts only if the archive cannot have changed again in the same second (RFC 9110,
    /// 8.8.2.2).
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name| {
            let value = headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
            value.filter(|text| text.len() <= VALIDATOR_BYTES).map(str::to_owned)
        };
        let time = |text: &String| httpdate::parse_http_date(text).ok();
        let (date, modified) = (text(DATE), text(LAST_MODIFIED));
        let passed = date.as_ref().and_then(time).zip(modified.as_ref().and_then(time));
        let is_strong =
            passed.is_some_and(|(now, then)| now.duration_since(then).is_ok_and(|passed| passed.as_secs() >= 1));
        Self { etag: text(ETAG).filter(|etag| !etag.is_empty()), last_modified: modified.filter(|_| is_strong) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_the_same_second_proves_nothing() {
        let of = |headers: &[(&'static str, &'static str)]| {
            let headers = headers
                .iter()
                .map(|(name, value)| (reqwest::header::HeaderName::from_static(name), HeaderValue::from_static(value)));
            let found = Validators::of(&headers.collect());
            (found.etag, found.last_modified)
        };
        let (noon, later) = ("Sun, 06 Nov 1994 12:00:00 GMT", "Sun, 06 Nov 1994 12:00:01 GMT");
        let own = |text: &str| Some(text.to_owned());
        assert_eq!(of(&[("etag", "\"1\"")]), (own("\"1\""), None));
        assert_eq!(of(&[("last-modified", noon)]), (None, None));
        assert_eq!(of(&[("last-modified", noon), ("date", noon)]), (None, None));
        assert_eq!(of(&[("last-modified", later), ("date", noon)]), (None, None));
        assert_eq!(of(&[("last-modified", noon), ("date", later)]), (None, own(noon)));
        assert_eq!(of(&[("last-modified", "yesterday"), ("date", later)]), (None, None));
        assert_eq!(of(&[]), (None, None));
    }
}
