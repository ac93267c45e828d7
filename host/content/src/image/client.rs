//! The part of the OCI distribution protocol that pulls.

use std::{net::IpAddr, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use reqwest::{
    Method, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect,
};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::{
    AccessError, Credentials, ImageAccess, ImageOptions, ImageReference,
    challenge::{Challenge, encode, token_fields},
    tls::{self, SystemRoots},
};
use crate::{ContentError, causes::causes};

/// The bytes of an error page, or of a token server's answer, that are read at most.
const PAGE_BYTES: u64 = 256 << 10;
/// More than registries need to get from their address to that of their storage.
const REDIRECTS: usize = 5;

/// A registry could not be asked, or refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("image {image}: {message}")]
pub struct RegistryError {
    /// The image that was asked for.
    pub image: String,
    /// What kind of failure it is.
    pub failure: RegistryFailure,
    /// What happened. The same text at each attempt: no ports of this end, no times, no URLs with signatures.
    pub message: String,
    /// How long the registry wants to be left alone.
    pub retry_after: Option<Duration>,
}

/// What kind of failure a registry error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegistryFailure {
    /// The registry cannot be reached, or the connection broke.
    Network,
    /// The registry's certificate is not trusted.
    Tls,
    /// The registry answered with a 5xx status.
    Unavailable,
    /// The registry answered 429.
    RateLimited,
    /// There is no such image.
    NotFound,
    /// The registry, or its token server, answered 401 or 403. Many do so for images that do not exist.
    Unauthorized,
    /// The answer makes no sense.
    Protocol,
}

impl RegistryFailure {
    /// A word for metrics and events.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Network => "NetworkFailed",
            Self::Tls => "CertificateNotTrusted",
            Self::Unavailable => "RegistryUnavailable",
            Self::RateLimited => "RateLimited",
            Self::NotFound => "ImageNotFound",
            Self::Unauthorized => "Unauthorized",
            Self::Protocol => "RegistryProtocol",
        }
    }
}

/// A registry, asked about one repository.
pub(super) struct Client {
    http: reqwest::Client,
    image: ImageReference,
    credentials: Option<Credentials>,
    plain: bool,
    options: Arc<ImageOptions>,
    /// What the registry wanted to see before.
    authorization: Mutex<Option<HeaderValue>>,
}

