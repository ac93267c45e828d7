//! One attempt to deliver a notification.

use std::sync::Arc;

use chandler_api::{Alert, AlertProvider};
use chandler_content::{PostError, Posts, ServerFailure};
use chandler_monitoring::Metrics;
use chandler_notifications::{Body, Endpoint, EndpointError, Failure, Notification, Sender, body};
use chandler_runtime::Triggers;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{Api, Client, ResourceExt as _, runtime::reflector::ObjectRef};
use tokio::sync::OnceCell;

/// The namespace whose UID identifies a cluster.
const CLUSTER: &str = "kube-system";

/// Sends notifications. Secrets are read for each attempt and not kept, so that a changed one is used at once.
pub(crate) struct Delivery {
    client: Client,
    system_namespace: String,
    posts: Posts,
    source: OnceCell<String>,
    triggers: Triggers<Alert>,
    pub(super) metrics: Arc<Metrics>,
}

impl Delivery {
    /// Sends with `posts`, and reads Secrets of this namespace. Outcomes request reconciles.
    pub(crate) fn new(
        client: &Client,
        system_namespace: &str,
        posts: Posts,
        triggers: Triggers<Alert>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        Self {
            client: client.clone(),
            system_namespace: system_namespace.to_owned(),
            posts,
            source: OnceCell::new(),
            triggers,
            metrics: Arc::clone(metrics),
        }
    }

    pub(super) fn request_reconcile(&self, alert: &str) {
        // An error means that the controller is stopping.
        let _ = self.triggers.send(ObjectRef::new(alert));
    }

    /// Where an Alert sends notifications.
    ///
    /// # Errors
    /// The URL or the Secret cannot be used, or the Secret cannot be read.
    pub(super) async fn endpoint(&self, provider: &AlertProvider) -> Result<Endpoint, Failure> {
        let Some(reference) = &provider.secret_ref else {
            let url = provider.url.as_deref().unwrap_or_default();
            return Endpoint::of_url(url).map_err(Failure::Endpoint);
        };
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.system_namespace);
        let secret = secrets.get_opt(&reference.name).await.map_err(|error| {
            tracing::debug!(%error, "failed to read the Secret of an Alert");
            Failure::SecretUnreadable
        })?;
        let secret = secret.ok_or_else(|| Failure::Endpoint(EndpointError::NoSecret(reference.name.clone())))?;
        Endpoint::of_secret(&secret.data.unwrap_or_default()).map_err(Failure::Endpoint)
    }

    /// Sends a notification once.
    ///
    /// # Errors
    /// The server did not accept it.
    pub(super) async fn attempt(&self, alert: &Alert, notification: &Notification) -> Result<(), Failure> {
        let endpoint = self.endpoint(&alert.spec.provider).await?;
        let (name, source) = (alert.name_any(), self.source().await);
        let body = Body::new(Sender { alert: &name, source: &source, spec: &alert.spec }, notification);
        let headers = endpoint.headers(body.content_type, &body.bytes);
        let answer = self.posts.post(endpoint.url(), endpoint.certificates(), headers, body.bytes).await;
        let answer = answer.map_err(failure)?;
        if (200..300).contains(&answer.status) {
            Ok(())
        } else {
            Err(Failure::Status(answer.status, answer.retry_after))
        }
    }

    /// The URI of the cluster. If the namespace cannot be read now, it is tried again for the next notification.
    async fn source(&self) -> String {
        let read = async || {
            let namespace = Api::<Namespace>::all(self.client.clone()).get(CLUSTER).await?;
            Ok::<_, kube::Error>(body::source(namespace.uid().as_deref()))
        };
        self.source.get_or_try_init(read).await.cloned().unwrap_or_else(|_| body::source(None))
    }
}

fn failure(error: PostError) -> Failure {
    match error {
        PostError::Certificates => Failure::Endpoint(EndpointError::Value(
            "ca.crt",
            "it has no certificates in PEM, or one that cannot be used",
        )),
        PostError::Connection(failure) => match failure {
            ServerFailure::Tls => Failure::NotTrusted,
            ServerFailure::Address | ServerFailure::Blocked => Failure::AddressNotAllowed,
            ServerFailure::NameNotResolved => Failure::NameNotResolved,
            ServerFailure::NoDescriptor => Failure::NoDescriptor,
            _ => Failure::Unreachable,
        },
    }
}
