//! Where Chandler is installed: what shows it in a namespace, and which installation the Lease of the cluster names.

use chandler_controller::options::LEASE;
use chandler_core::ObjectKey;
use k8s_openapi::{
    api::{apps::v1::Deployment, coordination::v1::Lease, core::v1::Namespace},
    jiff::Timestamp,
};
use kube::{Api, Client, ResourceExt as _, api::ListParams};

use super::{
    cluster::pages,
    controller_lease::{Evidence, absent},
    dev_controller,
    installation_parts::{Parts, Place},
};
use crate::CommandError;

/// The name of the Deployment and of the ServiceAccount of the controller, and of its ClusterRole and the binding.
pub const CONTROLLER: &str = "chandler";

/// What a system namespace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceState {
    /// It does not exist.
    Absent,
    /// It is being deleted.
    Terminating,
    /// It exists.
    Active,
}

/// The Lease that all installations of a cluster share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLease {
    /// The system namespace of the installation that holds it.
    pub holder: String,
    /// Whether it is renewed.
    pub is_live: bool,
}

/// What shows where Chandler is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallationEvidence {
    /// The system namespace.
    pub namespace: NamespaceState,
    /// Whether something belongs to a controller in the system namespace: its Deployment, a Lease, or the binding of its account. An account
    /// with its name is not enough.
    pub is_installed: bool,
    /// The Lease of the cluster, if an installation holds it.
    pub shared: Option<SharedLease>,
}

/// Reads what shows where Chandler is installed.
pub async fn evidence(client: &Client, place: &Place, parts: &Parts) -> Result<InstallationEvidence, CommandError> {
    let Place { system_namespace, lease_namespace } = place;
    let found = Api::<Namespace>::all(client.clone()).get_opt(system_namespace).await;
    let namespace = match found.map_err(|error| not_read(&format!("Namespace {system_namespace}"), &error))? {
        None => NamespaceState::Absent,
        Some(found) if found.metadata.deletion_timestamp.is_some() => NamespaceState::Terminating,
        Some(_) => NamespaceState::Active,
    };
    let shared: Api<Lease> = Api::namespaced(client.clone(), lease_namespace);
    let shared = shared.get_opt(LEASE).await;
    let shared = shared.map_err(|error| not_read(&format!("Lease {lease_namespace}/{LEASE}"), &error))?;
    Ok(InstallationEvidence {
        namespace,
        is_installed: is_bound(parts) || has_controller(client, system_namespace).await?,
        shared: shared.as_ref().and_then(|lease| shared_lease(lease, lease_namespace, Timestamp::now())),
    })
}

/// Whether the account of the controller is bound to its ClusterRole. The binding is deleted last, so it shows a second run where Chandler is.
fn is_bound(parts: &Parts) -> bool {
    let has_binding = parts.ours.iter().any(|part| is_binding(&part.key));
    has_binding && !parts.foreign.iter().any(|key| key.kind == "ClusterRole" && key.name == CONTROLLER)
}

/// Whether it is the binding of the account of the controller.
pub fn is_binding(key: &ObjectKey) -> bool {
    key.kind == "ClusterRoleBinding" && key.name == CONTROLLER
}

async fn has_controller(client: &Client, namespace: &str) -> Result<bool, CommandError> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let deployment = deployments.get_opt(CONTROLLER).await;
    let deployment = deployment.map_err(|error| not_read(&format!("Deployment {namespace}/{CONTROLLER}"), &error))?;
    Ok(deployment.as_ref().is_some_and(runs_controller) || !leases(client, namespace).await?.is_empty())
}

/// Whether a Deployment runs `chandler controller` with the account of the controller.
pub fn runs_controller(deployment: &Deployment) -> bool {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    pod.is_some_and(|pod| {
        let mut words = pod.containers.iter().flat_map(|it| it.command.iter().chain(&it.args).flatten());
        pod.service_account_name.as_deref() == Some(CONTROLLER) && words.any(|word| word == "controller")
    })
}

/// The Leases of the controllers in a namespace.
pub async fn leases(client: &Client, namespace: &str) -> Result<Vec<Lease>, CommandError> {
    let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let all = pages(ListParams::default(), async |page: &ListParams| api.list(page).await).await;
    let all = all.map_err(|error| not_read(&format!("the leases of {namespace}"), &error))?;
    Ok(all.into_iter().filter(|lease| is_of_controller(&lease.name_any())).collect())
}

