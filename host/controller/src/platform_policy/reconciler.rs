//! The status of a PlatformPolicy, and which objects its changes concern.

use std::sync::Arc;

use chandler_api::{ConditionType as Type, NewCondition, PlatformPolicy, PlatformPolicyStatus, Reason};
use chandler_resolution::platform::Policy;
use chandler_runtime::{Backoff, KindController, Metrics, Reconciler, Reflector, Report, Shutdown, WatchSelector};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::{Api, ResourceExt as _, core::error_boundary::InvalidObject};

use super::policies::{Guarded, Policies};
use crate::{
    cluster::Cluster,
    events,
    monitoring::ready_reason,
    signals::{Signal, Signals},
    status::{StatusError, set_with_stalled},
};

/// The status could not be written.
pub(crate) type ReconcileError = StatusError<PlatformPolicy>;

/// The reconciler of PlatformPolicies.
pub(crate) struct PlatformPolicies {
    cluster: Arc<Cluster>,
    signals: Arc<Signals>,
    policies: Arc<Policies>,
    backoff: Backoff,
}

impl PlatformPolicies {
    /// The reconciler, which announces changes of `policies`.
    pub(crate) fn new(cluster: &Arc<Cluster>, signals: &Arc<Signals>, policies: &Arc<Policies>) -> Self {
        let (cluster, signals, policies) = (Arc::clone(cluster), Arc::clone(signals), Arc::clone(policies));
        Self { cluster, signals, policies, backoff: Backoff::default() }
    }

    /// The controller. It watches all PlatformPolicies regardless of its selector: a limit that lacks a label must not be ineffective, and
    /// the name identifies the controller that it limits.
    pub(crate) fn controller(
        self,
        reflector: Reflector<PlatformPolicy>,
        metrics: Arc<dyn Metrics>,
        shutdown: &Shutdown,
    ) -> KindController<Self> {
        let api = Api::all(self.cluster.client.clone());
        KindController::new(reflector, api, WatchSelector::default().watch(), Arc::new(self), metrics, shutdown)
    }

    /// Announces the policy that is in force, if it has changed.
    fn changed(&self) {
        if self.policies.take_changed() {
            self.signals.send(Signal::PolicyChanged);
        }
    }

    /// The status of a policy; `None` if it may be another controller's policy.
    fn accepted(&self, policy: &PlatformPolicy) -> Option<NewCondition> {
        let options = &self.cluster.options;
        let (name, read) = (policy.name_any(), &options.platform_resolution);
        if name != *read {
            let message = format!(
                "the controller reads PlatformPolicy {read}, the name of its Resolution of PlatformOperators (--platform-resolution), \
                 and no other: {name} has no effect"
            );
            let unused = NewCondition::is_false(Type::Accepted, Reason::PolicyNotUsed, message);
            return Some(unused).filter(|_| options.watch_selector.selects_all());
        }
        Some(match Policy::read(policy) {
            Ok(_) => NewCondition::is_true(Type::Accepted, Reason::PolicyAccepted, "the policy is in force"),
            Err(invalid) => NewCondition::is_false(Type::Accepted, Reason::InvalidPolicy, invalid.to_string()),
        })
    }
}

impl Reconciler for PlatformPolicies {
    type Object = PlatformPolicy;
    type Status = PlatformPolicyStatus;
    type Error = ReconcileError;

    async fn reconcile(&self, policy: &PlatformPolicy) -> Result<Report<PlatformPolicyStatus>, ReconcileError> {
        let Some(accepted) = self.accepted(policy) else { return Ok(Report::nothing()) };
        Ok(Report::settled(derive(policy, accepted, Timestamp::now())))
    }

    /// An error means that the status could not be written.
    fn failed(&self, _: &PlatformPolicy, _: &ReconcileError, _: u32) -> Option<PlatformPolicyStatus> {
        None
    }

    fn status(policy: &PlatformPolicy) -> Option<&PlatformPolicyStatus> {
        policy.status.as_ref()
    }

    fn reason(status: &PlatformPolicyStatus) -> Option<chandler_core::Reason> {
        ready_reason(&status.conditions)
    }

    async fn written(
        &self,
        policy: &PlatformPolicy,
        stored: Option<&PlatformPolicyStatus>,
        status: &PlatformPolicyStatus,
    ) {
        let stored = stored.map(|status| status.conditions.as_slice());
        events::publish(&self.cluster.events, policy, stored, &status.conditions).await;
    }

    fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// PlatformOperators report it, and nothing new is decided: what the policy allows is unknown.
    async fn undecodable(&self, _: &Guarded, _: &InvalidObject) -> Result<(), ReconcileError> {
        self.changed();
        Ok(())
    }

    fn observed(&self, _: &PlatformPolicy) {
        self.changed();
    }

    fn removed(&self, policy: &ObjectMeta) {
        self.backoff.succeeded(policy.name.as_deref().unwrap_or_default());
        self.changed();
    }

    fn listed(&self) {
        self.changed();
    }
}

fn derive(policy: &PlatformPolicy, accepted: NewCondition, now: Timestamp) -> PlatformPolicyStatus {
    let mut status = policy.status.clone().unwrap_or_default();
    let generation = policy.metadata.generation;
    status.observed_generation = generation;
    // Only a change of the policy helps.
    let is_stalled = accepted.reason != Reason::PolicyAccepted;
    set_with_stalled(&mut status.conditions, accepted, is_stalled, generation, now);
    status
}

#[cfg(test)]
mod tests {
    use chandler_api::PlatformPolicySpec;

    use super::*;

    #[test]
    fn a_policy_that_is_not_in_force_is_stalled_until_it_is() {
        let mut policy = PlatformPolicy::new("limits", PlatformPolicySpec::default());
        let conditions = |policy: &PlatformPolicy, accepted: NewCondition| {
            let status = derive(policy, accepted, Timestamp::UNIX_EPOCH);
            let text = |it: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
                format!("{}={}/{}", it.type_, it.status, it.reason)
            };
            (status.conditions.iter().map(text).collect::<Vec<_>>(), status)
        };
        let unused = NewCondition::is_false(Type::Accepted, Reason::PolicyNotUsed, "another name");
        let (found, status) = conditions(&policy, unused);
        assert_eq!(found, ["Stalled=True/PolicyNotUsed", "Accepted=False/PolicyNotUsed"]);
        policy.status = Some(status);
        let accepted = NewCondition::is_true(Type::Accepted, Reason::PolicyAccepted, "");
        assert_eq!(conditions(&policy, accepted).0, ["Accepted=True/PolicyAccepted"]);
    }
}
