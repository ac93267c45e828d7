//! Runs the tests of a bundle: creates their objects, waits, reads the logs, and deletes the objects.
//!
//! An object of this run has the ID of the run in an annotation, and the name of the BundleDeployment in a label. Nothing else is deleted: an object of
//! the same name that `chandler test` did not create is in the way, and the command refuses it before it writes anything.

use std::time::Instant;

use chandler_core::ObjectKey;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, LogParams, PostParams, Preconditions, PropagationPolicy},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::Value;

use super::deployment::Effect;
use crate::{
    CommandError,
    read::{cluster, test_hooks::TestHook},
    view::{
        progress::Progress,
        test_report::{ContainerLog, TestOutcome, TestResult},
        text::one_line,
    },
};

/// The label with the name of the BundleDeployment.
const TEST_OF: &str = "chandler.dev/test-of";
/// The annotation with the ID of the run.
const TEST_RUN: &str = "chandler.dev/test-run";
/// The field manager of the objects.
const FIELD_MANAGER: &str = "chandler-test";
/// The label of Kubernetes on the Pods of a Job.
const JOB_NAME: &str = "job-name";
/// The last lines of a log.
const LINES: i64 = 200;
/// The bytes of a log.
const LOG: i64 = 64 << 10;
/// The Pods of a Job and the containers of a Pod whose logs are read.
const MANY: usize = 10;

/// A run of tests.
pub struct TestRun<'a> {
    /// Reads with the permissions of the user.
    pub client: &'a Client,
    /// Creates and deletes, perhaps as the ServiceAccount of the BundleDeployment.
    pub writer: &'a Client,
    /// The name of the BundleDeployment.
    pub deployment: &'a str,
    /// The ID of the run.
    pub id: String,
}

/// How a test ended, and why it failed.
type Ended = (TestOutcome, Option<String>);

