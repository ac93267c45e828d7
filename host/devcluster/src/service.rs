//! The API without sockets: a service for clients in the same process.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use chandler_devcluster_apimachinery::access::{
    User,
    user::{AUTHENTICATED, MASTERS},
};
use futures::{StreamExt as _, future::BoxFuture};
use http::{Request, Response};
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use tokio_util::sync::CancellationToken;

use crate::{
    api::Api,
    authentication::ADMINISTRATOR,
    faults::{Exposure, watch::Reset},
    http::admit,
    respond::Body,
};

/// Answers requests as the listener does, and by the same code, but without a connection: nothing is encrypted or parsed.
///
/// Requests come from a user who needs no credential, the administrator unless [another one](Self::of_user) is chosen; what that
/// user may do is decided as ever, and `Impersonate-*` headers work. Clones share the cluster, which they do not keep running.
#[derive(Clone, Debug)]
pub struct Service {
    api: Arc<Api>,
    user: User,
    exposure: Exposure,
    shutdown: CancellationToken,
}

/// Why there was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// A fault wanted it so.
    #[error(transparent)]
    Reset(#[from] Reset),
    /// The cluster has stopped.
    #[error("the development cluster has stopped")]
    Stopped,
}

impl Service {
    pub(crate) fn new(api: Arc<Api>, shutdown: CancellationToken) -> Self {
        let user = User::new(ADMINISTRATOR, &[MASTERS, AUTHENTICATED]);
        Self { api, user, exposure: Exposure::Exposed, shutdown }
    }

    /// This service for another user, e.g. `system:serviceaccount:default:builder`, who is in these groups and authenticated.
    pub fn of_user(mut self, name: &str, groups: &[&str]) -> Self {
        let groups: Vec<&str> = groups.iter().copied().chain([AUTHENTICATED]).collect();
        self.user = User::new(name, &groups);
        self
    }

    /// This service for requests that other faults affect, or no faults.
    pub fn exposed(mut self, exposure: Exposure) -> Self {
        self.exposure = exposure;
        self
    }

    /// A client for this service, whose default namespace is `default`.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }
}

impl tower::Service<Request<kube::client::Body>> for Service {
    type Response = Response<Body>;
    type Error = ServiceError;
    type Future = BoxFuture<'static, Result<Response<Body>, ServiceError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ServiceError>> {
        Poll::Ready(if self.shutdown.is_cancelled() { Err(ServiceError::Stopped) } else { Ok(()) })
    }

    fn call(&mut self, mut request: Request<kube::client::Body>) -> Self::Future {
        let Self { api, user, exposure, shutdown } = self.clone();
        request.extensions_mut().insert(exposure);
        Box::pin(async move {
            let answer = shutdown.run_until_cancelled(admit::answer(&api, user, request)).await;
            let response = answer.ok_or(ServiceError::Stopped)??;
            // Watches end with the cluster, as their connections do.
            Ok(response.map(|body| until(body, shutdown)))
        })
    }
}

/// A body that ends when the cluster does.
fn until(body: Body, shutdown: CancellationToken) -> Body {
    let frames = BodyStream::new(body).take_until(shutdown.cancelled_owned());
    StreamBody::new(frames).boxed_unsync()
}
