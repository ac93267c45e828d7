//! Requests to one server that a source names, and to the hosts that it leads to.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use chandler_core::{causes, descriptors_exhausted};
use chandler_proxies::{Proxies, ProxyError};
use reqwest::{
    Client, Method, Proxy, RequestBuilder, Response, StatusCode, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER},
    redirect,
};

use super::{
    ServerFailure,
    addresses::{Forbidden, Guard, NoAddress, NotResolved, Reach, embedded, reach},
    pace::Pace,
    tls::{self, SystemRoots, Trust},
    trust,
};
use crate::{AccessError, ImageOptions};

/// The most redirects: more than servers need to redirect to their storage.
const REDIRECTS: usize = 5;

/// A client for one server.
#[derive(Clone)]
pub(crate) struct Connection {
    http: Client,
    /// Scheme, host and port of the server: the only origin that gets credentials.
    home: Url,
    /// The server as the source writes it.
    name: String,
    guard: Guard,
    options: Arc<ImageOptions>,
}

/// A request failed. The text is the same at each attempt: it has no local ports, times or signed URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionError {
    pub(crate) failure: ServerFailure,
    pub(crate) message: String,
    /// Whether the server answered the first message of a TLS handshake with something else than TLS.
    pub(crate) speaks_no_tls: bool,
}

impl ConnectionError {
    pub(crate) fn new(failure: ServerFailure, message: impl Into<String>) -> Self {
        Self { failure, message: message.into(), speaks_no_tls: false }
    }

    fn protocol(message: String) -> Self {
        Self::new(ServerFailure::Protocol, message)
    }
}

impl Connection {
    /// A client for the origin of `home`, without TLS if its scheme is `http`. Messages call the server `name`.
    pub(crate) fn new(
        home: Url,
        name: &str,
        trust: Trust<'_>,
        options: &Arc<ImageOptions>,
        system: &SystemRoots,
    ) -> Result<Self, AccessError> {
        let guard = Guard::new(&home);
        let builder = Client::builder()
            .tls_backend_preconfigured(tls::config(trust, &options.tls, system)?)
            // Redirects are followed here, where it is known which credentials are sent.
            .redirect(redirect::Policy::none())
            .dns_resolver(guard.clone())
            .connect_timeout(options.connect_timeout)
            .read_timeout(options.idle_timeout)
            .user_agent(concat!("chandler/", env!("CARGO_PKG_VERSION")))
            // Digests are over the bytes as they are sent.
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd()
            .referer(false);
        // Each host is connected to as its own name and port demand: a redirect and a token server may have another way.
        let proxies = options.proxies.clone();
        let proxy = Proxy::custom(move |url| Some(proxy_of(&proxies, url).ok()??.secret_url()));
        let http = builder.proxy(proxy).build().map_err(|error| AccessError::Connection(innermost(&error)))?;
        Ok(Self { http, home, name: name.to_owned(), guard, options: Arc::clone(options) })
    }

    /// This connection without TLS, to the same port. `None` if the scheme of the server cannot be replaced.
    pub(crate) fn without_tls(&self) -> Option<Self> {
        let mut plain = self.clone();
        // The port is kept: the default of the other scheme is another server.
        let port = plain.home.port_or_known_default();
        plain.home.set_scheme("http").ok()?;
        plain.home.set_port(port).ok()?;
        Some(plain)
    }

    /// Scheme, host and port of the server.
    pub(crate) fn home(&self) -> &Url {
        &self.home
    }

    /// Whether the server is accessed without TLS.
    pub(crate) fn is_plain(&self) -> bool {
        self.home.scheme() == "http"
    }

    pub(crate) fn is_home(&self, url: &Url) -> bool {
        url.origin() == self.home.origin()
    }

    /// A request without credentials, for [`one`](Self::one).
    pub(crate) fn request(&self, method: Method, url: &Url) -> RequestBuilder {
        self.http.request(method, url.clone())
    }

