//! Requests of the OCI distribution protocol to one repository: scheme, credentials, tokens and errors.

use std::sync::{Arc, OnceLock};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use chandler_registries::certificates::HostCertificates;
use reqwest::{
    Method, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::{
    AccessError, Credentials, ImageAccess, ImageOptions, ImageReference, RegistryError,
    challenge::{Challenge, encode, token_fields},
    endpoints::Endpoint,
};
use crate::{
    ContentError, ServerFailure,
    transport::{
        Connection, ConnectionError, Pace, Silent, SystemRoots, Trust, authority, failure_of, is_here, is_loopback,
        retry_after,
    },
};

/// The most bytes that are read of an error page or of the response of a token server.
const PAGE_BYTES: u64 = 256 << 10;

/// What the token of a client is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Pull,
    Push,
}

impl Purpose {
    /// The actions in the scope of a token.
    fn actions(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "pull,push",
        }
    }
}

/// A client for one repository of a registry.
///
/// A registry on this machine may lack TLS without being listed: it is asked with TLS, and without it after a handshake has shown that it
/// speaks none. Credentials are then not sent, since no user said that they may be.
pub(super) struct Client {
    connection: Connection,
    /// The connection that is used once it is known that a registry on this machine does not speak TLS.
    fallback: OnceLock<Connection>,
    /// Whether there can be such a connection.
    may_fall_back: bool,
    purpose: Purpose,
    image: ImageReference,
    credentials: Option<Credentials>,
    options: Arc<ImageOptions>,
    silent: Arc<Silent>,
    /// The last challenge of the registry.
    authorization: Mutex<Option<HeaderValue>>,
}

impl Client {
    pub(super) fn new(
        endpoint: &Endpoint,
        purpose: Purpose,
        certificates: Option<&HostCertificates>,
        options: &Arc<ImageOptions>,
        system: &SystemRoots,
        silent: &Arc<Silent>,
    ) -> Result<Self, ContentError> {
        let Endpoint { image, access, plain } = endpoint;
        // Certificates only make sense with TLS: a spec that gives some wants it, on loopback and for a listed registry as well.
        let wants_tls =
            access.certificate_authority.is_some() || certificates.is_some() || access.insecure_skip_tls_verify;
        let plain = *plain || !wants_tls && is_listed(image.registry(), &options.plain_http_registries);
        let may_fall_back = !plain && !wants_tls && is_local(image.registry());
        let scheme = if plain { "http" } else { "https" };
        let home = Url::parse(&format!("{scheme}://{}/v2/", image.registry())).map_err(|_| {
            AccessError::Connection(format!("the registry {:?} is not the name of a host", image.registry()))
        })?;
        let trust = Trust { host: certificates, ..access.trust() };
        let connection = Connection::new(home, image.registry(), trust, options, system);
        Ok(Self {
            connection: connection.map_err(|error| named(error, image, access))?,
            fallback: OnceLock::new(),
            may_fall_back,
            purpose,
            image: image.clone(),
            credentials: access.credentials.clone(),
            options: Arc::clone(options),
            silent: Arc::clone(silent),
            authorization: Mutex::new(None),
        })
    }

    /// The connection to the registry, with or without TLS.
    fn connection(&self) -> &Connection {
        self.fallback.get().unwrap_or(&self.connection)
    }

    /// Requests a path of the repository, such as `manifests/v1`.
    pub(super) async fn request(
        &self,
        method: Method,
        what: &str,
        accept: Option<&'static str>,
    ) -> Result<Response, RegistryError> {
        let asked = self.noted(self.ask(method, what, accept).await);
        match (asked, what.strip_prefix("manifests/")) {
            (Err(error), Some(manifest)) if error.failure == ServerFailure::NotFound => {
                Err(self.missing(manifest, error).await)
            }
            (asked, _) => asked,
        }
    }