impl Client {
    pub(super) fn new(
        image: &ImageReference,
        access: &ImageAccess,
        options: &Arc<ImageOptions>,
        system: &SystemRoots,
    ) -> Result<Self, ContentError> {
        // Certificates only make sense with TLS: who gives some wants it, on loopback as well.
        let plain = access.certificate_authority.is_none()
            && !access.insecure_skip_tls_verify
            && may_be_plain(image.registry(), &options.plain_http_registries);
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config(access, system)?)
            .redirect(redirect::Policy::custom(move |attempt| redirect(attempt, plain)))
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
            credentials: access.credentials.clone(),
            plain,
            options: Arc::clone(options),
            authorization: Mutex::new(None),
        })
    }

    /// Asks for something of the repository, such as `manifests/v1`.
    pub(super) async fn request(
        &self,
        method: Method,
        what: &str,
        accept: Option<&'static str>,
    ) -> Result<Response, RegistryError> {
        let scheme = if self.plain { "http" } else { "https" };
        let url = format!("{scheme}://{}/v2/{}/{what}", self.image.registry(), self.image.repository());
        let url = Url::parse(&url).map_err(|_| self.protocol("its registry is not the name of a host"))?;
        let before = self.authorization.lock().await.clone();
        let response = self.send(&method, &url, accept, before.as_ref()).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return self.checked(response).await;
        }
        let Some(authorization) = self.authorize(response.headers()).await? else {
            return self.checked(response).await;
        };
        let response = self.send(&method, &url, accept, Some(&authorization)).await?;
        *self.authorization.lock().await = Some(authorization);
        self.checked(response).await
    }

    async fn send(
        &self,
        method: &Method,
        url: &Url,
        accept: Option<&'static str>,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, RegistryError> {
        let mut request = self.http.request(method.clone(), url.clone());
        if let Some(accept) = accept {
            request = request.header(ACCEPT, accept);
        }
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.send().await.map_err(|error| self.network(&error))
    }

    /// The header that answers a challenge; none where there is nothing to answer with.
    async fn authorize(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, RegistryError> {
        match (Challenge::of(headers), &self.credentials) {
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
            "http" => self.plain && may_be_plain(&authority(&url), &self.options.plain_http_registries),
            _ => false,
        };
        if !trusted {
            return Err(self.protocol("its token server would get the credentials without TLS"));
        }
        let mut fields = token_fields(service, self.image.repository());
        let request = match credentials {
            Some(Credentials::IdentityToken(token)) => {
                fields.push(("grant_type", "refresh_token".to_owned()));
                fields.push(("client_id", "chandler".to_owned()));
                fields.push(("refresh_token", token.clone()));
                let form = self.http.post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
                form.body(encode(&fields))
            }
            credentials => {
                url.query_pairs_mut().extend_pairs(&fields);
                let request = self.http.get(url);
                match credentials {
                    Some(Credentials::Basic { username, password }) => request.basic_auth(username, Some(password)),
                    _ => request,
                }
            }
        };
        let response = request.send().await.map_err(|error| self.network(&error))?;
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

    /// The response, if it is a good one.
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
        let page = self.read(response, PAGE_BYTES).await.ok().flatten().unwrap_or_default();
        let detail = self.explanation(&page).map(|text| format!(": {text}")).unwrap_or_default();
        Err(RegistryError { retry_after, ..self.error(failure, format!("{host} answered {status}{detail}")) })
    }

    /// The registry's own words, if they are in the form of the specification and repeat no secret.
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

    /// All of a body, or none if it is larger than `limit`.
    pub(super) async fn read(&self, mut response: Response, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(&mut response).await? {
            if (body.len() as u64).saturating_add(chunk.len() as u64) > limit {
                return Ok(None);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Some(body))
    }

    /// The next piece of a body.
    pub(super) async fn chunk(&self, response: &mut Response) -> Result<Option<Bytes>, RegistryError> {
        response.chunk().await.map_err(|error| self.network(&error))
    }

    fn network(&self, error: &reqwest::Error) -> RegistryError {
        let host = self.image.registry();
        if error.is_redirect() {
            return self.protocol(&format!("{host} redirects to where it may not"));
        }
        let cause = innermost(error);
        if error.is_timeout() {
            return self.error(RegistryFailure::Network, format!("{host} did not answer in time"));
        }
        if is_tls(error) {
            return self.error(RegistryFailure::Tls, format!("the connection to {host} is not trusted: {cause}"));
        }
        let what = if error.is_connect() { "cannot be reached" } else { "broke the connection" };
        let how = if self.plain { " (asked without TLS)" } else { "" };
        self.error(RegistryFailure::Network, format!("{host} {what}{how}: {cause}"))
    }

    pub(super) fn protocol(&self, message: &str) -> RegistryError {
        self.error(RegistryFailure::Protocol, message.to_owned())
    }

    fn error(&self, failure: RegistryFailure, message: String) -> RegistryError {
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

/// The last cause of an error. The ones before it may name URLs.
fn innermost(error: &reqwest::Error) -> String {
    let cause = causes(error).skip(1).last().map(ToString::to_string);
    cause.unwrap_or_else(|| "no cause is known".to_owned()).chars().take(300).collect()
}

/// Whether the cause lies in the handshake.
fn is_tls(error: &reqwest::Error) -> bool {
    causes(error).any(<dyn std::error::Error>::is::<rustls::Error>)
}

/// Follows a few redirects, never from TLS to plain text.
fn redirect(attempt: redirect::Attempt<'_>, plain: bool) -> redirect::Action {
    let secure = attempt.url().scheme() == "https" || plain && attempt.url().scheme() == "http";
    if !secure {
        return attempt.error("a redirect from https to something else");
    }
    if attempt.previous().len() > REDIRECTS {
        return attempt.error("too many redirects");
    }
    attempt.follow()
}

/// Host and port of a URL, as an image reference writes them.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether a registry may be asked without TLS: on this machine, as container tools do, or where the options say so.
fn may_be_plain(registry: &str, listed: &[String]) -> bool {
    if listed.iter().any(|name| name == registry) {
        return true;
    }
    let host = match registry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => registry.rsplit_once(':').map_or(registry, |(host, _)| host),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_and_what_is_listed_is_asked_without_tls() {
        let listed = ["registry.lan:5000".to_owned()];
        for (registry, expected) in [
            ("localhost", true),
            ("localhost:5000", true),
            ("127.0.0.1:5000", true),
            ("127.8.9.1", true),
            ("[::1]:5000", true),
            ("registry.lan:5000", true),
            ("registry.lan", false),
            ("localhost.example.com", false),
            ("127.0.0.1.example.com:5000", false),
            ("10.0.0.1:5000", false),
            ("quay.io", false),
        ] {
            assert_eq!(may_be_plain(registry, &listed), expected, "{registry}");
        }
    }
}