impl TestRun<'_> {
    /// Refuses objects that are in the way.
    ///
    /// # Errors
    /// An object of a test exists that `chandler test` did not create for this BundleDeployment.
    pub async fn check(&self, hooks: &[TestHook]) -> Result<(), CommandError> {
        for hook in hooks {
            let existing = self.existing(hook).await?;
            if existing.is_some_and(|existing| !self.is_own(&existing)) {
                return Err(CommandError::refused(format!(
                    "{} exists, and is not of an earlier test; nothing was changed",
                    hook.key
                ))
                .hint("delete it if it is of `helm test`, or change the name of the test in the chart"));
            }
        }
        Ok(())
    }

    async fn existing(&self, hook: &TestHook) -> Result<Option<DynamicObject>, CommandError> {
        let found = api(self.client, hook).get_opt(&hook.key.name).await;
        found.map_err(|error| failed("read", &hook.key, &error))
    }

    /// Whether `chandler test` created an object for this BundleDeployment.
    fn is_own(&self, object: &DynamicObject) -> bool {
        object.labels().get(TEST_OF).is_some_and(|of| of == self.deployment)
    }

    /// Creates the object, after the one of an earlier run is gone.
    ///
    /// # Errors
    /// The API server refuses it, or the object of an earlier run cannot be deleted.
    pub async fn create(&self, hook: &TestHook, effect: Effect) -> Result<(), CommandError> {
        let is_dry = effect == Effect::Check;
        if let Some(existing) = self.existing(hook).await? {
            if is_dry {
                return Ok(());
            }
            self.delete(hook, &existing).await?;
            self.gone(hook).await?;
        }
        let parameters = PostParams { dry_run: is_dry, field_manager: Some(FIELD_MANAGER.to_owned()) };
        let object = self.object(hook)?;
        let created = api(self.writer, hook).create(&parameters, &object).await;
        created.map(drop).map_err(|error| failed("create", &hook.key, &error))
    }

    /// The object of a test, marked as one of this run.
    fn object(&self, hook: &TestHook) -> Result<DynamicObject, CommandError> {
        let object = serde_json::from_value(Value::Object(hook.value.clone()));
        let mut object: DynamicObject =
            object.map_err(|error| CommandError::failed(format!("{} is not an object", hook.key)).because(&error))?;
        object.labels_mut().insert(TEST_OF.to_owned(), self.deployment.to_owned());
        object.annotations_mut().insert(TEST_RUN.to_owned(), self.id.clone());
        Ok(object)
    }

    async fn delete(&self, hook: &TestHook, object: &DynamicObject) -> Result<(), CommandError> {
        let parameters = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(Preconditions { uid: object.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        match api(self.writer, hook).delete(&hook.key.name, &parameters).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(failed("delete", &hook.key, &error)),
        }
    }

    /// Watches an object until `end` has a result; `None` if the watch ends before.
    async fn watched<T>(
        &self,
        hook: &TestHook,
        mut end: impl FnMut(Option<DynamicObject>) -> Option<T>,
    ) -> Result<Option<T>, CommandError> {
        let mut observed = watcher::watch_object(api(self.client, hook), &hook.key.name).default_backoff().boxed();
        while let Some(event) = observed.next().await {
            match event {
                Ok(object) => {
                    if let Some(found) = end(object) {
                        return Ok(Some(found));
                    }
                }
                Err(error) => interrupted(&hook.key, &error)?,
            }
        }
        Ok(None)
    }

    /// Waits until an object does not exist.
    async fn gone(&self, hook: &TestHook) -> Result<(), CommandError> {
        self.watched(hook, |object| object.is_none().then_some(())).await.map(drop)
    }

    /// Deletes the object of this run, if it exists.
    ///
    /// # Errors
    /// It cannot be read or deleted.
    pub async fn discard(&self, hook: &TestHook) -> Result<(), CommandError> {
        match self.existing(hook).await? {
            Some(existing) if existing.annotations().get(TEST_RUN) == Some(&self.id) => {
                self.delete(hook, &existing).await
            }
            _ => Ok(()),
        }
    }

    /// Waits until a test has ended.
    ///
    /// # Errors
    /// The user may not watch it.
    pub async fn ended(&self, hook: &TestHook, progress: &mut Progress) -> Result<Ended, CommandError> {
        let failed = |why: &str| (TestOutcome::Failed, Some(why.to_owned()));
        let ended = self.watched(hook, |object| {
            let Some(object) = object else { return Some(failed("it was deleted before it ended")) };
            if object.annotations().get(TEST_RUN) != Some(&self.id) {
                return Some(failed("another object has taken its place"));
            }
            let value = serde_json::to_value(object).unwrap_or_default();
            let ended = end(&hook.key.kind, &value);
            if ended.is_none() {
                progress.wait(&format!("{}: {}", hook.key, waiting(&value)));
            }
            ended
        });
        Ok(ended.await?.unwrap_or_else(|| failed("it could not be watched")))
    }

    /// The Pods of the Job of this run. Pods of an earlier Job of the same name may still exist.
    async fn pods_of_job(&self, hook: &TestHook, pods: &Api<Pod>) -> kube::Result<Vec<Pod>> {
        let job = api(self.client, hook).get_opt(&hook.key.name).await?;
        let job = job.filter(|job| job.annotations().get(TEST_RUN) == Some(&self.id));
        let Some(uid) = job.and_then(|job| job.uid()) else { return Ok(Vec::new()) };
        let of_job = ListParams::default().labels(&format!("{JOB_NAME}={}", hook.key.name)).limit(50);
        let found = pods.list(&of_job).await?.items;
        Ok(found.into_iter().filter(|pod| pod.owner_references().iter().any(|owner| owner.uid == uid)).collect())
    }

    /// The ends of the logs of a test.
    pub async fn logs(&self, hook: &TestHook) -> Vec<ContainerLog> {
        let namespace = hook.key.namespace.as_deref().unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let found = if hook.key.kind == "Job" {
            self.pods_of_job(hook, &pods).await
        } else {
            pods.get_opt(&hook.key.name).await.map(|pod| pod.into_iter().collect())
        };
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                let text = format!("the Pods cannot be read: {}", cluster::cause(&error));
                return vec![ContainerLog { pod: hook.key.name.clone(), container: String::new(), text }];
            }
        };
        let mut logs = Vec::new();
        for pod in found.iter().take(MANY) {
            let Some(spec) = &pod.spec else { continue };
            let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
            for container in containers.take(MANY) {
                let parameters = LogParams {
                    container: Some(container.name.clone()),
                    tail_lines: Some(LINES),
                    limit_bytes: Some(LOG),
                    ..LogParams::default()
                };
                let text = match pods.logs(&pod.name_any(), &parameters).await {
                    Ok(text) => text,
                    Err(error) => format!("the log cannot be read: {}", cluster::cause(&error)),
                };
                logs.push(ContainerLog { pod: pod.name_any(), container: container.name.clone(), text });
            }
        }
        logs
    }
}

fn api(client: &Client, hook: &TestHook) -> Api<DynamicObject> {
    let namespace = hook.key.namespace.as_deref().unwrap_or_default();
    Api::namespaced_with(client.clone(), namespace, &hook.resource)
}

fn failed(what: &str, key: &ObjectKey, error: &kube::Error) -> CommandError {
    CommandError::failed(format!("failed to {what} {key}")).because(error)
}

