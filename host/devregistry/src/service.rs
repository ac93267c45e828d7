//! Handles requests.

use std::convert::Infallible;

use bytes::Bytes;
use chandler_core::browser::{self, Stated};
use http::{
    HeaderName, Method, Request, Response, StatusCode,
    header::{HOST, ORIGIN},
};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use parking_lot::{Mutex, MutexGuard};

use crate::{
    Authentication, Fault, FaultOn, Options, blobs, manifests,
    response::{self, Body},
    route::{Route, RouteError},
    storage::Storage,
};

/// The number of requests that are recorded for tests.
const RECORDED_REQUESTS: usize = 10_000;

/// State shared by all connections.
#[derive(Debug)]
pub(crate) struct Service {
    storage: Mutex<Storage>,
    fault: Mutex<Option<(FaultOn, Fault)>>,
    requests: Mutex<Vec<String>>,
    authentication: Authentication,
    base: String,
    most: usize,
    referrers: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl Service {
    pub(crate) fn new(base: String, options: Options, storage: Storage) -> Self {
        let Options { authentication, most_bytes, referrers, .. } = options;
        Self {
            storage: Mutex::new(storage),
            fault: Mutex::default(),
            requests: Mutex::default(),
            authentication,
            base,
            most: usize::try_from(most_bytes).unwrap_or(usize::MAX),
            referrers,
        }
    }

    pub(crate) fn storage(&self) -> MutexGuard<'_, Storage> {
        lock(&self.storage)
    }

    pub(crate) fn set_fault(&self, fault: Option<(FaultOn, Fault)>) {
        *lock(&self.fault) = fault;
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        lock(&self.requests).clone()
    }

    /// Handles one request.
    pub(crate) async fn handle(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let (parts, body) = request.into_parts();
        if let Err(foreign) = browser::refuse(browser_headers(&parts)) {
            return Ok(response::error(StatusCode::FORBIDDEN, "DENIED", &foreign.to_string()));
        }
        self.record(&parts.method, parts.uri.path());
        let route = match Route::of(parts.uri.path()) {
            Ok(route) => route,
            Err(error) => return Ok(route_error(error)),
        };
        let fault = lock(&self.fault)
            .filter(|(on, _)| !Route::is_write(&parts.method) && on.covers(&route))
            .map(|(_, fault)| fault);
        match fault {
            Some(Fault::Status(status)) => return Ok(response::fault_status(status)),
            Some(Fault::Silent) => return std::future::pending().await,
            Some(Fault::RedirectToPlain(port)) => {
                let mut response = response::empty(StatusCode::TEMPORARY_REDIRECT);
                let target = format!("http://127.0.0.1:{port}{}", parts.uri.path());
                response::header(&mut response, "location", &target);
                return Ok(response);
            }
            _ => {}
        }
        // Unauthenticated clients cannot send a body.
        if route != Route::Token
            && let Some(challenge) = self.authentication.challenge(&parts.headers, &self.base)
        {
            return Ok(challenge);
        }
        match Limited::new(body, self.most).collect().await {
            Ok(body) => Ok(self.serve(&parts, &route, body.to_bytes(), fault)),
            Err(_) => Ok(response::error(
                StatusCode::BAD_REQUEST,
                "SIZE_INVALID",
                "the body is incomplete or larger than the size limit of the registry",
            )),
        }
    }

    fn serve(&self, parts: &http::request::Parts, route: &Route, body: Bytes, fault: Option<Fault>) -> Response<Body> {
        let query = parts.uri.query().unwrap_or_default();
        let mut storage = self.storage();
        match (&parts.method, route) {
            (&Method::GET | &Method::HEAD, Route::Version) => {
                let mut response = response::json(StatusCode::OK, &serde_json::json!({}));
                response::header(&mut response, "docker-distribution-api-version", "registry/2.0");
                response
            }
            (&Method::GET | &Method::POST, Route::Token) => self.authentication.issue(&parts.headers, &body),
            (method @ (&Method::GET | &Method::HEAD), Route::Manifest { name, reference }) => {
                manifests::read(&storage, method, name, reference, fault)
            }
            (&Method::PUT, Route::Manifest { name, reference }) => {
                manifests::write(&mut storage, name, reference, &parts.headers, body, self.referrers)
            }
            (method @ (&Method::GET | &Method::HEAD), Route::Blob { name, digest }) => {
                blobs::read(&storage, method, name, digest, fault)
            }
            (&Method::POST, Route::Uploads { name }) => blobs::begin(&mut storage, name, query, &body),
            (&Method::PATCH, Route::Upload { name, id }) => {
                blobs::append(&mut storage, name, *id, &parts.headers, &body)
            }
            (&Method::PUT, Route::Upload { name, id }) => blobs::finish(&mut storage, name, *id, query, &body),
            (&Method::GET, Route::Upload { name, id }) => blobs::status(&mut storage, name, *id),
            (&Method::DELETE, Route::Upload { name, id }) => blobs::cancel(&mut storage, name, *id),
            (&Method::GET, Route::Tags { name }) => manifests::tags(&storage, name),
            (&Method::GET, Route::Referrers { name, digest }) if self.referrers => {
                manifests::referrers(&storage, name, digest)
            }
            // As registries of the specification before version 1.1 answer.
            (&Method::GET, Route::Referrers { .. }) => {
                response::error(StatusCode::NOT_FOUND, "UNSUPPORTED", "unknown endpoint")
            }
            _ => response::error(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", "the operation is unsupported"),
        }
    }

    fn record(&self, method: &Method, path: &str) {
        let mut requests = lock(&self.requests);
        if requests.len() < RECORDED_REQUESTS {
            requests.push(format!("{method} {path}"));
        }
    }
}

/// The headers that distinguish requests of browsers. A repeated or malformed header is passed as an empty value, which
/// no legitimate client sends.
fn browser_headers(parts: &http::request::Parts) -> Stated<'_> {
    let one = |name: HeaderName| {
        let mut values = parts.headers.get_all(name).iter();
        let first = values.next()?.to_str().unwrap_or_default();
        Some(if values.next().is_some() { "" } else { first })
    };
    let host = one(HOST).or_else(|| parts.uri.authority().map(http::uri::Authority::as_str));
    Stated { host, origin: one(ORIGIN), fetch_site: one(HeaderName::from_static("sec-fetch-site")) }
}

fn route_error(error: RouteError) -> Response<Body> {
    match error {
        RouteError::NotFound => response::error(StatusCode::NOT_FOUND, "UNSUPPORTED", "unknown endpoint"),
        RouteError::Name => response::error(StatusCode::BAD_REQUEST, "NAME_INVALID", "invalid repository name"),
        RouteError::Digest => response::error(StatusCode::BAD_REQUEST, "DIGEST_INVALID", "not a SHA-256 digest"),
        RouteError::Upload => response::error(StatusCode::NOT_FOUND, "BLOB_UPLOAD_UNKNOWN", "unknown upload"),
    }
}
