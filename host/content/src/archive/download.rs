//! One request for an archive.

use chandler_core::Digest;
use reqwest::{
    Response, StatusCode,
    header::{DATE, ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED},
};
use sha2::{Digest as _, Sha256};

use super::{ArchiveUrl, form::Form};
use crate::{
    ContentError, ImageAccess,
    image::Inner,
    server::{Asked, Server},
    store::{Latest, Workspace},
};

/// The name of the archive in a workspace.
pub(super) const ARCHIVE: &str = "archive";
/// The longest entity tag or time that is kept.
const VALIDATOR_BYTES: usize = 1024;

/// A client for one archive.
pub(super) struct Download<'a> {
    server: Server<'a>,
    form: Form,
}

/// What a server sends to recognize an archive by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Validators {
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
}

impl<'a> Download<'a> {
    /// A client for the archive at a URL. `led_by` is the server that named the URL, where the source does not: its rules hold then, as for a
    /// redirect.
    pub(super) async fn new(
        (url, led_by): (&'a ArchiveUrl, Option<&'a ArchiveUrl>),
        access: &ImageAccess,
        is_pinned: bool,
        (form, shared): (Form, &'a Inner),
    ) -> Result<Self, ContentError> {
        let asked = Asked { what: form.downloaded(), url: url.url(), pin: "sha256", is_pinned };
        let server = match led_by {
            None => Server::new(asked, access, shared)?,
            // Boxed, since few callers need it, and all would hold it.
            Some(home) => Box::pin(Server::led_by(home.url(), asked, access, shared)).await?,
        };
        Ok(Self { server, form })
    }

    /// Requests the archive.
    pub(super) async fn get(&self) -> Result<Response, ContentError> {
        self.server.successful(self.server.send(HeaderMap::new()).await?)
    }

    /// Requests the archive. Returns `None` if the server still has the known one.
    pub(super) async fn get_if_changed(&self, known: &Latest) -> Result<Option<Response>, ContentError> {
        let conditions = conditions(known);
        if conditions.is_empty() {
            return self.get().await.map(Some);
        }
        let response = self.server.send(conditions).await?;
        // Some servers ignore the condition. The body is not read then, which closes the connection.
        let is_same =
            |etag: &String| !etag.starts_with("W/") && response.headers().get(ETAG).is_some_and(|it| it == etag);
        match response.status() {
            StatusCode::NOT_MODIFIED => Ok(None),
            StatusCode::OK if known.etag.as_ref().is_some_and(is_same) => Ok(None),
            StatusCode::OK => Ok(Some(response)),
            _ => Err(self.server.refused(&response).into()),
        }
    }

    /// Writes the archive into the workspace, and returns its digest.
    pub(super) async fn save(&self, response: Response, work: &Workspace) -> Result<Digest, ContentError> {
        let mut hash = Sha256::new();
        let pass = |chunk: &[u8], written: &mut Vec<u8>| {
            hash.update(chunk);
            written.extend_from_slice(chunk);
            Ok(())
        };
        let most = self.form.most_bytes(self.server.shared.store.limits());
        self.server.save_at_most(most, response, (work.path().join(ARCHIVE).as_path(), work.room()), pass).await?;
        Ok(Digest::from_hash(hash.finalize().into()))
    }
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
    /// The validators of a response. A modification time counts only if the archive cannot have changed again in the same second (RFC 9110,
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
