//! Whether new versions of CustomResourceDefinitions keep clients and stored objects working.

use chandler_core::Budget;
use chandler_crd_upgrade::{CheckError, ObjectCheck, Policy, Report, comparable, compare};
use kube::api::ApiResource;
use serde_json::Value;

use crate::{
    client::cluster::{Cluster, Page},
    compute::cpu,
    pure::{
        crd::is_crd,
        desired::Desired,
        error::{ApiError, RolloutError},
        situation::{Action, Situation},
    },
};

/// Compares each CRD that is to be updated with what the cluster has, and custom resources that exist with the new
/// schemas. What is new to the cluster breaks nothing, and what somebody changed by hand is put back as it was released.
///
/// Returns what is to be told although it stops nothing.
pub(crate) async fn check(
    cluster: &Cluster,
    policy: &Policy,
    desired: &[Desired],
    situations: &[Situation],
    live: &[Option<Value>],
) -> Result<Vec<String>, RolloutError> {
    let mut report = Report::default();
    for ((desired, situation), live) in desired.iter().zip(situations).zip(live) {
        let Some(live) = live else { continue };
        let upgrade = matches!(situation.action(), Action::Update | Action::Adopt)
            && is_crd(&desired.key)
            && desired.key.version == "v1";
        if !upgrade || policy.disabled {
            continue;
        }
        comparable(live, &desired.value)?;
        report.extend(compare_schemas(live, &desired.value, policy).await?);
        if let Some(check) = ObjectCheck::plan(live, &desired.value, policy) {
            report.extend(check_objects(cluster, check).await?);
        }
    }
    if !report.refusals.is_empty() {
        return Err(RolloutError::UnsafeCrdUpgrade(report.refusals));
    }
    Ok(report.warnings.iter().map(ToString::to_string).chain(report.notes).collect())
}

/// Compares two CRDs, on a thread for that where they are large.
async fn compare_schemas(live: &Value, desired: &Value, policy: &Policy) -> Result<Report, CheckError> {
    if !cpu::is_large([live, desired]) {
        return Ok(compare(live, desired, policy));
    }
    let (live, desired, policy) = (live.clone(), desired.clone(), policy.clone());
    let crd = desired.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    // It has no steps to end at: how long it takes is bounded by the versions, and by what an API server takes.
    let work = move || compare(&live, &desired, &policy);
    cpu::run(&Budget::new(u64::MAX), work).await.map_err(|_| CheckError::Cancelled { crd })
}

/// Lists custom resources page by page until enough were checked. One page is in memory at a time.
async fn check_objects(cluster: &Cluster, mut check: ObjectCheck) -> Result<Report, RolloutError> {
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
            // Nothing of a kind that is not served can be read, and so nothing of it was written.
            Err(ApiError::NotFound(_)) => break,
            // Rights on custom resources are not needed to install an operator, so they are not demanded for its upgrade.
            Err(ApiError::Forbidden(error)) => {
                check.unchecked(&error);
                break;
            }
            // No retry helps where the old release cannot convert, and the new one may be what mends it.
            Err(ApiError::Unavailable(error)) if !error.contains("conversion webhook") => {
                return Err(RolloutError::Request {
                    action: format!("list {}.{}", resource.plural, resource.group),
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

/// Checks one page, on a thread for that where it is large.
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
