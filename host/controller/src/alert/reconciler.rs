//! Which Alerts are in use, and their status.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_api::{Alert, AlertStatus};
use chandler_runtime::{
    Backoff, Cache, Guarded, KindController, Metrics, Next, Reconciler, Reflector, Report, Shutdown, decode,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::{Api, ResourceExt as _, core::error_boundary::InvalidObject};

use super::{
    delivery::Delivery,
    lanes::Lanes,
    status::{self, Found},
};
use crate::{cluster::Cluster, monitoring::ready_reason, status::StatusError};

/// The longest pause before what is missing or invalid is looked for again. A change of a Secret is noticed at once.
const CHECK: Duration = Duration::from_mins(10);
/// The shortest pause before that.
const AGAIN: Duration = Duration::from_secs(10);

/// The status could not be written.
pub(crate) type ReconcileError = StatusError<Alert>;

/// The reconciler of Alerts. Its conditions have no Events: an Alert about Alerts would report its own failures.
pub(crate) struct Alerts {
    cluster: Arc<Cluster>,
    lanes: Arc<Lanes>,
    delivery: Arc<Delivery>,
    cache: Cache<Guarded<Alert>>,
    backoff: Backoff,
}

impl Alerts {
    /// The reconciler, which keeps `lanes` as the Alerts of the cluster are.
    pub(crate) fn new(
        cluster: &Arc<Cluster>,
        lanes: &Arc<Lanes>,
        delivery: &Arc<Delivery>,
        reflector: &Reflector<Alert>,
    ) -> Self {
        let (cluster, lanes, delivery) = (Arc::clone(cluster), Arc::clone(lanes), Arc::clone(delivery));
        Self { cluster, lanes, delivery, cache: reflector.cache(), backoff: Backoff::default() }
    }

    /// Uses all Alerts before anything is reconciled, so that no change after a restart is missed.
    ///
    /// # Errors
    /// The API server cannot list the Alerts.
    pub(crate) async fn preload(&self) -> Result<(), kube::Error> {
        let alerts = Api::<Guarded<Alert>>::all(self.cluster.client.clone());
        let alerts = alerts.list(&self.cluster.options.watch_selector.list()).await?;
        alerts.items.iter().filter_map(|guarded| decode(guarded).ok()).for_each(|alert| self.observed(alert));
        Ok(())
    }

    /// The controller.
    pub(crate) fn controller(
        self,
        reflector: Reflector<Alert>,
        metrics: Arc<dyn Metrics>,
        shutdown: &Shutdown,
    ) -> KindController<Self> {
        let api = Api::all(self.cluster.client.clone());
        let selection = self.cluster.options.watch_selector.watch();
        KindController::new(reflector, api, selection, Arc::new(self), metrics, shutdown)
    }
}

impl Reconciler for Alerts {
    type Object = Alert;
    type Status = AlertStatus;
    type Error = ReconcileError;

    async fn reconcile(&self, alert: &Alert) -> Result<Report<AlertStatus>, ReconcileError> {
        let name = alert.name_any();
        if alert.metadata.deletion_timestamp.is_some() {
            self.lanes.remove(&name);
            return Ok(Report::nothing());
        }
        // One may have been deleted since this one was too many.
        self.lanes.configure(alert);
        let lane = self.lanes.lane(&name);
        let observed = alert.status.as_ref().and_then(|status| status.observed_generation);
        let pause = lane.as_ref().and_then(|lane| lane.before_write(Instant::now()));
        if let Some(pause) = pause.filter(|_| observed == alert.metadata.generation) {
            return Ok(Report { status: None, next: Next::After(pause) });
        }
        let found = match lane {
            Some(lane) => {
                let endpoint = self.delivery.endpoint(&alert.spec.provider).await.map(drop);
                Found::Endpoint(endpoint, lane.known())
            }
            None => Found::TooMany,
        };
        let next = match &found {
            Found::Endpoint(Ok(()), _) => Next::Change,
            Found::Endpoint(Err(_), _) | Found::TooMany => Next::Retry { at_least: AGAIN, at_most: Some(CHECK) },
        };
        Ok(Report { status: Some(status::derive(alert, &found, Timestamp::now())), next })
    }

    /// An error means that the status could not be written.
    fn failed(&self, _: &Alert, _: &ReconcileError, _: u32) -> Option<AlertStatus> {
        None
    }

    fn status(alert: &Alert) -> Option<&AlertStatus> {
        alert.status.as_ref()
    }

    fn reason(status: &AlertStatus) -> Option<chandler_core::Reason> {
        ready_reason(&status.conditions)
    }

    async fn written(&self, alert: &Alert, _: Option<&AlertStatus>, _: &AlertStatus) {
        if let Some(lane) = self.lanes.lane(&alert.name_any()) {
            lane.note_write(Instant::now());
        }
    }

    fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// What it wants is unknown.
    async fn undecodable(&self, guarded: &Guarded<Alert>, _: &InvalidObject) -> Result<(), ReconcileError> {
        self.lanes.remove(&guarded.name_any());
        Ok(())
    }

    fn observed(&self, alert: &Alert) {
        if alert.metadata.deletion_timestamp.is_none() {
            self.lanes.configure(alert);
        }
    }

    fn removed(&self, alert: &ObjectMeta) {
        let name = alert.name.as_deref().unwrap_or_default();
        self.backoff.succeeded(name);
        self.lanes.remove(name);
    }

    fn listed(&self) {
        self.lanes.retain(&self.cache.state().iter().map(|guarded| guarded.name_any()).collect());
    }
}
