//! Where an Alert sends notifications, and with which credentials.

use std::{collections::BTreeMap, fmt};

use hmac::{Hmac, Mac as _};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{self, AUTHORIZATION, CONTENT_TYPE},
};
use k8s_openapi::ByteString;
use sha2::Sha256;
use url::{Host, Url};

/// The header with the signature of the body.
pub const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");

/// The longest URL, in bytes.
const URL_BYTES: usize = 2048;
/// The longest token and the longest value of a header, in bytes.
const VALUE_BYTES: usize = 8 << 10;
/// The longest key of signatures, in bytes.
const KEY_BYTES: usize = 4 << 10;
/// The most bytes of certificates.
const CERTIFICATES_BYTES: usize = 256 << 10;
/// The most headers.
const HEADERS: usize = 16;

/// Headers that the controller sets, or that belong to the connection.
const RESERVED: [HeaderName; 11] = [
    CONTENT_TYPE,
    SIGNATURE,
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Where notifications are sent. The debug output has neither the path of the URL nor credentials.
#[derive(Clone)]
pub struct Endpoint {
    url: Url,
    certificates: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
    headers: HeaderMap,
}

/// A URL or a Secret cannot be used. No message repeats what they contain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not a URL.
    #[error("{0} is not a URL such as https://hooks.example.com/path of at most 2048 bytes")]
    Url(Place),
    /// Without TLS, to another machine.
    #[error(
        "{0} is not https: others on the way could read the notifications and the credentials (http is for the controller's own machine)"
    )]
    Plaintext(Place),
    /// A user or a password in the URL.
    #[error("{0} contains a user or a password: use the key token or headers of a Secret")]
    Credentials(Place),
    /// The Secret does not exist.
    #[error("the Secret {0} does not exist in the controller's namespace")]
    NoSecret(String),
    /// The Secret has no such key.
    #[error("the Secret has no key url")]
    NoUrl,
    /// The value of a key cannot be sent.
    #[error("the value of the key {0} of the Secret cannot be used: {1}")]
    Value(&'static str, &'static str),
}

impl EndpointError {
    /// Whether the Secret is the cause, and not the spec.
    pub fn is_of_secret(&self) -> bool {
        match self {
            Self::Url(place) | Self::Plaintext(place) | Self::Credentials(place) => *place == Place::Secret,
            Self::NoSecret(_) | Self::NoUrl | Self::Value(..) => true,
        }
    }
}

/// Where a URL is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the spec.
    Spec,
    /// In the Secret.
    Secret,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spec => "spec.provider.url",
            Self::Secret => "the value of the key url of the Secret",
        })
    }
}

impl Endpoint {
    /// The endpoint of a spec without a Secret.
    pub fn of_url(url: &str) -> Result<Self, EndpointError> {
        let url = parse(url, Place::Spec)?;
        Ok(Self { url, certificates: None, key: None, headers: HeaderMap::new() })
    }

    /// The endpoint of the data of a Secret. Keys that are not known are ignored.
    pub fn of_secret(data: &BTreeMap<String, ByteString>) -> Result<Self, EndpointError> {
        let url = data.get("url").ok_or(EndpointError::NoUrl)?;
        let url = parse(text("url", url)?, Place::Secret)?;
        let mut headers =
            data.get("headers").map_or(Ok(HeaderMap::new()), |lines| parse_headers(text("headers", lines)?))?;
        if let Some(token) = data.get("token") {
            let token = text("token", token)?;
            if token.is_empty() || token.len() > VALUE_BYTES {
                return Err(EndpointError::Value("token", "it has no bytes, or more than 8 KiB"));
            }
            if headers.insert(AUTHORIZATION, sensitive("token", &format!("Bearer {token}"))?).is_some() {
                return Err(EndpointError::Value("headers", "it has Authorization, and so has the key token"));
            }
        }
        let key = data.get("hmacKey").map(|key| key.0.clone());
        if key.as_ref().is_some_and(|key| key.is_empty() || key.len() > KEY_BYTES) {
            return Err(EndpointError::Value("hmacKey", "it has no bytes, or more than 4 KiB"));
        }
        let certificates = data.get("ca.crt").map(|pem| pem.0.clone());
        if certificates.as_ref().is_some_and(|pem| pem.len() > CERTIFICATES_BYTES) {
            return Err(EndpointError::Value("ca.crt", "it has more than 256 KiB"));
        }
        Ok(Self { url, certificates, key, headers })
    }

    /// The URL, which may be a secret.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Certificates in PEM that are trusted in addition to the system's.
    pub fn certificates(&self) -> Option<&[u8]> {
        self.certificates.as_deref()
    }

