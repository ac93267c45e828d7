//! Writes the BundleDeployments of decisions, and reports on the ConfigMaps.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    sync::Arc,
    time::Duration,
};

use chandler_api::{BundleDeployment, BundleDeploymentSpec};
use chandler_runtime::{Backoff, Notice, events::EventType};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;

use super::{
    annotations::{CREATED, Refusal, deployment_name, is_set_name},
    claims::{Candidate, Claims, Map, Note},
    plan::{Known, Plan, plan},
    queue::DecisionQueue,
};
use crate::{
    absent::{self, ignore_absent},
    cluster::Cluster,
    deployments::Deployments,
};

/// The longest wait before a set is tried again whose requests fail.
const LONGEST: Duration = Duration::from_mins(5);

/// A set could not be written.
#[derive(Debug, thiserror::Error)]
enum SetError {
    /// The API server refused a request, or did not answer.
    #[error("failed to write the set: {}", chandler_source::api_message(.0))]
    Request(#[from] kube::Error),
    /// A spec cannot be compared.
    #[error("failed to write the set as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Writes the sets that ConfigMaps decide.
pub(crate) struct Worker {
    cluster: Arc<Cluster>,
    known: Deployments,
    queue: Arc<DecisionQueue>,
    maps: Api<ConfigMap>,
    deployments: Api<BundleDeployment>,
    backoff: Backoff,
    /// The last message about each ConfigMap, by UID: it is published once.
    reported: BTreeMap<String, String>,
}

impl Worker {
    /// Sends no request yet.
    pub(crate) fn new(cluster: &Arc<Cluster>, known: &Deployments, queue: &Arc<DecisionQueue>) -> Self {
        let Cluster { client, options, .. } = cluster.as_ref();
        Self {
            maps: Api::namespaced(client.clone(), &options.system_namespace),
            deployments: Api::all(client.clone()),
            cluster: Arc::clone(cluster),
            known: known.clone(),
            queue: Arc::clone(queue),
            backoff: Backoff::default(),
            reported: BTreeMap::new(),
        }
    }

    /// Looks at each set that changed. Never ends.
    pub(crate) async fn run(mut self) {
        // Before the first list, a BundleDeployment is not known to be selected.
        if !self.known.ready().await {
            return pending().await;
        }
        loop {
            let again = self.pass().await;
            match again {
                None => self.queue.changed().await,
                Some(again) => tokio::select! {
                    () = self.queue.changed() => {}
                    _ = self.cluster.availability.pause(again, LONGEST) => {}
                },
            }
        }
    }

    /// Looks at the sets that changed. Returns when to retry the sets that failed.
    async fn pass(&mut self) -> Option<Duration> {
        let sets = self.queue.take();
        if sets.is_empty() {
            return None;
        }
        let all = match self.maps.list_metadata(&ListParams::default()).await {
            Ok(all) => all.items,
            Err(error) => {
                tracing::debug!(%error, "failed to list the ConfigMaps of the system namespace");
                let again = self.backoff.failed("");
                self.queue.again(sets);
                return Some(again);
            }
        };
        self.backoff.succeeded("");
        self.forget_absent(&all);
        let mut again = Vec::new();
        for set in sets {
            let selector = &self.cluster.options.watch_selector;
            let claims = Claims::of(&set, &all, |labels| selector.matches(labels));
            match self.reconcile(&set, &claims, Note::of(&set, &all)).await {
                Ok(()) => self.backoff.succeeded(&set),
                Err(error) => {
                    tracing::debug!(set, %error, "failed to write a set");
                    if let Some(newest) = claims.candidates.first() {
                        self.report(newest.map, EventType::Warning, "DecisionFailed", &error.to_string()).await;
                    }
                    again.push(self.backoff.failed(&set));
                    self.queue.again([set]);
                }
            }
        }
        again.into_iter().min()
    }

    fn forget_absent(&mut self, all: &[Map]) {
        let names: BTreeSet<&str> = all.iter().filter_map(|map| map.metadata.name.as_deref()).collect();
        let uids: BTreeSet<&str> = all.iter().filter_map(|map| map.metadata.uid.as_deref()).collect();
        self.queue.retain(|name| names.contains(name));
        self.reported.retain(|uid, _| uids.contains(uid.as_str()));
    }

    async fn reconcile(&mut self, set: &str, claims: &Claims<'_>, note: Note<'_>) -> Result<(), SetError> {
        for (map, refusal) in &claims.refused {
            self.refuse(map, refusal).await;
        }
        if !is_set_name(set) {
            return Ok(());
        }
        if !self.cluster.options.decisions_from_config_maps {
            if let Some(newest) = claims.candidates.first() {
                self.refuse(newest.map, &Refusal::Disabled).await;
            }
            return Ok(());
        }
        let chosen = self.choose(&claims.candidates).await?;
        let existing = self.deployments.get_opt(&deployment_name(set)).await?;
        let known = Known {
            set,
            candidates: &claims.candidates,
            chosen,
            claimed: claims.exist,
            existing: existing.as_ref(),
            selected: existing.as_ref().is_some_and(|it| self.cluster.options.watch_selector.matches(it.labels())),
            note,
        };
        match (plan(&known)?, chosen, &existing) {
            (Plan::Refuse(refusal), Some(chosen), _) => self.refuse(chosen.map, &refusal).await,
            (Plan::Create(spec), Some(chosen), _) => {
                let uid = self.create(set, *spec, chosen).await?;
                self.write_note(set, note, &uid).await?;
                self.accept(set, chosen).await;
            }
            (Plan::Change { fields, note: is_missing }, Some(chosen), Some(existing)) => {
                if is_missing {
                    self.write_note(set, note, &existing.uid().unwrap_or_default()).await?;
                }
                if !fields.is_empty() {
                    let patch = json!({"metadata": {"uid": existing.uid()}, "spec": fields});
                    let (name, patch) = (existing.name_any(), Patch::Merge(patch));
                    self.deployments.patch(&name, &PatchParams::default(), &patch).await?;
                }
                self.accept(set, chosen).await;
            }
            (Plan::Delete, _, Some(existing)) => absent::delete(&self.deployments, existing).await?,
            (Plan::Forget(uid), ..) => {
                let preconditions = Some(Preconditions { uid, resource_version: None });
                let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
                ignore_absent(self.maps.delete(&deployment_name(set), &parameters).await)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The newest decision that is immutable; the others are refused. The metadata does not show that, so the ConfigMap is read.
    async fn choose<'c>(&mut self, candidates: &'c [Candidate<'c>]) -> Result<Option<&'c Candidate<'c>>, SetError> {
        for candidate in candidates {
            let name = candidate.map.name_any();
            match self.maps.get_opt(&name).await? {
                Some(map) if map.uid() != candidate.map.uid() => {}
                Some(map) if map.immutable == Some(true) => return Ok(Some(candidate)),
                Some(_) => {
                    let namespace = self.cluster.options.system_namespace.clone();
                    self.refuse(candidate.map, &Refusal::Mutable { name, namespace }).await;
                }
                None => {}
            }
        }
        Ok(None)
    }

    async fn create(
        &self,
        set: &str,
        spec: BundleDeploymentSpec,
        decision: &Candidate<'_>,
    ) -> Result<String, kube::Error> {
        let mut deployment = BundleDeployment::new(&deployment_name(set), spec);
        // Other labels of the ConfigMap could make it look like a member of another set.
        let labels = self.cluster.options.watch_selector.needed(decision.map.labels());
        deployment.metadata.labels = Some(labels).filter(|labels| !labels.is_empty());
        let created = self.deployments.create(&PostParams::default(), &deployment).await?;
        Ok(created.uid().unwrap_or_default())
    }

    /// Notes the UID of the BundleDeployment of a set.
    async fn write_note(&self, set: &str, note: Note<'_>, uid: &str) -> Result<(), kube::Error> {
        let (name, annotations) = (deployment_name(set), BTreeMap::from([(CREATED.to_owned(), uid.to_owned())]));
        if let Note::Created { .. } = note {
            let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
            return self.maps.patch(&name, &PatchParams::default(), &patch).await.map(drop);
        }
        let metadata = ObjectMeta { name: Some(name), annotations: Some(annotations), ..ObjectMeta::default() };
        self.maps.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.map(drop)
    }

    async fn accept(&mut self, set: &str, decision: &Candidate<'_>) {
        let deployment = deployment_name(set);
        let account = &decision.terms.account;
        let message = format!(
            "BundleDeployment {deployment} installs this decision, number {} of set {set}, with the permissions of ServiceAccount {}/{}: \
             `chandler explain {deployment}` shows how far it is",
            decision.terms.number,
            account.namespace.as_deref().unwrap_or_default(),
            account.name,
        );
        self.report(decision.map, EventType::Normal, "Decided", &message).await;
    }

    async fn refuse(&mut self, map: &Map, refusal: &Refusal) {
        self.report(map, EventType::Warning, "DecisionRefused", &refusal.to_string()).await;
    }

    /// Publishes an Event about a ConfigMap, unless it was the last one about it.
    async fn report(&mut self, map: &Map, type_: EventType, reason: &str, message: &str) {
        let uid = map.uid().unwrap_or_default();
        if self.reported.get(&uid).is_some_and(|last| last == message) {
            return;
        }
        self.reported.insert(uid, message.to_owned());
        self.cluster.events.publish(map, Notice { type_, reason, action: "Install", message }).await;
    }
}
