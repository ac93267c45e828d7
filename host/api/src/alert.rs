//! `chandler.dev/v1alpha1 Alert`: which changes of which objects are sent to which server.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, source::LocalObjectReference};

/// Sends notifications about changes of objects to a server.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "chandler.dev",
    version = "v1alpha1",
    kind = "Alert",
    plural = "alerts",
    status = "AlertStatus",
    derive = "PartialEq",
    doc = "Sends notifications about changes of objects of Chandler to a server: the same texts as their Events.",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Provider", "type": "string", "jsonPath": ".spec.provider.type"}"#,
    printcolumn = r#"{"name": "Last Delivery", "type": "date", "jsonPath": ".status.lastDelivery.time"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct AlertSpec {
    /// Where notifications are sent.
    pub provider: AlertProvider,
    /// Which notifications are sent. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<AlertFilter>,
    /// A text that is added to each notification, such as the name of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub summary: Option<String>,
    /// Names and values that are added to each notification.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub labels: BTreeMap<String, String>,
    /// Whether nothing is sent. Notifications of that time are not sent later. Default: false.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub suspend: bool,
}

/// A server that takes notifications. Exactly one of `url` and `secretRef` is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlertProvider {
    /// The form of the notifications: Webhook is JSON, CloudEvents is a CloudEvent 1.0 in structured mode, Slack is a message for an incoming
    /// webhook of Slack, or of a server that accepts the same.
    #[serde(rename = "type")]
    #[schemars(schema_with = "schema::enumeration::<ProviderType>")]
    pub kind: ProviderType,
    /// The URL that notifications are posted to: https, or http on the controller's own machine. Everyone who can read the Alert can read it:
    /// use `secretRef` if the URL contains a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = "^https?://[^/]"))]
    pub url: Option<String>,
    /// A Secret in the controller's namespace. Its key `url` has the URL. Optional keys: `token` is sent as a bearer token, `hmacKey` signs
    /// each body (header X-Signature), `ca.crt` has certificates that are trusted in addition to the system's, `headers` has further
    /// headers, one on each line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// The channel of a message, for Slack-like servers whose webhooks let the sender choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 80))]
    pub channel: Option<String>,
}

/// The form of notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProviderType {
    /// An object in JSON.
    #[default]
    Webhook,
    /// A CloudEvent 1.0 in structured mode.
    CloudEvents,
    /// A message for an incoming webhook of Slack.
    Slack,
}

impl schema::Enumeration for ProviderType {
    const NAMES: &[&str] = &["Webhook", "CloudEvents", "Slack"];
}

/// Which notifications are sent. All criteria must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlertFilter {
    /// The kinds of the objects. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "kinds")]
    pub kinds: Vec<AlertKind>,
    /// The names of the objects. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub names: Vec<String>,
    /// The labels that the objects must have. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub match_labels: BTreeMap<String, String>,
    /// The lowest severity that is sent: Info is everything, Warning is problems only. Default: Info.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<AlertSeverity>")]
    pub severity: Option<AlertSeverity>,
    /// The reasons that are sent, such as UpgradeFailed. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 128), regex(pattern = "^[A-Za-z][A-Za-z0-9]*$")))]
    pub reasons: Vec<String>,
    /// The reasons that are not sent, even if `reasons` has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 128), regex(pattern = "^[A-Za-z][A-Za-z0-9]*$")))]
    pub exclude_reasons: Vec<String>,
}

/// A kind whose changes can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AlertKind {
    /// `core.rukpak.io` BundleDeployment.
    BundleDeployment,
    /// `chandler.dev` ProvisionerClass.
    ProvisionerClass,
    /// `chandler.dev` Catalog.
    Catalog,
    /// `core.deppy.io` Resolution.
    Resolution,
    /// `platform.openshift.io` PlatformOperator.
    PlatformOperator,
}

impl AlertKind {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::BundleDeployment, Self::ProvisionerClass, Self::Catalog, Self::Resolution, Self::PlatformOperator];

    /// The kind, as objects name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BundleDeployment => "BundleDeployment",
            Self::ProvisionerClass => "ProvisionerClass",
            Self::Catalog => "Catalog",
            Self::Resolution => "Resolution",
            Self::PlatformOperator => "PlatformOperator",
        }
    }

    /// The kind that objects with this name of a kind have.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

fn kinds(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "maxItems": AlertKind::ALL.len(),
        "items": {"type": "string", "enum": AlertKind::ALL.map(AlertKind::as_str)},
    })
}

/// How serious a notification is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AlertSeverity {
    /// Something happened as wanted.
    #[default]
    Info,
    /// A problem.
    Warning,
}

impl AlertSeverity {
    /// The name in the API and in notifications.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "Info",
            Self::Warning => "Warning",
        }
    }
}

impl schema::Enumeration for AlertSeverity {
    const NAMES: &[&str] = &["Info", "Warning"];
}

/// The state of the deliveries. It is written once a minute on average at most.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlertStatus {
    /// Conditions. Ready: notifications are sent, and the last delivery succeeded. Stalled: a user or an administrator has to act.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The generation of the spec that this status describes; -1 until the controller has observed the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The last delivery that this status knows of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_delivery: Option<LastDelivery>,
    /// The number of notifications that were dropped since the controller started, because more than 100 waited for the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<i64>,
}

/// A delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastDelivery {
    /// When the server answered, or failed to.
    pub time: Time,
    /// Whether the server accepted the notification.
    pub succeeded: bool,
}
