//! Target: the other cluster that a BundleDeployment names, for one reconcile.
//!
//! The kubeconfig is read like the values of `spec.valuesFrom`: in the install namespace, on behalf of the account, and by the controller
//! itself only without an account. What it leads to must be the cluster that the record names: objects of one cluster are not known in another.

use std::sync::Arc;

use chandler_api::Reason;
use chandler_decisions::{
    account::{account, account_for_deletion},
    assessment::{Assessment, ReconcileOutcome, RolloutFindings, Running},
    intent::Intent,
    problem::Problem,
};
use chandler_records::State;
use chandler_source::{Grantee, api_message};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;

use super::{
    super::{errors, installer::Installer, subject::Subject},
    account::{missing, reader},
};
use crate::targets::{Key, Target, invalid};

/// The keys of a Secret that are tried if the spec names none.
const KEYS: [&str; 2] = ["value", "value.yaml"];

/// The other cluster of a BundleDeployment; `None` for one that is installed into this cluster.
pub(in super::super) async fn find(
    installer: &Arc<Installer>,
    subject: &Subject,
    intent: Intent,
) -> Result<Option<Arc<Target>>, Problem> {
    let (name, record) = (subject.name(), &subject.record);
    let recorded = record.state();
    let key = Key::of(&subject.deployment);
    if let Some(problem) = moved(&name, key.is_some(), &recorded) {
        return Err(problem);
    }
    let Some(key) = key else { return Ok(None) };
    if let Some(refusal) = installer.targets.refusal() {
        return Err(refusal);
    }
    let kubeconfig = read(installer, subject, &key, intent).await?;
    let in_use = || {
        let all = installer.deployments.all();
        all.iter().filter_map(|guarded| Key::of(guarded.0.as_ref().ok()?)).collect()
    };
    let holds = !recorded.holdings.is_empty();
    let (target, info) = installer.targets.begin(&key, &kubeconfig, holds, in_use).await?;
    if let Some(problem) = differs(&name, &key, &target.uid, &recorded) {
        return Err(problem);
    }
    record.note_target(&target.uid).await.map_err(|error| errors::not_recorded(&error))?;
    installer.preparer.memory.target_info.note(&name, info);
    Ok(Some(target))
}

/// Why the spec does not fit the cluster that the record names.
fn moved(name: &str, is_elsewhere: bool, recorded: &State) -> Option<Problem> {
    let holdings = &recorded.holdings;
    let message = if is_elsewhere && recorded.target.is_none() && !holdings.is_empty() && !holdings.inherits() {
        "spec.kubeConfig was added, and the objects of the bundle are in this cluster: remove it, or delete the BundleDeployment and create it \
             again with spec.kubeConfig"
            .to_owned()
    } else if !is_elsewhere && recorded.target.is_some() && !holdings.is_empty() {
        format!(
            "spec.kubeConfig was removed, and the objects of the bundle are in another cluster: set it again; `kubectl delete bundledeployment \
             {name} --cascade=orphan` leaves them there"
        )
    } else if is_elsewhere && holdings.inherits() && recorded.target.is_none() {
        format!(
            "the record of the BundleDeployment was lost, so that it is not known which objects in which cluster are its own: restore the record, \
             or leave them there with `kubectl delete bundledeployment {name} --cascade=orphan`, and create it again with \
             spec.collisionProtection: IfNoController"
        )
    } else {
        return None;
    };
    Some(Problem::transient(Reason::TargetChanged, message))
}

/// Why the cluster of the kubeconfig is not the one that has the objects.
fn differs(name: &str, key: &Key, found: &str, recorded: &State) -> Option<Problem> {
    let before = recorded.target.as_deref().filter(|before| *before != found && !recorded.holdings.is_empty())?;
    let message = format!(
        "spec.kubeConfig: the kubeconfig in Secret {} leads to another cluster (its namespace kube-system has UID {found}) than the one that has the \
         objects of the bundle (UID {before}); nothing is written there. Write a kubeconfig for that cluster into the Secret; if it is gone, \
         `kubectl delete bundledeployment {name} --cascade=orphan`, and create the BundleDeployment again",
        key.secret()
    );
    Some(Problem::transient(Reason::TargetChanged, message))
}

