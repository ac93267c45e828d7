//! Whether a deleted class is kept while BundleDeployments use it.

use chandler_api::{ProvisionerClass, WhileInUse, names::IN_USE_FINALIZER};
use chandler_runtime::finalizers;
use kube::{Api, Client, ResourceExt as _};

use super::{
    reconciler::{ProvisionerClasses, ReconcileError},
    users::uses,
};
use crate::deployments::Deployments;

/// The phase of a class.
#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// It is not deleted.
    Active,
    /// It is deleted, and stays in use until no BundleDeployment uses it.
    Retained,
    /// It is deleted, and no longer in use.
    Removed,
}

impl ProvisionerClasses {
    /// Adds or removes the finalizer of a class, as its spec and its users require. Returns the users that a deleted class waits for;
    /// `None` if the class is no longer in use.
    pub(super) async fn retain(&self, class: &ProvisionerClass) -> Result<Option<Vec<String>>, ReconcileError> {
        let name = class.name_any();
        let users = match class.metadata.deletion_timestamp {
            None => Vec::new(),
            Some(_) => users(&name, &self.deployments).await,
        };
        let phase = phase(class, &users);
        if phase == Phase::Removed {
            // Another controller's finalizer may keep the object, so this does not wait for its deletion.
            self.forget(&name);
        }
        let wanted = phase == Phase::Retained || phase == Phase::Active && waits_for_users(class);
        if wanted != has_finalizer(class) {
            let written = write(class, wanted, &self.cluster.client).await?;
            if let Some(written) = written.filter(|_| wanted) {
                self.own_writes.finalizers(written);
            }
        }
        Ok((phase != Phase::Removed).then_some(users))
    }
}

fn waits_for_users(class: &ProvisionerClass) -> bool {
    class.spec.deletion.unwrap_or_default().while_in_use == Some(WhileInUse::Wait)
}

fn has_finalizer(class: &ProvisionerClass) -> bool {
    class.finalizers().iter().any(|finalizer| finalizer == IN_USE_FINALIZER)
}

fn phase(class: &ProvisionerClass, users: &[String]) -> Phase {
    if class.metadata.deletion_timestamp.is_none() {
        Phase::Active
    } else if waits_for_users(class) && has_finalizer(class) && !users.is_empty() {
        Phase::Retained
    } else {
        Phase::Removed
    }
}

/// The BundleDeployments that use a class.
async fn users(class: &str, deployments: &Deployments) -> Vec<String> {
    // Before the first list is complete, any BundleDeployment may use it.
    if !deployments.ready().await {
        return vec!["(the controller is shutting down)".to_owned()];
    }
    let all = deployments.all();
    let mut users: Vec<String> = all
        .iter()
        // A BundleDeployment that cannot be decoded may use it.
        .filter(|guarded| guarded.0.as_ref().map_or(true, |deployment| uses(deployment, class)))
        .map(|guarded| guarded.name_any())
        .collect();
    users.sort();
    users
}

/// Returns the class; `None` if it is gone.
async fn write(
    class: &ProvisionerClass,
    with_ours: bool,
    client: &Client,
) -> Result<Option<ProvisionerClass>, ReconcileError> {
    let mut names = class.finalizers().to_vec();
    names.retain(|name| name != IN_USE_FINALIZER);
    if with_ours {
        names.push(IN_USE_FINALIZER.to_owned());
    }
    match finalizers::write(&Api::all(client.clone()), class, &names).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        written => Ok(Some(written?)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deleted_class_is_retained_only_with_the_policy_wait_and_while_it_has_users() {
        let class = |deleted: bool, finalizer: bool, policy: Option<&str>| -> ProvisionerClass {
            let mut object = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "ProvisionerClass",
                                    "metadata": {"name": "helm"}, "spec": {"image": "example.com/helm:v1"}});
            if deleted {
                object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            if finalizer {
                object["metadata"]["finalizers"] = json!([IN_USE_FINALIZER]);
            }
            if let Some(policy) = policy {
                object["spec"]["deletion"] = json!({"whileInUse": policy});
            }
            serde_json::from_value(object).expect("a class")
        };
        let (unused, used) = (vec![], vec!["harbour".to_owned()]);
        for (deleted, finalizer, policy, users, expected) in [
            (false, false, None, &used, Phase::Active),
            (false, true, Some("Wait"), &unused, Phase::Active),
            (true, true, Some("Wait"), &used, Phase::Retained),
            (true, true, Some("Wait"), &unused, Phase::Removed),
            (true, true, Some("Stop"), &used, Phase::Removed),
            (true, true, None, &used, Phase::Removed),
            // Another controller's finalizer keeps the object; the class is not retained for that.
            (true, false, Some("Wait"), &used, Phase::Removed),
        ] {
            assert_eq!(
                phase(&class(deleted, finalizer, policy), users),
                expected,
                "{deleted} {finalizer} {policy:?} {users:?}"
            );
        }
    }
}
