//! Executes decisions.

use futures::future::join_all;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};

use super::{
    action::{Action, Note},
    kind::{Key, Kind},
};
use crate::metadata;

/// The field manager of the simulation.
const MANAGER: &str = "devcluster-workloads";
/// How many objects are created in parallel for one decision at first, and at most.
const FEW: usize = 4;
const MANY: usize = 32;

/// The API server's response to an action.
#[derive(Debug)]
pub(super) enum Done {
    Stored(Kind, Value),
    Deleted(Key, String),
    Told(Note),
}

/// Why a decision was not carried out to its end.
#[derive(Debug)]
pub(super) enum Failure {
    /// The objects have changed since the decision; the watches will report the change.
    Outdated,
    /// The namespace goes away, so that nothing can be created in it.
    Terminating,
    /// An object was refused.
    Refused(String),
    /// Something else; trying again may help.
    Failed(String),
}

/// The result of a decision.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) done: Vec<Done>,
    pub(super) failure: Option<Failure>,
}

/// Carries out actions in order until one fails.
///
/// Objects that are created one after another are created in parallel, few at first: what would be refused is refused to
/// few. Requests in flight are awaited, since an object that the cache misses would be created again.
pub(super) async fn execute(client: &Client, actions: Vec<Action>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut actions = actions.into_iter().peekable();
    let mut side_by_side = FEW;
    while outcome.failure.is_none()
        && let Some(action) = actions.next()
    {
        let mut batch = vec![action];
        while batch.iter().all(is_creation)
            && batch.len() < side_by_side
            && let Some(next) = actions.next_if(is_creation)
        {
            batch.push(next);
        }
        side_by_side = (2 * side_by_side).min(MANY);
        for (done, failure) in join_all(batch.into_iter().map(|action| act(client, action))).await {
            outcome.done.extend(done);
            outcome.failure = outcome.failure.or(failure);
        }
    }
    outcome
}

fn is_creation(action: &Action) -> bool {
    matches!(action, Action::Create { .. })
}

async fn act(client: &Client, action: Action) -> (Vec<Done>, Option<Failure>) {
    match action {
        Action::Tell(note) => (vec![Done::Told(note)], None),
        Action::Create { kind, object, note, failure } => create(client, kind, object, note, failure).await,
        Action::Delete { key, uid, now, note } => {
            let mut parameters = DeleteParams {
                preconditions: Some(Preconditions { uid: Some(uid.clone()), resource_version: None }),
                ..DeleteParams::background()
            };
            if now {
                parameters.grace_period_seconds = Some(0);
            }
            match api(client, &key).delete(&key.name, &parameters).await {
                Ok(answer) => {
                    let left = answer.left().and_then(|object| stored(key.kind, &object));
                    let gone = left.filter(|left| matches!(left, Done::Stored(_, object) if metadata::is_deleting(object) && is_held(object)));
                    let mut done = vec![gone.unwrap_or(Done::Deleted(key, uid))];
                    done.extend(note.map(Done::Told));
                    (done, None)
                }
                Err(error) if is_code(&error, 404) => (vec![Done::Deleted(key, uid)], None),
                Err(error) => (Vec::new(), Some(failure_of(&error, false))),
            }
        }
        Action::Change { key, change } => {
            let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            written(key.kind, api(client, &key).patch(&key.name, &parameters, &Patch::Merge(&change)).await)
        }
        Action::Status { key, change } => {
            let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            written(key.kind, api(client, &key).patch_status(&key.name, &parameters, &Patch::Merge(&change)).await)
        }
        Action::Bind { key, uid, node } => bind(client, &key, &uid, &node).await,
    }
}

/// Whether a deleted object stays for a while: finalizers keep it, or its grace period runs.
fn is_held(object: &Value) -> bool {
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    grace > 0 || !metadata::finalizers(object).is_empty()
}

fn api(client: &Client, key: &Key) -> Api<DynamicObject> {
    let resource = key.kind.resource();
    if key.namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), &key.namespace, &resource)
    }
}

async fn create(
    client: &Client,
    kind: Kind,
    object: Value,
    note: Option<Note>,
    failure: Option<Note>,
) -> (Vec<Done>, Option<Failure>) {
    let key = Key::of(kind, &object);
    let object: DynamicObject = match serde_json::from_value(object) {
        Ok(object) => object,
        Err(error) => return (Vec::new(), Some(Failure::Refused(error.to_string()))),
    };
    let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    match api(client, &key).create(&parameters, &object).await {
        Ok(created) => {
            let name = created.metadata.name.clone().unwrap_or_default();
            let mut done: Vec<Done> = stored(kind, &created).into_iter().collect();
            let told = note.map(|note| Note { message: note.message.replace("{name}", &name), ..note });
            done.extend(told.map(Done::Told));
            (done, None)
        }
        Err(error) => {
            let failed = failure_of(&error, true);
            let told = match (&failed, failure) {
                (Failure::Refused(why), Some(note)) => {
                    vec![Done::Told(Note { message: note.message.replace("{error}", why), ..note })]
                }
                _ => Vec::new(),
            };
            (told, Some(failed))
        }
    }
}

async fn bind(client: &Client, key: &Key, uid: &str, node: &str) -> (Vec<Done>, Option<Failure>) {
    let (namespace, name) = (&key.namespace, &key.name);
    let body = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "target": {"kind": "Node", "name": node},
    });
    let request = http::Request::post(format!("/api/v1/namespaces/{namespace}/pods/{name}/binding"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body.to_string().into_bytes());
    let Ok(request) = request else {
        return (Vec::new(), Some(Failure::Refused(format!("{namespace}/{name} cannot stand in a path"))));
    };
    match client.request::<Value>(request).await {
        // The response does not hold the Pod.
        Ok(_) => written(key.kind, api(client, key).get(name).await),
        Err(error) => (Vec::new(), Some(failure_of(&error, false))),
    }
}

fn written(kind: Kind, answer: kube::Result<DynamicObject>) -> (Vec<Done>, Option<Failure>) {
    match answer {
        Ok(object) => (stored(kind, &object).into_iter().collect(), None),
        Err(error) => (Vec::new(), Some(failure_of(&error, false))),
    }
}

fn stored(kind: Kind, object: &DynamicObject) -> Option<Done> {
    serde_json::to_value(object).ok().map(|object| Done::Stored(kind, object))
}

fn is_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

fn failure_of(error: &kube::Error, creates: bool) -> Failure {
    match error {
        kube::Error::Api(status) => {
            let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
            let terminating = causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
                || (status.code == 403 && status.message.contains("is being terminated"));
            match status.code {
                _ if terminating => Failure::Terminating,
                404 | 409 => Failure::Outdated,
                429 | 500.. => Failure::Failed(status.message.clone()),
                _ if creates => Failure::Refused(status.message.clone()),
                _ => Failure::Failed(status.message.clone()),
            }
        }
        other => Failure::Failed(other.to_string()),
    }
}
