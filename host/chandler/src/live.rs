//! The objects of a BundleDeployment as they are in the cluster.
//!
//! Found as any tool finds the members of an ApplySet (KEP-3659): the parent's label is the identity, its annotation lists
//! the kinds, and members carry the identity in a label.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use chandler_api::BundleDeployment;
use chandler_core::ObjectKey;
use chandler_rollout::{Dependencies, Health, State, assess};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams, TypeMeta},
    discovery,
};

use crate::{
    CommandError,
    file::{self, TrustedError},
    tree::{Leaf, Mark},
};

/// The identity of an ApplySet, on its parent.
const ID: &str = "applyset.kubernetes.io/id";
/// The kinds of its members, on its parent: `Kind.group`, separated by commas.
const GROUP_KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
/// The identity of the ApplySet, on its members.
const PART_OF: &str = "applyset.kubernetes.io/part-of";
/// The longest kubeconfig that is read, in bytes.
const KUBECONFIG: u64 = 16 << 20;
/// How many objects one request asks for.
const PAGE: u32 = 250;

/// The objects that were found, and what could not be read.
#[derive(Debug, Default)]
pub struct Members {
    /// The objects, in no particular order.
    pub objects: Vec<Leaf>,
    /// Kinds that could not be listed, and why.
    pub unreadable: Vec<String>,
}

/// Refuses kubeconfigs that others could have written, where no name was given: such a file names commands to run.
fn trust_inferred() -> Result<(), CommandError> {
    let home = || env::home_dir().map(|home| home.join(".kube/config"));
    let paths: Vec<PathBuf> = match env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
        Some(value) => env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => home().into_iter().collect(),
    };
    for path in paths {
        trust(&path)?;
    }
    Ok(())
}

fn trust(path: &Path) -> Result<(), CommandError> {
    match file::read_trusted(path, KUBECONFIG) {
        // That a file is missing or unreadable, the reader of kubeconfigs judges.
        Ok(_) | Err(TrustedError::Io { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A client for the cluster that the user means.
pub async fn client(kubeconfig: Option<&std::path::Path>) -> Result<Client, CommandError> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        CommandError::failed("failed to read the kubeconfig")
            .because(error)
            .hint("name one with --kubeconfig or $KUBECONFIG; `chandler dev --keep` makes one")
    };
    let config = if let Some(path) = kubeconfig {
        trust(path)?;
        let kubeconfig = kube::config::Kubeconfig::read_from(path).map_err(|error| failed(&error))?;
        let options = kube::config::KubeConfigOptions::default();
        kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| failed(&error))?
    } else {
        trust_inferred()?;
        kube::Config::infer().await.map_err(|error| failed(&error))?
    };
    let client = Client::try_from(config);
    let client = client.map_err(|error| CommandError::failed("failed to make a client").because(&error))?;
    Ok(chandler_rollout::readable(&client))
}

/// Reads a BundleDeployment.
pub async fn deployment(client: &Client, name: &str) -> Result<BundleDeployment, CommandError> {
    let deployments: Api<BundleDeployment> = Api::all(client.clone());
    deployments.get(name).await.map_err(|error| not_read(name, &error))
}

/// Says that a BundleDeployment could not be read.
pub fn not_read(name: &str, error: &kube::Error) -> CommandError {
    let failed = CommandError::failed(format!("failed to read BundleDeployment {name}")).because(error);
    match error {
        kube::Error::Api(status) if status.is_not_found() => {
            failed.hint("`kubectl get bundledeployments` lists all of them")
        }
        _ => failed,
    }
}

/// Reads the objects that belong to a BundleDeployment.
pub async fn members(client: &Client, deployment: &BundleDeployment) -> Members {
    let mut members = Members::default();
    let Some(id) = deployment.labels().get(ID) else {
        return members;
    };
    for (group, kinds) in group_kinds(deployment.annotations().get(GROUP_KINDS).map_or("", String::as_str)) {
        let served = match discovery::oneshot::group(client, group).await {
            Ok(served) => served,
            Err(error) => {
                members.unreadable.extend(kinds.iter().map(|kind| format!("{kind}.{group}: {error}")));
                continue;
            }
        };
        for kind in kinds {
            let Some((resource, _)) = served.recommended_kind(kind) else {
                members.unreadable.push(format!("{kind}.{group}: the cluster does not serve it"));
                continue;
            };
            let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
            if let Err(error) = list(&api, &resource, id, &mut members.objects).await {
                members.unreadable.push(format!("{kind}.{group}: {error}"));
            }
        }
    }
    members
}

async fn list(
    api: &Api<DynamicObject>,
    resource: &ApiResource,
    id: &str,
    objects: &mut Vec<Leaf>,
) -> Result<(), kube::Error> {
    let mut parameters = ListParams::default().labels(&format!("{PART_OF}={id}")).limit(PAGE);
    loop {
        let page = api.list(&parameters).await?;
        objects.extend(page.items.into_iter().map(|object| leaf(object, resource)));
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => parameters.continue_token = Some(token),
            _ => return Ok(()),
        }
    }
}

/// An object with its health.
fn leaf(mut object: DynamicObject, resource: &ApiResource) -> Leaf {
    // The items of a list do not say what they are.
    object.types = Some(TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() });
    let key = ObjectKey {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        namespace: object.namespace(),
        name: object.name_any(),
        version: resource.version.clone(),
    };
    match serde_json::to_value(&object) {
        Ok(value) => {
            let (health, message) = mark(&assess(&value, &Dependencies::default()));
            Leaf { key, health, message }
        }
        Err(error) => Leaf { key, health: Mark::Unknown, message: Some(error.to_string()) },
    }
}

fn mark(health: &Health) -> (Mark, Option<String>) {
    let mark = match health.state {
        State::Healthy if health.message.is_empty() => return (Mark::Healthy, None),
        State::Healthy => Mark::Healthy,
        State::Progressing => Mark::Progressing,
        State::Degraded { .. } => Mark::Unhealthy,
        State::Unknown => Mark::Unknown,
    };
    (mark, Some(health.to_string()))
}

/// `Kind.group,Kind` by group.
fn group_kinds(text: &str) -> BTreeMap<&str, Vec<&str>> {
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
    fn kinds_are_read_by_group() {
        let groups = group_kinds("ConfigMap,Deployment.apps, ClusterRole.rbac.authorization.k8s.io,Service,");
        assert_eq!(groups[""], ["ConfigMap", "Service"]);
        assert_eq!(groups["rbac.authorization.k8s.io"], ["ClusterRole"]);
        assert_eq!(groups.len(), 3);
        assert!(group_kinds("").is_empty());
    }

    #[test]
    fn an_object_of_a_list_gets_its_health_by_its_kind() {
        let object =
            json!({"metadata": {"name": "pilot", "namespace": "harbour", "generation": 1}, "spec": {"replicas": 1}});
        let resource = ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk("apps", "v1", "Deployment"));
        let leaf = leaf(serde_json::from_value(object).unwrap(), &resource);
        assert_eq!((leaf.key.to_string().as_str(), leaf.health), ("Deployment.apps harbour/pilot", Mark::Progressing));
    }
}
