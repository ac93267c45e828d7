//! Checks that new versions of CustomResourceDefinitions do not break clients or stored objects.

use chandler_core::Budget;
use chandler_crd_upgrade::{
    CheckError, ObjectCheck, Policy, RefusedUpgrades, Report, Upgrade, comparable, compare, rollback,
};
use kube::api::ApiResource;
use serde_json::Value;

use crate::{
    client::cluster::{Cluster, Page},
    compute::cpu,
    pure::{
        crd::is_crd,
        desired::{APPLIED, Desired},
        error::{ApiError, RolloutError},
        live,
        owner::Owner,
        situation::{Action, Situation},
    },
    read::places::qualified,
};

/// Compares each CRD that will be updated with its live version, and existing custom resources with the new schemas. A CRD that
/// is new to the cluster breaks nothing, and a manual change is repaired without a check.
///
/// Refuses upgrades with refusals without an approval. Returns the upgrades with findings.
pub(crate) async fn check(
    cluster: &Cluster,
    owner: &Owner,
    desired: &[Desired],
    situations: &[Situation],
    live: &[Option<Value>],
) -> Result<Vec<Upgrade>, RolloutError> {
    let (policy, mut upgrades) = (&owner.crd_upgrades, Vec::new());
    for ((desired, situation), live) in desired.iter().zip(situations).zip(live) {
        let Some(current) = live else { continue };
        // If another client deletes the CRD at this moment, a version that would have been refused before is still refused.
        let replaces_terminating =
            *situation == Situation::Terminating && live::annotation(current, APPLIED) != Some(desired.digest.as_str());
        let upgrade = (matches!(situation.action(), Action::Update | Action::Adopt) || replaces_terminating)
            && is_crd(&desired.key)
            && desired.key.version == "v1";
        if !upgrade || policy.disabled {
            continue;
        }
        comparable(current, &desired.value)?;
        let mut report = compare_schemas(current, &desired.value, policy).await?;
        if let Some(check) = ObjectCheck::plan(current, &desired.value, policy) {
            let converts = current.pointer("/spec/conversion/strategy").and_then(Value::as_str) == Some("Webhook");
            report.extend(check_objects(cluster, check, converts).await?);
        }
        if owner.rollback && situation.action() == Action::Update {
            report = rollback::without_restored(current, report);
        }
        if !report.is_empty() {
            let mut upgrade = Upgrade::new(current, &desired.value, report);
            upgrade.approved_by = owner.approved_upgrades.get(upgrade.digest.as_str()).cloned();
            upgrades.push(upgrade);
        }
    }
    if upgrades.iter().any(Upgrade::is_refused) {
        return Err(RolloutError::UnsafeCrdUpgrade(Box::new(RefusedUpgrades { owner: owner.name.clone(), upgrades })));
    }
    Ok(upgrades)
}

/// Compares two CRDs, on a thread of its own if they are large.
async fn compare_schemas(live: &Value, desired: &Value, policy: &Policy) -> Result<Report, CheckError> {
    if !cpu::is_large([live, desired]) {
        return Ok(compare(live, desired, policy));
    }
    let (live, desired, policy) = (live.clone(), desired.clone(), policy.clone());
    let crd = desired.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    // The comparison cannot be cancelled: its duration is bounded by the number of versions and the size limit of the API
    // server.
    let work = move || compare(&live, &desired, &policy);
    cpu::run(&Budget::new(u64::MAX), work).await.map_err(|_| CheckError::Cancelled { crd })
}

/// Lists custom resources page by page until enough were checked. Only one page is in memory at a time. `converts` is whether a webhook
/// of the installed release converts between the versions.
async fn check_objects(cluster: &Cluster, mut check: ObjectCheck, converts: bool) -> Result<Report, RolloutError> {
    let listed = check.resource().clone();
    let resource = ApiResource {
        api_version: format!("{}/{}", listed.group, listed.version),
        group: listed.group,
        version: listed.version,
        kind: listed.kind,
        plural: listed.plural,
    };
    let mut next = None;
    while let Some(limit) = check.next_page() {
        match cluster.page(&resource, limit, next.as_deref()).await {
            Ok(Page { objects, remaining, next: token }) => {
                check = check_page(check, objects, remaining).await?;
                if token.is_none() {
                    break;
                }
                next = token;
            }
            // Objects of a kind that is not served can neither be read nor have been written.
            Err(ApiError::NotFound(_)) => break,
            // Installing an operator needs no permission for its custom resources, so its upgrade does not require one either.
            Err(ApiError::Forbidden(error)) => {
                check.unchecked(&error);
                break;
            }
            // The new release may repair the webhook, so it must not depend on it.
            Err(error) if converts && is_failed_conversion(&error) => {
                check.unchecked(&error.to_string());
                break;
            }
            Err(ApiError::Unavailable(error)) => {
                return Err(RolloutError::Request {
                    action: format!("list {}", qualified(&resource)),
                    error: ApiError::Unavailable(error),
                });
            }
            Err(error) => {
                check.unreadable(&error.to_string());
                break;
            }
        }
    }
    Ok(check.finish())
}

/// Whether the API server could not convert a stored object (`k8s.io/apiextensions-apiserver/pkg/apiserver/conversion`).
fn is_failed_conversion(error: &ApiError) -> bool {
    error.to_string().contains("conversion webhook for ")
}

/// Checks one page, on a thread of its own if it is large.
async fn check_page(
    mut check: ObjectCheck,
    objects: Vec<Value>,
    remaining: Option<u64>,
) -> Result<ObjectCheck, CheckError> {
    if !check.is_large() && !cpu::is_large(&objects) {
        check.page(&objects, remaining)?;
        return Ok(check);
    }
    let (budget, crd) = (check.budget().clone(), check.crd().to_owned());
    let work = move || check.page(&objects, remaining).map(|()| check);
    cpu::run(&budget, work).await.map_err(|_| CheckError::Cancelled { crd })?
}
