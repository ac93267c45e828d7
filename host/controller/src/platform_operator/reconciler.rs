//! The reconcile of one PlatformOperator, and its deletion.

use std::sync::Arc;

use chandler_api::{PlatformOperator, PlatformOperatorStatus, names::TEARDOWN_FINALIZER};
use chandler_resolution::platform::{
    Outcome,
    removal::{Removal, is_complete},
    status,
};
use chandler_runtime::{
    Backoff, KindController, Metrics, Next, OwnWrites, Reconciler, Reflector, Report, Shutdown, finalizers,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::{Api, ResourceExt as _};

use super::platform::{Planned, Platform, ReconcileError};
use crate::{
    absent::ignore_absent,
    cluster::Cluster,
    events,
    monitoring::ready_reason,
    signals::{Signal, Signals},
};

/// The reconciler of PlatformOperators.
pub(crate) struct PlatformOperators {
    platform: Arc<Platform>,
    signals: Arc<Signals>,
    own_writes: OwnWrites<PlatformOperator>,
    backoff: Backoff,
}

impl PlatformOperators {
    /// The reconciler.
    pub(crate) fn new(platform: Platform, signals: &Arc<Signals>, reflector: &Reflector<PlatformOperator>) -> Self {
        let (platform, signals) = (Arc::new(platform), Arc::clone(signals));
        Self { platform, signals, own_writes: reflector.own_writes(), backoff: Backoff::default() }
    }

    /// The controller.
    pub(crate) fn controller(
        self,
        reflector: Reflector<PlatformOperator>,
        metrics: Arc<dyn Metrics>,
        shutdown: &Shutdown,
    ) -> KindController<Self> {
        let selection = self.cluster().options.watch_selector.watch();
        let api = Api::all(self.cluster().client.clone());
        KindController::new(reflector, api, selection, Arc::new(self), metrics, shutdown)
    }

    fn cluster(&self) -> &Cluster {
        &self.platform.cluster
    }

    fn api(&self) -> Api<PlatformOperator> {
        Api::all(self.cluster().client.clone())
    }

    /// Adds the finalizer, without which the package of a PlatformOperator would stay.
    async fn finalize(&self, operator: &PlatformOperator) -> Result<(), ReconcileError> {
        if !has_finalizer(operator) {
            let mut names = operator.finalizers().to_vec();
            names.push(TEARDOWN_FINALIZER.to_owned());
            self.own_writes.finalizers(finalizers::write(&self.api(), operator, &names).await?);
        }
        Ok(())
    }

    /// The status to write.
    fn report(operator: &PlatformOperator, outcome: &Outcome<'_>) -> Report<PlatformOperatorStatus> {
        Report::settled(status::derive(operator, outcome, Timestamp::now()))
    }

    /// Reports the state of a PlatformOperator.
    fn settle(
        &self,
        operator: &PlatformOperator,
        mut planned: Planned,
    ) -> Result<Report<PlatformOperatorStatus>, ReconcileError> {
        let package = &operator.spec.package.name;
        if let Some(refused) = planned.plan.refused.get(&operator.name_any()) {
            return Ok(Self::report(operator, &Outcome::Refused(refused.to_string())));
        }
        if let Some(blocked) = planned.blocked {
            return Ok(Self::report(operator, &Outcome::Failed(blocked)));
        }
        // Dependencies of the package may be in the shared namespace, which does not have a package's name.
        let failed = planned.failed.remove(package).or_else(|| planned.failed.remove(""));
        if let Some(error) = failed {
            return Err(ReconcileError::Namespace(error));
        }
        let members = planned.resolution.iter().filter_map(|it| it.status.as_ref()).flat_map(|status| &status.members);
        let name = members.into_iter().find(|it| it.package == *package).and_then(|it| it.bundle_deployment.as_ref());
        let deployment = match name {
            Some(name) => self.platform.deployments.get(name),
            None => planned.members.get(package).cloned(),
        };
        let resolution = planned.resolution.as_ref().filter(|_| planned.is_current);
        let (deployment, policy) = (deployment.as_ref(), &*planned.policy);
        Ok(Self::report(operator, &Outcome::Asked { resolution, deployment, policy }))
    }

    /// Removes the finalizer once the package is uninstalled, or something else needs it.
    async fn tear_down(
        &self,
        operator: &PlatformOperator,
        planned: &Planned,
    ) -> Result<Report<PlatformOperatorStatus>, ReconcileError> {
        if !has_finalizer(operator) {
            return Ok(Report { status: None, next: Next::Change });
        }
        let package = operator.spec.package.name.as_str();
        let deployment = planned.members.get(package).filter(|_| planned.blocked.is_none());
        let removal = Removal {
            package,
            is_wanted: planned.plan.wanted(package).is_some(),
            is_orphaned: self.platform.generations.is_orphaning(operator),
            resolution: planned.resolution.as_ref(),
            deployment,
            is_bundled: planned.blocked.is_none() && self.platform.is_bundled(&planned.membership, operator),
        };
        if !is_complete(&removal) {
            let invalid = planned.policy.as_ref().as_ref().err();
            return Ok(Self::report(operator, &Outcome::Deleting { deployment, invalid }));
        }
        if removal.deployment.is_none() && !removal.is_wanted && !removal.is_orphaned {
            Box::pin(self.platform.remove_namespace(operator, planned)).await;
        }
        let mut names = operator.finalizers().to_vec();
        names.retain(|finalizer| finalizer != TEARDOWN_FINALIZER);
        ignore_absent(finalizers::write(&self.api(), operator, &names).await)?;
        Ok(Report { status: None, next: Next::Change })
    }

    /// A PlatformOperator is gone: what it wanted is not wanted any more.
    fn plan_without(&self) {
        if !self.platform.states.operators().is_empty() {
            return self.platform.states.wake_all();
        }
        let platform = Arc::clone(&self.platform);
        tokio::spawn(async move {
            if platform.ready().await
                && let Err(error) = platform.apply().await
            {
                tracing::warn!(%error, "failed to delete the Resolution of PlatformOperators, of which there are none");
            }
        });
    }
}

impl Reconciler for PlatformOperators {
    type Object = PlatformOperator;
    type Status = PlatformOperatorStatus;
    type Error = ReconcileError;

    async fn reconcile(&self, operator: &PlatformOperator) -> Result<Report<PlatformOperatorStatus>, ReconcileError> {
        if !self.platform.ready().await {
            return Ok(Report::nothing());
        }
        if operator.metadata.deletion_timestamp.is_some() {
            let planned = self.platform.apply().await?;
            return self.tear_down(operator, &planned).await;
        }
        self.finalize(operator).await?;
        let planned = self.platform.apply().await?;
        self.settle(operator, planned)
    }

    fn failed(&self, operator: &PlatformOperator, error: &ReconcileError, _: u32) -> Option<PlatformOperatorStatus> {
        let message = error.reported()?;
        let is_deleted = operator.metadata.deletion_timestamp.is_some();
        let message = if is_deleted { format!("the package cannot be uninstalled now: {message}") } else { message };
        Some(status::derive(operator, &Outcome::Failed(message), Timestamp::now()))
    }

    fn status(operator: &PlatformOperator) -> Option<&PlatformOperatorStatus> {
        operator.status.as_ref()
    }

    fn reason(status: &PlatformOperatorStatus) -> Option<chandler_core::Reason> {
        ready_reason(&status.conditions)
    }

    async fn written(
        &self,
        operator: &PlatformOperator,
        stored: Option<&PlatformOperatorStatus>,
        status: &PlatformOperatorStatus,
    ) {
        let stored = stored.map(|status| status.conditions.as_slice());
        events::publish(&self.cluster().events, operator, stored, &status.conditions).await;
    }

    fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    fn observed(&self, operator: &PlatformOperator) {
        self.signals.send(Signal::PlatformOperatorChanged);
        self.platform.generations.observe(operator);
    }

    fn removed(&self, operator: &ObjectMeta) {
        self.signals.send(Signal::PlatformOperatorChanged);
        let name = operator.name.as_deref().unwrap_or_default();
        self.platform.generations.cancel(name);
        self.backoff.succeeded(name);
        self.plan_without();
    }

    fn listed(&self) {
        self.signals.send(Signal::PlatformOperatorChanged);
        if self.platform.states.operators().is_empty() {
            self.plan_without();
        }
    }
}

fn has_finalizer(operator: &PlatformOperator) -> bool {
    operator.finalizers().iter().any(|finalizer| finalizer == TEARDOWN_FINALIZER)
}
