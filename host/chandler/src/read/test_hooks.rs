//! The tests of an installed bundle, as its provisioner renders them.
//!
//! A provisioner that has tests declares the value `tests` of the configuration's member `chandler.dev/render`, and renders them instead of the release
//! then. The controller refuses this member: a release of the tests alone would delete everything else. Each
//! object says with the annotations of Helm that it is a test, and when it is deleted. Other objects are refused: the command creates what it gets with
//! permissions that the bundle may not have.

use std::sync::Arc;

use chandler_api::{BundleDeployment, Revision};
use chandler_core::{Object, ObjectKey};
use chandler_decisions::config::Config;
use chandler_engine::Limits;
use chandler_permissions::kinds;
use chandler_values::Values;
use kube::{
    Client,
    api::{ApiResource, GroupVersionKind},
};
use serde_json::{Map, Value};

use super::{
    cache, classes, deployed, provisioner,
    rendering::{BundleOptions, OpenedBundle},
    values,
};
use crate::{
    CommandError,
    view::{summary, text::one_line},
};

/// The member of the configuration that says what is rendered.
const RENDER: &str = "chandler.dev/render";
/// The annotation with the events of a hook.
const HOOK: &str = "helm.sh/hook";
/// The annotation with the deletion policies of a hook.
const DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
/// The events of tests.
const EVENTS: [&str; 2] = ["test", "test-success"];
/// The kinds that tests may have: API version and kind. A test runs in the namespace of its bundle, and grants nothing.
const KINDS: [(&str, &str); 7] = [
    ("v1", "Pod"),
    ("batch/v1", "Job"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("v1", "PersistentVolumeClaim"),
];

/// An object of the tests.
#[derive(Clone, Debug, PartialEq)]
pub struct TestHook {
    /// Its identity, with its namespace.
    pub key: ObjectKey,
    /// The object.
    pub value: Map<String, Value>,
    /// How its kind is called in requests.
    pub resource: ApiResource,
    /// Whether it is deleted after it succeeded.
    pub is_deleted_if_succeeded: bool,
    /// Whether it is deleted after it failed.
    pub is_deleted_if_failed: bool,
}

impl TestHook {
    /// Whether it runs and ends: other objects are what tests need.
    pub fn runs(&self) -> bool {
        matches!(self.key.kind.as_str(), "Pod" | "Job")
    }
}

/// The tests of the release that is installed, in the order in which they run. `files` is a bundle with the same content.
///
/// # Errors
/// No release is installed, its content, its component or its configuration cannot be had any more, its provisioner has no tests, or an object is not
/// a test.
pub async fn of_installed(
    client: &Client,
    system_namespace: &str,
    options: &BundleOptions,
    deployment: &BundleDeployment,
    files: Option<&str>,
) -> Result<Vec<TestHook>, CommandError> {
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let revision = deployment.status.as_ref().and_then(|status| status.history.last()).ok_or_else(|| {
        CommandError::failed(format!("no release of {name} is installed"))
            .hint(format!("`chandler status {name}` shows what it waits for"))
    })?;
    let mut installed = deployment.clone();
    installed.spec.source = revision.source.clone();
    let mut opened = deployed::open(client, system_namespace, options, &installed, files).await?;
    if opened.content().digest().as_str() != revision.content_digest {
        return Err(CommandError::refused(format!(
            "these are not the files of the installed revision {} of {name}; nothing was changed",
            revision.number
        ))
        .cause(format!(
            "installed are {}, and these are {}",
            one_line(&revision.content_digest),
            opened.content().digest()
        ))
        .hint("--bundle names the files that are installed"));
    }
    if opened.chosen.provisioner.digest().as_str() != revision.provisioner.digest && !opened.chosen.is_builtin {
        let cache = cache::directory(options.cache_directory.as_deref())?;
        let provisioners = provisioner::provisioners(&cache)?;
        let earlier = classes::load_earlier(&revision.provisioner, &provisioners, &cache, &options.registry).await?;
        opened.chosen.provisioner = earlier;
    }
    let config = configuration(client, deployment, revision, &opened.chosen.defaults).await?;
    opened.request.config.clone_from(config.get());
    if !has_tests(&opened).await? {
        return Err(CommandError::failed(format!(
            "the provisioner of {name}, {}, has no tests",
            summary::provisioner(&revision.provisioner)
        ))
        .hint("the provisioner `helm` has the tests of charts (docs/helm.md)"));
    }
    opened.request.config.insert(RENDER.to_owned(), Value::from("tests"));
    let release = deployed::release(client, &mut opened).await?;
    let namespace = &deployment.spec.install_namespace;
    let hooks: Result<Vec<TestHook>, String> = release.objects().iter().map(|object| hook(object, namespace)).collect();
    hooks.map_err(|why| {
        CommandError::refused(format!("the tests of {name} cannot run; nothing was changed")).cause(one_line(&why))
    })
}

/// The configuration of the installed revision. The history keeps neither a long one nor values of Secrets: then it is the spec's, if that has the digest
/// which the history has.
async fn configuration(
    client: &Client,
    deployment: &BundleDeployment,
    revision: &Revision,
    defaults: &Map<String, Value>,
) -> Result<Config, CommandError> {
    let spec = &deployment.spec;
    let values = if revision.config.is_some() {
        Values::default()
    } else {
        values::values(client, &spec.install_namespace, &spec.values_from).await?
    };
    Config::of_revision(revision, defaults, &values, spec.config.as_ref()).ok_or_else(|| {
        let name = deployment.metadata.name.as_deref().unwrap_or_default();
        CommandError::refused(format!(
            "the configuration of the installed revision {} of {name} is not known any more; nothing was changed",
            revision.number
        ))
        .hint("wait until the pending change is installed, or undo it")
    })
}

/// Whether the provisioner declares that it renders tests.
async fn has_tests(opened: &OpenedBundle) -> Result<bool, CommandError> {
    let content = Arc::clone(opened.content());
    let schema = opened.chosen.provisioner.config_schema(content, &Limits::default()).await;
    let schema = schema.map_err(|error| provisioner::call_failed(&opened.chosen.name, &error, &opened.sources()))?;
    let schema: Value = schema.and_then(|schema| serde_json::from_str(&schema).ok()).unwrap_or_default();
    let values = schema.get("properties").and_then(|members| members.get(RENDER)?.get("enum")?.as_array());
    Ok(values.is_some_and(|values| values.iter().any(|value| value == "tests")))
}

/// Reads one object, for an installation in this namespace.
fn hook(object: &Object, namespace: &str) -> Result<TestHook, String> {
    let key = ObjectKey { namespace: Some(namespace.to_owned()), ..object.key.clone() };
    let words = |annotation: &str| -> Vec<String> {
        let text = object.annotation(annotation).unwrap_or_default();
        text.split(',').map(|word| word.trim().to_lowercase()).filter(|word| !word.is_empty()).collect()
    };
    if !words(HOOK).iter().any(|event| EVENTS.contains(&event.as_str())) {
        return Err(format!("{key} is not a test: its annotation {HOOK} does not list {}", EVENTS[0]));
    }
    if !KINDS.contains(&(key.api_version().as_str(), key.kind.as_str())) {
        let kinds: Vec<&str> = KINDS.iter().map(|(_, kind)| *kind).collect();
        return Err(format!("{key} is a test, and a test is a {}", kinds.join(", ")));
    }
    if let Some(other) = object.key.namespace.as_deref().filter(|other| *other != namespace) {
        return Err(format!("{} {} is in the namespace {other}, and tests run in {namespace}", key.kind, key.name));
    }
    let kind = GroupVersionKind { group: key.group.clone(), version: key.version.clone(), kind: key.kind.clone() };
    let policies = words(DELETE_POLICY);
    let has = |policy: &str| policies.iter().any(|other| other == policy);
    Ok(TestHook {
        resource: ApiResource::from_gvk_with_plural(&kind, &kinds::guess(&key).plural),
        value: object.value.clone(),
        is_deleted_if_succeeded: has("hook-succeeded"),
        is_deleted_if_failed: has("hook-failed"),
        key,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(api_version: &str, kind: &str, metadata: Value) -> Result<TestHook, String> {
        let value = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        let Value::Object(value) = value else { panic!("an object") };
        hook(&Object::from_value(value, 0, None).unwrap(), "shop")
    }

    #[test]
    fn a_test_says_when_it_is_deleted() {
        for (policies, succeeded, failed) in [
            ("", false, false),
            ("before-hook-creation", false, false),
            ("before-hook-creation, Hook-Succeeded", true, false),
            ("hook-failed,hook-succeeded", true, true),
        ] {
            let annotations = json!({HOOK: "post-install, Test-Success", DELETE_POLICY: policies});
            let read = read("batch/v1", "Job", json!({"name": "a", "annotations": annotations})).unwrap();
            assert_eq!((read.is_deleted_if_succeeded, read.is_deleted_if_failed), (succeeded, failed), "{policies}");
            assert_eq!((read.key.to_string().as_str(), read.resource.plural.as_str()), ("Job.batch shop/a", "jobs"));
            assert!(read.runs());
        }
        let map = read("v1", "ConfigMap", json!({"name": "a", "namespace": "shop", "annotations": {HOOK: "test"}}));
        assert!(!map.unwrap().runs());
    }

    #[test]
    fn other_objects_are_refused() {
        let messages: Vec<String> = [
            ("v1", "Pod", json!({"name": "a"})),
            ("v1", "Pod", json!({"name": "a", "annotations": {HOOK: "pre-install"}})),
            ("v1", "Pod", json!({"name": "a", "namespace": "kube-system", "annotations": {HOOK: "test"}})),
            ("v2", "Pod", json!({"name": "a", "annotations": {HOOK: "test"}})),
            ("rbac.authorization.k8s.io/v1", "RoleBinding", json!({"name": "a", "annotations": {HOOK: "test"}})),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", json!({"name": "a", "annotations": {HOOK: "test"}})),
        ]
        .into_iter()
        .map(|(api_version, kind, metadata)| read(api_version, kind, metadata).unwrap_err())
        .collect();
        insta::assert_snapshot!(messages.join("\n"), @r"
        Pod shop/a is not a test: its annotation helm.sh/hook does not list test
        Pod shop/a is not a test: its annotation helm.sh/hook does not list test
        Pod a is in the namespace kube-system, and tests run in shop
        Pod shop/a is a test, and a test is a Pod, Job, ConfigMap, Secret, Service, ServiceAccount, PersistentVolumeClaim
        RoleBinding.rbac.authorization.k8s.io shop/a is a test, and a test is a Pod, Job, ConfigMap, Secret, Service, ServiceAccount, PersistentVolumeClaim
        ClusterRole.rbac.authorization.k8s.io shop/a is a test, and a test is a Pod, Job, ConfigMap, Secret, Service, ServiceAccount, PersistentVolumeClaim
        ");
    }
}
