//! A write is acknowledged only when it is on disk, if the cluster is persistent.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};

use super::dispatch;
use crate::{
    api::Api,
    faults::watch::Reset,
    respond::{self, Body},
    status::Status,
    store::Failure,
};

/// [Answers](dispatch::handle) a request, and a write only when it is safe.
///
/// # Errors
/// If a fault suppresses the response.
pub async fn handle(api: &Arc<Api>, request: &Request<Bytes>) -> Result<Response<Body>, Reset> {
    if request.method().is_safe() {
        return dispatch::handle(api, request).await;
    }
    if let Some(failure) = api.store.failure() {
        return Ok(refused(&failure));
    }
    let response = dispatch::handle(api, request).await?;
    match api.store.durable(api.store.revision()).await {
        Ok(()) => Ok(response),
        Err(failure) => Ok(refused(&failure)),
    }
}

fn refused(failure: &Failure) -> Response<Body> {
    respond::status(&Status::internal(failure.to_string()))
}