    /// Sends a request and follows redirects. The authorization is for the server only: it is neither sent to another origin,
    /// nor sent again after a redirect back from one.
    pub(crate) async fn send(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, ConnectionError> {
        let (mut url, mut authorization) = (url.clone(), authorization);
        for _ in 0..=REDIRECTS {
            authorization = authorization.filter(|_| self.is_home(&url));
            let mut request = self.request(method.clone(), &url).headers(headers.clone());
            if let Some(authorization) = authorization {
                request = request.header(AUTHORIZATION, authorization);
            }
            let response = self.one(&url, request).await?;
            let Some(next) = self.redirect(&response)? else { return Ok(response) };
            url = next;
        }
        Err(ConnectionError::protocol(format!("{} redirects too often", self.name)))
    }

    /// Finds out how near the server is, before a host that it named is asked. Behind a proxy, which resolves the name, that stays unknown: then the
    /// host must be public.
    pub(crate) async fn locate(&self) -> Result<(), ConnectionError> {
        if !matches!(proxy_of(&self.options.proxies, &self.home), Ok(None)) {
            return Ok(());
        }
        match self.guard.addresses().await {
            Ok(_) => Ok(()),
            Err(NoAddress::Forbidden(forbidden)) => Err(self.forbidden(&self.home, forbidden)),
            Err(NoAddress::NotResolved(error)) => {
                let message = format!("the host name of {} is not in DNS: {error}", self.name);
                Err(ConnectionError::new(ServerFailure::NameNotResolved, message))
            }
        }
    }

    /// Sends one request, to an allowed host.
    pub(crate) async fn one(&self, url: &Url, request: RequestBuilder) -> Result<Response, ConnectionError> {
        // Whether the server itself may be asked depends on the image, and is decided.
        let scope = if self.is_home(url) { None } else { self.options.registries.blocked_host(&names(url)) };
        if let Some(scope) = scope {
            return Err(self.blocked(url, &scope));
        }
        self.guard.admit(url).map_err(|forbidden| self.forbidden(url, forbidden))?;
        if let Err(error) = proxy_of(&self.options.proxies, url) {
            let message = format!("{} is not connected to: {error}", self.host(url));
            return Err(ConnectionError::new(ServerFailure::Network, message));
        }
        request.send().await.map_err(|error| self.network(url, &error))
    }

    /// The target of a redirect.
    fn redirect(&self, response: &Response) -> Result<Option<Url>, ConnectionError> {
        let followed = [301, 302, 303, 307, 308].contains(&response.status().as_u16());
        if followed { self.location(response) } else { Ok(None) }
    }

    /// Where a response leads to, if it leads anywhere: never from TLS to plain text, nor to another protocol.
    pub(crate) fn location(&self, response: &Response) -> Result<Option<Url>, ConnectionError> {
        let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
        let astray = || ConnectionError::protocol(format!("{} redirects to where it may not", self.name));
        let mut target = location.to_str().ok().and_then(|text| response.url().join(text).ok()).ok_or_else(astray)?;
        let allowed = target.scheme() == "https" || (self.is_plain() && target.scheme() == "http");
        if !allowed || !target.has_host() {
            return Err(astray());
        }
        // A name and a password in the URL would be sent, although no user of this controller gave them.
        let _ = target.set_username("");
        let _ = target.set_password(None);
        Ok(Some(target))
    }

    /// Whether the content of an error page may be shown: a response of a host in this network, to which the server led, must not
    /// reach the status.
    pub(crate) fn may_be_shown(&self, response: &Response) -> bool {
        // Behind a proxy, the address is the proxy's.
        let is_direct = matches!(proxy_of(&self.options.proxies, response.url()), Ok(None));
        self.is_home(response.url())
            || is_direct && response.remote_addr().is_some_and(|address| reach(address.ip()) == Reach::Public)
    }

    /// The whole body, or `None` if it is larger than `limit`.
    pub(crate) async fn read(&self, mut response: Response, limit: u64) -> Result<Option<Vec<u8>>, ConnectionError> {
        let mut body = Vec::new();
        let mut pace = self.pace();
        while let Some(chunk) = self.chunk(&mut response, &mut pace).await? {
            if (body.len() as u64).saturating_add(chunk.len() as u64) > limit {
                return Ok(None);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Some(body))
    }

    /// The minimum rate of a body.
    pub(crate) fn pace(&self) -> Pace {
        Pace::new(self.options.minimum_rate, self.options.rate_window)
    }

    /// The next piece of a body.
    pub(crate) async fn chunk(
        &self,
        response: &mut Response,
        pace: &mut Pace,
    ) -> Result<Option<Bytes>, ConnectionError> {
        let since = Instant::now();
        let chunk = response.chunk().await.map_err(|error| self.network(response.url(), &error))?;
        let bytes = chunk.as_ref().map_or(0, Bytes::len);
        if chunk.is_some() && !pace.note(since.elapsed(), bytes) {
            let message = format!("{} sent less than {} bytes a second", self.name, self.options.minimum_rate);
            return Err(ConnectionError::new(ServerFailure::TooSlow, message));
        }
        Ok(chunk)
    }

    fn network(&self, url: &Url, error: &reqwest::Error) -> ConnectionError {
        if let Some(forbidden) = causes(error).find_map(|cause| cause.downcast_ref::<Forbidden>()) {
            return self.forbidden(url, *forbidden);
        }
        let host = self.host(url);
        if let Some(error) = no_descriptor(&host, error) {
            return error;
        }
        let cause = innermost(error);
        if error.is_timeout() {
            return ConnectionError::new(ServerFailure::Network, format!("{host} did not answer in time"));
        }
        if let Some(problem) = trust::problem(error) {
            let message = format!("the connection to {host} is not trusted: {problem}");
            let speaks_no_tls = error.is_connect() && trust::speaks_no_tls(error);
            return ConnectionError { speaks_no_tls, ..ConnectionError::new(ServerFailure::Tls, message) };
        }
        if causes(error).any(<dyn std::error::Error>::is::<NotResolved>) {
            let message = format!("the host name of {host} is not in DNS: {cause}");
            return ConnectionError::new(ServerFailure::NameNotResolved, message);
        }
        let what = if error.is_connect() { "cannot be reached" } else { "broke the connection" };
        let how = match proxy_of(&self.options.proxies, url) {
            // Without its address, which is an administrator's concern: this text may be in a status.
            Ok(Some(proxy)) => format!(" through the proxy of {}", proxy.setting()),
            _ if self.is_plain() => " (asked without TLS)".to_owned(),
            _ => String::new(),
        };
        let cause = chandler_proxies::refusal(&cause).unwrap_or(&cause);
        ConnectionError::new(ServerFailure::Network, format!("{host} {what}{how}: {cause}"))
    }

    /// A host, as messages call it.
    fn host(&self, url: &Url) -> String {
        if self.is_home(url) { self.name.clone() } else { authority(url) }
    }

    fn blocked(&self, url: &Url, scope: &str) -> ConnectionError {
        let message = format!(
            "{} leads to {}, which is not contacted: {scope} is blocked by the settings for registries (`blocked`, or \
             `NeverContactSource`)",
            self.name,
            authority(url)
        );
        ConnectionError::new(ServerFailure::Blocked, message)
    }

    fn forbidden(&self, url: &Url, forbidden: Forbidden) -> ConnectionError {
        let (name, host) = (&self.name, authority(url));
        let message = if self.is_home(url) {
            format!("{name} is not connected to: {forbidden}")
        } else {
            format!("{name} leads to {host}, which is not connected to: {forbidden}")
        };
        ConnectionError::new(ServerFailure::Address, message)
    }
}

/// The proxy for a URL; `None` if the connection is direct.
fn proxy_of<'a>(proxies: &'a Proxies, url: &Url) -> Result<Option<&'a chandler_proxies::Proxy>, ProxyError> {
    proxies.select(url.scheme(), url.host_str().unwrap_or_default(), url.port())
}

