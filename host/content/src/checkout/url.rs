//! The URL of a repository.

use std::{fmt, str::FromStr};

use super::ssh_url::SshUrl;
use crate::{ArchiveUrl, ArchiveUrlError};

/// The URL of a git repository: `http` or `https`, without credentials, query and fragment; or `ssh`, or `user@host:path`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RepositoryUrl(Remote);

/// How a repository is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Remote {
    /// Without a slash at the end.
    Http(ArchiveUrl),
    Ssh(SshUrl),
}

/// A text is not the URL of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryUrlError {
    /// It is not an absolute URL with a host.
    #[error("it is not a URL such as https://example.com/bundles.git or git@example.com:bundles.git")]
    Malformed,
    /// It has a query, which servers of git do not use.
    #[error("it has a query (?)")]
    Query,
    /// What is refused for an archive, too.
    #[error(transparent)]
    Url(ArchiveUrlError),
    /// The scheme is none that is supported.
    #[error("its scheme is none of https, http and ssh")]
    Scheme,
    /// It is for SSH, and has a password.
    #[error("it has a password; over SSH only a private key is used: put it into the Secret of auth.secret")]
    Password,
    /// It is for SSH, and its user is not a valid user name.
    #[error("its user name has other characters than letters, digits and ._+-, or is too long")]
    User,
    /// It is for SSH, and its path is refused.
    #[error("its path is empty, longer than 1024 bytes, begins with -, or has a control character")]
    Path,
    /// It is for SSH, and has characters that git reads in different ways.
    #[error("its path has one of the characters %, ? and #; write a path with % as user@host:path")]
    Encoded,
}

impl RepositoryUrl {
    pub(super) fn remote(&self) -> &Remote {
        &self.0
    }

    /// Whether it is for SSH.
    pub fn is_ssh(&self) -> bool {
        matches!(self.0, Remote::Ssh(_))
    }

    /// The server as messages name it: `host` or `host:port`.
    pub fn server(&self) -> String {
        match &self.0 {
            Remote::Http(url) => url.server(),
            Remote::Ssh(url) => url.server(),
        }
    }

    /// The origin, and the path.
    pub(crate) fn parts(&self) -> (String, String) {
        match &self.0 {
            Remote::Http(url) => url.parts(),
            Remote::Ssh(url) => url.parts(),
        }
    }
}

impl FromStr for RepositoryUrl {
    type Err = RepositoryUrlError;

    fn from_str(text: &str) -> Result<Self, RepositoryUrlError> {
        if let Some(url) = SshUrl::parse(text) {
            return url.map(|url| Self(Remote::Ssh(url)));
        }
        let url: ArchiveUrl = text.trim_end_matches('/').parse().map_err(|error| match error {
            ArchiveUrlError::Malformed => RepositoryUrlError::Malformed,
            ArchiveUrlError::Scheme => RepositoryUrlError::Scheme,
            error => RepositoryUrlError::Url(error),
        })?;
        if url.url().query().is_some() { Err(RepositoryUrlError::Query) } else { Ok(Self(Remote::Http(url))) }
    }
}

impl fmt::Display for RepositoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Remote::Http(url) => url.fmt(f),
            Remote::Ssh(url) => url.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_urls_of_http_and_ssh_are_accepted() {
        use RepositoryUrlError::{Encoded, Malformed, Password, Path, Query, Scheme, Url, User};
        let long = format!("git@example.com:{}", "x".repeat(1025));
        for (text, expected) in [
            ("https://example.com/a.git", Ok("https://example.com/a.git")),
            ("https://example.com/a/b/", Ok("https://example.com/a/b")),
            ("http://localhost:8080/a", Ok("http://localhost:8080/a")),
            ("https://user:word@example.com/a", Err(Url(ArchiveUrlError::Credentials))),
            ("https://example.com/a?b", Err(Query)),
            ("ext::sh -c id", Err(Scheme)),
            ("file:///srv/git", Err(Scheme)),
            ("git://example.com/a", Err(Scheme)),
            ("/srv/git", Err(Malformed)),
            ("--upload-pack=id", Err(Malformed)),
            ("git@example.com:a/b.git", Ok("git@example.com:a/b.git")),
            ("git@Example.COM:/a/b.git/", Ok("ssh://git@example.com/a/b.git")),
            ("git@example.com:~me/b", Ok("ssh://git@example.com/~me/b")),
            ("git@example.com:/~me/b", Ok("git@example.com:/~me/b")),
            ("git@[2001:DB8::1]:a", Ok("git@[2001:db8::1]:a")),
            ("git@ssh.example.com:v3/a/b%20c/d", Ok("git@ssh.example.com:v3/a/b%20c/d")),
            ("ssh://git@example.com/a/b.git", Ok("ssh://git@example.com/a/b.git")),
            ("ssh://git@example.com:22/a", Ok("ssh://git@example.com/a")),
            ("ssh://git@example.com:443/a", Ok("ssh://git@example.com:443/a")),
            ("ssh://example.com:2222/~/a", Ok("ssh://example.com:2222/~/a")),
            ("git+ssh://git@[::1]:2222/a", Ok("ssh://git@[::1]:2222/a")),
            ("ssh://git@bücher.example/a", Ok("ssh://git@xn--bcher-kva.example/a")),
            ("ssh://git:word@example.com/a", Err(Password)),
            ("ssh://-oProxyCommand=id/a", Err(Malformed)),
            ("ssh://git@-oProxyCommand=id/a", Err(Malformed)),
            ("-oProxyCommand=id@example.com:a", Err(User)),
            ("git@-oProxyCommand=id:a", Err(Malformed)),
            ("git@example.com:--upload-pack=id", Err(Path)),
            ("git@example.com:a\nb", Err(Path)),
            (&long, Err(Path)),
            ("git@example.com:", Err(Path)),
            ("git@example.com:/", Err(Path)),
            ("git@:a", Err(Malformed)),
            ("@example.com:a", Err(User)),
            ("a b@example.com:a", Err(User)),
            ("ssh://git@a@example.com/a", Err(User)),
            ("ssh:///a", Err(Malformed)),
            ("ssh://example.com", Err(Path)),
            ("ssh://example.com:99999/a", Err(Malformed)),
            ("ssh://exa%6dple.com/a", Err(Malformed)),
            ("ssh://example.com/a%20b", Err(Encoded)),
            ("ssh://example.com/a?ref=b", Err(Encoded)),
        ] {
            assert_eq!(text.parse::<RepositoryUrl>().map(|url| url.to_string()), expected.map(str::to_owned), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_accepted_can_be_read_back(text in "(ssh://)?([a-z-]{1,3}@)?[a-z0-9.\\[\\]:-]{1,8}[:/][a-z~/ '!-]{0,6}") {
            if let Ok(url) = text.parse::<RepositoryUrl>() {
                prop_assert_eq!(url.to_string().parse::<RepositoryUrl>(), Ok(url));
            }
        }
    }
}
