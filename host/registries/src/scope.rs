//! Prefixes and locations: parts of the name of an image. Pure.

use crate::name::{HostError, check_host, normalized};

/// The longest prefix or location, in bytes.
const LONGEST: usize = 512;

/// Why a text is not a prefix or location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// It begins with a scheme.
    #[error("write it without `https://` or `http://`: a registry without TLS is `insecure`")]
    Scheme,
    /// It has a wildcard elsewhere than the formats allow.
    #[error("`*` is allowed in a prefix of the form `*.example.com` only, with no port and no path")]
    Wildcard,
    /// It has a tag or a digest.
    #[error("a location has no tag and no digest: the image's are used")]
    Version,
    /// No image has a host in this spelling: the settings would apply to no image.
    #[error(transparent)]
    Host(#[from] HostError),
    /// It is something else.
    #[error("it is not a host, with a port or a path where needed, such as `registry.example.com:5000/team`")]
    Format,
}

/// Part of the name of an image: a host, and the first parts of a path. It is [`normalized`], so that other spellings of a name do not
/// escape its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location(String);

/// Which images a table of registries.conf is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All subdomains of a host, written with the dot: `.example.com`.
    Subdomains(String),
    /// The repositories below, and the repository itself.
    Below(Location),
    /// One image: `host/repository`, and its tag or digest with the separator.
    Image(Location, String),
}

impl Location {
    pub(crate) fn parse(text: &str) -> Result<Self, ScopeError> {
        let (name, version) = split_version(check_text(text)?);
        if version.is_some() {
            return Err(ScopeError::Version);
        }
        Self::of_name(name)
    }

    fn of_name(name: &str) -> Result<Self, ScopeError> {
        if name.contains('*') {
            return Err(ScopeError::Wildcard);
        }
        let mut parts = name.split('/');
        let host = parts.next().unwrap_or_default();
        if !is_host(host) || !parts.all(is_path_part) {
            return Err(ScopeError::Format);
        }
        check_host(host)?;
        Ok(Self(normalized(name)))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// What follows this location in the name of a repository: empty, or a path that begins with `/`.
    fn rest<'a>(&self, repository: &'a str) -> Option<&'a str> {
        repository.strip_prefix(&self.0).filter(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Scope {
    pub(crate) fn parse(text: &str) -> Result<Self, ScopeError> {
        let text = check_text(text)?;
        if let Some(domain) = text.strip_prefix('*') {
            let host = domain.strip_prefix('.').filter(|host| is_host(host) && !host.contains(':'));
            return host.map(|_| Self::Subdomains(domain.to_ascii_lowercase())).ok_or(ScopeError::Wildcard);
        }
        let (name, version) = split_version(text);
        let location = Location::of_name(name)?;
        match version {
            None => Ok(Self::Below(location)),
            // `host:tag` is a host and a port, and has no repository.
            Some(version) if is_version(version) && name.contains('/') => Ok(Self::Image(location, version.to_owned())),
            Some(_) => Err(ScopeError::Format),
        }
    }

    /// The location that a table has by default, or `None` if images keep their names.
    pub(crate) fn location(&self) -> Option<&Location> {
        match self {
            Self::Subdomains(_) => None,
            Self::Below(location) | Self::Image(location, _) => Some(location),
        }
    }

    /// A name of the scope that is as short as possible. With `*`, which no image has, it is of no other scope but subdomains.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Subdomains(domain) => format!("*{domain}"),
            Self::Below(location) | Self::Image(location, _) => location.0.clone(),
        }
    }

    /// What follows the scope in the name of a repository, if an image of it is of the scope.
    pub(crate) fn rest<'a>(&self, repository: &'a str, version: &str) -> Option<&'a str> {
        match self {
            Self::Below(location) => location.rest(repository),
            Self::Image(location, of) => (location.0 == repository && of == version).then_some(""),
            Self::Subdomains(domain) => {
                let end = repository.find('/').unwrap_or(repository.len());
                let (host, rest) = repository.split_at(end);
                let name = host.split_once(':').map_or(host, |(name, _)| name);
                let is_below = name.len() > domain.len() && name.ends_with(domain.as_str());
                is_below.then_some(rest)
            }
        }
    }

    /// Longer scopes are more specific, and all of them more than subdomains.
    pub(crate) fn specificity(&self) -> (bool, usize) {
        match self {
            Self::Subdomains(domain) => (false, domain.len()),
            Self::Below(location) => (true, location.0.len()),
            Self::Image(location, version) => (true, location.0.len().saturating_add(version.len())),
        }
    }

    /// As it is written, for messages.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Subdomains(domain) => format!("*{domain}"),
            Self::Below(location) => location.0.clone(),
            Self::Image(location, version) => format!("{}{version}", location.0),
        }
    }
}

