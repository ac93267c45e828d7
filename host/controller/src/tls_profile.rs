//! The TLS profile of an OpenShift cluster, which connections that this controller accepts follow.
//!
//! It is the object `cluster` of the kind APIServer of `config.openshift.io/v1`. Each replica follows it, also one that waits for the Lease:
//! all serve metrics.

use std::time::Duration;

use chandler_tls::{TlsSettings, TlsVersion, profile::Profile};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use serde::Deserialize as _;
use tokio::sync::watch;

use crate::{Options, dynamic};

/// The name of the one object of the kind.
const NAME: &str = "cluster";
/// The pause before the controller tries again to read the profile.
const REFUSED: Duration = Duration::from_mins(1);
/// The pause after a watch that failed.
const RETRY: Duration = Duration::from_secs(5);

/// Follows the profile, if the options ask for it.
pub(crate) struct TlsProfile {
    /// `None` if it is not followed.
    api: Option<Api<DynamicObject>>,
    current: watch::Sender<TlsSettings>,
    /// The last problem that was logged.
    logged: Option<String>,
}

impl TlsProfile {
    /// Makes no request yet. Until the profile is read, only TLS 1.3 is accepted, which nearly all profiles allow.
    pub(crate) fn new(client: &Client, options: &Options) -> (Self, watch::Receiver<TlsSettings>) {
        let is_followed = options.follow_tls_profile;
        let first = if is_followed { TlsSettings::from_version(TlsVersion::Tls13) } else { options.tls.clone() };
        let (current, settings) = watch::channel(first);
        let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "APIServer");
        let resource = ApiResource::from_gvk_with_plural(&kind, "apiservers");
        let api = is_followed.then(|| Api::all_with(client.clone(), &resource));
        (Self { api, current, logged: None }, settings)
    }

    /// Applies the profile and its changes. A profile that cannot be read or followed is logged once, and the settings stay. Never ends.
    pub(crate) async fn follow(mut self) {
        let Some(api) = self.api.clone() else { return std::future::pending().await };
        loop {
            let read = dynamic::list(&api, &ListParams::default()).await;
            let read = read.map_err(|error| format!("the TLS profile of the cluster cannot be read: {error}"));
            let applied = read.and_then(|(objects, version)| self.apply(&objects).map(|()| version));
            match applied {
                Ok(Some(version)) => {
                    self.logged = None;
                    if let Err(error) = dynamic::change(&api, &version).await {
                        tracing::debug!(%error, "the watch of the TLS profile was interrupted");
                        tokio::time::sleep(RETRY).await;
                    }
                }
                Ok(None) => {
                    let problem =
                        "this cluster has no TLS profile: it does not serve APIServers of config.openshift.io";
                    self.wait(problem).await;
                }
                Err(problem) => self.wait(&problem).await,
            }
        }
    }

    /// Logs a problem unless it was logged last, and waits.
    async fn wait(&mut self, problem: &str) {
        if self.logged.as_deref() != Some(problem) {
            tracing::warn!(problem, "the TLS settings stay");
            self.logged = Some(problem.to_owned());
        }
        tokio::time::sleep(REFUSED).await;
    }

    /// Applies the profile of the object of the cluster. Without one, OpenShift takes `Intermediate`.
    fn apply(&self, objects: &[DynamicObject]) -> Result<(), String> {
        let object = objects.iter().find(|object| object.metadata.name.as_deref() == Some(NAME));
        let profile = object.and_then(|object| object.data.pointer("/spec/tlsSecurityProfile"));
        let profile = profile.filter(|profile| !profile.is_null());
        let unusable =
            |error: &dyn std::fmt::Display| format!("the TLS profile of the cluster cannot be followed: {error}");
        let profile = profile.map_or_else(|| Ok(Profile::default()), Profile::deserialize);
        let profile = profile.map_err(|error| unusable(&error))?;
        let (settings, left_out) = profile.settings().map_err(|error| unusable(&error))?;
        let changed = self.current.send_if_modified(|now| {
            let changes = *now != settings;
            *now = settings;
            changes
        });
        if changed {
            let unsupported = left_out.join(", ");
            tracing::info!(unsupported, "connections follow the TLS profile of the cluster");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(profile: Value) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": NAME}, "spec": {"tlsSecurityProfile": profile}})).unwrap()
    }

    #[test]
    fn a_profile_is_applied_and_one_that_cannot_be_followed_changes_nothing() {
        let (current, settings) = watch::channel(TlsSettings::default());
        let followed = TlsProfile { api: None, current, logged: None };
        let modern = TlsSettings::from_version(TlsVersion::Tls13);
        followed.apply(&[object(json!({"type": "Modern", "modern": {}}))]).unwrap();
        assert_eq!(*settings.borrow(), modern);
        let (unsupported, unknown) = (json!({"type": "Custom", "custom": {"groups": ["?"]}}), json!({"type": "Next"}));
        for unusable in [unsupported, unknown, json!({"type": 5}), json!("Modern")] {
            let error = followed.apply(&[object(unusable)]).unwrap_err();
            assert!(error.contains("cannot be followed"), "{error}");
            assert_eq!(*settings.borrow(), modern);
        }
        followed.apply(&[object(Value::Null)]).unwrap();
        assert_eq!(*settings.borrow(), TlsSettings::default());
        followed.apply(&[object(json!({"type": "Modern"}))]).unwrap();
        followed.apply(&[]).unwrap();
        assert_eq!(*settings.borrow(), TlsSettings::default());
    }
}
