//! What probes and scrapes learn of this controller.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    convert::Infallible,
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_api::{
    Alert, BundleDeployment, BundleSource, Catalog, ConditionStatus, ConditionType, PlatformOperator, PlatformPolicy,
    ProvisionerClass, Receiver, Resolution, find_condition,
};
use chandler_client::{Observer, measured, traced};
use chandler_core::Reason;
use chandler_engine::Engine;
use chandler_monitoring::{CallOutcome, ConditionCount, Health, HostClass, Metrics, Phase, State, bounded::OTHER};
use chandler_runtime::{Cache, Guarded, LogMetrics, Outcome, Shutdown};
use chandler_serve::{MetricsListener, ProbeListener, ServeError};
use chandler_tls::TlsSettings;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Client, Resource};
use tokio::sync::watch;

use crate::Options;

/// What is known and measured of this controller. Clones share it.
#[derive(Clone)]
pub(crate) struct Monitoring {
    pub(crate) health: Health,
    pub(crate) metrics: Arc<Metrics>,
}

/// The addresses for probes and scrapes, which are bound.
pub(crate) struct Listeners {
    probes: Option<ProbeListener>,
    scrapes: Option<MetricsListener>,
}

impl Listeners {
    /// Binds the addresses that the options name.
    pub(crate) fn bind(options: &Options) -> Result<Self, ServeError> {
        let scrapes = options.metrics.clone();
        Ok(Self {
            probes: options.probe_address.map(ProbeListener::bind).transpose()?,
            scrapes: scrapes.map(|it| MetricsListener::bind(it, &options.system_namespace)).transpose()?,
        })
    }

    /// Answers probes and scrapes. Completes only with a failure: a controller that stops is alive until it has ended.
    pub(crate) async fn serve(
        self,
        client: Client,
        monitoring: Monitoring,
        tls: watch::Receiver<TlsSettings>,
    ) -> Result<Infallible, ServeError> {
        let Monitoring { health, metrics } = monitoring;
        let probes = async {
            match self.probes {
                Some(listener) => listener.serve(health, std::future::pending()).await,
                None => Ok(()),
            }
        };
        let scrapes = async {
            match self.scrapes {
                Some(listener) => listener.serve(client, metrics, tls, std::future::pending()).await,
                None => Ok(()),
            }
        };
        futures::future::try_join(probes, scrapes).await?;
        std::future::pending().await
    }
}

impl Default for Monitoring {
    fn default() -> Self {
        let health = Health::default();
        Self { metrics: Arc::new(Metrics::new(env!("CARGO_PKG_VERSION"), health.clone())), health }
    }
}

impl Monitoring {
    /// This client, with its requests measured, and traced where a reconcile makes them.
    pub(crate) fn measured(&self, client: &Client) -> Client {
        let metrics = Arc::clone(&self.metrics);
        let observer: Observer = Arc::new(move |request, code, duration| {
            metrics.requested(request.verb, request.resource, code, duration);
        });
        measured(&traced(client, chandler_traces::inject), observer)
    }
}

/// Notes when the controller is asked to stop. Never completes.
pub(crate) async fn note_shutdown(health: Health, shutdown: Shutdown) {
    shutdown.await;
    health.note(Phase::Stopping);
    std::future::pending::<()>().await;
}

/// Measures and logs reconciles.
pub(crate) struct Reconciles(pub(crate) Arc<Metrics>);

impl chandler_runtime::Metrics for Reconciles {
    fn reconciled(&self, kind: &str, outcome: Outcome, reason: Option<Reason>, duration: Duration) {
        LogMetrics.reconciled(kind, outcome, reason, duration);
        self.0.reconciled(kind, outcome.as_str(), reason.map_or(OTHER, Reason::as_str), duration);
    }
}

/// The reason of the condition `Ready`.
pub(crate) fn ready_reason(conditions: &[Condition]) -> Option<Reason> {
    Reason::from_name(&find_condition(conditions, ConditionType::Ready)?.reason)
}

/// The content of a source was obtained, or not for this reason.
pub(crate) fn note_fetch(metrics: &Metrics, source: &BundleSource, began: Instant, failure: Option<&'static str>) {
    let known =
        [BundleSource::IMAGE, BundleSource::CONFIG_MAPS, BundleSource::GIT, BundleSource::HTTP, BundleSource::UPLOAD];
    let kind = known.into_iter().find(|known| *known == source.kind).unwrap_or(OTHER);
    let image = source.image.as_ref().map(|image| image.reference.as_str());
    let git = source.git.as_ref().map(|git| git.repository.as_str());
    let http = source.http.as_ref().map(|http| http.url.as_str());
    let host = image.or(git).or(http).map_or(HostClass::None, HostClass::of_location);
    let outcome = failure.map_or(CallOutcome::Completed, CallOutcome::Failed);
    metrics.fetched(kind, host, outcome, began.elapsed());
}