/// The failure to connect to a server, if the cause is that no file descriptor is left.
pub(super) fn no_descriptor(name: &str, error: &(dyn std::error::Error + 'static)) -> Option<ConnectionError> {
    let exhausted = descriptors_exhausted(error)?;
    Some(ConnectionError::new(ServerFailure::NoDescriptor, format!("{name} is not connected to: {exhausted}")))
}

/// The kind of failure that an unsuccessful status means.
pub(crate) fn failure_of(status: StatusCode) -> ServerFailure {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ServerFailure::Unauthorized,
        StatusCode::NOT_FOUND => ServerFailure::NotFound,
        StatusCode::TOO_MANY_REQUESTS => ServerFailure::RateLimited,
        StatusCode::REQUEST_TIMEOUT => ServerFailure::Unavailable,
        status if status.is_server_error() => ServerFailure::Unavailable,
        _ => ServerFailure::Protocol,
    }
}

/// How long a server asks clients to wait, at most an hour.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    seconds.map(|seconds: u64| Duration::from_secs(seconds.min(3600)))
}

/// The last cause of an error. Earlier causes may contain URLs.
fn innermost(error: &reqwest::Error) -> String {
    let cause = causes(error).skip(1).last().map(|cause| without_code(&cause.to_string()).to_owned());
    cause.unwrap_or_else(|| "no cause is known".to_owned()).chars().take(300).collect()
}