fn is_of_controller(name: &str) -> bool {
    name.strip_prefix(LEASE).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The holder of a Lease that is renewed: controllers with `--watch-selector` have a Lease each.
pub fn live_holder(leases: &[Lease], system_namespace: &str, now: Timestamp) -> Option<String> {
    let is_live = |lease: &&Lease| absent(Some(*lease), system_namespace, Evidence::Unobserved, now).is_none();
    leases.iter().find(is_live).and_then(dev_controller::holder).map(str::to_owned)
}

fn shared_lease(lease: &Lease, namespace: &str, now: Timestamp) -> Option<SharedLease> {
    let holder = dev_controller::holder(lease).filter(|holder| !holder.is_empty())?.to_owned();
    let is_live = absent(Some(lease), namespace, Evidence::Unobserved, now).is_none();
    Some(SharedLease { holder, is_live })
}

pub(super) fn not_read(what: &str, error: &kube::Error) -> CommandError {
    CommandError::failed(format!("failed to read {what}")).because(error)
}

#[cfg(test)]
mod tests {
    use kube::{api::ApiResource, core::GroupVersionKind};
    use serde_json::{Value, json};

    use super::*;
    use crate::read::uninstallation::Part;

    fn deployment(account: &str, args: &Value) -> Deployment {
        let pod = json!({"serviceAccountName": account, "containers": [{"name": "a", "args": args}]});
        let spec = json!({"selector": {}, "template": {"spec": pod}});
        serde_json::from_value(json!({"metadata": {"name": CONTROLLER}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_deployment_of_the_name_is_not_enough() {
        assert!(runs_controller(&deployment("chandler", &json!(["controller", "--log-format=json"]))));
        assert!(!runs_controller(&deployment("chandler", &json!(["serve"]))));
        assert!(!runs_controller(&deployment("default", &json!(["controller"]))));
        assert!(!runs_controller(&Deployment::default()));
    }

    #[test]
    fn an_account_of_the_name_is_not_enough() {
        let key = |kind: &str| ObjectKey {
            group: "rbac.authorization.k8s.io".into(),
            version: "v1".into(),
            kind: kind.into(),
            namespace: None,
            name: CONTROLLER.into(),
        };
        let part = |kind: &str| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
            Part { key: key(kind), uid: "1".into(), resource }
        };
        assert!(!is_bound(&Parts { ours: vec![part("ServiceAccount")], ..Parts::default() }));
        assert!(is_bound(&Parts { ours: vec![part("ClusterRoleBinding")], ..Parts::default() }));
        let foreign = vec![key("ClusterRole")];
        assert!(!is_bound(&Parts { ours: vec![part("ClusterRoleBinding")], foreign, ..Parts::default() }));
    }

    #[test]
    fn the_leases_of_controllers_with_a_selector_count() {
        let lease = |name: &str, holder: &str| -> Lease {
            serde_json::from_value(json!({"metadata": {"name": name}, "spec": {
                "holderIdentity": holder, "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15,
            }}))
            .unwrap()
        };
        assert!(is_of_controller("chandler-controller-3f2a") && is_of_controller("chandler-controller"));
        assert!(!is_of_controller("chandler-controllers") && !is_of_controller("other"));
        let all = [lease("chandler-controller", ""), lease("chandler-controller-3f2a", "shard-0")];
        let at = |time: &str| -> Timestamp { time.parse().unwrap() };
        assert_eq!(live_holder(&all, "a", at("2026-01-01T00:00:10Z")).as_deref(), Some("shard-0"));
        assert_eq!(live_holder(&all, "a", at("2026-01-01T00:00:20Z")), None);
    }

    #[test]
    fn the_lease_of_the_cluster_names_the_installation() {
        let lease = |holder: &str| -> Lease {
            serde_json::from_value(json!({"spec": {
                "holderIdentity": holder, "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 60,
            }}))
            .unwrap()
        };
        let at = |time: &str| -> Timestamp { time.parse().unwrap() };
        let held = |is_live| Some(SharedLease { holder: "a".into(), is_live });
        assert_eq!(shared_lease(&lease("a"), "kube-system", at("2026-01-01T00:00:50Z")), held(true));
        assert_eq!(shared_lease(&lease("a"), "kube-system", at("2026-01-01T00:01:10Z")), held(false));
        assert_eq!(shared_lease(&lease(""), "kube-system", at("2026-01-01T00:00:50Z")), None);
    }
}