/// Refuses schemes, and texts of other characters than names have. A slash at the end changes nothing.
fn check_text(text: &str) -> Result<&str, ScopeError> {
    if text.contains("://") {
        return Err(ScopeError::Scheme);
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:/@*".contains(&byte);
    if text.len() > LONGEST || !text.bytes().all(allowed) {
        return Err(ScopeError::Format);
    }
    Ok(text.strip_suffix('/').unwrap_or(text))
}

/// The name, and the tag or digest with its separator.
fn split_version(text: &str) -> (&str, Option<&str>) {
    let after_host = text.find('/').unwrap_or(text.len());
    let at = text.find('@').or_else(|| text.rfind(':').filter(|at| *at > after_host));
    match at.map(|at| text.split_at(at)) {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    }
}

/// A host as image references have it, with its port if it has one.
fn is_host(text: &str) -> bool {
    let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_number = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    name.split('.').all(is_label) && port.is_none_or(is_number)
}

/// A part of a path as image references have it, but for details that the reference itself is checked for.
fn is_path_part(part: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    part.bytes().next().is_some_and(is_word)
        && part.bytes().next_back().is_some_and(is_word)
        && part.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'_' | b'-'))
}

/// A tag or digest, with its separator.
fn is_version(version: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    match (version.strip_prefix(':'), version.strip_prefix("@sha256:")) {
        (Some(tag), _) => !tag.is_empty() && tag.bytes().all(is_word),
        (_, Some(hex)) => hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_have_the_formats_of_the_manual() {
        let digest = format!("example.com/ns/repo@sha256:{}", "0".repeat(64));
        for text in [
            "example.com",
            "example.com:5000",
            "localhost",
            "Example.COM/ns/",
            "example.com:5000/ns/ns/repo",
            "example.com/ns/repo:v1.0",
            &digest,
            "*.example.com",
            "registry_1/a__b",
        ] {
            let scope = Scope::parse(text).unwrap();
            assert_eq!(Scope::parse(&scope.text()), Ok(scope), "{text}");
        }
        for (text, expected) in [
            ("https://example.com", ScopeError::Scheme),
            ("example.*.com", ScopeError::Wildcard),
            ("*.example.com/foo", ScopeError::Wildcard),
            ("*.example.com:5000/foo/bar:baz", ScopeError::Wildcard),
            ("*.example.com:5000", ScopeError::Wildcard),
            ("*", ScopeError::Wildcard),
            ("*.", ScopeError::Wildcard),
            ("", ScopeError::Format),
            ("/", ScopeError::Format),
            ("example.com//a", ScopeError::Format),
            ("example.com/../a", ScopeError::Format),
            ("example.com/A", ScopeError::Format),
            ("example.com:", ScopeError::Format),
            ("example.com:0", ScopeError::Host(HostError::Port)),
            ("example.com:70000/a", ScopeError::Host(HostError::Port)),
            ("localhost:05001", ScopeError::Host(HostError::Port)),
            ("127.1:5001/a", ScopeError::Host(HostError::Address)),
            ("example.com/a@sha256:0", ScopeError::Format),
            ("example.com@sha256:0", ScopeError::Format),
            ("user@example.com", ScopeError::Format),
            ("example.com/a b", ScopeError::Format),
            ("[::1]:5000", ScopeError::Format),
            (&"a".repeat(LONGEST + 1), ScopeError::Format),
        ] {
            assert_eq!(Scope::parse(text), Err(expected), "{text}");
        }
        assert_eq!(Location::parse("example.com/a:v1"), Err(ScopeError::Version));
        assert_eq!(Location::parse("*.example.com"), Err(ScopeError::Wildcard));
    }

    #[test]
    fn a_scope_ends_where_a_part_of_a_name_ends() {
        let rest = |scope: &str, repository: &str| {
            let scope = Scope::parse(scope).unwrap();
            scope.rest(&normalized(repository), ":v1").map(str::to_owned)
        };
        for (scope, repository, expected) in [
            ("example.com", "example.com/foo", Some("/foo")),
            ("example.com/foo", "example.com/foo", Some("")),
            ("example.com/foo", "example.com/foo/bar", Some("/bar")),
            ("example.com/foo", "example.com/foobar", None),
            ("example.com", "example.com.evil.org/foo", None),
            ("example.com", "example.com:5000/foo", None),
            // Other spellings of the same host.
            ("example.com", "EXAMPLE.com:443/foo", Some("/foo")),
            ("Example.com:443", "example.com/foo", Some("/foo")),
            ("example.com/foo:v1", "example.com/foo", Some("")),
            ("example.com/foo:v2", "example.com/foo", None),
            ("example.com/foo:v1", "example.com/foo/bar", None),
            ("*.example.com", "a.example.com/foo", Some("/foo")),
            ("*.example.com", "a.b.example.com:5000/foo", Some("/foo")),
            ("*.example.com", "example.com/foo", None),
            ("*.example.com", "aexample.com/foo", None),
            ("*.example.com", "quay.io/a.example.com", None),
            ("*.example.com", "a.example.com.evil.org/foo", None),
        ] {
            assert_eq!(rest(scope, repository).as_deref(), expected, "{scope} {repository}");
        }
    }
}
