//! The reconciler of BundleDeployments for the runtime, and which changes of other objects concern a BundleDeployment.

use std::{collections::HashMap, sync::Arc};

use chandler_api::{BundleDeployment, BundleDeploymentStatus, ProvisionerClass, SystemReference};
use chandler_records::MANAGED_BY;
use chandler_runtime::{Backoff, KindController, Metrics, Next, Reconciler, Reflector, Report, Shutdown};
use futures::StreamExt as _;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, ResourceExt as _,
    core::{PartialObjectMeta, error_boundary::InvalidObject},
    runtime::{reflector::ObjectRef, watcher},
};
use parking_lot::Mutex;

use super::{
    ReconcileError,
    installer::Installer,
    reconcile,
    steps::{failure, report},
};
use crate::{
    cluster::Cluster, deployments::Guarded, monitoring::ready_reason, provisioner_class::may_use, signals::Signal,
    undecodable,
};

/// The reconciler of BundleDeployments.
pub(crate) struct BundleDeployments(Arc<Installer>);

impl BundleDeployments {
    /// The controller, with everything that triggers a reconcile.
    pub(crate) fn controller(
        installer: &Arc<Installer>,
        reflector: Reflector<BundleDeployment>,
        metrics: Arc<dyn Metrics>,
        shutdown: &Shutdown,
    ) -> KindController<Self> {
        let Cluster { client, options, info, .. } = installer.cluster.as_ref();
        let (selector, system) = (&options.watch_selector, &options.system_namespace);
        let api = Api::all(client.clone());
        let reconciler = Arc::new(Self(Arc::clone(installer)));
        KindController::new(reflector, api, selector.watch(), reconciler, metrics, shutdown)
            .watches(Api::<PartialObjectMeta<ProvisionerClass>>::all(client.clone()), selector.watch(), {
                let (installer, seen) = (Arc::clone(installer), ChangesSeen::default());
                move |class| {
                    let name = class.name_any();
                    // A status with other counts changes nothing that is rendered.
                    if !seen.is_new(&name, installer.preparer.classes.last_change(&name)) {
                        return Vec::new();
                    }
                    concerned(&installer, |deployment| may_use(deployment, &name))
                }
            })
            // One watch of each kind in the system namespace serves Catalogs, Resolutions and decisions as well.
            .watches(
                Api::<PartialObjectMeta<ConfigMap>>::namespaced(client.clone(), system),
                watcher::Config::default(),
                {
                    let installer = Arc::clone(installer);
                    move |map| {
                        installer.signals.send(Signal::ConfigMapChanged(&map));
                        let map = SystemReference::ConfigMap(map.name_any());
                        concerned(&installer, |deployment| depends_on(deployment, &map))
                    }
                },
            )
            .watches(Api::<PartialObjectMeta<Secret>>::namespaced(client.clone(), system), unmanaged_secrets(), {
                let installer = Arc::clone(installer);
                move |secret| {
                    let name = secret.name_any();
                    installer.signals.send(Signal::SecretChanged(&name));
                    let secret = SystemReference::Secret(name);
                    concerned(&installer, |deployment| depends_on(deployment, &secret))
                }
            })
            .reconcile_all_on(info.changes().map({
                let installer = Arc::clone(installer);
                move |cluster| installer.cluster_changed(&cluster)
            }))
    }
}

/// The change of each class that BundleDeployments were reconciled for.
#[derive(Default)]
struct ChangesSeen(Mutex<HashMap<String, u64>>);

impl ChangesSeen {
    /// Notes the last change of a class. Returns whether it is another one than before.
    fn is_new(&self, class: &str, change: u64) -> bool {
        self.0.lock().insert(class.to_owned(), change) != Some(change)
    }
}

/// The BundleDeployments that a change concerns. Their candidates are tried again.
fn concerned(installer: &Installer, is_concerned: impl Fn(&BundleDeployment) -> bool) -> Vec<ObjectRef<Guarded>> {
    installer.try_concerned(is_concerned).iter().map(|name| ObjectRef::new(name)).collect()
}

impl Reconciler for BundleDeployments {
    type Object = BundleDeployment;
    type Status = BundleDeploymentStatus;
    type Error = ReconcileError;

    /// Writes the status itself: the record is written before it, and both writes belong to the slot of the reconcile.
    async fn reconcile(&self, deployment: &BundleDeployment) -> Result<Report<BundleDeploymentStatus>, ReconcileError> {
        let action = reconcile(&deployment.name_any(), &self.0).await?;
        Ok(Report { status: None, next: Next::Decided(action) })
    }

    fn failed(
        &self,
        deployment: &BundleDeployment,
        error: &ReconcileError,
        failures: u32,
    ) -> Option<BundleDeploymentStatus> {
        let record = self.0.records.known(&deployment.name_any()).map(|record| record.state());
        let described = deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
        let history = record.as_ref().map_or(described, |state| state.history.as_slice());
        failure::status(deployment, error, (failures, &self.0.memory.values.redactor(deployment, history)))
    }

    fn status(deployment: &BundleDeployment) -> Option<&BundleDeploymentStatus> {
        deployment.status.as_ref()
    }

    fn reason(status: &BundleDeploymentStatus) -> Option<chandler_core::Reason> {
        ready_reason(&status.conditions)
    }

    async fn written(
        &self,
        deployment: &BundleDeployment,
        stored: Option<&BundleDeploymentStatus>,
        status: &BundleDeploymentStatus,
    ) {
        report::publish(&self.0.cluster.events, deployment, stored, status).await;
    }

    async fn undecodable(&self, guarded: &Guarded, invalid: &InvalidObject) -> Result<(), ReconcileError> {
        let cluster = &self.0.cluster;
        undecodable::report(&cluster.client, &cluster.events, guarded, invalid).await.map_err(ReconcileError::Status)
    }

    fn backoff(&self) -> &Backoff {
        &self.0.backoff
    }

    fn answers_again(&self, name: &str) {
        self.0.try_again(name);
    }

    fn observed(&self, deployment: &BundleDeployment) {
        self.0.signals.send(Signal::DeploymentChanged(deployment));
        self.0.generations.observe(deployment);
    }

    /// Cancels the reconcile in progress of a BundleDeployment that is no longer selected, or was deleted before it had our finalizer, and
    /// drops its state. The finalizer ends other deleted BundleDeployments.
    fn removed(&self, deployment: &ObjectMeta) {
        let Some(name) = deployment.name.as_deref() else { return };
        self.0.signals.send(Signal::DeploymentGone(name));
        if deployment.deletion_timestamp.is_some() {
            return;
        }
        tracing::info!(deployment = name, "the BundleDeployment is gone or no longer selected");
        self.0.generations.cancel(name);
        self.0.finalize().forget(name);
        self.0.records.forget(name);
    }
}

impl chandler_runtime::ReconcileError for ReconcileError {
    fn is_conflict(&self) -> bool {
        Self::is_conflict(self)
    }

    fn of_status(error: kube::Error) -> Self {
        Self::Status(error)
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
