//! Whether a controller holds its Lease: while none does, nothing that a command writes has an effect.

use std::time::Duration;

use chandler_api::{BundleDeployment, Resolution};
use chandler_controller::options::LEASE;
use k8s_openapi::{
    api::coordination::v1::Lease,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
    jiff::{SignedDuration, Timestamp},
};
use kube::{Api, Client};

use super::dev_controller;
use crate::view::{controller_absence::Unheld, terminal::Terminal, text::one_line};

/// The duration of a Lease that states none.
const DURATION: SignedDuration = SignedDuration::from_secs(15);
/// How much later a Lease counts as expired: the clocks of this machine and of the controller may differ.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(30);
/// How long a request or a spec may stay unhandled before the command looks whether a controller runs.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How long a controller has for a new BundleDeployment, before the absence of its Lease is reported.
const GRACE: SignedDuration = SignedDuration::from_secs(10);

/// What a command knows besides the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A spec has not been observed for some time.
    Unobserved,
    /// Every spec is observed. A controller may run without a Lease (`--leader-elect=false`), or in another namespace.
    Observed,
}

impl Evidence {
    /// What BundleDeployments show about the controller.
    pub fn of<'a>(deployments: impl IntoIterator<Item = &'a BundleDeployment>, now: Timestamp) -> Self {
        let is_waiting = |deployment: &BundleDeployment| is_old(&deployment.metadata, now) && !is_observed(deployment);
        if deployments.into_iter().any(is_waiting) { Self::Unobserved } else { Self::Observed }
    }

    /// What a Resolution and the BundleDeployments of its set show about the controller.
    pub fn of_set<'a>(
        resolution: &Resolution,
        deployments: impl IntoIterator<Item = &'a BundleDeployment>,
        now: Timestamp,
    ) -> Self {
        let observed = resolution.status.as_ref().and_then(|status| status.observed_generation);
        let is_waiting = is_old(&resolution.metadata, now) && !is_current(observed, &resolution.metadata);
        if is_waiting { Self::Unobserved } else { Self::of(deployments, now) }
    }
}

/// Whether the controller has observed the current spec.
pub fn is_observed(deployment: &BundleDeployment) -> bool {
    is_current(deployment.status.as_ref().and_then(|status| status.observed_generation), &deployment.metadata)
}

fn is_current(observed: Option<i64>, metadata: &ObjectMeta) -> bool {
    observed.is_some() && observed >= metadata.generation
}

/// Whether the controller has had time to observe an object.
fn is_old(metadata: &ObjectMeta, now: Timestamp) -> bool {
    let created = metadata.creation_timestamp.as_ref().map(|created| created.0);
    created.is_none_or(|created| now.duration_since(created) > GRACE)
}

/// Prints that no controller holds the Lease in its namespace, if none does. This is one request.
pub async fn report_absence(client: &Client, system_namespace: &str, evidence: Evidence, terminal: &Terminal) {
    if let Some(absent) = absence(client, system_namespace, evidence).await {
        terminal.line(one_line(&absent));
    }
}

/// What to print if no controller holds the Lease in its namespace. This is one request; a user who may not read the Lease gets nothing.
pub async fn absence(client: &Client, system_namespace: &str, evidence: Evidence) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), system_namespace);
    let lease = leases.get_opt(LEASE).await.ok()?;
    absent(lease.as_ref(), system_namespace, evidence, Timestamp::now())
}

/// What [`absence`] says about a Lease that was read.
pub(super) fn absent(
    lease: Option<&Lease>,
    system_namespace: &str,
    evidence: Evidence,
    now: Timestamp,
) -> Option<String> {
    let unheld = match lease {
        None if evidence == Evidence::Observed => return None,
        None => Unheld::Missing,
        Some(lease) => match dev_controller::holder(lease).filter(|holder| !holder.is_empty()) {
            None => Unheld::Released,
            Some(holder) => Unheld::Expired { holder, renewed: expired(lease, evidence, now)? },
        },
    };
    Some(unheld.text(system_namespace, LEASE))
}

