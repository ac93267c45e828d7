//! The part of the OCI distribution protocol that pulls.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use reqwest::{
    Method, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER},
    redirect,
};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::{
    AccessError, Credentials, ImageAccess, ImageOptions, ImageReference, RegistryError, RegistryFailure,
    addresses::{Forbidden, Guard, NotResolved, Reach, reach},
    challenge::{Challenge, encode, token_fields},
    pace::Pace,
    silent::Silent,
    tls::{self, SystemRoots},
    trust,
};
use crate::{ContentError, causes::causes};

/// The most bytes that are read of an error page or of the response of a token server.
const PAGE_BYTES: u64 = 256 << 10;
/// The most redirects: more than registries need to redirect to their storage.
const REDIRECTS: usize = 5;

/// A client for one repository of a registry.
pub(super) struct Client {
    http: reqwest::Client,
    image: ImageReference,
    /// Scheme, host and port of the registry: the only origin that gets credentials.
    home: Url,
    guard: Guard,
    credentials: Option<Credentials>,
    plain: bool,
    options: Arc<ImageOptions>,
    silent: Arc<Silent>,
    /// The last challenge of the registry.
    authorization: Mutex<Option<HeaderValue>>,
}

impl Client {
    pub(super) fn new(
        image: &ImageReference,
        access: &ImageAccess,
        options: &Arc<ImageOptions>,
        system: &SystemRoots,
        silent: &Arc<Silent>,
    ) -> Result<Self, ContentError> {
        // Certificates only make sense with TLS: a spec that gives some wants it, on loopback as well.
        let plain = access.certificate_authority.is_none()
            && !access.insecure_skip_tls_verify
            && may_be_plain(image.registry(), &options.plain_http_registries);
        let scheme = if plain { "http" } else { "https" };
        let home = Url::parse(&format!("{scheme}://{}/v2/", image.registry())).map_err(|_| {
            AccessError::Connection(format!("the registry {:?} is not the name of a host", image.registry()))
        })?;
        let guard = Guard::new(&home);
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config(access, system)?)
            // This client follows redirects itself, since it knows which credentials it sends.
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
        if plain {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| AccessError::Connection(innermost(&error)))?;
        Ok(Self {
            http,
            image: image.clone(),
            home,
            guard,
            credentials: access.credentials.clone(),
            plain,
            options: Arc::clone(options),
            silent: Arc::clone(silent),
            authorization: Mutex::new(None),
        })
    }

    /// Requests a path of the repository, such as `manifests/v1`.
    pub(super) async fn request(
        &self,
        method: Method,
        what: &str,
        accept: Option<&'static str>,
    ) -> Result<Response, RegistryError> {
        let asked = self.ask(method, what, accept).await;
        if asked.as_ref().map_or_else(|error| error.failure.is_refusal(), |_| true) {
            self.silent.answered(self.image.registry_name());
        }
        match (asked, what.strip_prefix("manifests/")) {
            (Err(error), Some(manifest)) if error.failure == RegistryFailure::NotFound => {
                Err(self.missing(manifest, error).await)
            }
            (asked, _) => asked,
        }
    }

    /// The error for a manifest that the registry does not have. A second request shows whether it has the repository.
    async fn missing(&self, manifest: &str, answer: RegistryError) -> RegistryError {
        let (host, repository) = (self.image.registry(), self.image.repository());
        let what = if manifest.contains(':') { "manifest" } else { "tag" };
        let message = match self.ask(Method::GET, "tags/list?n=1", None).await {
            Ok(_) => format!("repository {repository} of {host} has no {what} {manifest}"),
            Err(error) if error.failure == RegistryFailure::NotFound => {
                format!("{host} has no repository {repository}")
            }
            // It does not list tags, or not to these credentials.
            Err(_) => format!("{host} has no repository {repository}, or the repository has no {what} {manifest}"),
        };
        RegistryError { message, ..answer }
    }

    async fn ask(&self, method: Method, what: &str, accept: Option<&'static str>) -> Result<Response, RegistryError> {
        let path = format!("{}/{what}", self.image.repository());
        let url = self.home.join(&path).map_err(|_| self.protocol("its name does not fit into a URL"))?;
        let before = self.authorization.lock().await.clone();
        let response = self.send(&method, &url, accept, before.as_ref()).await?;
        // Whom the registry leads to gets no credentials, and is not asked again.
        if response.status() != StatusCode::UNAUTHORIZED || !self.is_home(response.url()) {
            return self.checked(response).await;
        }
        let Some(authorization) = self.authorize(response.headers()).await? else {
            return self.checked(response).await;
        };
        let response = self.send(&method, &url, accept, Some(&authorization)).await?;
        *self.authorization.lock().await = Some(authorization);
        self.checked(response).await
    }

    fn is_home(&self, url: &Url) -> bool {
        url.origin() == self.home.origin()
    }

    /// Sends a request and follows redirects. The authorization is for the registry only: it is neither sent to another origin,
    /// nor sent again after a redirect back from one.
    async fn send(
        &self,
        method: &Method,
        url: &Url,
        accept: Option<&'static str>,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, RegistryError> {
        let (mut url, mut authorization) = (url.clone(), authorization);
        for _ in 0..=REDIRECTS {
            authorization = authorization.filter(|_| self.is_home(&url));
            let mut request = self.http.request(method.clone(), url.clone());
            if let Some(accept) = accept {
                request = request.header(ACCEPT, accept);
            }
            if let Some(authorization) = authorization {
                request = request.header(AUTHORIZATION, authorization);
            }
            let response = self.one(&url, request).await?;
            let Some(next) = self.redirect(&response)? else { return Ok(response) };
            url = next;
        }
        Err(self.protocol(&format!("{} redirects too often", self.image.registry())))
    }

    /// Sends one request, to an allowed host.
    async fn one(&self, url: &Url, request: RequestBuilder) -> Result<Response, RegistryError> {
        self.guard.admit(url).map_err(|forbidden| self.forbidden(url, forbidden))?;
        request.send().await.map_err(|error| self.network(url, &error))
    }

    /// The target of a redirect, which never leads from TLS to plain text.
    fn redirect(&self, response: &Response) -> Result<Option<Url>, RegistryError> {
        let followed = [301, 302, 303, 307, 308].contains(&response.status().as_u16());
        let Some(location) = response.headers().get(LOCATION).filter(|_| followed) else { return Ok(None) };
        let astray = || self.protocol(&format!("{} redirects to where it may not", self.image.registry()));
        let mut target = location.to_str().ok().and_then(|text| response.url().join(text).ok()).ok_or_else(astray)?;
        let allowed = target.scheme() == "https" || (self.plain && target.scheme() == "http");
        if !allowed || !target.has_host() {
            return Err(astray());
        }
        // A name and a password in the URL would be sent, although no user of this controller gave them.
        let _ = target.set_username("");
        let _ = target.set_password(None);
        Ok(Some(target))
    }

    /// The header that answers a challenge; none without credentials.
    async fn authorize(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, RegistryError> {
        let challenge = Challenge::of(headers);
        if challenge.is_some() && self.credentials.is_some() && self.plain && !is_here(&self.home) {
            return Err(self.plaintext());
        }
        match (challenge, &self.credentials) {
            (None, _) | (Some(Challenge::Basic), None | Some(Credentials::IdentityToken(_))) => Ok(None),
            (Some(_), Some(Credentials::RegistryToken(token))) => Ok(Some(self.header("Bearer", token)?)),
            (Some(Challenge::Basic), Some(Credentials::Basic { username, password })) => {
                Ok(Some(self.header("Basic", &STANDARD.encode(format!("{username}:{password}")))?))
            }
            (Some(Challenge::Bearer { realm, service }), credentials) => {
                let token = self.token(&realm, service.as_deref(), credentials.as_ref()).await?;
                Ok(Some(self.header("Bearer", &token)?))
            }
        }
    }

    /// Gets a token as the distribution project's `spec/auth/token.md` and `oauth.md` describe.
    async fn token(
        &self,
        realm: &str,
        service: Option<&str>,
        credentials: Option<&Credentials>,
    ) -> Result<String, RegistryError> {
        let mut url = Url::parse(realm).map_err(|_| self.protocol("its token server's address is not a URL"))?;
        let trusted = match url.scheme() {
            "https" => true,
            "http" if credentials.is_some() => self.plain && is_here(&url),
            "http" => self.plain && may_be_plain(&authority(&url), &self.options.plain_http_registries),
            _ => false,
        };
        if !trusted {
            return Err(self.protocol("its token server would get the credentials without TLS"));
        }
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let mut fields = token_fields(service, self.image.repository());
        let request = match credentials {
            Some(Credentials::IdentityToken(token)) => {
                fields.push(("grant_type", "refresh_token".to_owned()));
                fields.push(("client_id", "chandler".to_owned()));
                fields.push(("refresh_token", token.clone()));
                let form = self.http.post(url.clone()).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
                form.body(encode(&fields))
            }
            credentials => {
                url.query_pairs_mut().extend_pairs(&fields);
                let request = self.http.get(url.clone());
                match credentials {
                    Some(Credentials::Basic { username, password }) => request.basic_auth(username, Some(password)),
                    _ => request,
                }
            }
        };
        let response = self.one(&url, request).await?;
        // The request holds credentials, which go to no other server. No token server needs a redirect within itself.
        if response.status().is_redirection() {
            return Err(self.protocol("its token server redirects, and credentials follow no redirect"));
        }
        let response = self.checked(response).await?;
        let page = self.read(response, PAGE_BYTES).await?;
        let page = page.ok_or_else(|| self.protocol("its token server's answer is too long"))?;
        let token: Token = serde_json::from_slice(&page)
            .map_err(|_| self.protocol("its token server's answer is not a token in JSON"))?;
        let token = token.token.or(token.access_token).filter(|token| !token.is_empty());
        token.ok_or_else(|| self.protocol("its token server's answer has no token"))
    }

    fn header(&self, scheme: &str, value: &str) -> Result<HeaderValue, RegistryError> {
        let header = HeaderValue::from_str(&format!("{scheme} {value}"));
        let mut header = header.map_err(|_| self.protocol("the credentials cannot be sent in a header"))?;
        header.set_sensitive(true);
        Ok(header)
    }

    /// The response, if it is successful.
    async fn checked(&self, response: Response) -> Result<Response, RegistryError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let failure = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => RegistryFailure::Unauthorized,
            StatusCode::NOT_FOUND => RegistryFailure::NotFound,
            StatusCode::TOO_MANY_REQUESTS => RegistryFailure::RateLimited,
            StatusCode::REQUEST_TIMEOUT => RegistryFailure::Unavailable,
            status if status.is_server_error() => RegistryFailure::Unavailable,
            _ => RegistryFailure::Protocol,
        };
        let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let retry_after = seconds.map(|seconds: u64| Duration::from_secs(seconds.min(3600)));
        let host = authority(response.url());
        // A response of a host in this network, to which the registry led, must not reach the status.
        let may_be_shown = self.is_home(response.url())
            || response.remote_addr().is_some_and(|address| reach(address.ip()) == Reach::Public);
        let page = match self.read(response, PAGE_BYTES).await {
            Ok(Some(page)) if may_be_shown => page,
            _ => Vec::new(),
        };
        let detail = self.explanation(&page).map(|text| format!(": {text}")).unwrap_or_default();
        let answer = format!("{host} answered {status}{detail}");
        let message = match failure {
            RegistryFailure::Unauthorized => {
                format!("access to repository {} is denied: {answer}", self.image.repository())
            }
            _ => answer,
        };
        Err(RegistryError { retry_after, ..self.error(failure, message) })
    }

    /// The error message of the registry, if it has the specified form and repeats no secret.
    fn explanation(&self, page: &[u8]) -> Option<String> {
        let errors: Errors = serde_json::from_slice(page).ok()?;
        let first = errors.errors.into_iter().next()?;
        let text = match first.message {
            Some(message) if !message.is_empty() => message,
            _ => first.code,
        };
        let secret = match &self.credentials {
            Some(Credentials::Basic { password, .. }) => password.as_str(),
            Some(Credentials::IdentityToken(token) | Credentials::RegistryToken(token)) => token.as_str(),
            None => "",
        };
        if !secret.is_empty() && text.contains(secret) {
            return None;
        }
        let text: String = chandler_core::text::one_line(&text).chars().take(200).collect();
        (!text.is_empty()).then_some(text)
    }

    /// The whole body, or none if it is larger than `limit`.
    pub(super) async fn read(&self, mut response: Response, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
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
    pub(super) fn pace(&self) -> Pace {
        Pace::new(self.options.minimum_rate, self.options.rate_window)
    }

    /// The next piece of a body.
    pub(super) async fn chunk(&self, response: &mut Response, pace: &mut Pace) -> Result<Option<Bytes>, RegistryError> {
        let since = Instant::now();
        let chunk = response.chunk().await.map_err(|error| self.network(response.url(), &error))?;
        let bytes = chunk.as_ref().map_or(0, Bytes::len);
        if chunk.is_some() && !pace.note(since.elapsed(), bytes) {
            let (rate, host) = (self.options.minimum_rate, self.image.registry());
            let message = format!("{host} sent less than {rate} bytes a second");
            return Err(self.error(RegistryFailure::TooSlow, message));
        }
        Ok(chunk)
    }

    fn network(&self, url: &Url, error: &reqwest::Error) -> RegistryError {
        if let Some(forbidden) = causes(error).find_map(|cause| cause.downcast_ref::<Forbidden>()) {
            return self.forbidden(url, *forbidden);
        }
        let host = if self.is_home(url) { self.image.registry().to_owned() } else { authority(url) };
        let cause = innermost(error);
        if error.is_timeout() {
            return self.error(RegistryFailure::Network, format!("{host} did not answer in time"));
        }
        if let Some(problem) = trust::problem(error) {
            return self.error(RegistryFailure::Tls, format!("the connection to {host} is not trusted: {problem}"));
        }
        if causes(error).any(<dyn std::error::Error>::is::<NotResolved>) {
            return self
                .error(RegistryFailure::NameNotResolved, format!("the host name of {host} is not in DNS: {cause}"));
        }
        let what = if error.is_connect() { "cannot be reached" } else { "broke the connection" };
        let how = if self.plain { " (asked without TLS)" } else { "" };
        self.error(RegistryFailure::Network, format!("{host} {what}{how}: {cause}"))
    }

    fn forbidden(&self, url: &Url, forbidden: Forbidden) -> RegistryError {
        let (registry, host) = (self.image.registry(), authority(url));
        let message = if self.is_home(url) {
            format!("{registry} is not connected to: {forbidden}")
        } else {
            format!("{registry} leads to {host}, which is not connected to: {forbidden}")
        };
        self.error(RegistryFailure::Address, message)
    }

    fn plaintext(&self) -> RegistryError {
        let host = self.image.registry();
        let message = format!(
            "{host} wants credentials and is asked without TLS, where others could read them; have it serve TLS, name its \
             certificate authority in the source (certificateData) and take it off --plain-http-registry"
        );
        self.error(RegistryFailure::Plaintext, message)
    }

    pub(super) fn protocol(&self, message: &str) -> RegistryError {
        self.error(RegistryFailure::Protocol, message.to_owned())
    }

    fn error(&self, failure: RegistryFailure, message: String) -> RegistryError {
        self.silent.failed(self.image.registry_name(), failure);
        RegistryError { image: self.image.to_string(), failure, message, retry_after: None }
    }
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct Errors {
    errors: Vec<RegistryMessage>,
}

#[derive(Deserialize)]
struct RegistryMessage {
    code: String,
    message: Option<String>,
}

/// The last cause of an error. Earlier causes may contain URLs.
fn innermost(error: &reqwest::Error) -> String {
    let cause = causes(error).skip(1).last().map(|cause| without_code(&cause.to_string()).to_owned());
    cause.unwrap_or_else(|| "no cause is known".to_owned()).chars().take(300).collect()
}

/// A message of the operating system without ` (os error 111)`, which says the same again.
fn without_code(message: &str) -> &str {
    message.split_once(" (os error ").map_or(message, |(words, _)| words)
}

/// Host and port of a URL, as an image reference writes them.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether a registry may be accessed without TLS: on this machine, as container tools do, or if the options allow it.
fn may_be_plain(registry: &str, listed: &[String]) -> bool {
    if listed.iter().any(|name| name == registry) {
        return true;
    }
    let host = match registry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => registry.rsplit_once(':').map_or(registry, |(host, _)| host),
    };
    is_loopback(host)
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a URL is on this machine, so that no other host can read the traffic. [`Guard`] ensures that the name `localhost`
/// resolves to nothing else.
fn is_here(url: &Url) -> bool {
    url.host_str().is_some_and(|host| is_loopback(host.trim_start_matches('[').trim_end_matches(']')))
}

#[cfg(test)]
mod tests;
