//! The metrics of the controller over HTTPS, for callers that the API server vouches for.

use std::{future::Future, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::get,
};
use chandler_monitoring::{Metrics, metrics::MEDIA_TYPE};
use chandler_tls::TlsSettings;
use http::header::CONTENT_TYPE;
use kube::Client;
use tokio::sync::watch;

use crate::{ServeError, ServiceOptions, callers::Callers, refusal::Refusal, service_listener::ServiceListener};

/// A bound address, on which no metrics are served yet.
#[derive(Debug)]
pub struct MetricsListener(ServiceListener);

impl MetricsListener {
    /// Binds the address. `namespace` is the system namespace.
    ///
    /// # Errors
    /// The address is in use, or may not be used.
    pub fn bind(options: ServiceOptions, namespace: &str) -> Result<Self, ServeError> {
        ServiceListener::bind("metrics", options, namespace).map(Self)
    }

    /// Serves `/metrics` until `shutdown` completes. `client` reviews callers, and `tls` is what connections may negotiate.
    ///
    /// # Errors
    /// Connections cannot be accepted.
    pub async fn serve(
        self,
        client: Client,
        metrics: Arc<Metrics>,
        tls: watch::Receiver<TlsSettings>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let router = router(Arc::new(Service { callers: Callers::new(client.clone()), metrics }));
        self.0.serve("/metrics", router, &client, tls, shutdown).await
    }
}

struct Service {
    callers: Callers,
    metrics: Arc<Metrics>,
}

/// The one route, behind a check of the caller. Other paths are checked, too.
fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/metrics", get(exposition))
        .fallback(async || Refusal::Absent("the metrics are at /metrics".to_owned()))
        .layer(middleware::from_fn_with_state(Arc::clone(&service), checked))
        .with_state(service)
}

async fn checked(State(service): State<Arc<Service>>, request: Request, next: Next) -> Result<Response, Refusal> {
    service.callers.may_get(request.headers(), request.uri().path()).await?;
    Ok(next.run(request).await)
}

async fn exposition(State(service): State<Arc<Service>>) -> Response {
    ([(CONTENT_TYPE, MEDIA_TYPE)], service.metrics.exposition()).into_response()
}