/// When the Lease was renewed last, if that is too long ago.
fn expired(lease: &Lease, evidence: Evidence, now: Timestamp) -> Option<Timestamp> {
    let spec = lease.spec.as_ref()?;
    let renewed = spec.renew_time.as_ref()?.0;
    let duration = spec.lease_duration_seconds.map_or(DURATION, |seconds| SignedDuration::from_secs(seconds.into()));
    let skew = if evidence == Evidence::Unobserved { SignedDuration::ZERO } else { CLOCK_SKEW };
    (now.duration_since(renewed) > duration + skew).then_some(renewed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(holder: &str, renewed: &str) -> Lease {
        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed});
        serde_json::from_value(json!({"metadata": {"name": LEASE}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_controller_that_does_not_run_is_reported_with_the_reason() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let text =
            |lease: Option<&Lease>, evidence| absent(lease, "chandler-system", evidence, now).unwrap_or_default();
        let cases = [
            (None, Evidence::Unobserved),
            (None, Evidence::Observed),
            (Some(lease("", "2026-01-01T00:00:59Z")), Evidence::Observed),
            (Some(lease("pod-a", "2026-01-01T00:00:59Z")), Evidence::Unobserved),
            (Some(lease("pod-a", "2026-01-01T00:00:40Z")), Evidence::Observed),
            (Some(lease("pod-a", "2026-01-01T00:00:40Z")), Evidence::Unobserved),
            (Some(lease("pod-a", "2026-01-01T00:00:10Z")), Evidence::Observed),
        ];
        let lines: Vec<String> = cases.iter().map(|(lease, evidence)| text(lease.as_ref(), *evidence)).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        no controller holds the Lease chandler-system/chandler-controller, so that nothing is rolled out or repaired: it does not exist; --system-namespace names another namespace of the controller. `kubectl get pods --namespace chandler-system` shows whether it runs; docs/install.md says how to install it

        no controller holds the Lease chandler-system/chandler-controller, so that nothing is rolled out or repaired: its last holder has stopped. `kubectl get pods --namespace chandler-system` shows whether it runs; docs/operations.md says how to run it


        no controller holds the Lease chandler-system/chandler-controller, so that nothing is rolled out or repaired: pod-a renewed it last at 2026-01-01T00:00:40Z. `kubectl get pods --namespace chandler-system` shows whether it runs; docs/operations.md says how to run it
        no controller holds the Lease chandler-system/chandler-controller, so that nothing is rolled out or repaired: pod-a renewed it last at 2026-01-01T00:00:10Z. `kubectl get pods --namespace chandler-system` shows whether it runs; docs/operations.md says how to run it
        ");
    }

    #[test]
    fn a_spec_that_is_not_observed_is_evidence_after_a_while() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let evidence = |created: &str, observed: Option<i64>| {
            let deployment: BundleDeployment = serde_json::from_value(json!({
                "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
                "metadata": {"name": "a", "generation": 2, "creationTimestamp": created},
                "spec": {"installNamespace": "n", "source": {"type": "image"}},
                "status": {"observedGeneration": observed},
            }))
            .unwrap();
            Evidence::of([&deployment], now)
        };
        assert_eq!(evidence("2026-01-01T00:00:00Z", Some(2)), Evidence::Observed);
        assert_eq!(evidence("2026-01-01T00:00:00Z", Some(1)), Evidence::Unobserved);
        assert_eq!(evidence("2026-01-01T00:00:00Z", None), Evidence::Unobserved);
        assert_eq!(evidence("2026-01-01T00:00:55Z", None), Evidence::Observed, "the controller may be about to look");
    }

    #[test]
    fn a_resolution_that_is_not_observed_is_evidence_too() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let evidence = |created: &str, observed: Option<i64>| {
            let resolution: Resolution = serde_json::from_value(json!({
                "apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution",
                "metadata": {"name": "shop", "generation": 2, "creationTimestamp": created},
                "spec": {"packages": []}, "status": {"observedGeneration": observed},
            }))
            .unwrap();
            Evidence::of_set(&resolution, [], now)
        };
        assert_eq!(evidence("2026-01-01T00:00:00Z", Some(2)), Evidence::Observed);
        assert_eq!(evidence("2026-01-01T00:00:00Z", Some(1)), Evidence::Unobserved);
        assert_eq!(evidence("2026-01-01T00:00:55Z", None), Evidence::Observed, "the controller may be about to look");
    }
}
