//! The token and the status of a Receiver.

use std::{sync::Arc, time::Duration};

use chandler_api::{
    ConditionType as Type, NewCondition, Reason, Receiver, ReceiverStatus,
    receiver::{CERTIFICATES_KEY, TOKEN_KEY},
};
use chandler_receivers::Token;
use chandler_runtime::{
    Backoff, Cache, KindController, Metrics, Next, Reconciler, Reflector, Report, Shutdown, Triggers,
};
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::{Api, ResourceExt as _, core::error_boundary::InvalidObject, runtime::reflector::ObjectRef};

use super::{Webhooks, webhooks::Secrets};
use crate::{
    cluster::Cluster,
    events,
    monitoring::ready_reason,
    signals::{Signal, Subscriber},
    status::{StatusError, set_with_stalled},
};

/// A Receiver that may not decode.
type Guarded = chandler_runtime::Guarded<Receiver>;

/// The status could not be written.
pub(crate) type ReconcileError = StatusError<Receiver>;

/// Wakes Receivers whose Secret changes.
pub(crate) struct TokenChanges {
    objects: Cache<Guarded>,
    triggers: Triggers<Receiver>,
}

impl TokenChanges {
    /// Wakes the Receivers of this reflector.
    pub(crate) fn new(reflector: &Reflector<Receiver>) -> Self {
        Self { objects: reflector.cache(), triggers: reflector.triggers() }
    }
}

impl Subscriber for TokenChanges {
    fn receive(&self, signal: Signal<'_>) {
        let Signal::SecretChanged(secret) = signal else { return };
        for guarded in self.objects.state() {
            if guarded.0.as_ref().is_ok_and(|receiver| receiver.spec.secret_ref.name == secret) {
                // A trigger without a receiver means that the controller is stopping.
                let _ = self.triggers.send(ObjectRef::new(&guarded.name_any()));
            }
        }
    }
}

/// The reconciler of Receivers.
pub(crate) struct Receivers {
    cluster: Arc<Cluster>,
    webhooks: Arc<Webhooks>,
    objects: Cache<Guarded>,
    backoff: Backoff,
}

impl Receivers {
    /// The reconciler, which keeps `webhooks` up to date.
    pub(crate) fn new(cluster: &Arc<Cluster>, webhooks: &Arc<Webhooks>, reflector: &Reflector<Receiver>) -> Self {
        let (cluster, webhooks) = (Arc::clone(cluster), Arc::clone(webhooks));
        Self { cluster, webhooks, objects: reflector.cache(), backoff: Backoff::default() }
    }

    /// The controller.
    pub(crate) fn controller(
        self,
        reflector: Reflector<Receiver>,
        metrics: Arc<dyn Metrics>,
        shutdown: &Shutdown,
    ) -> KindController<Self> {
        let api = Api::all(self.cluster.client.clone());
        let selection = self.cluster.options.watch_selector.watch();
        KindController::new(reflector, api, selection, Arc::new(self), metrics, shutdown)
    }

    /// The token and the certificates, or why the token is missing.
    async fn secrets(&self, receiver: &Receiver) -> Result<Secrets, NewCondition> {
        let (namespace, name) = (&self.cluster.options.system_namespace, &receiver.spec.secret_ref.name);
        let not_found = |what: String| {
            let message = format!("Secret {namespace}/{name} {what}");
            NewCondition::is_false(Type::Ready, Reason::TokenNotFound, message)
        };
        let api: Api<Secret> = Api::namespaced(self.cluster.client.clone(), namespace);
        let secret = match api.get_opt(name).await {
            Ok(Some(secret)) => secret,
            Ok(None) => return Err(not_found("does not exist".to_owned())),
            Err(error) => return Err(not_found(format!("cannot be read: {}", chandler_source::api_message(&error)))),
        };
        let mut data = secret.data.unwrap_or_default();
        let value = data.get(TOKEN_KEY).ok_or_else(|| not_found(format!("has no key {TOKEN_KEY}")))?;
        let token = Token::new(&value.0).map_err(|error| {
            let message = format!("Secret {namespace}/{name}: {error}");
            NewCondition::is_false(Type::Ready, Reason::InvalidToken, message)
        })?;
        Ok(Secrets { token, certificates: data.remove(CERTIFICATES_KEY).map(|pem| pem.0) })
    }

