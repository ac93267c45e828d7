//! Expensive requests are handled outside of the reactor, so that they do not block others.
//!
//! The expressions of admission policies are compiled when these are written, and evaluated for other writes. The schema of a CRD is checked and compiled for each of its versions, of which as many may be in one as fit into a request; large
//! objects are validated and merged field by field.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use tokio::sync::Semaphore;

use super::{dispatch, route::Route};
use crate::{
    api::Api,
    faults::Strike,
    request::query::Query,
    respond::{self, Body},
    status::Status,
};

/// Bodies from this size on, in bytes, make a request heavy.
const LARGE: usize = 64 << 10;
/// How many of these requests are worked on at a time.
const AT_A_TIME: usize = 4;

/// The places in which heavy requests are worked on.
#[derive(Clone, Debug)]
pub struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_A_TIME)))
    }
}

/// Whether a request may take long.
pub(super) fn is(api: &Api, request: &Request<Bytes>, route: &Route) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    match route {
        Route::OpenApiIndex | Route::OpenApi(_) => true,
        Route::Objects(path)
            if matches!(path.group.as_str(), "admissionregistration.k8s.io" | "apiextensions.k8s.io") =>
        {
            !reads
        }
        Route::Objects(_) if !reads && api.has_policies() => true,
        _ => request.body().len() >= LARGE,
    }
}

/// Handles a request on its own thread. It runs to its end, even if the client no longer waits for the response.
pub(super) async fn answer(
    api: &Arc<Api>,
    request: &Request<Bytes>,
    route: &Route,
    query: Query,
    strike: &Strike,
) -> Response<Body> {
    let Ok(place) = Arc::clone(&api.places.0).acquire_owned().await else {
        return respond::status(&Status::unavailable());
    };
    let (api, request, route, strike) = (Arc::clone(api), request.clone(), route.clone(), strike.clone());
    let work = move || {
        let response = dispatch::answer(&api, &request, &route, query, &strike);
        drop(place);
        response
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request was not answered");
        respond::status(&Status::internal("the request could not be worked on"))
    })
}
