//! The checks of every request: impersonation, authorization, and the size of the body.

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use chandler_devcluster_apimachinery::access::User;
use http::{Request, Response, request::Parts};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body as HttpBody;

use super::{durability, legacy, represent::represent};
use crate::{
    api::Api,
    authorization::request::attributes,
    faults::watch::Reset,
    request::query::Query,
    respond::{self, Body},
    status::Status,
};

/// The longest request body: kube-apiserver's limit for JSON.
pub const BODY_LIMIT: usize = 3 << 20;
/// How long a client may take to send a body.
const BODY: Duration = Duration::from_mins(1);

/// Handles a request of an authenticated user.
///
/// # Errors
/// If a fault suppresses the response.
pub async fn answer<B>(api: &Arc<Api>, requestor: User, request: Request<B>) -> Result<Response<Body>, Reset>
where
    B: HttpBody,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (mut parts, body) = request.into_parts();
    if let Some(uri) = legacy::modern(&parts.uri) {
        parts.uri = uri;
    }
    match admit(api, requestor, &parts) {
        Ok(user) => drop(parts.extensions.insert(Arc::new(user))),
        Err(status) => return Ok(respond::status(&status)),
    }
    match receive(body).await {
        Ok(body) => {
            let request: Request<Bytes> = Request::from_parts(parts, body);
            tracing::trace!(method = %request.method(), uri = %request.uri(), "request");
            let response = durability::handle(api, &request).await?;
            represent(&request, response).await
        }
        Err(status) => Ok(respond::status(&status)),
    }
}

/// Determines the effective user of a request, and admits it if that user is authorized.
fn admit(api: &Api, requestor: User, parts: &Parts) -> Result<User, Status> {
    let Api { store, authorizer, .. } = api;
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let wanted = attributes(&parts.method, parts.uri.path(), &query);
    let user = authorizer.impersonate(store, requestor, &parts.headers, &wanted)?;
    authorizer.authorize(store, &user, &wanted)?;
    Ok(user)
}

async fn receive<B>(body: B) -> Result<Bytes, Status>
where
    B: HttpBody,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    match tokio::time::timeout(BODY, Limited::new(body, BODY_LIMIT).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Status::too_large(BODY_LIMIT)),
        Ok(Err(error)) => Err(Status::bad_request(format!("cannot read the body: {error}"))),
        Err(_) => Err(Status::bad_request("the body did not arrive in time")),
    }
}