    /// Accepts requests for a Receiver if it can. Returns the condition and the path.
    async fn accept(&self, receiver: &Receiver) -> (NewCondition, Option<String>) {
        let name = receiver.name_any();
        if self.cluster.options.receiver.is_none() {
            let message = "the controller has no address for webhooks (--receiver-address)";
            return (NewCondition::is_false(Type::Ready, Reason::ReceiversNotServed, message), None);
        }
        let secrets = match self.secrets(receiver).await {
            Ok(secrets) => secrets,
            Err(condition) => {
                self.webhooks.forget(&name);
                return (condition, None);
            }
        };
        let is_gone = self.objects.get(&ObjectRef::new(&name)).is_none_or(|stored| stored.uid() != receiver.uid());
        if is_gone {
            // It was deleted while its token was read.
            self.webhooks.forget(&name);
            return (NewCondition::is_false(Type::Ready, Reason::TokenNotFound, "the Receiver is gone"), None);
        }
        let path = match self.webhooks.accept(&name, &receiver.spec, secrets) {
            Ok(path) => path,
            Err(error) => {
                self.webhooks.forget(&name);
                return (NewCondition::is_false(Type::Ready, Reason::InvalidOidc, error.to_string()), None);
            }
        };
        let condition = if receiver.spec.suspend {
            NewCondition::is_false(Type::Ready, Reason::Suspended, "all requests are refused: spec.suspend is true")
        } else {
            NewCondition::is_true(
                Type::Ready,
                Reason::ReceiverReady,
                "requests are accepted at the path in status.webhookPath",
            )
        };
        (condition, Some(path))
    }
}

impl Reconciler for Receivers {
    type Object = Receiver;
    type Status = ReceiverStatus;
    type Error = ReconcileError;

    async fn reconcile(&self, receiver: &Receiver) -> Result<Report<ReceiverStatus>, ReconcileError> {
        let (ready, path) = self.accept(receiver).await;
        let next = match ready.reason {
            Reason::TokenNotFound => Next::Retry { at_least: Duration::ZERO, at_most: None },
            _ => Next::Change,
        };
        Ok(Report { status: Some(derive(receiver, ready, path, Timestamp::now())), next })
    }

    /// An error means that the status could not be written.
    fn failed(&self, _: &Receiver, _: &ReconcileError, _: u32) -> Option<ReceiverStatus> {
        None
    }

    fn status(receiver: &Receiver) -> Option<&ReceiverStatus> {
        receiver.status.as_ref()
    }

    fn reason(status: &ReceiverStatus) -> Option<chandler_core::Reason> {
        ready_reason(&status.conditions)
    }

    async fn written(&self, receiver: &Receiver, stored: Option<&ReceiverStatus>, status: &ReceiverStatus) {
        let stored = stored.map(|status| status.conditions.as_slice());
        events::publish_ready(&self.cluster.events, receiver, stored, &status.conditions).await;
    }

    fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// What it means is unknown, so that nothing is accepted.
    async fn undecodable(&self, receiver: &Guarded, _: &InvalidObject) -> Result<(), ReconcileError> {
        self.webhooks.forget(&receiver.name_any());
        Ok(())
    }

    fn removed(&self, receiver: &ObjectMeta) {
        let name = receiver.name.as_deref().unwrap_or_default();
        self.backoff.succeeded(name);
        self.webhooks.forget(name);
    }

    fn listed(&self) {
        let known = self.objects.state();
        self.webhooks.retain(|name| known.iter().any(|receiver| receiver.name_any() == name));
    }
}

fn derive(receiver: &Receiver, ready: NewCondition, path: Option<String>, now: Timestamp) -> ReceiverStatus {
    let mut status = receiver.status.clone().unwrap_or_default();
    let generation = receiver.metadata.generation;
    status.observed_generation = generation;
    status.webhook_path = path;
    // A Receiver that is suspended is as wanted.
    let is_stalled = !ready.reason.remedy().time_may_help() && ready.reason != Reason::Suspended;
    set_with_stalled(&mut status.conditions, ready, is_stalled, generation, now);
    status
}

#[cfg(test)]
mod tests {
    use chandler_api::ReceiverSpec;

    use super::*;

    #[test]
    fn a_receiver_without_a_token_is_stalled_and_has_no_path() {
        let mut receiver = Receiver::new("pushes", ReceiverSpec::default());
        let ready = NewCondition::is_true(Type::Ready, Reason::ReceiverReady, "");
        let status = derive(&receiver, ready, Some("/hooks/1".to_owned()), Timestamp::UNIX_EPOCH);
        assert_eq!(status.webhook_path.as_deref(), Some("/hooks/1"));
        receiver.status = Some(status);
        let missing = NewCondition::is_false(Type::Ready, Reason::TokenNotFound, "");
        let status = derive(&receiver, missing, None, Timestamp::UNIX_EPOCH);
        let found: Vec<String> =
            status.conditions.iter().map(|it| format!("{}={}/{}", it.type_, it.status, it.reason)).collect();
        assert_eq!(found, ["Ready=False/TokenNotFound", "Stalled=True/TokenNotFound"]);
        assert_eq!(status.webhook_path, None);
    }
}
