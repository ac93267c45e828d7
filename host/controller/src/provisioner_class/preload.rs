//! Loads the classes before the first reconcile.
//!
//! The built-in ones load meanwhile: without code for them in the program, compiling them takes seconds with an empty cache, and a
//! BundleDeployment that needs one waits for it in the background. A replica is ready sooner, and maintains what is installed.

use std::time::Duration;

use chandler_runtime::decode;
use futures::future::join_all;
use kube::{Api, ResourceExt as _};

use super::reconciler::{Guarded, ProvisionerClasses};

/// How long the start waits for components that are not in the cache. The engine finishes a compilation that began, and the first reconcile of
/// the class waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);

impl ProvisionerClasses {
    /// Loads every defined class once before the first BundleDeployment is reconciled, so that after a restart no class is reported as
    /// missing. A component that served before the restart is in use again at once. A class that cannot be decoded or loaded, or a
    /// registry that does not respond, does not delay the others.
    ///
    /// # Errors
    /// The API server cannot list the classes.
    pub(crate) async fn preload(&self) -> Result<(), kube::Error> {
        let classes = Api::<Guarded>::all(self.cluster.client.clone());
        let classes = classes.list(&self.cluster.options.watch_selector.list()).await?;
        let loads = classes.items.iter().map(|guarded| async move {
            match decode(guarded) {
                Ok(class) => {
                    self.classes.announce(&class.name_any(), class.spec.priority);
                    if !self.load_last(class).await {
                        self.load(class, false).await;
                    }
                }
                Err(invalid) => self.define_undecodable(guarded, invalid),
            }
        });
        if tokio::time::timeout(TIMEOUT, join_all(loads)).await.is_err() {
            tracing::warn!("some provisioners are still loading; the controller starts without them");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chandler_builtin::Provisioners;
    use chandler_client::Availability;
    use chandler_engine::Limits;
    use chandler_monitoring::{Health, Metrics};
    use chandler_records::Records;
    use chandler_runtime::{ClusterInfoWatch, Events, Reconciler as _, Reflector, WatchSelector};
    use kube::{Client, client::Body};
    use serde_json::{Value, json};

    use super::*;
    use crate::{Options, cluster::Cluster, deployments::Deployments, provisioner_class::Classes, run};

    /// An API server with the same response to every request.
    fn client(response: &Value) -> Client {
        let text = response.to_string();
        let service = tower::service_fn(move |_: http::Request<Body>| {
            let response = http::Response::new(Body::from(text.clone().into_bytes()));
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn a_class_that_cannot_be_decoded_does_not_prevent_the_start() {
        let class = |name: &str, priority: &Value| {
            json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "ProvisionerClass", "metadata": {"name": name},
                   "spec": {"image": "not a reference", "priority": priority}})
        };
        // A newer version of the CRD may allow it.
        let items = [class("odd", &json!("high")), class("plain", &json!(1))];
        let client = client(&json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "ProvisionerClassList",
                                    "metadata": {}, "items": items}));
        let directory = tempfile::tempdir().expect("a directory");
        let options = Options { cache_directory: directory.path().to_owned(), ..Options::default() };
        let cluster = Arc::new(Cluster {
            events: Events::new(client.clone(), "chandler"),
            info: ClusterInfoWatch::new(client.clone(), Availability::default()),
            client,
            availability: Availability::default(),
            options,
            metrics: Arc::new(Metrics::new("0.0.0", Health::default())),
        });
        let records = Arc::new(Records::new(&cluster.client, "system"));
        let (deployments, signals) = (Deployments::new(&Reflector::new(Availability::default())), Arc::default());
        let components = run::pulls(&cluster).expect("a cache").components;
        let built_in = Provisioners::new(components.engine.clone());
        let defined = Arc::new(Classes::new(built_in, Limits::default(), WatchSelector::default()));
        let reflector = Reflector::new(Availability::default());
        let evidence = (&records, &Arc::default());
        let classes =
            ProvisionerClasses::open(&cluster, &signals, &deployments, evidence, (&defined, &components), &reflector);
        let classes = classes.expect("a directory");
        classes.preload().await.expect("the start continues");
        // With an empty cache, compiling the built-in ones takes longer than a start may.
        assert_eq!(components.engine.statistics().compiled, 0);
        let message = async |name: &str| defined.get(name).await.err().map(|problem| problem.message);
        let odd = message("odd").await.unwrap_or_default();
        assert!(odd.starts_with("ProvisionerClass odd: its specification cannot be decoded: "), "{odd}");
        let plain = message("plain").await.unwrap_or_default();
        assert!(plain.contains("not a reference"), "{plain}");
        assert_eq!(defined.defined(), ["odd", "plain"]);
        classes.listed();
        assert!(defined.defined().is_empty(), "neither is in the list of the watch");
    }
}
