//! The URL of a proxy, whose credentials no message shows.

use std::fmt;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

/// How a proxy is written.
const FORM: &str = "write http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT";

/// A proxy. Its texts do not have its credentials.
#[derive(Clone)]
pub struct Proxy {
    /// Where it is set, for messages.
    setting: String,
    /// Without credentials, and with a port.
    address: Uri,
    intercept: Intercept,
    /// As in the setting: percent-encoded, with the `@`.
    credentials: String,
}

/// A setting is not a proxy. Holds nothing of the setting's value, which may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// The value is not a URL.
    #[error(
        "{setting} is not a valid proxy URL; {FORM}, with the user as USER:PASSWORD@HOST and special characters of the password \
             percent-encoded"
    )]
    Url {
        /// Where it is set.
        setting: String,
    },
    /// The protocol is not supported.
    #[error("{setting} names a proxy of a kind that is not supported; {FORM}")]
    Scheme {
        /// Where it is set.
        setting: String,
    },
}

impl Proxy {
    /// Parses a URL, or `HOST:PORT`, as a setting has it. Messages call the setting by the given name.
    ///
    /// # Errors
    /// The text is not the URL of a proxy.
    pub fn parse(text: &str, setting: &str) -> Result<Self, ProxyError> {
        let (text, setting) = (text.trim(), setting.to_owned());
        let scheme = text.split_once("://").map_or("http", |(scheme, _)| scheme);
        let (scheme, usual) = match scheme.to_ascii_lowercase().as_str() {
            "http" => ("http", 80),
            "https" => ("https", 443),
            // A name is resolved by the proxy in both cases, as in Go: a network with a proxy often has no DNS for other names.
            "socks5" | "socks5h" => ("socks5h", 1080),
            _ => return Err(ProxyError::Scheme { setting }),
        };
        let parsed = Matcher::builder().all(text).build().intercept(&Uri::from_static("https://server.invalid"));
        let Some((intercept, (credentials, address))) = parsed.zip(parts(text, scheme, usual)) else {
            return Err(ProxyError::Url { setting });
        };
        Ok(Self { setting, address, intercept, credentials })
    }

    /// Where the proxy is set: a variable, or the entry of a kubeconfig.
    pub fn setting(&self) -> &str {
        &self.setting
    }

    /// The URL without credentials. It has a port.
    pub fn address(&self) -> &Uri {
        &self.address
    }

    /// The URL with its credentials, for a client. Never for a message.
    pub fn secret_url(&self) -> String {
        let url = self.address.to_string();
        url.split_once("://")
            .map_or_else(String::new, |(scheme, rest)| format!("{scheme}://{}{rest}", self.credentials))
    }

    /// The value of `Proxy-Authorization`.
    pub fn basic_authorization(&self) -> Option<&HeaderValue> {
        self.intercept.basic_auth()
    }

    /// The user and the password for a SOCKS proxy.
    pub fn socks_credentials(&self) -> Option<(&str, &str)> {
        self.intercept.raw_auth()
    }

    /// Whether it is a SOCKS proxy.
    pub fn is_socks(&self) -> bool {
        self.address.scheme_str() == Some("socks5h")
    }

    /// Whether the connection to the proxy itself uses TLS.
    pub fn is_secure(&self) -> bool {
        self.address.scheme_str() == Some("https")
    }
}

/// What an error of the clients for proxies means, by its text: its type is private.
pub fn refusal(text: &str) -> Option<&'static str> {
    Some(match text.strip_prefix("tunnel error: ")? {
        "proxy authorization required" => {
            "the proxy requires credentials (407): write them as http://USER:PASSWORD@HOST:PORT, percent-encoded"
        }
        "unsuccessful" => "the proxy refused to connect to this server",
        "unexpected end of file" => "the proxy closed the connection",
        _ => return None,
    })
}

/// The credentials of a URL with their `@`, and the rest with its port.
fn parts(text: &str, scheme: &str, usual: u16) -> Option<(String, Uri)> {
    let url: Uri = text.parse().ok()?;
    // A password with a slash or a question mark ends the host there.
    if url.path_and_query().is_some_and(|path| path.as_str().contains('@')) {
        return None;
    }
    let authority = url.authority()?;
    let (credentials, server) = match authority.as_str().rsplit_once('@') {
        Some((credentials, server)) => (format!("{credentials}@"), server),
        None => (String::new(), authority.as_str()),
    };
    let host = Some(authority.host()).filter(|host| !host.is_empty())?;
    let port = match server.strip_prefix(host)? {
        "" => usual,
        port => port.strip_prefix(':')?.parse().ok()?,
    };
    Some((credentials, format!("{scheme}://{host}:{port}/").parse().ok()?))
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.address.to_string().trim_end_matches('/'))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.setting)
    }
}
