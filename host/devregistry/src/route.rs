//! Parses the path of a request. Pure.

use chandler_core::Digest;
use http::Method;
use uuid::Uuid;

/// The supported endpoints of the specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/v2/`: the version check.
    Version,
    /// The token server.
    Token,
    /// `/v2/<name>/manifests/<reference>`
    Manifest { name: String, reference: String },
    /// `/v2/<name>/blobs/<digest>`
    Blob { name: String, digest: Digest },
    /// `/v2/<name>/blobs/uploads/`
    Uploads { name: String },
    /// `/v2/<name>/blobs/uploads/<id>`
    Upload { name: String, id: Uuid },
    /// `/v2/<name>/tags/list`
    Tags { name: String },
    /// `/v2/<name>/referrers/<digest>`
    Referrers { name: String, digest: Digest },
}

/// Why a path is not an endpoint, by error code of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteError {
    NotFound,
    Name,
    Digest,
    Upload,
}

/// The path of the token server.
pub(crate) const TOKEN: &str = "/token";

impl Route {
    pub(crate) fn of(path: &str) -> Result<Self, RouteError> {
        match path {
            "/v2" | "/v2/" => return Ok(Self::Version),
            TOKEN => return Ok(Self::Token),
            _ => {}
        }
        let rest = path.strip_prefix("/v2/").ok_or(RouteError::NotFound)?;
        // Repository names contain slashes, so everything before the last keyword may be part of the name.
        if let Some(name) = rest.strip_suffix("/tags/list") {
            return Ok(Self::Tags { name: legal_name(name)? });
        }
        if let Some((name, id)) = rest.rsplit_once("/blobs/uploads/") {
            let name = legal_name(name)?;
            if id.is_empty() {
                return Ok(Self::Uploads { name });
            }
            return Ok(Self::Upload { name, id: id.parse().map_err(|_| RouteError::Upload)? });
        }
        if let Some(name) = rest.strip_suffix("/blobs/uploads") {
            return Ok(Self::Uploads { name: legal_name(name)? });
        }
        if let Some((name, digest)) = rest.rsplit_once("/referrers/") {
            let digest = digest.parse().map_err(|_| RouteError::Digest)?;
            return Ok(Self::Referrers { name: legal_name(name)?, digest });
        }
        if let Some((name, digest)) = rest.rsplit_once("/blobs/") {
            return Ok(Self::Blob { name: legal_name(name)?, digest: digest.parse().map_err(|_| RouteError::Digest)? });
        }
        if let Some((name, reference)) = rest.rsplit_once("/manifests/") {
            return Ok(Self::Manifest { name: legal_name(name)?, reference: reference.to_owned() });
        }
        Err(RouteError::NotFound)
    }

    /// Whether a request with this method may write.
    pub(crate) fn is_write(method: &Method) -> bool {
        !matches!(*method, Method::GET | Method::HEAD)
    }
}

/// The naming rule of the specification, slightly relaxed for the position of separators.
fn legal_name(name: &str) -> Result<String, RouteError> {
    let part = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        part.bytes().next().is_some_and(inner)
            && part.bytes().next_back().is_some_and(inner)
            && part.bytes().all(|byte| inner(byte) || matches!(byte, b'.' | b'_' | b'-'))
    };
    if name.len() <= 255 && name.split('/').all(part) { Ok(name.to_owned()) } else { Err(RouteError::Name) }
}

/// Whether a text is a valid tag.
pub(crate) fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= 128
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
}

/// The value of a query field. Only `:` and `/` need decoding in the values that the registry uses.
pub(crate) fn query_field(query: &str, field: &str) -> Option<String> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix(field)?.strip_prefix('='))?;
    Some(value.replace("%3A", ":").replace("%3a", ":").replace("%2F", "/").replace("%2f", "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed_as_endpoints() {
        let digest = Digest::of(b"");
        let id = Uuid::nil();
        let name = || "a/b".to_owned();
        for (path, expected) in [
            ("/v2/".to_owned(), Ok(Route::Version)),
            ("/".to_owned(), Err(RouteError::NotFound)),
            ("/v2/a/b".to_owned(), Err(RouteError::NotFound)),
            ("/v2/a/b/tags/list".to_owned(), Ok(Route::Tags { name: name() })),
            ("/v2/a/b/manifests/v1".to_owned(), Ok(Route::Manifest { name: name(), reference: "v1".to_owned() })),
            (format!("/v2/a/b/referrers/{digest}"), Ok(Route::Referrers { name: name(), digest: digest.clone() })),
            (format!("/v2/a/b/blobs/{digest}"), Ok(Route::Blob { name: name(), digest })),
            ("/v2/a/b/blobs/x".to_owned(), Err(RouteError::Digest)),
            ("/v2/a/b/referrers/x".to_owned(), Err(RouteError::Digest)),
            ("/v2/a/b/blobs/uploads/".to_owned(), Ok(Route::Uploads { name: name() })),
            (format!("/v2/a/b/blobs/uploads/{id}"), Ok(Route::Upload { name: name(), id })),
            ("/v2/a/b/blobs/uploads/1".to_owned(), Err(RouteError::Upload)),
            ("/v2/A/manifests/v1".to_owned(), Err(RouteError::Name)),
            ("/v2//manifests/v1".to_owned(), Err(RouteError::Name)),
            ("/v2/../manifests/v1".to_owned(), Err(RouteError::Name)),
        ] {
            assert_eq!(Route::of(&path), expected, "{path}");
        }
    }

    #[test]
    fn query_fields_are_decoded() {
        assert_eq!(query_field("a=1&digest=sha256%3Aff", "digest").as_deref(), Some("sha256:ff"));
        assert_eq!(query_field("adigest=1", "digest"), None);
    }
}