    /// The headers of a request with this body.
    pub fn headers(&self, content_type: &'static str, body: &[u8]) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        let signature = self.key.as_deref().and_then(|key| signature(key, body));
        if let Some(signature) = signature.and_then(|text| HeaderValue::try_from(text).ok()) {
            headers.insert(SIGNATURE, signature);
        }
        headers
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

/// `sha256=` and the HMAC-SHA256 of a body in hexadecimal. A key has at least one byte.
fn signature(key: &[u8], body: &[u8]) -> Option<String> {
    // HMAC takes keys of any length.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(body);
    Some(format!("sha256={}", hex::encode(mac.finalize().into_bytes())))
}

fn parse(text: &str, place: Place) -> Result<Url, EndpointError> {
    let url = Url::parse(text).ok().filter(|url| text.len() <= URL_BYTES && url.has_host());
    let url = url.ok_or(EndpointError::Url(place))?;
    match url.scheme() {
        "https" => {}
        "http" if is_here(&url) => {}
        "http" => return Err(EndpointError::Plaintext(place)),
        _ => return Err(EndpointError::Url(place)),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EndpointError::Credentials(place));
    }
    Ok(url)
}

/// Whether a URL is on this machine. The connection then ensures that `localhost` resolves to nothing else.
fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// A value as text, without white space around it: a file that became a Secret often ends with a line feed.
fn text<'a>(key: &'static str, value: &'a ByteString) -> Result<&'a str, EndpointError> {
    let text = std::str::from_utf8(&value.0).map_err(|_| EndpointError::Value(key, "it is not text in UTF-8"))?;
    Ok(text.trim())
}

/// Lines such as `X-Team: harbour`.
fn parse_headers(lines: &str) -> Result<HeaderMap, EndpointError> {
    let mut headers = HeaderMap::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let malformed = || EndpointError::Value("headers", "a line is not a name, a colon and a value");
        let (name, value) = line.split_once(':').ok_or_else(malformed)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| malformed())?;
        if RESERVED.contains(&name) || name.as_str().starts_with("proxy-") {
            return Err(EndpointError::Value("headers", "it has a header that the controller or the connection sets"));
        }
        if headers.len() >= HEADERS || value.len() > VALUE_BYTES {
            return Err(EndpointError::Value("headers", "it has more than 16 headers, or a value of more than 8 KiB"));
        }
        if headers.insert(name, sensitive("headers", value.trim())?).is_some() {
            return Err(EndpointError::Value("headers", "it has a header twice"));
        }
    }
    Ok(headers)
}

/// A value that libraries do not show.
fn sensitive(key: &'static str, text: &str) -> Result<HeaderValue, EndpointError> {
    let mut value = HeaderValue::try_from(text)
        .map_err(|_| EndpointError::Value(key, "it has characters that no header may have"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_secret(data: &[(&str, &str)]) -> Result<Endpoint, EndpointError> {
        let value = |value: &str| ByteString(value.as_bytes().to_vec());
        Endpoint::of_secret(&data.iter().map(|(key, text)| ((*key).to_owned(), value(text))).collect())
    }

    const URL: (&str, &str) = ("url", "https://hooks.example.com/s3cret\n");

    #[test]
    fn a_url_has_tls_and_no_credentials() {
        let (url, plain, credentials) = (
            EndpointError::Url(Place::Spec),
            EndpointError::Plaintext(Place::Spec),
            EndpointError::Credentials(Place::Spec),
        );
        for (text, expected) in [
            ("https://hooks.example.com/T0/B0?key=x", None),
            ("https://10.0.0.1:8443", None),
            ("http://127.0.0.1:8080/", None),
            ("http://[::1]:8080/", None),
            ("http://localhost:8080/", None),
            ("http://localhost.example.com/", Some(&plain)),
            ("http://10.0.0.1/", Some(&plain)),
            ("http://0.0.0.0/", Some(&plain)),
            ("https://ann:s3cret@hooks.example.com", Some(&credentials)),
            ("https://s3cret@hooks.example.com", Some(&credentials)),
            ("ftp://hooks.example.com", Some(&url)),
            ("unix:/run/x.sock", Some(&url)),
            ("file:///etc/passwd", Some(&url)),
            ("s3cret", Some(&url)),
            ("", Some(&url)),
        ] {
            let error = Endpoint::of_url(text).err();
            assert_eq!(error.as_ref(), expected, "{text}");
            assert!(!error.map(|error| error.to_string()).unwrap_or_default().contains("s3cret"), "{text}");
        }
        assert!(Endpoint::of_url(&format!("https://hooks.example.com/{}", "a".repeat(2048))).is_err());
    }

    #[test]
    fn a_secret_has_the_credentials_and_no_message_repeats_them() {
        let endpoint = of_secret(&[
            URL,
            ("token", "s3cret\n"),
            ("hmacKey", "key"),
            ("headers", "X-Team: harbour\n\n X-Other : a: b \n"),
        ]);
        let endpoint = endpoint.unwrap();
        assert_eq!(endpoint.url().as_str(), "https://hooks.example.com/s3cret");
        let headers = endpoint.headers("application/json", b"The quick brown fox jumps over the lazy dog");
        let value = |name: &str| headers[name].to_str().unwrap();
        assert_eq!(value("authorization"), "Bearer s3cret");
        // The vector of RFC 2104's article in Wikipedia.
        assert_eq!(value("x-signature"), "sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
        assert_eq!((value("x-team"), value("x-other"), value("content-type")), ("harbour", "a: b", "application/json"));
        let shown = format!("{endpoint:?} {headers:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("harbour"), "{shown}");

        for data in [
            &[("token", "s3cret")][..],
            &[("url", "http://hooks.example.com/s3cret")],
            &[URL, ("token", "s3c\nret")],
            &[URL, ("token", "")],
            &[URL, ("hmacKey", "")],
            &[URL, ("headers", "s3cret")],
            &[URL, ("headers", "Host: s3cret")],
            &[URL, ("headers", "proxy-authorization: s3cret")],
            &[URL, ("headers", "X-Signature: s3cret")],
            &[URL, ("headers", "a: s3cret\nA: s3cret")],
            &[URL, ("token", "a"), ("headers", "authorization: s3cret")],
        ] {
            let error = of_secret(data).unwrap_err();
            assert!(error.is_of_secret() && !error.to_string().contains("s3c"), "{error}");
        }
        let many: Vec<String> = (0..17).map(|number| format!("x-{number}: a")).collect();
        assert!(of_secret(&[URL, ("headers", &many.join("\n"))]).is_err());
    }
}
