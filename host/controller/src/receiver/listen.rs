//! The address of the requests.

use std::{convert::Infallible, sync::Arc};

use chandler_runtime::Shutdown;
use chandler_serve::{Hooks, ReceiverListener, ServeError};
use chandler_tls::TlsSettings;
use tokio::sync::watch;

use super::Webhooks;
use crate::cluster::Cluster;

/// Receives webhooks until shutdown, if a listener is given, and then waits for the reconciles in progress. Completes only with a
/// failure.
pub(crate) async fn listen(
    cluster: Arc<Cluster>,
    webhooks: Arc<Webhooks>,
    listener: Option<ReceiverListener>,
    tls: watch::Receiver<TlsSettings>,
    shutdown: Shutdown,
) -> Result<Infallible, ServeError> {
    if let Some(listener) = listener {
        // Before the watches have delivered them, a request would concern nothing. An error means that the controller is stopping.
        if webhooks.ready().await {
            let hooks: Arc<dyn Hooks> = webhooks;
            listener.serve(cluster.client.clone(), hooks, tls, shutdown).await?;
        }
    }
    std::future::pending().await
}
