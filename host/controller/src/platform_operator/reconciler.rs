//! The reconcile of one PlatformOperator, and its deletion.

use std::sync::Arc;

use chandler_api::{PlatformOperator, names::TEARDOWN_FINALIZER};
use chandler_platform::{
    Outcome,
    removal::{Removal, is_complete},
    status,
};
use chandler_runtime::{
    Backoff, KindController, Metrics, OwnWrites, Reconciler, Reflector, Shutdown, finalizers, status_patch,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::{Api, ResourceExt as _, runtime::controller::Action};

use super::platform::{Planned, Platform, ReconcileError};
use crate::{
    absent::ignore_absent,
    cluster::Cluster,
    events,
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

    /// Writes the status and publishes what changed.
    async fn report(&self, operator: &PlatformOperator, outcome: &Outcome<'_>) -> Result<(), ReconcileError> {
        let status = status::derive(operator, outcome, Timestamp::now());
        let (api, name) = (self.api(), operator.name_any());
        if let Some(written) = status_patch::write(&api, &name, operator.status.as_ref(), &status).await? {
            self.own_writes.status(written, &status);
            let old = operator.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
            events::publish(&self.cluster().events, operator, old, &status.conditions).await;
        }
        Ok(())
    }

    /// Reports what became of a PlatformOperator.
    async fn settle(&self, operator: &PlatformOperator, mut planned: Planned) -> Result<(), ReconcileError> {
        let package = &operator.spec.package.name;
        if let Some(refused) = planned.plan.refused.get(&operator.name_any()) {
            return self.report(operator, &Outcome::Refused(refused.to_string())).await;
        }
        if let Some(blocked) = planned.blocked {
            return self.report(operator, &Outcome::Failed(blocked)).await;
        }
        // What the package needs may be in the namespace that all share, which has no name of a package.
        let failed = planned.failed.remove(package).or_else(|| planned.failed.remove(""));
        if let Some(error) = failed {
            self.report(
                operator,
                &Outcome::Failed(format!("failed to create the namespace: {}", chandler_source::api_message(&error))),
            )
            .await?;
            return Err(error.into());
        }
        let members = planned.resolution.iter().filter_map(|it| it.status.as_ref()).flat_map(|status| &status.members);
        let name = members.into_iter().find(|it| it.package == *package).and_then(|it| it.bundle_deployment.as_ref());
        let deployment = match name {
            Some(name) => self.platform.deployments.get(name),
            None => planned.members.get(package).cloned(),
        };
        let resolution = planned.resolution.as_ref().filter(|_| planned.is_current);
        let (deployment, policy) = (deployment.as_ref(), &*planned.policy);
        self.report(operator, &Outcome::Asked { resolution, deployment, policy }).await
    }

    /// Removes the finalizer once the package is uninstalled, or something else needs it.
    async fn tear_down(&self, operator: &PlatformOperator, planned: &Planned) -> Result<(), ReconcileError> {
        if !has_finalizer(operator) {
            return Ok(());
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
            return self.report(operator, &Outcome::Deleting { deployment, invalid }).await;
        }
        if removal.deployment.is_none() && !removal.is_wanted && !removal.is_orphaned {
            Box::pin(self.platform.remove_namespace(operator, planned)).await;
        }
        let mut names = operator.finalizers().to_vec();
        names.retain(|finalizer| finalizer != TEARDOWN_FINALIZER);
        ignore_absent(finalizers::write(&self.api(), operator, &names).await)?;
        Ok(())
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
    type Error = ReconcileError;

    async fn reconcile(&self, operator: &PlatformOperator) -> Result<Action, ReconcileError> {
        if !self.platform.ready().await {
            return Ok(Action::await_change());
        }
        let is_deleted = operator.metadata.deletion_timestamp.is_some();
        if !is_deleted {
            self.finalize(operator).await?;
        }
        let planned = match self.platform.apply().await {
            Ok(planned) => planned,
            Err(error) => {
                if let (ReconcileError::Request(request @ kube::Error::Api(status)), false) = (&error, is_deleted)
                    && !status.is_conflict()
                {
                    self.report(operator, &Outcome::Failed(chandler_source::api_message(request))).await?;
                }
                return Err(error);
            }
        };
        if is_deleted {
            self.tear_down(operator, &planned).await?;
        } else {
            Box::pin(self.settle(operator, planned)).await?;
        }
        self.backoff.succeeded(&operator.name_any());
        Ok(Action::await_change())
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
