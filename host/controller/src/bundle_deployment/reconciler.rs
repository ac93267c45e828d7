//! The reconciler of BundleDeployments as the runtime sees it, and which changes of other objects concern one.

use std::sync::Arc;

use chandler_api::{BundleDeployment, ProvisionerClass, SystemReference};
use chandler_records::MANAGED_BY;
use chandler_runtime::{Backoff, KindController, Metrics, Reconciler, Reflector, Shutdown};
use futures::StreamExt as _;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, ResourceExt as _,
    core::{PartialObjectMeta, error_boundary::InvalidObject},
    runtime::{controller::Action, watcher},
};

use super::{Guarded, ReconcileError, handles::StatusHandles, reconcile, steps::undecodable};
use crate::{context::Context, provisioner_class::may_use};

/// The reconciler of BundleDeployments.
pub(crate) struct BundleDeployments(Arc<Context>);

impl BundleDeployments {
    /// The controller, with everything that triggers a reconcile.
    pub(crate) fn controller(
        context: &Arc<Context>,
        reflector: Reflector<BundleDeployment>,
        metrics: Arc<dyn Metrics>,
        shutdown: &Shutdown,
    ) -> KindController<Self> {
        let (client, selector) = (context.client.clone(), &context.options.watch_selector);
        let system = &context.options.system_namespace;
        let api = Api::all(client.clone());
        let reconciler = Arc::new(Self(Arc::clone(context)));
        KindController::new(reflector, api, selector.watch(), reconciler, metrics, shutdown)
            .watches(Api::<PartialObjectMeta<ProvisionerClass>>::all(client.clone()), selector.watch(), {
                let context = Arc::clone(context);
                move |class| context.helped(|deployment| may_use(deployment, &class.name_any()))
            })
            // One watch of each kind in the system namespace serves Catalogs, Resolutions and decisions as well.
            .watches(
                Api::<PartialObjectMeta<ConfigMap>>::namespaced(client.clone(), system),
                watcher::Config::default(),
                {
                    let context = Arc::clone(context);
                    move |map| {
                        context.resolutions.config_map_changed(&map);
                        context.decisions.config_map_changed(&map);
                        let map = SystemReference::ConfigMap(map.name_any());
                        context.catalogs.changed(&map);
                        context.helped(|deployment| depends_on(deployment, &map))
                    }
                },
            )
            .watches(Api::<PartialObjectMeta<Secret>>::namespaced(client, system), unmanaged_secrets(), {
                let context = Arc::clone(context);
                move |secret| {
                    let secret = SystemReference::Secret(secret.name_any());
                    context.catalogs.changed(&secret);
                    context.helped(|deployment| depends_on(deployment, &secret))
                }
            })
            .reconcile_all_on(context.cluster_info.changes().map({
                let context = Arc::clone(context);
                move |cluster| context.memory.cluster_changed(&cluster)
            }))
    }
}

impl Reconciler for BundleDeployments {
    type Object = BundleDeployment;
    type Error = ReconcileError;

    async fn reconcile(&self, deployment: &BundleDeployment) -> Result<Action, ReconcileError> {
        reconcile(&deployment.name_any(), &self.0).await
    }

    async fn undecodable(&self, guarded: &Guarded, invalid: &InvalidObject) -> Result<(), ReconcileError> {
        undecodable::report(StatusHandles::of(&self.0), guarded, invalid).await
    }

    fn backoff(&self) -> &Backoff {
        &self.0.backoff
    }

    fn answers_again(&self, name: &str) {
        self.0.memory.try_again(name);
    }

    fn observed(&self, deployment: &BundleDeployment) {
        self.0.resolutions.deployment_changed(deployment);
        self.0.decisions.deployment_changed(deployment);
        self.0.platform.deployment_changed(&deployment.name_any());
        self.0.cluster_operators.changed();
        self.0.generations.observe(deployment);
    }

    /// Cancels the reconcile in progress of a BundleDeployment that is no longer selected, or was deleted before it had our finalizer,
    /// and drops its state. Others that are deleted end by the finalizer.
    fn removed(&self, deployment: &ObjectMeta) {
        self.0.cluster_operators.changed();
        self.0.resolutions.deployment_gone(deployment.name.as_deref().unwrap_or_default());
        self.0.decisions.deployment_gone(deployment.name.as_deref().unwrap_or_default());
        self.0.platform.deployment_changed(deployment.name.as_deref().unwrap_or_default());
        let Some(name) = deployment.name.as_deref().filter(|_| deployment.deletion_timestamp.is_none()) else { return };
        let context = &self.0;
        tracing::info!(deployment = name, "the BundleDeployment is gone or no longer selected");
        context.generations.cancel(name);
        context.memory.forget(name);
        context.records.forget(name);
        context.informers.forget(name);
    }
}

impl chandler_runtime::ReconcileError for ReconcileError {
    fn is_conflict(&self) -> bool {
        Self::is_conflict(self)
    }
}

/// All Secrets except the records of the controller.
fn unmanaged_secrets() -> watcher::Config {
    let (label, value) = MANAGED_BY;
    watcher::Config::default().labels(&format!("{label}!={value}"))
}

/// Whether the source of a BundleDeployment names this object of the system namespace.
fn depends_on(deployment: &BundleDeployment, object: &SystemReference) -> bool {
    deployment.spec.source.references().contains(object)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_conflict_is_that_of_a_write() {
        let answer = |code, reason: &str| {
            kube::Error::Api(Box::new(Status { code, reason: reason.to_owned(), ..Status::failure("", "") }))
        };
        let conflict = || answer(409, "Conflict");
        let is_conflict = |error: ReconcileError| chandler_runtime::ReconcileError::is_conflict(&error);
        assert!(is_conflict(ReconcileError::Status(conflict())) && is_conflict(ReconcileError::Finalizers(conflict())));
        assert!(is_conflict(ReconcileError::Status(answer(404, "NotFound"))), "it was deleted");
        assert!(!is_conflict(ReconcileError::Status(answer(403, "Forbidden"))));
        assert!(!is_conflict(ReconcileError::Transient("the object has been modified".into())));
    }
}
