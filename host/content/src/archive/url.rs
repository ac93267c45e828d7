//! The URL of an archive.

use std::{fmt, str::FromStr};

use reqwest::Url;

use crate::transport::authority;

/// The longest URL in bytes, as most servers accept it.
const LONGEST: usize = 2048;

/// The URL of an archive: `http` or `https`, without credentials and without a fragment.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ArchiveUrl(Url);

impl fmt::Debug for ArchiveUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArchiveUrl({self})")
    }
}

/// A text is not the URL of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveUrlError {
    /// It is not an absolute URL with a host.
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
    /// All of the URL, for requests and specs. Messages show it without the query ([`shown_url`]).
    pub fn text(&self) -> &str {
        self.0.as_str()
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    /// The URL of a file below this one, which keeps the query.
    pub(crate) fn below(&self, file: &str) -> Self {
        let mut url = self.0.clone();
        url.set_path(&format!("{}/{file}", self.0.path().trim_end_matches('/')));
        Self(url)
    }

    /// The URL that a document below this one refers to: a URL, or a path below this one, which keeps the query.
    ///
    /// # Errors
    /// As [`FromStr`].
    pub(crate) fn referred(&self, reference: &str) -> Result<Self, ArchiveUrlError> {
        if Url::parse(reference).is_ok() {
            return reference.parse();
        }
        let mut url = self.below("").0.join(reference).map_err(|_| ArchiveUrlError::Malformed)?;
        // It may hold a token, which is for this server.
        url.set_query(self.0.query().filter(|_| url.origin() == self.0.origin()));
        url.as_str().parse()
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
    /// As messages show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown_url(self.text()))
    }
}

/// A URL or an image reference as messages show it: without user name and password, and without the query, which may have a token or a
/// signature. Of a text that is neither, everything before an `@` is left out, unless it is a mere user name, as in `git@example.com:a`.
pub fn shown_url(text: &str) -> String {
    let parsed = Url::parse(text).ok().filter(|url| text.contains("://") && url.has_host());
    if let Some(mut url) = parsed {
        let has_secrets = !url.username().is_empty() || url.password().is_some() || url.query().is_some();
        if !has_secrets && url.fragment().is_none() {
            return text.to_owned();
        }
        let is_user =
            url.password().is_none() && is_user_name(url.username()) && !matches!(url.scheme(), "http" | "https");
        if !is_user {
            // These fail for a URL without a host only.
            let _ = url.set_username("");
            let _ = url.set_password(None);
        }
        if url.query().is_some() {
            url.set_query(Some(HIDDEN));
        }
        url.set_fragment(None);
        return url.to_string();
    }
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    let is_digest = |rest: &str| rest.starts_with("sha256:") || rest.starts_with("sha512:");
    let mut ats = rest.rmatch_indices('@').filter_map(|(at, _)| Some((rest.get(..at)?, rest.get(at + 1..)?)));
    let rest = match ats.find(|(_, after)| !is_digest(after)) {
        Some((before, after)) if !is_user_name(before) => after.to_owned(),
        _ => rest.to_owned(),
    };
    match rest.split_once('?') {
        Some((rest, _)) => format!("{scheme}{rest}?{HIDDEN}"),
        None => format!("{scheme}{rest}"),
    }
}

/// In place of what is not shown.
const HIDDEN: &str = "(hidden)";

fn is_user_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-'))
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
            assert_eq!(
                text.parse::<ArchiveUrl>().map(|url| url.text().to_owned()),
                expected.map(str::to_owned),
                "{text}"
            );
        }
    }

    #[test]
    fn messages_show_no_credentials_and_no_query() {
        for (text, shown) in [
            ("https://example.com/a.tgz", "https://example.com/a.tgz"),
            ("https://example.com/a?X-Amz-Signature=hunter2", "https://example.com/a?(hidden)"),
            ("https://user:hunter2@example.com/a", "https://example.com/a"),
            ("https://hunter2@example.com/a@b#hunter2", "https://example.com/a@b"),
            ("https://user:hunt/er2@example.com/a", "https://example.com/a"),
            ("ssh://git@example.com/a", "ssh://git@example.com/a"),
            ("ssh://git:hunter2@example.com/a", "ssh://example.com/a"),
            ("git@example.com:a/b.git", "git@example.com:a/b.git"),
            ("git:hunter2@example.com:a", "example.com:a"),
            ("user:hunter2@quay.io/a:v1", "quay.io/a:v1"),
            ("user:hunter2@quay.io/a@sha256:00", "quay.io/a@sha256:00"),
            ("localhost:5000/a@sha256:00", "localhost:5000/a@sha256:00"),
            ("example.com/a?token=hunter2", "example.com/a?(hidden)"),
            ("", ""),
        ] {
            assert_eq!(shown_url(text), shown, "{text}");
            assert_eq!(shown_url(shown), shown, "{shown}");
        }
        let url: ArchiveUrl = "https://example.com/a?token=hunter2".parse().unwrap();
        assert_eq!(
            (url.to_string().as_str(), url.text()),
            ("https://example.com/a?(hidden)", "https://example.com/a?token=hunter2")
        );
        assert!(!format!("{url:?}").contains("hunter2"));
    }

    proptest! {
        #[test]
        fn no_password_and_no_query_is_shown(
            scheme in "(https?://|ssh://|git\\+ssh://|)", user in "[a-z]{0,3}", more in "[a-z@:?#%]{0,3}",
            host in "[a-z]{1,5}(\\.[a-z]{1,3})?", path in "[a-z/]{0,5}",
        ) {
            let text = format!("{scheme}{user}:{more}hunter2@{host}/{path}?k=hunter2");
            prop_assert!(!shown_url(&text).contains("hunter2"), "{} {}", text, shown_url(&text));
        }

        #[test]
        fn what_is_accepted_can_be_read_back(text in "(https?|ftp)?(://)?[a-z@:/?#.\\[\\]%0-9]{0,40}") {
            if let Ok(url) = text.parse::<ArchiveUrl>() {
                prop_assert_eq!(url.text().parse::<ArchiveUrl>(), Ok(url));
            }
        }
    }
}
