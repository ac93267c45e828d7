//! Applies faults to a request.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, header};

use super::route::Route;
use crate::{
    api::Api,
    faults::{Exposure, FaultId, Occasion, Outcome, Strike, matching::ObjectOccasion, watch::Reset},
    request::query::Query,
    respond::{self, Body},
    status::{GroupResource, Status},
};

/// Names the faults that affected a request, in its response.
pub const HEADER: HeaderName = HeaderName::from_static("chandler-fault");

/// Decides which faults affect a request.
pub fn strike(api: &Api, request: &Request<Bytes>, route: &Route, query: &Query) -> Strike {
    let object = match route {
        // Requests that remove a fault must not be affected by faults.
        Route::Faults(_) => return Strike::default(),
        Route::Objects(path) => Some(ObjectOccasion {
            group: &path.group,
            plural: &path.plural,
            subresource: path.subresource.as_deref().unwrap_or_default(),
            namespace: path.namespace.as_deref().unwrap_or_default(),
            name: path.name.as_deref().unwrap_or_default(),
        }),
        _ => None,
    };
    let client = request.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    let mut occasion = Occasion::new(request.method(), request.uri().path(), query, object);
    occasion.client = client.unwrap_or_default();
    occasion.body = request.body();
    occasion.exposure = request.extensions().get::<Exposure>().copied().unwrap_or_default();
    api.faults.strike(&occasion)
}

/// Delays the request, and responds to it or forwards it, as the fault says.
pub async fn answer<A>(
    api: &Api,
    route: &Route,
    query: &Query,
    strike: &Strike,
    answered: impl FnOnce() -> A,
) -> Result<Response<Body>, Reset>
where
    A: Future<Output = Response<Body>>,
{
    if strike.latency > Duration::ZERO {
        api.clock.sleep(strike.latency).await;
    }
    let mut response = match strike.outcome {
        None => answered().await,
        Some(outcome) => {
            if let Outcome::InternalError { written: true } | Outcome::Reset { written: true } = outcome {
                drop(answered().await);
            }
            respond::status(&failure(api, route, query, outcome).ok_or(Reset)?)
        }
    };
    mark(&mut response, &strike.faults);
    Ok(response)
}

fn failure(api: &Api, route: &Route, query: &Query, outcome: Outcome) -> Option<Status> {
    Some(match outcome {
        Outcome::Conflict => {
            let (resource, name) = match route {
                Route::Objects(path) => {
                    let resource = GroupResource { group: path.group.clone(), plural: path.plural.clone() };
                    (resource, path.name.as_deref().unwrap_or_default())
                }
                _ => (GroupResource { group: String::new(), plural: String::new() }, ""),
            };
            Status::stale(&resource, name)
        }
        Outcome::Gone => expired(api, query),
        // The header counts whole seconds; 0 would mean that there is no need to wait.
        Outcome::TooManyRequests { retry_after } => {
            Status::too_many_requests(retry_after.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX).max(1))
        }
        Outcome::InternalError { .. } => Status::internal("an injected fault failed the request"),
        Outcome::Unavailable => Status::unavailable(),
        Outcome::Reset { .. } => return None,
    })
}

/// The message about a compacted revision.
pub fn expired(api: &Api, query: &Query) -> Status {
    let requested = query.get("resourceVersion").and_then(|revision| revision.parse().ok());
    Status::expired(requested.unwrap_or_default(), api.store.revision())
}

fn mark(response: &mut Response<Body>, faults: &[FaultId]) {
    let faults: Vec<String> = faults.iter().map(FaultId::to_string).collect();
    if let (false, Ok(value)) = (faults.is_empty(), HeaderValue::from_str(&faults.join(", "))) {
        response.headers_mut().insert(HEADER, value);
    }
}
