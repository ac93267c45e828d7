//! `chandler.dev/v1alpha1 Receiver`: webhooks of registries and git servers that have sources polled at once.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::schema;

/// The key of the Secret with the token.
pub const TOKEN_KEY: &str = "token";
/// The shortest token, in bytes.
pub const SHORTEST_TOKEN: usize = 32;
/// The key of the Secret with certificates that are trusted for the issuer of identity tokens.
pub const CERTIFICATES_KEY: &str = "ca.crt";
/// The longest token, in bytes.
pub const LONGEST_TOKEN: usize = 4096;

/// A webhook of a registry or a git server. A request polls the sources that it concerns at once, instead of at the next interval.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "chandler.dev",
    version = "v1alpha1",
    kind = "Receiver",
    plural = "receivers",
    status = "ReceiverStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A webhook of a registry or a git server. A request polls the sources that it concerns at once, instead of at the next interval. It decides only when they are polled, never what is installed.",
    printcolumn = r#"{"name": "Type", "type": "string", "jsonPath": ".spec.type"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Path", "type": "string", "jsonPath": ".status.webhookPath", "priority": 1}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverSpec {
    /// Who sends the requests, which decides how they are authenticated and read. generic-hmac: anyone who signs the body with the token
    /// (X-Signature). github, gitea, forgejo: a signature of the body. gitlab: the token in X-Gitlab-Token. harbor and distribution (CNCF
    /// Distribution, and registries with its notifications): the token in the header Authorization. dockerhub and quay: the path alone, since they
    /// sign nothing. oidc: an identity token of an OpenID Connect issuer (spec.oidc), with any body. google-pubsub: an identity token of Google, with
    /// a message of Pub/Sub such as the notifications of Artifact Registry.
    #[serde(rename = "type")]
    #[schemars(schema_with = "schema::enumeration::<ReceiverType>")]
    pub kind: ReceiverType,
    /// The only events that count, as the sender names them: push for git servers, PUSH_ARTIFACT for Harbor, push for distribution. Others are
    /// accepted and ignored. INSERT for google-pubsub. Default: all. dockerhub, quay, generic-hmac and oidc have no events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 100)))]
    pub events: Vec<String>,
    /// The Secret of the system namespace whose key token has at least 32 bytes of a random token. Its key ca.crt, if set, has certificates in PEM
    /// that are trusted for the issuer of spec.oidc, in addition to the system's.
    pub secret_ref: TokenReference,
    /// The only objects whose sources may be polled. Where a request names a repository, only sources with this repository are.
    #[schemars(length(min = 1, max = 64))]
    pub resources: Vec<ReceiverResource>,
    /// The identity tokens that authenticate requests of the types oidc and google-pubsub, which need it. Other types must not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc: Option<ReceiverOidc>,
    /// Refuse all requests.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub suspend: bool,
}

/// Identity tokens that authenticate requests: JSON Web Tokens in the header Authorization, signed with RS256 or ES256.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiverOidc {
    /// The issuer, as its tokens name it (iss): an https URL. Its keys are found with the document at /.well-known/openid-configuration below it.
    /// Required for the type oidc. Default for google-pubsub: `https://accounts.google.com`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^https://[^@?#\s]+$"), length(max = 512))]
    pub issuer: Option<String>,
    /// The audience (aud) that tokens must have, such as the URL of this Receiver. Default: chandler.dev/receivers/ followed by the name of the
    /// Receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub audience: Option<String>,
    /// The subjects (sub) of tokens that are accepted. A * matches any number of characters, but not at the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 256), regex(pattern = r"^[^*]")))]
    pub subjects: Vec<String>,
    /// Claims that tokens must have, with their values as text, such as "repository_id": "123". A * matches any number of characters, but not at the
    /// beginning. For email, the token must also have email_verified: true. At least one of subjects and claims is required.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "claims")]
    pub claims: BTreeMap<String, String>,
}

/// The most claims of a Receiver.
const CLAIMS: u32 = 16;

/// Claims by name.
fn claims(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": CLAIMS,
        "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[^*]"},
    })
}

