//! The URL of a repository.

use std::{fmt, str::FromStr};

use reqwest::Url;

use crate::{ArchiveUrl, ArchiveUrlError, transport::authority};

/// The URL of a git repository: `http` or `https`, without credentials, query and fragment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RepositoryUrl(Url);

/// A text is not the URL of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryUrlError {
    /// It is no absolute URL with a host.
    #[error("it is not a URL such as https://example.com/bundles.git")]
    Malformed,
    /// It is for SSH.
    #[error("repositories are fetched over https, not over SSH: use the https URL of the repository")]
    Ssh,
    /// It has a query, which servers of git do not use.
    #[error("it has a query (?)")]
    Query,
    /// What is refused for an archive, too.
    #[error(transparent)]
    Url(ArchiveUrlError),
}

impl RepositoryUrl {
    /// Without a slash at the end.
    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    /// The server as messages name it: `host` or `host:port`.
    pub fn server(&self) -> String {
        authority(&self.0)
    }

    /// The origin, and the path.
    pub(crate) fn parts(&self) -> (String, String) {
        (self.0.origin().ascii_serialization(), self.0.path().to_owned())
    }
}

/// `user@host:path`, as git writes it for SSH.
fn is_short_ssh(text: &str) -> bool {
    let before = text.split_once(':').map(|(before, _)| before);
    !text.contains("://") && before.is_some_and(|before| before.contains('@') && !before.contains('/'))
}

impl FromStr for RepositoryUrl {
    type Err = RepositoryUrlError;

    fn from_str(text: &str) -> Result<Self, RepositoryUrlError> {
        if text.starts_with("ssh://") || text.starts_with("git+ssh://") || is_short_ssh(text) {
            return Err(RepositoryUrlError::Ssh);
        }
        let url: ArchiveUrl = text.trim_end_matches('/').parse().map_err(|error| match error {
            ArchiveUrlError::Malformed => RepositoryUrlError::Malformed,
            error => RepositoryUrlError::Url(error),
        })?;
        let url = url.url().clone();
        if url.query().is_some() { Err(RepositoryUrlError::Query) } else { Ok(Self(url)) }
    }
}

impl fmt::Display for RepositoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_http_are_accepted() {
        for (text, expected) in [
            ("https://example.com/a.git", Ok("https://example.com/a.git")),
            ("https://example.com/a/b/", Ok("https://example.com/a/b")),
            ("http://localhost:8080/a", Ok("http://localhost:8080/a")),
            ("git@example.com:a/b.git", Err(RepositoryUrlError::Ssh)),
            ("ssh://git@example.com/a/b.git", Err(RepositoryUrlError::Ssh)),
            ("https://user:word@example.com/a", Err(RepositoryUrlError::Url(ArchiveUrlError::Credentials))),
            ("https://example.com/a?b", Err(RepositoryUrlError::Query)),
            ("ext::sh -c id", Err(RepositoryUrlError::Url(ArchiveUrlError::Scheme))),
            ("file:///srv/git", Err(RepositoryUrlError::Url(ArchiveUrlError::Scheme))),
            ("git://example.com/a", Err(RepositoryUrlError::Url(ArchiveUrlError::Scheme))),
            ("/srv/git", Err(RepositoryUrlError::Malformed)),
            ("--upload-pack=id", Err(RepositoryUrlError::Malformed)),
        ] {
            assert_eq!(text.parse::<RepositoryUrl>().map(|url| url.to_string()), expected.map(str::to_owned), "{text}");
        }
    }
}
