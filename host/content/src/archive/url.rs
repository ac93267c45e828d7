//! The URL of an archive.

use std::{fmt, str::FromStr};

use reqwest::Url;

use crate::transport::authority;

/// The longest URL in bytes, as most servers accept it.
const LONGEST: usize = 2048;

/// The URL of an archive: `http` or `https`, without credentials and without a fragment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArchiveUrl(Url);

/// A text is not the URL of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveUrlError {
    /// It is no absolute URL with a host.
    #[error("it is not a URL such as https://example.com/bundle.tgz")]
    Malformed,
    /// It is longer than 2048 bytes.
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    /// It has another scheme.
    #[error("its scheme is neither https nor http")]
    Scheme,
    /// It has a user name or a password, which would be shown wherever the URL is.
    #[error("it has a user name or a password: put them into the Secret of auth.secret")]
    Credentials,
    /// It has a fragment, which is not sent to the server.
    #[error("it has a fragment (#)")]
    Fragment,
}

impl ArchiveUrl {
    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    /// The server as messages name it: `host` or `host:port`.
    pub fn server(&self) -> String {
        authority(&self.0)
    }

    /// The origin, and what follows it.
    pub(crate) fn parts(&self) -> (String, String) {
        let rest =
            self.0.query().map_or_else(|| self.0.path().to_owned(), |query| format!("{}?{query}", self.0.path()));
        (self.0.origin().ascii_serialization(), rest)
    }
}

impl FromStr for ArchiveUrl {
    type Err = ArchiveUrlError;

    fn from_str(text: &str) -> Result<Self, ArchiveUrlError> {
        if text.len() > LONGEST {
            return Err(ArchiveUrlError::TooLong);
        }
        let url = Url::parse(text).map_err(|_| ArchiveUrlError::Malformed)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ArchiveUrlError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ArchiveUrlError::Credentials);
        }
        if url.fragment().is_some() {
            return Err(ArchiveUrlError::Fragment);
        }
        if !url.has_host() {
            return Err(ArchiveUrlError::Malformed);
        }
        Ok(Self(url))
    }
}

impl fmt::Display for ArchiveUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_urls_of_http_without_credentials_are_accepted() {
        let long = format!("https://example.com/{}", "x".repeat(LONGEST));
        for (text, expected) in [
            ("https://example.com/a.tgz", Ok("https://example.com/a.tgz")),
            ("HTTP://Example.COM:80/a.zip?x=1", Ok("http://example.com/a.zip?x=1")),
            ("https://[::1]:8443/a", Ok("https://[::1]:8443/a")),
            ("example.com/a.tgz", Err(ArchiveUrlError::Malformed)),
            ("", Err(ArchiveUrlError::Malformed)),
            ("https://", Err(ArchiveUrlError::Malformed)),
            ("file:///etc/passwd", Err(ArchiveUrlError::Scheme)),
            ("ftp://example.com/a.tgz", Err(ArchiveUrlError::Scheme)),
            ("data:text/plain,x", Err(ArchiveUrlError::Scheme)),
            ("https://user:password@example.com/a", Err(ArchiveUrlError::Credentials)),
            ("https://user@example.com/a", Err(ArchiveUrlError::Credentials)),
            ("https://example.com/a#b", Err(ArchiveUrlError::Fragment)),
            (&long, Err(ArchiveUrlError::TooLong)),
        ] {
            assert_eq!(text.parse::<ArchiveUrl>().map(|url| url.to_string()), expected.map(str::to_owned), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_accepted_can_be_read_back(text in "(https?|ftp)?(://)?[a-z@:/?#.\\[\\]%0-9]{0,40}") {
            if let Ok(url) = text.parse::<ArchiveUrl>() {
                prop_assert_eq!(url.to_string().parse::<ArchiveUrl>(), Ok(url));
            }
        }
    }
}
