//! Whether a deleted class is kept while BundleDeployments name it.

use chandler_api::{BundleDeployment, ProvisionerClass, WhileInUse, names::IN_USE_FINALIZER};
use kube::{Api, ResourceExt as _};

use super::{ReconcileError, watch};
use crate::{context::Context, finalizers};

/// What happens to a class.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// It serves.
    Serves,
    /// It is deleted, and serves until nobody uses it.
    Waits,
    /// It serves no more.
    Goes,
}

/// Puts our finalizer on a class or takes it off, as its spec and its users have it. Who keeps a deleted class from going; none
/// where it goes.
pub(super) async fn settle(class: &ProvisionerClass, context: &Context) -> Result<Option<Vec<String>>, ReconcileError> {
    let name = class.name_any();
    let users = match class.metadata.deletion_timestamp {
        None => Vec::new(),
        Some(_) => users(&name, context).await,
    };
    let fate = fate(class, &users);
    if fate == Fate::Goes {
        // Somebody else's finalizer may keep the object: whoever names the class is told now.
        watch::forget(&name, context);
    }
    let wanted = fate == Fate::Waits || fate == Fate::Serves && waits(class);
    if wanted != is_held(class) {
        write(class, wanted, context).await?;
    }
    Ok((fate != Fate::Goes).then_some(users))
}

fn waits(class: &ProvisionerClass) -> bool {
    class.spec.deletion.unwrap_or_default().while_in_use == Some(WhileInUse::Wait)
}

fn is_held(class: &ProvisionerClass) -> bool {
    class.finalizers().iter().any(|finalizer| finalizer == IN_USE_FINALIZER)
}

fn fate(class: &ProvisionerClass, users: &[String]) -> Fate {
    if class.metadata.deletion_timestamp.is_none() {
        Fate::Serves
    } else if waits(class) && is_held(class) && !users.is_empty() {
        Fate::Waits
    } else {
        Fate::Goes
    }
}

/// The BundleDeployments that name a class.
async fn users(class: &str, context: &Context) -> Vec<String> {
    // What was not listed yet may name it.
    if context.deployments.wait_until_ready().await.is_err() {
        return vec!["(the controller is stopping)".to_owned()];
    }
    let names = |deployment: &BundleDeployment| deployment.spec.provisioner_class_name == class;
    let all = context.deployments.state();
    let mut users: Vec<String> = all
        .iter()
        // Nobody knows what one names that cannot be read.
        .filter(|guarded| guarded.0.as_ref().map_or(true, names))
        .map(|guarded| guarded.name_any())
        .collect();
    users.sort();
    users
}

async fn write(class: &ProvisionerClass, held: bool, context: &Context) -> Result<(), ReconcileError> {
    let mut names = class.finalizers().to_vec();
    names.retain(|name| name != IN_USE_FINALIZER);
    if held {
        names.push(IN_USE_FINALIZER.to_owned());
    }
    match finalizers::write(&Api::all(context.client.clone()), class, &names).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        written => written.map_err(ReconcileError::from),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deleted_class_waits_only_where_it_says_so_and_somebody_uses_it() {
        let class = |deleted: bool, held: bool, policy: Option<&str>| -> ProvisionerClass {
            let mut object = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "ProvisionerClass",
                                    "metadata": {"name": "helm"}, "spec": {"image": "example.com/helm:v1"}});
            if deleted {
                object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            if held {
                object["metadata"]["finalizers"] = json!([IN_USE_FINALIZER]);
            }
            if let Some(policy) = policy {
                object["spec"]["deletion"] = json!({"whileInUse": policy});
            }
            serde_json::from_value(object).expect("a class")
        };
        let (nobody, somebody) = (vec![], vec!["harbour".to_owned()]);
        for (deleted, held, policy, users, expected) in [
            (false, false, None, &somebody, Fate::Serves),
            (false, true, Some("Wait"), &nobody, Fate::Serves),
            (true, true, Some("Wait"), &somebody, Fate::Waits),
            (true, true, Some("Wait"), &nobody, Fate::Goes),
            (true, true, Some("Stop"), &somebody, Fate::Goes),
            (true, true, None, &somebody, Fate::Goes),
            // Somebody else's finalizer holds it: that is no wish of the class.
            (true, false, Some("Wait"), &somebody, Fate::Goes),
        ] {
            assert_eq!(fate(&class(deleted, held, policy), users), expected, "{deleted} {held} {policy:?} {users:?}");
        }
    }
}