/// A message of the operating system without ` (os error 111)`, which says the same again.
pub(super) fn without_code(message: &str) -> &str {
    message.split_once(" (os error ").map_or(message, |(words, _)| words)
}

/// Host and port of a URL, as an image reference writes them.
pub(crate) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The names that settings for registries can have for the host of a URL.
fn names(url: &Url) -> Vec<String> {
    // A dot at the end is of no importance. A URL has an address of IPv4 in its usual form, unless it is within one of IPv6.
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<Ipv6Addr>().ok();
    let host = literal.and_then(embedded).map_or_else(|| host.to_owned(), |address| address.to_string());
    let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
    let without = url.port().is_none().then_some(host);
    with_port.into_iter().chain(without).collect()
}

/// Whether a host is this machine, by its name.
pub(crate) fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a URL is on this machine, so that no other host can read the traffic. [`Guard`] ensures that the name `localhost`
/// resolves to nothing else.
pub(crate) fn is_here(url: &Url) -> bool {
    url.host_str().is_some_and(|host| is_loopback(host.trim_start_matches('[').trim_end_matches(']')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_a_url_has_the_names_of_settings() {
        for (url, expected) in [
            ("https://QUAY.io/v2", &["quay.io:443", "quay.io"][..]),
            ("https://quay.io.:443/v2", &["quay.io:443", "quay.io"]),
            ("https://quay.io:5000", &["quay.io:5000"]),
            ("http://registry.lan", &["registry.lan:80", "registry.lan"]),
            ("http://registry.lan:443", &["registry.lan:443"]),
            ("http://0x7f.1:05001", &["127.0.0.1:5001"]),
            ("http://[::ffff:127.0.0.1]:5001", &["127.0.0.1:5001"]),
            ("http://[64:ff9b::10.0.0.1]:5001", &["10.0.0.1:5001"]),
            ("http://[::1]:5001", &["[::1]:5001"]),
        ] {
            assert_eq!(names(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn names_that_a_public_server_leads_to_are_checked_where_they_are_resolved() {
        let home = Url::parse("https://registry.example/v2/").unwrap();
        let trust = Trust { certificate_authority: None, insecure_skip_tls_verify: false, host: None };
        let options = Arc::new(ImageOptions::default());
        let connection = Connection::new(home, "registry.example", trust, &options, &SystemRoots::default()).unwrap();
        let url = Url::parse("https://localhost:1/x").unwrap();
        let error = connection.one(&url, connection.request(Method::GET, &url)).await.unwrap_err();
        let expected = "registry.example leads to localhost:1, which is not connected to: its address is nearer to this machine \
                        than the address of the server that leads to it";
        assert_eq!((error.failure.reason(), error.message.as_str()), ("AddressNotAllowed", expected));
    }
}