/// The objects that the controller reconciles.
pub(crate) struct Objects {
    pub(crate) deployments: Cache<Guarded<BundleDeployment>>,
    pub(crate) classes: Cache<Guarded<ProvisionerClass>>,
    pub(crate) catalogs: Cache<Guarded<Catalog>>,
    pub(crate) resolutions: Cache<Guarded<Resolution>>,
    pub(crate) operators: Cache<Guarded<PlatformOperator>>,
    pub(crate) policies: Cache<Guarded<PlatformPolicy>>,
    pub(crate) receivers: Cache<Guarded<Receiver>>,
    pub(crate) alerts: Cache<Guarded<Alert>>,
}

impl Objects {
    /// Waits for the first list of every kind. False means that the controller is stopping.
    pub(crate) async fn listed(&self) -> bool {
        self.deployments.ready().await
            && self.classes.ready().await
            && self.catalogs.ready().await
            && self.resolutions.ready().await
            && self.operators.ready().await
            && self.policies.ready().await
            && self.receivers.ready().await
            && self.alerts.ready().await
    }

    /// What the controller holds now.
    pub(crate) fn state(&self, engine: &Engine) -> State {
        let mut counts = Counts::default();
        let mut revisions = BTreeMap::<_, usize>::new();
        for guarded in self.deployments.state() {
            let status = guarded.0.as_ref().ok().and_then(|deployment| deployment.status.as_ref());
            for revision in status.iter().flat_map(|status| &status.history) {
                *revisions.entry(revision.outcome.as_str()).or_default() += 1;
            }
        }
        counts.add(&self.deployments, |object| conditions(object.status.as_ref().map(|status| &status.conditions)));
        counts.add(&self.classes, |object| conditions(object.status.as_ref().map(|status| &status.conditions)));
        counts.add(&self.catalogs, |object| conditions(object.status.as_ref().map(|status| &status.conditions)));
        counts.add(&self.resolutions, |object| conditions(object.status.as_ref().map(|status| &status.conditions)));
        counts.add(&self.operators, |object| conditions(object.status.as_ref().map(|status| &status.conditions)));
        counts.add(&self.policies, |object| conditions(object.status.as_ref().map(|status| &status.conditions)));
        counts.add(&self.receivers, |object| conditions(object.status.as_ref().map(|status| &status.conditions)));
        counts.add(&self.alerts, |object| conditions(object.status.as_ref().map(|status| &status.conditions)));
        let statistics = engine.statistics();
        State {
            objects: counts.objects,
            conditions: counts.conditions.into_iter().collect(),
            revisions: revisions.into_iter().collect(),
            compiled: statistics.compiled,
            cached: statistics.cache_hits,
            rejected: statistics.cache_rejects,
            ..State::default()
        }
    }
}

fn conditions(conditions: Option<&Vec<Condition>>) -> &[Condition] {
    conditions.map(Vec::as_slice).unwrap_or_default()
}

/// The name of a kind.
fn kind<K: Resource<DynamicType = ()>>() -> &'static str {
    match K::kind(&()) {
        Cow::Borrowed(kind) => kind,
        Cow::Owned(_) => OTHER,
    }
}

#[derive(Default)]
struct Counts {
    objects: Vec<(&'static str, usize)>,
    conditions: BTreeMap<ConditionCount, usize>,
}

impl Counts {
    fn add<K>(&mut self, cache: &Cache<Guarded<K>>, conditions: impl Fn(&K) -> &[Condition])
    where
        K: Resource<DynamicType = ()> + Clone + 'static,
    {
        let (objects, kind) = (cache.state(), kind::<K>());
        self.objects.push((kind, objects.len()));
        for guarded in &objects {
            for condition in guarded.0.iter().flat_map(&conditions) {
                if let Some(count) = counted(kind, condition) {
                    *self.conditions.entry(count).or_default() += 1;
                }
            }
        }
    }
}

/// The labels of a condition, with names of constants only: other clients may write a status.
fn counted(kind: &'static str, condition: &Condition) -> Option<ConditionCount> {
    Some(ConditionCount {
        kind,
        condition: ConditionType::from_name(&condition.type_)?.as_str(),
        status: ConditionStatus::from_name(&condition.status)?.as_str(),
        reason: Reason::from_name(&condition.reason).map_or(OTHER, Reason::as_str),
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    #[test]
    fn labels_are_names_of_constants() {
        let count = |type_: &str, status: &str, reason: &str| {
            counted(
                "Catalog",
                &Condition {
                    type_: type_.to_owned(),
                    status: status.to_owned(),
                    reason: reason.to_owned(),
                    message: String::new(),
                    last_transition_time: Time(Timestamp::UNIX_EPOCH),
                    observed_generation: None,
                },
            )
        };
        let known = count("Ready", "False", "PermissionsMissing").expect("a condition of ours");
        assert_eq!((known.condition, known.status, known.reason), ("Ready", "False", "PermissionsMissing"));
        assert_eq!(count("Ready", "True", "tenant-1234").map(|it| it.reason), Some(OTHER));
        assert_eq!(count("tenant-1234", "True", "Succeeded"), None);
        assert_eq!(count("Ready", "maybe", "Succeeded"), None);
    }
}