/// Reads the kubeconfig.
async fn read(installer: &Installer, subject: &Subject, key: &Key, intent: Intent) -> Result<Vec<u8>, Problem> {
    let (deployment, cluster) = (&subject.deployment, &installer.cluster);
    let (name, namespace) = (subject.name(), deployment.spec.install_namespace.as_str());
    let account = match account(deployment, &cluster.options.accounts) {
        Ok(account) => account,
        // Objects that were installed before an account was required are deleted without one.
        Err(_) if intent == Intent::TearDown => account_for_deletion(deployment, &cluster.options.accounts),
        Err(error) => return Err(Problem::from(&error)),
    };
    let client = reader(&installer.preparer, deployment, account.as_ref()).await;
    let client = client.map_err(|error| Problem::from(&error))?;
    let Some(reference) = &deployment.spec.kube_config else {
        return Err(invalid(&key.secret(), &"no Secret is named"));
    };
    let secret_name = &reference.secret_ref.name;
    let found = Api::<Secret>::namespaced(client, namespace).get_opt(secret_name).await;
    let found = found.map_err(|error| match &error {
        kube::Error::Api(status) if status.is_forbidden() => {
            let who = account.as_ref().map_or_else(|| "the controller".to_owned(), |it| format!("ServiceAccount {it}"));
            let message = format!(
                "spec.kubeConfig: {who} may not read Secret {}: it needs get of secrets by this name; `chandler rbac {name}` prints roles that \
                 grant this",
                key.secret()
            );
            let reason = if account.is_some() { Reason::PermissionsMissing } else { Reason::Forbidden };
            let missing_permissions = account.iter().map(|_| missing("secrets", &["get"], namespace, secret_name)).collect();
            Problem { needs_grant: true, missing_permissions, ..Problem::transient(reason, message) }
        }
        error => {
            let message = format!("spec.kubeConfig: failed to read Secret {}: {}", key.secret(), api_message(error));
            Problem::transient(Reason::Retrying, message)
        }
    })?;
    let is_restricted = account.is_none() && namespace == cluster.options.system_namespace;
    let grantee = Grantee::BundleDeployment(&name);
    let found = found.filter(|secret| !is_restricted || grantee.may_name(None, &secret.metadata, true));
    let Some(secret) = found else {
        let hint = if is_restricted {
            format!("it does not exist, or its annotation {} does not list {name}", grantee.annotation())
        } else {
            "it does not exist: create it with a kubeconfig under the key value".to_owned()
        };
        return Err(invalid(&key.secret(), &hint));
    };
    let mut data = secret.data.unwrap_or_default();
    let named = reference.secret_ref.key.as_deref();
    let mut keys = named.map_or_else(|| KEYS.to_vec(), |key| vec![key]).into_iter();
    match keys.find_map(|key| data.remove(key)) {
        Some(kubeconfig) => Ok(kubeconfig.0),
        None => Err(invalid(&key.secret(), &format!("it has no key {}", named.unwrap_or("value")))),
    }
}

/// What a reconcile reports whose other cluster is unavailable.
pub(in super::super) fn unavailable(subject: &Subject, intent: Intent, problem: Problem) -> Assessment {
    let name = subject.name();
    let health =
        Err(format!("the release that runs is in another cluster, so that its health is unknown: {}", problem.message));
    let running = Running { bundle: None, health, not_repaired: None, findings: RolloutFindings::default() };
    let running = (!subject.history().is_empty()).then_some(running);
    match intent {
        Intent::Suspend => Assessment::early(ReconcileOutcome::Suspended).with_running(running),
        Intent::TearDown => {
            let message = format!(
                "{}. The objects are deleted once the controller can delete them there; if that cluster is gone, or they should stay: kubectl delete \
                 bundledeployment {name} --cascade=orphan",
                problem.message.trim_end_matches('.')
            );
            Assessment::early(ReconcileOutcome::DeletionFailed(Problem { message, ..problem }))
        }
        Intent::Ignore | Intent::RemoveFinalizer | Intent::Deploy => {
            Assessment::early(ReconcileOutcome::TargetUnavailable(problem)).with_running(running)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chandler_rollout::{Holdings, ObjectId, Seal, Settlement};

    use super::*;

    fn state(target: Option<&str>, has_objects: bool) -> State {
        let id = ObjectId { group: String::new(), kind: "ConfigMap".into(), namespace: None, name: "x".into() };
        let held = if has_objects { BTreeMap::from([(id, "u".to_owned())]) } else { BTreeMap::new() };
        let holdings = Holdings::new("uid", Seal::new([1; 32])).settled(&Settlement { held, ..Settlement::default() });
        State { target: target.map(str::to_owned), ..State::new("a", holdings) }
    }

    #[test]
    fn a_release_stays_in_its_cluster() {
        for (is_elsewhere, target, has_objects, refused) in [
            (false, None, true, false),
            (true, None, false, false),
            (true, Some("t"), true, false),
            // Nothing is installed yet, or any more.
            (false, Some("t"), false, false),
            (true, None, true, true),
            (false, Some("t"), true, true),
        ] {
            let found = moved("a", is_elsewhere, &state(target, has_objects));
            assert_eq!(found.is_some(), refused, "{is_elsewhere} {target:?} {has_objects}");
            assert!(found.is_none_or(|problem| problem.reason == Reason::TargetChanged && !problem.terminal));
        }
        let lost = State { holdings: Holdings::new("uid", Seal::new([1; 32])).inheriting(), ..state(None, false) };
        assert!(moved("a", true, &lost).is_some_and(|problem| problem.message.contains("record")));
    }

    #[test]
    fn another_cluster_gets_nothing_while_the_first_one_has_objects() {
        let deployment: chandler_api::BundleDeployment = serde_json::from_value(serde_json::json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "a"},
            "spec": {"installNamespace": "n", "source": {"type": "image"}, "kubeConfig": {"secretRef": {"name": "there"}}},
        }))
        .unwrap();
        let key = Key::of(&deployment).unwrap();
        assert_eq!(differs("a", &key, "t", &state(Some("t"), true)), None);
        assert_eq!(differs("a", &key, "t", &state(None, false)), None);
        assert_eq!(differs("a", &key, "t", &state(Some("s"), false)), None);
        let problem = differs("a", &key, "t", &state(Some("s"), true)).unwrap();
        assert_eq!(problem.reason, Reason::TargetChanged);
        assert!(
            problem.message.contains("n/there") && problem.message.contains("--cascade=orphan"),
            "{}",
            problem.message
        );
    }
}