    /// The answer to HEAD; `None` where GET has to show what it is. Some registries refuse HEAD, or lead to servers that sign an address for GET
    /// alone, and only the answer to GET has the reason of a refusal.
    pub(super) async fn head(&self, what: &str, accept: &'static str) -> Result<Option<Response>, RegistryError> {
        let answered = async {
            let response = self.answer(Method::HEAD, what, Some(accept)).await?;
            match failure_of(response.status()) {
                _ if response.status().is_success() => Ok(Some(response)),
                ServerFailure::Unavailable | ServerFailure::RateLimited => self.checked(response).await.map(Some),
                _ => Ok(None),
            }
        };
        let answered = answered.await;
        if let Ok(Some(_)) = answered {
            self.silent.answered(self.image.registry_name());
        }
        answered
    }

    /// Requests a path that the repository need not have.
    pub(super) async fn find(&self, what: &str, accept: &'static str) -> Result<Option<Response>, RegistryError> {
        match self.noted(self.ask(Method::GET, what, Some(accept)).await) {
            Ok(response) => Ok(Some(response)),
            Err(error) if error.failure == ServerFailure::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Notes whether the registry answered.
    fn noted(&self, asked: Result<Response, RegistryError>) -> Result<Response, RegistryError> {
        if asked.as_ref().map_or_else(|error| error.failure.is_refusal(), |_| true) {
            self.silent.answered(self.image.registry_name());
        }
        asked
    }

    /// The error for a manifest that the registry does not have. A second request shows whether it has the repository.
    async fn missing(&self, manifest: &str, answer: RegistryError) -> RegistryError {
        let (host, repository) = (self.image.registry(), self.image.repository());
        let what = if manifest.contains(':') { "manifest" } else { "tag" };
        let message = match self.ask(Method::GET, "tags/list?n=1", None).await {
            Ok(_) => format!("repository {repository} of {host} has no {what} {manifest}"),
            Err(error) if error.failure == ServerFailure::NotFound => {
                format!("{host} has no repository {repository}")
            }
            // It does not list tags, or not to these credentials.
            Err(_) => format!("{host} has no repository {repository}, or the repository has no {what} {manifest}"),
        };
        RegistryError { message, ..answer }
    }

    async fn ask(&self, method: Method, what: &str, accept: Option<&'static str>) -> Result<Response, RegistryError> {
        let response = self.answer(method, what, accept).await?;
        self.checked(response).await
    }

    /// What the registry answers, whatever the status.
    async fn answer(
        &self,
        method: Method,
        what: &str,
        accept: Option<&'static str>,
    ) -> Result<Response, RegistryError> {
        let headers = accept.map(|accept| (ACCEPT, HeaderValue::from_static(accept))).into_iter().collect();
        let before = self.authorization.lock().await.clone();
        let mut response = self.first(&method, what, &headers, before.as_ref()).await?;
        if self.is_challenge(&response)
            && let Some(authorization) = self.authorize(response.headers()).await?
        {
            response = self.send(&method, &self.url(what)?, &headers, Some(&authorization)).await?;
            *self.authorization.lock().await = Some(authorization);
        }
        Ok(response)
    }

    /// Whether the registry wants another authorization. A server that it leads to gets no credentials, and is not asked again.
    fn is_challenge(&self, response: &Response) -> bool {
        response.status() == StatusCode::UNAUTHORIZED && self.connection().is_home(response.url())
    }

    /// Sends a request, after which it is known whether the registry speaks TLS.
    async fn first(
        &self,
        method: &Method,
        what: &str,
        headers: &HeaderMap,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, RegistryError> {
        if self.may_fall_back && self.fallback.get().is_none() {
            match self.connection.send(method, &self.url(what)?, headers, authorization).await {
                Err(error) if error.speaks_no_tls => {
                    let plain = self.connection.without_tls().ok_or_else(|| self.failed(error))?;
                    // Another request may have been faster.
                    let _ = self.fallback.set(plain);
                }
                sent => return sent.map_err(|error| self.failed(error)),
            }
        }
        self.send(method, &self.url(what)?, headers, authorization).await
    }

    /// Whether a request may have the header that answered a challenge: what was earned with credentials, maybe over TLS, is not sent to a
    /// server that turned out to lack TLS.
    fn may_carry(&self) -> bool {
        self.credentials.is_none() || self.fallback.get().is_none()
    }

    async fn send(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, RegistryError> {
        let authorization = authorization.filter(|_| self.may_carry());
        self.connection().send(method, url, headers, authorization).await.map_err(|error| self.failed(error))
    }

    /// The URL of a path of the repository.
    pub(super) fn url(&self, what: &str) -> Result<Url, RegistryError> {
        let path = format!("{}/{what}", self.image.repository());
        self.connection().home().join(&path).map_err(|_| self.protocol("its name does not fit into a URL"))
    }

    /// Sends a body to a URL of the registry, or to one that it led to, which gets no credentials. No redirect is followed. Another request
    /// must have shown before whether the registry speaks TLS.
    pub(super) async fn write(
        &self,
        method: Method,
        url: &Url,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response, RegistryError> {
        let connection = self.connection();
        let is_home = connection.is_home(url);
        let one = async |authorization: Option<&HeaderValue>| {
            let mut request = connection.request(method.clone(), url).headers(headers.clone()).body(body.clone());
            if let Some(authorization) = authorization.filter(|_| is_home && self.may_carry()) {
                request = request.header(AUTHORIZATION, authorization);
            }
            connection.one(url, request).await.map_err(|error| self.failed(error))
        };
        let before = self.authorization.lock().await.clone();
        let mut response = one(before.as_ref()).await?;
        if self.is_challenge(&response)
            && let Some(authorization) = self.authorize(response.headers()).await?
        {
            response = one(Some(&authorization)).await?;
            *self.authorization.lock().await = Some(authorization);
        }
        self.checked(response).await
    }

    /// Where a response leads to.
    pub(super) fn location(&self, response: &Response) -> Result<Option<Url>, RegistryError> {
        self.connection().location(response).map_err(|error| self.failed(error))
    }

    /// The header that answers a challenge; none without credentials.
    async fn authorize(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, RegistryError> {
        let challenge = Challenge::of(headers);
        let is_exposed = self.connection().is_plain() && !is_here(self.connection().home());
        let is_unexpected = self.fallback.get().is_some();
        if challenge.is_some() && self.credentials.is_some() && (is_exposed || is_unexpected) {
            return Err(self.plaintext());
        }
        match (challenge, &self.credentials) {
            (None, _)
            | (Some(Challenge::Basic), None | Some(Credentials::IdentityToken(_) | Credentials::SshKey(_))) => Ok(None),
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
            "http" if credentials.is_some() => self.connection().is_plain() && is_here(&url),
            "http" => {
                let (connection, listed) = (self.connection(), &self.options.plain_http_registries);
                connection.is_home(&url) || connection.is_plain() && may_be_plain(&authority(&url), listed)
            }
            _ => false,
        };
        if !trusted {
            return Err(self.protocol("its token server would get the credentials without TLS"));
        }
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let mut fields = token_fields(service, self.image.repository(), self.purpose.actions());
        let request = match credentials {
            Some(Credentials::IdentityToken(token)) => {
                fields.push(("grant_type", "refresh_token".to_owned()));
                fields.push(("client_id", "chandler".to_owned()));
                fields.push(("refresh_token", token.clone()));
                let form = self.connection().request(Method::POST, &url);
                form.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(encode(&fields))
            }
            credentials => {
                url.query_pairs_mut().extend_pairs(&fields);
                let request = self.connection().request(Method::GET, &url);
                match credentials {
                    Some(Credentials::Basic { username, password }) => request.basic_auth(username, Some(password)),
                    _ => request,
                }
            }
        };
        let response = self.connection().one(&url, request).await.map_err(|error| self.failed(error))?;
        // The request holds credentials, which go to no other server. No token server needs a redirect within itself.
        if response.status().is_redirection() {
            return Err(self.protocol("its token server redirects, and credentials follow no redirect"));
        }
        // That there is no token says nothing about whether the registry has the repository.
        let failure = match failure_of(response.status()) {
            ServerFailure::NotFound => ServerFailure::Unauthorized,
            failure => failure,
        };
        let response = self.successful(response, failure).await?;
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
        let failure = failure_of(response.status());
        self.successful(response, failure).await
    }

    /// The response if it is successful, or else this failure.
    async fn successful(&self, response: Response, failure: ServerFailure) -> Result<Response, RegistryError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers());
        let host = authority(response.url());
        let may_be_shown = self.connection().may_be_shown(&response);
        let page = match self.read(response, PAGE_BYTES).await {
            Ok(Some(page)) if may_be_shown => page,
            _ => Vec::new(),
        };
        let detail = self.explanation(&page).map(|text| format!(": {text}")).unwrap_or_default();
        let answer = format!("{host} answered {status}{detail}");
        let message = match failure {
            ServerFailure::Unauthorized => {
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
            None | Some(Credentials::SshKey(_)) => "",
        };
        if !secret.is_empty() && text.contains(secret) {
            return None;
        }
        let text: String = chandler_core::text::one_line(&text).chars().take(200).collect();
        (!text.is_empty()).then_some(text)
    }

    /// The whole body, or `None` if it is larger than `limit`.
    pub(super) async fn read(&self, response: Response, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
        self.connection().read(response, limit).await.map_err(|error| self.failed(error))
    }

    /// The minimum rate of a body.
    pub(super) fn pace(&self) -> Pace {
        self.connection().pace()
    }

    /// The next piece of a body.
    pub(super) async fn chunk(&self, response: &mut Response, pace: &mut Pace) -> Result<Option<Bytes>, RegistryError> {
        self.connection().chunk(response, pace).await.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: ConnectionError) -> RegistryError {
        self.error(error.failure, error.message)
    }

    fn plaintext(&self) -> RegistryError {
        let host = self.image.registry();
        let message = if self.fallback.get().is_some() {
            format!(
                "{host} wants credentials and does not speak TLS; on this machine, they are sent without TLS only if \
                 --plain-http-registry lists it"
            )
        } else {
            format!(
                "{host} wants credentials and is asked without TLS, where others could read them; have it serve TLS, name its \
                 certificate authority in the source (certificateData) and take it off --plain-http-registry"
            )
        };
        self.error(ServerFailure::Plaintext, message)
    }

    pub(super) fn protocol(&self, message: &str) -> RegistryError {
        self.error(ServerFailure::Protocol, message.to_owned())
    }

    fn error(&self, failure: ServerFailure, message: String) -> RegistryError {
        self.silent.failed(self.image.registry_name(), failure);
        let (image, is_plain) = (self.image.to_string(), self.connection().is_plain());
        RegistryError { image, failure, message, is_plain, retry_after: None }
    }
}

/// The error for certificates, with the registry if they are those that an administrator set for it.
fn named(error: AccessError, image: &ImageReference, access: &ImageAccess) -> AccessError {
    match error {
        AccessError::CertificateAuthority(problem) if access.certificate_authority.is_none() => {
            AccessError::HostCertificates { registry: image.registry_name().to_owned(), problem }
        }
        error => error,
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

/// Whether a server may be asked without TLS where a URL says so: on this machine, or if the options allow it.
pub(crate) fn may_be_plain(server: &str, listed: &[String]) -> bool {
    is_listed(server, listed) || is_local(server)
}

/// Whether the options name a registry (`host` or `host:port`) as one without TLS.
fn is_listed(registry: &str, listed: &[String]) -> bool {
    // The ports must be equal: without TLS, port 443 is not the default.
    listed.iter().any(|name| name.eq_ignore_ascii_case(registry))
}

/// Whether a registry (`host` or `host:port`) is on this machine, by its name.
pub(super) fn is_local(registry: &str) -> bool {
    let host = match registry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => registry.rsplit_once(':').map_or(registry, |(host, _)| host),
    };
    is_loopback(host)
}

#[cfg(test)]
mod tests;
