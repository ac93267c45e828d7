//! Connects to the cluster, and reads a BundleDeployment and its objects.
//!
//! The objects are found as any tool finds the members of an ApplySet (KEP-3659): a label of the parent is the ID, an annotation of
//! the parent lists the kinds, and each member has the ID in a label.

use std::{collections::BTreeMap, path::PathBuf};

use chandler_api::BundleDeployment;
use chandler_core::ObjectKey;
use chandler_rollout::{Dependencies, Health, State, assess};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams, PostParams, TypeMeta},
    core::ObjectList,
    discovery,
};
use serde_json::Value;

use super::{below, kubeconfig};
use crate::{
    CommandError,
    view::{
        api_error,
        tree::{ObjectHealth, ObjectStatus},
    },
};

/// The label on the parent of an ApplySet: its ID.
pub(super) const ID: &str = "applyset.kubernetes.io/id";
/// The annotation on the parent: the kinds of the members as `Kind.group`, separated by commas.
pub(super) const GROUP_KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
/// The label on each member: the ID of the ApplySet.
pub(super) const PART_OF: &str = "applyset.kubernetes.io/part-of";
/// The page size of list requests, in objects.
pub(super) const PAGE: u32 = 250;

/// The kubeconfig and its context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionOptions {
    /// The kubeconfig; `None` for the environment's.
    pub kubeconfig: Option<PathBuf>,
    /// The context; `None` for the current one of the kubeconfig.
    pub context: Option<String>,
}

/// The objects that were found, and the kinds that could not be read.
#[derive(Debug, Default)]
pub struct Members {
    /// The objects, in no particular order.
    pub objects: Vec<ObjectStatus>,
    /// Kinds that could not be listed, with the reason.
    pub unreadable: Vec<String>,
    /// The objects that own Pods or may have Events about what is wrong.
    pub workloads: Vec<(ObjectKey, Value)>,
}

/// A client for the cluster that the options select, else of the environment.
pub async fn client(connection: &ConnectionOptions) -> Result<Client, CommandError> {
    Ok(connect(connection).await?.0)
}

/// Like [`client`], with the configuration for further clients.
pub async fn connect(connection: &ConnectionOptions) -> Result<(Client, Config), CommandError> {
    let (config, place) = kubeconfig::load(connection.kubeconfig.as_deref(), connection.context.as_deref()).await?;
    let plugin = config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone());
    let client = chandler_client::client(config.clone()).map_err(|error| {
        let failed = CommandError::failed(format!("failed to set up the connection to the cluster {place}"));
        match plugin.filter(|_| matches!(error, kube::Error::Auth(_))) {
            Some(plugin) => {
                failed.because(&error).hint(format!("check that the credential plugin {plugin} is installed"))
            }
            None => failed.because(&error).hint("check the certificates: `kubectl config view --minify --raw`"),
        }
    })?;
    let client = chandler_rollout::readable(&client);
    kubeconfig::reach(&client, &place).await?;
    Ok((client, config))
}

/// Reads a BundleDeployment.
pub async fn deployment(client: &Client, name: &str) -> Result<BundleDeployment, CommandError> {
    let deployments: Api<BundleDeployment> = Api::all(client.clone());
    deployments.get(name).await.map_err(|error| not_read(name, &error))
}

/// The error for a BundleDeployment that could not be read.
pub fn not_read(name: &str, error: &kube::Error) -> CommandError {
    let failed = CommandError::failed(format!("failed to read BundleDeployment {name}")).because(error);
    match error {
        kube::Error::Api(status) if status.message.ends_with("\" not found") => {
            failed.hint("`kubectl get bundledeployments` or `chandler list` lists them all")
        }
        _ => failed,
    }
}

/// The BundleDeployments that are selected.
pub async fn deployments(client: &Client, selected: &ListParams) -> Result<Vec<BundleDeployment>, CommandError> {
    let listed = Api::<BundleDeployment>::all(client.clone()).list(selected).await;
    Ok(listed.map_err(|error| not_listed(&error))?.items)
}

/// The error for BundleDeployments that could not be listed.
pub fn not_listed(error: &kube::Error) -> CommandError {
    CommandError::failed("failed to list BundleDeployments").because(error)
}

/// The name under which the API server knows the user.
pub async fn user_name(client: &Client) -> Result<String, CommandError> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let failed = || CommandError::failed("failed to ask the API server for your user name");
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let review = review.map_err(|error| failed().because(&error))?;
    let user = review.status.and_then(|status| status.user_info).and_then(|user| user.username);
    user.ok_or_else(failed)
}

/// Why the objects of a BundleDeployment are not read.
pub(super) const ELSEWHERE: &str =
    "all objects: they are in another cluster (spec.kubeConfig), whose kubeconfig this command does not use";

