//! What an Event says.

use chandler_api::AlertSeverity;
use chandler_core::Digest;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

/// The reason of the notification that others were left out.
pub const LEFT_OUT: &str = "NotificationsLeftOut";

/// The ServiceAccount that installs for an object: those who use it share its turns. Both parts are empty for an object without one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenant {
    /// The namespace of the account.
    pub namespace: String,
    /// The name of the account.
    pub account: String,
}

/// What happened to an object: the content of its Event. The texts are printable and bounded, as they are in the Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The API version of the object.
    pub api_version: String,
    /// The kind of the object.
    pub kind: String,
    /// The name of the object, which is cluster-scoped.
    pub name: String,
    /// The UID of the object; empty for an Alert.
    pub uid: String,
    /// The tenant that the object belongs to. It is not sent.
    pub tenant: Tenant,
    /// How serious it is.
    pub severity: AlertSeverity,
    /// Why: a CamelCase word.
    pub reason: String,
    /// What was done or failed: a CamelCase word.
    pub action: String,
    /// The message for people.
    pub message: String,
    /// When it happened.
    pub time: Timestamp,
}

impl Notification {
    /// A name for this occurrence, which is the same at each attempt and for each Alert, so that a receiver can recognise repetitions.
    pub fn id(&self) -> String {
        let nanoseconds = self.time.as_nanosecond().to_string();
        Digest::of_json(&json!([self.content().hex(), nanoseconds])).hex().chars().take(32).collect()
    }

    /// The digest of everything but the time. The UID stands for the tenant.
    pub(crate) fn content(&self) -> Digest {
        let Self { api_version, kind, name, uid, severity, reason, action, message, tenant: _, time: _ } = self;
        Digest::of_json(&json!([api_version, kind, name, uid, severity.as_str(), reason, action, message]))
    }

    /// The notification that the Alert of this name left out this many others.
    pub(crate) fn left_out(alert: &str, number: u64, severity: AlertSeverity, time: Timestamp) -> Self {
        let noun = if number == 1 { "notification was" } else { "notifications were" };
        Self {
            api_version: "chandler.dev/v1alpha1".to_owned(),
            kind: "Alert".to_owned(),
            name: alert.to_owned(),
            uid: String::new(),
            tenant: Tenant::default(),
            severity,
            reason: LEFT_OUT.to_owned(),
            action: "Notify".to_owned(),
            message: format!("{number} more {noun} left out: `kubectl get events -n default` shows the Events"),
            time,
        }
    }
}
