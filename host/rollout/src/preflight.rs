//! What is refused before any field of any object is written.

use std::collections::BTreeSet;

use futures::FutureExt as _;
use kube::api::ApiResource;
use serde_json::Value;

use crate::{
    apply::take_over,
    cluster::{Cluster, about},
    concurrent::all,
    desired::Desired,
    error::{ObjectFailure, Problem, RolloutError},
    existing_owner::Collision,
    fields::{self, FieldDrift},
    owner::Owner,
    plan::{Action, Situation},
    replace,
    report::Conflict,
    resolve::is_crd,
};

/// Refuses a release with objects that somebody else has.
pub(crate) fn refuse_collisions(
    owner: &Owner,
    desired: &[Desired],
    situations: &[Situation],
) -> Result<(), RolloutError> {
    let found: Vec<Collision> = desired
        .iter()
        .zip(situations)
        .filter_map(|(desired, situation)| match situation {
            Situation::Foreign(existing_owner) => {
                Some(Collision { object: desired.key.clone(), existing_owner: existing_owner.clone() })
            }
            _ => None,
        })
        .collect();
    if found.is_empty() { Ok(()) } else { Err(owner.refuse(found)) }
}

/// Refuses a release with objects in namespaces that neither exist nor come with it.
pub(crate) async fn check_namespaces(
    cluster: &Cluster,
    owner: &Owner,
    desired: &[Desired],
    situations: &[Situation],
) -> Result<(), RolloutError> {
    let own: BTreeSet<&str> = desired
        .iter()
        .filter(|desired| desired.key.group.is_empty() && desired.key.kind == "Namespace")
        .map(|desired| desired.key.name.as_str())
        .collect();
    let created = desired.iter().zip(situations).filter(|(_, situation)| **situation == Situation::Absent);
    let needed: BTreeSet<&str> = created
        .filter_map(|(desired, _)| desired.key.namespace.as_deref())
        .chain([owner.install_namespace.as_str()])
        .filter(|namespace| !own.contains(namespace))
        .collect();
    let namespaces = ApiResource::erase::<k8s_openapi::api::core::v1::Namespace>(&());
    let mut missing = Vec::new();
    for namespace in needed {
        let found = cluster
            .get(&namespaces, None, namespace)
            .await
            .map_err(|problem| RolloutError::Request { action: format!("read namespace {namespace}"), problem })?;
        if found.is_none() {
            missing.push(namespace.to_owned());
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(RolloutError::NamespacesNotFound(missing)) }
}

/// Has the API server check every object that is to be created or updated, so that an illegal field or the change of an
/// immutable one is found while the old release is still whole.
///
/// Also tells which fields are taken over from others who apply them, too.
///
/// Only what the API server calls invalid counts. Everything else may be the fault of the dry run itself: of a namespace or a
/// service account that comes with the release, or of a webhook that does not support dry runs.
pub(crate) async fn dry_run(
    cluster: &Cluster,
    desired: &[Desired],
    situations: &[Situation],
    live: &mut [Option<Value>],
) -> Result<Vec<Conflict>, RolloutError> {
    let redefined = redefined_kinds(desired, situations);
    let checks = desired.iter().zip(situations).zip(live).filter_map(|((desired, situation), live)| {
        let action = situation.action();
        (can_be_dry_run(desired, &redefined) && matches!(action, Action::Create | Action::Update | Action::Adopt))
            .then(|| check(cluster, desired, action, live).boxed())
    });
    let (mut conflicts, mut failures) = (Vec::new(), Vec::new());
    for result in all(checks.collect()).await {
        match result {
            Ok(conflict) => conflicts.extend(conflict),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() { Ok(conflicts) } else { Err(RolloutError::Objects(failures)) }
}

async fn check(
    cluster: &Cluster,
    desired: &Desired,
    action: Action,
    live: &mut Option<Value>,
) -> Result<Option<Conflict>, ObjectFailure> {
    // Without this a field that the release dropped would stay in the dry run.
    if let (Some(object), Action::Update) = (live.as_mut(), action) {
        let taken_over = take_over(cluster, desired, object).await;
        if let Some(taken_over) = taken_over.map_err(about(&desired.key, verb(action)))? {
            *object = taken_over;
        }
    }
    match rehearse(cluster, desired, action, live.as_ref()).await {
        Ok(applied) => Ok(live.as_ref().and_then(|live| conflict(desired, live, &applied))),
        Err(problem) => refused(desired, action, &problem).map_or(Ok(None), Err),
    }
}

/// What a write would make of an object, as the API server says in a dry run.
pub(crate) async fn rehearse(
    cluster: &Cluster,
    desired: &Desired,
    action: Action,
    live: Option<&Value>,
) -> Result<Value, Problem> {
    match live {
        None => cluster.create(desired, true).await,
        // Nothing of somebody else's is touched before everything was checked.
        Some(live) if action == Action::Adopt => cluster.dry_run(&desired.unowned(), live).await,
        Some(live) => replace::foresee(cluster, desired, live).await,
    }
}

/// The refusal that a failed dry run stands for; none where it may be the fault of the dry run.
pub(crate) fn refused(desired: &Desired, action: Action, problem: &Problem) -> Option<ObjectFailure> {
    matches!(problem, Problem::Invalid(_)).then(|| about(&desired.key, verb(action))(problem.clone()))
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Adopt => "take over",
        _ => "update",
    }
}

/// Which fields applying takes over from others who apply them, too: where it would be refused were it not forced.
fn conflict(desired: &Desired, live: &Value, applied: &Value) -> Option<Conflict> {
    let fields: Vec<FieldDrift> = fields::drift(live, applied)
        .into_iter()
        .filter(|field| field.manager.as_ref().is_some_and(|manager| manager.applies))
        .collect();
    (!fields.is_empty()).then(|| Conflict { object: desired.key.clone(), fields })
}

/// Whether a dry run of this object says anything.
pub(crate) fn can_be_dry_run(desired: &Desired, redefined: &BTreeSet<(&str, &str)>) -> bool {
    desired.served && !redefined.contains(&(desired.key.group.as_str(), desired.key.kind.as_str()))
}

/// The groups and kinds whose schemas this release is about to change: a dry run would check them against the old ones.
pub(crate) fn redefined_kinds<'a>(desired: &'a [Desired], situations: &[Situation]) -> BTreeSet<(&'a str, &'a str)> {
    desired
        .iter()
        .zip(situations)
        .filter(|(desired, situation)| is_crd(&desired.key) && situation.action() != Action::Keep)
        .filter_map(|(desired, _)| {
            let text = |pointer: &str| desired.value.pointer(pointer).and_then(Value::as_str);
            Some((text("/spec/group")?, text("/spec/names/kind")?))
        })
        .collect()
}