/// Reads the objects of a BundleDeployment with their health.
pub async fn members(client: &Client, deployment: &BundleDeployment) -> Members {
    let mut members = Members::default();
    if deployment.spec.kube_config.is_some() {
        members.unreadable.push(ELSEWHERE.to_owned());
        return members;
    }
    let Some(id) = deployment.labels().get(ID) else {
        return members;
    };
    for (group, kinds) in group_kinds(deployment.annotations().get(GROUP_KINDS).map_or("", String::as_str)) {
        let served = match discovery::oneshot::group(client, group).await {
            Ok(served) => served,
            Err(error) => {
                let cause = cause(&error);
                members.unreadable.extend(kinds.iter().map(|kind| format!("{}: {cause}", group_kind(kind, group))));
                continue;
            }
        };
        for kind in kinds {
            let Some((resource, _)) = served.recommended_kind(kind) else {
                members.unreadable.push(format!("{}: the cluster does not serve this kind", group_kind(kind, group)));
                continue;
            };
            let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
            if let Err(error) = list(&api, &resource, id, &mut members).await {
                members.unreadable.push(format!("{}: {}", group_kind(kind, group), cause(&error)));
            }
        }
    }
    members
}

/// A kind with its group, as kubectl writes it: `Deployment.apps`, and without a dot for the core group.
pub(super) fn group_kind(kind: &str, group: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

/// An error in the words of the API server.
pub fn cause(error: &kube::Error) -> String {
    api_error::explain(error).map_or_else(|| error.to_string(), |explained| explained.cause)
}

/// Everything that is selected, read page by page with `list`.
pub(super) async fn pages<K: Clone>(
    selected: ListParams,
    list: impl AsyncFn(&ListParams) -> kube::Result<ObjectList<K>>,
) -> kube::Result<Vec<K>> {
    let mut all = Vec::new();
    each_page(selected.limit(PAGE), list, |page| all.extend(page)).await?;
    Ok(all)
}

/// Passes what is selected to `each`, page by page. `selected` has the size of a page.
pub(super) async fn each_page<K: Clone>(
    mut selected: ListParams,
    list: impl AsyncFn(&ListParams) -> kube::Result<ObjectList<K>>,
    mut each: impl FnMut(Vec<K>),
) -> kube::Result<()> {
    loop {
        let page = list(&selected).await?;
        each(page.items);
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => selected.continue_token = Some(token),
            _ => return Ok(()),
        }
    }
}

async fn list(
    api: &Api<DynamicObject>,
    resource: &ApiResource,
    id: &str,
    members: &mut Members,
) -> Result<(), kube::Error> {
    let selected = ListParams::default().labels(&format!("{PART_OF}={id}"));
    for object in pages(selected, async |page: &ListParams| api.list(page).await).await? {
        let object = typed(object, resource);
        let status = object_status(&object);
        if below::has_dependents(&status.key) {
            members.workloads.push((status.key.clone(), object));
        }
        members.objects.push(status);
    }
    Ok(())
}

/// An item of a list, which has neither apiVersion nor kind.
fn typed(mut object: DynamicObject, resource: &ApiResource) -> Value {
    object.types = Some(TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() });
    // An object that was parsed from JSON can be written as JSON.
    serde_json::to_value(object).unwrap_or_default()
}

/// An object with its health.
pub(super) fn object_status(object: &Value) -> ObjectStatus {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("/apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let namespace = text("/metadata/namespace");
    let key = ObjectKey {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: text("/kind").to_owned(),
        namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
        name: text("/metadata/name").to_owned(),
    };
    let (health, message) = object_health(&assess(object, &Dependencies::default()));
    let created = text("/metadata/creationTimestamp").parse().ok();
    ObjectStatus { key, health, message, created }
}

fn object_health(health: &Health) -> (ObjectHealth, Option<String>) {
    let state = match health.state {
        State::Healthy if health.message.is_empty() => return (ObjectHealth::Healthy, None),
        State::Healthy => ObjectHealth::Healthy,
        State::Progressing => ObjectHealth::Progressing,
        State::Degraded { .. } => ObjectHealth::Unhealthy,
        State::Unknown => ObjectHealth::Unknown,
    };
    (state, Some(health.to_string()))
}

/// Parses `Kind.group,Kind` into kinds by group.
pub(super) fn group_kinds(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for group_kind in text.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        let (kind, group) = group_kind.split_once('.').unwrap_or((group_kind, ""));
        groups.entry(group).or_default().push(kind);
    }
    groups
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_grouped_by_api_group() {
        let groups = group_kinds("ConfigMap,Deployment.apps, ClusterRole.rbac.authorization.k8s.io,Service,");
        assert_eq!(groups[""], ["ConfigMap", "Service"]);
        assert_eq!(groups["rbac.authorization.k8s.io"], ["ClusterRole"]);
        assert_eq!(groups.len(), 3);
        assert!(group_kinds("").is_empty());
    }

    #[test]
    fn the_health_of_a_listed_object_depends_on_its_kind() {
        let object =
            json!({"metadata": {"name": "pilot", "namespace": "harbour", "generation": 1}, "spec": {"replicas": 1}});
        let resource = ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk("apps", "v1", "Deployment"));
        let status = object_status(&typed(serde_json::from_value(object).unwrap(), &resource));
        assert_eq!(
            (status.key.to_string().as_str(), status.health),
            ("Deployment.apps harbour/pilot", ObjectHealth::Progressing)
        );
    }
}