/// Who sends the requests of a Receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReceiverType {
    /// Anyone who signs the body with the token.
    #[default]
    #[serde(rename = "generic-hmac")]
    GenericHmac,
    /// GitHub.
    Github,
    /// GitLab.
    Gitlab,
    /// Gitea.
    Gitea,
    /// Forgejo.
    Forgejo,
    /// Docker Hub.
    Dockerhub,
    /// Quay.
    Quay,
    /// Harbor.
    Harbor,
    /// CNCF Distribution, and registries with its notifications.
    Distribution,
    /// Services and pipelines with an identity token of an OpenID Connect issuer.
    Oidc,
    /// Pub/Sub of Google, with an identity token.
    #[serde(rename = "google-pubsub")]
    GooglePubsub,
}

impl schema::Enumeration for ReceiverType {
    const NAMES: &[&str] = &[
        "generic-hmac",
        "github",
        "gitlab",
        "gitea",
        "forgejo",
        "dockerhub",
        "quay",
        "harbor",
        "distribution",
        "oidc",
        "google-pubsub",
    ];
}

impl ReceiverType {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::GenericHmac,
        Self::Github,
        Self::Gitlab,
        Self::Gitea,
        Self::Forgejo,
        Self::Dockerhub,
        Self::Quay,
        Self::Harbor,
        Self::Distribution,
        Self::Oidc,
        Self::GooglePubsub,
    ];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GenericHmac => "generic-hmac",
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Gitea => "gitea",
            Self::Forgejo => "forgejo",
            Self::Dockerhub => "dockerhub",
            Self::Quay => "quay",
            Self::Harbor => "harbor",
            Self::Distribution => "distribution",
            Self::Oidc => "oidc",
            Self::GooglePubsub => "google-pubsub",
        }
    }

    /// Whether identity tokens authenticate its requests.
    pub const fn has_identity_tokens(self) -> bool {
        matches!(self, Self::Oidc | Self::GooglePubsub)
    }
}

/// A Secret of the system namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenReference {
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Objects whose sources a Receiver may have polled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverResource {
    /// The kind.
    #[schemars(schema_with = "schema::enumeration::<PolledKind>")]
    pub kind: PolledKind,
    /// The name, or * for all objects of the kind.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Labels that the object must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub match_labels: BTreeMap<String, String>,
}

impl ReceiverResource {
    /// Whether this entry has an object of this kind, name and labels.
    pub fn includes(&self, kind: PolledKind, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.kind == kind
            && (self.name == "*" || self.name == name)
            && self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// A kind whose objects have a source that is polled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PolledKind {
    /// A BundleDeployment.
    #[default]
    BundleDeployment,
    /// A Catalog.
    Catalog,
    /// A ProvisionerClass.
    ProvisionerClass,
}

impl schema::Enumeration for PolledKind {
    const NAMES: &[&str] = &["BundleDeployment", "Catalog", "ProvisionerClass"];
}

/// The state at the last reconcile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverStatus {
    /// Conditions. Ready: requests are accepted at status.webhookPath. Stalled: only a change of the Receiver, its Secret or the installation helps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The generation of the spec that this status describes; -1 until the controller has observed the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The path of the requests, which follows from the token and the name: it changes with the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_path: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Enumeration as _;

    #[test]
    fn the_schema_has_the_names_that_are_decoded() {
        let names: Vec<&str> = ReceiverType::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(names, ReceiverType::NAMES);
        for kind in ReceiverType::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }

    #[test]
    fn an_entry_has_objects_of_its_kind_by_name_and_labels() {
        let labels = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
        let entry = |name: &str, match_labels: &BTreeMap<String, String>| ReceiverResource {
            kind: PolledKind::Catalog,
            name: name.to_owned(),
            match_labels: match_labels.clone(),
        };
        let none = BTreeMap::new();
        for (entry, expected) in [
            (entry("*", &none), true),
            (entry("ours", &labels), true),
            (entry("other", &none), false),
            (entry("*", &BTreeMap::from([("team".to_owned(), "b".to_owned())])), false),
        ] {
            assert_eq!(entry.includes(PolledKind::Catalog, "ours", &labels), expected, "{entry:?}");
            assert!(!entry.includes(PolledKind::BundleDeployment, "ours", &labels));
        }
        assert!(!entry("*", &labels).includes(PolledKind::Catalog, "ours", &none));
    }
}