/// Fails if a watch never begins, since the user may not watch. Other errors are passing ones: the watch begins again.
fn interrupted(key: &ObjectKey, error: &watcher::Error) -> Result<(), CommandError> {
    match error {
        watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) if matches!(error, kube::Error::Api(status) if status.code == 403) => {
            Err(failed("watch", key, error))
        }
        error => {
            tracing::debug!(%error, "the watch was interrupted");
            Ok(())
        }
    }
}

/// The result of a test that has ended now, without its logs.
pub fn result(hook: &TestHook, (outcome, message): Ended, began: Instant) -> TestResult {
    TestResult {
        kind: hook.key.kind.clone(),
        object: hook.key.name.clone(),
        outcome,
        message: message.map(|message| one_line(&message)),
        milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        logs: Vec::new(),
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The statuses of the containers of a Pod.
fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["/status/initContainerStatuses", "/status/containerStatuses"].into_iter().flat_map(|list| items(pod, list))
}

/// How a test has ended, if it has.
fn end(kind: &str, object: &Value) -> Option<Ended> {
    if kind == "Pod" {
        return match text(object, "/status/phase") {
            "Succeeded" => Some((TestOutcome::Succeeded, None)),
            "Failed" => Some((TestOutcome::Failed, Some(pod_failure(object)))),
            _ => None,
        };
    }
    let condition = |name: &str| {
        let mut conditions = items(object, "/status/conditions").iter();
        conditions.find(|condition| (text(condition, "/type"), text(condition, "/status")) == (name, "True"))
    };
    if condition("Complete").is_some() {
        return Some((TestOutcome::Succeeded, None));
    }
    let failure = condition("Failed")?;
    Some((TestOutcome::Failed, Some(joined(text(failure, "/reason"), text(failure, "/message")))))
}

/// Why a Pod failed: the first container that did.
fn pod_failure(pod: &Value) -> String {
    for container in containers(pod) {
        let code = container.pointer("/state/terminated/exitCode").and_then(Value::as_i64).unwrap_or_default();
        if code != 0 {
            let why = joined(text(container, "/state/terminated/reason"), text(container, "/state/terminated/message"));
            let name = text(container, "/name");
            return format!("container {name} ended with exit code {code}: {why}").trim_end_matches(": ").to_owned();
        }
    }
    joined(text(pod, "/status/reason"), text(pod, "/status/message"))
}

/// A reason and a message, of which each may be missing.
fn joined(reason: &str, message: &str) -> String {
    let parts: Vec<&str> = [reason, message].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}

/// What a test waits for.
fn waiting(object: &Value) -> String {
    let waits = containers(object).find_map(|container| {
        let reason = text(container, "/state/waiting/reason");
        (!reason.is_empty()).then(|| joined(reason, text(container, "/state/waiting/message")))
    });
    let phase = text(object, "/status/phase");
    waits.unwrap_or_else(|| if phase.is_empty() { "running".to_owned() } else { phase.to_lowercase() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_test_has_ended_if_its_pod_or_job_has() {
        let terminated = |code: i64| json!({"name": "curl", "state": {"terminated": {"exitCode": code, "reason": "Error", "message": "no answer"}}});
        let pod = |phase: &str, code: i64| json!({"status": {"phase": phase, "containerStatuses": [terminated(code)]}});
        let job = |condition: &str, status: &str| json!({"status": {"conditions": [{"type": condition, "status": status, "reason": "R", "message": "m"}]}});
        let failure = |text: &str| Some((TestOutcome::Failed, Some(text.to_owned())));
        for (kind, object, expected) in [
            ("Pod", json!({}), None),
            ("Pod", pod("Running", 0), None),
            ("Pod", pod("Succeeded", 0), Some((TestOutcome::Succeeded, None))),
            ("Pod", pod("Failed", 7), failure("container curl ended with exit code 7: Error: no answer")),
            ("Pod", json!({"status": {"phase": "Failed", "reason": "Evicted"}}), failure("Evicted")),
            ("Job", json!({"status": {"active": 1}}), None),
            ("Job", job("Complete", "True"), Some((TestOutcome::Succeeded, None))),
            ("Job", job("Failed", "True"), failure("R: m")),
            ("Job", job("Failed", "False"), None),
            ("Job", job("SuccessCriteriaMet", "True"), None),
        ] {
            assert_eq!(end(kind, &object), expected, "{kind} {object}");
        }
    }

    #[test]
    fn a_waiting_test_says_what_it_waits_for() {
        let waits = json!({"status": {"phase": "Pending", "containerStatuses": [
            {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]}});
        assert_eq!(waiting(&waits), "ImagePullBackOff: not found");
        assert_eq!(waiting(&json!({"status": {"phase": "Pending"}})), "pending");
        assert_eq!(waiting(&json!({"status": {"active": 1}})), "running");
    }
}
