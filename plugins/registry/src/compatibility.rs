//! `compatibility`: whether to reproduce the objects of OLM v1, or to fix its errors where nothing is lost.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    bundle::Other,
    csv::Webhook,
    kinds::{self, SupportedKind},
    typed::Spelling,
};

/// Whether known errors and limitations of OLM v1 are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compatibility {
    /// Equal objects, field by field, and equal refusals.
    Reference,
    /// Like OLM v1, except for fixes that remove nothing, and for bundles that OLM v1 refuses without need.
    #[default]
    Extended,
}

/// The namespace of an object of the bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The install namespace.
    Install,
    /// The object's own namespace.
    AsWritten,
    /// None: its kind is cluster-scoped.
    Cluster,
}

impl Compatibility {
    /// The port by which the API server calls a webhook. OLM v1 uses the bundle's number even if it is absent, although
    /// the Service in front then listens on 443; and API servers reject port 0.
    pub(crate) fn webhook_port(self, webhook: &Webhook) -> i32 {
        match self {
            Self::Reference => webhook.container_port,
            Self::Extended => webhook.service_port(),
        }
    }

    /// Whether webhook configurations have a namespace, although they are cluster-scoped.
    pub(crate) fn namespaces_webhook_configurations(self) -> bool {
        self == Self::Reference
    }

    /// Whether duplicate items of lists of a pod are merged or refused. OLM v1 installs them: it updates Deployments as a whole.
    pub(crate) fn merges_duplicates(self) -> bool {
        self == Self::Extended
    }

    /// Whether aggregated API servers are installed; OLM v1 refuses bundles that own one.
    pub(crate) fn installs_api_services(self) -> bool {
        self == Self::Extended
    }

    /// Whether the host is the default certificate provider; without one, OLM v1 refuses bundles that need
    /// certificates.
    pub(crate) fn defaults_to_host_certificates(self) -> bool {
        self == Self::Extended
    }

    /// Whether ServiceAccounts are created that only a Deployment names.
    pub(crate) fn creates_deployment_accounts(self) -> bool {
        self == Self::Extended
    }

    /// Whether CustomResourceDefinitions of v1beta1, which API servers no longer accept, are installed as v1.
    pub(crate) fn upgrades_crds(self) -> bool {
        self == Self::Extended
    }

    /// How field names are matched. OLM v0 accepted any case, and bundles rely on it.
    pub(crate) fn spelling(self) -> Spelling {
        match self {
            Self::Reference => Spelling::Exact,
            Self::Extended => Spelling::AnyCase,
        }
    }

    /// The value in a configuration, whatever else is in it. An invalid value counts as absent, and is reported with
    /// the rest of the configuration.
    pub(crate) fn requested(config: &Map<String, Value>) -> Self {
        config.get("compatibility").and_then(|value| Self::deserialize(value).ok()).unwrap_or_default()
    }

    /// Whether the name of a webhook may end in a dash, as in OLM v0, where a hash followed. OLM v1 drops the dash when
    /// it generates objects, but refuses such names before.
    pub(crate) fn accepts_name_prefixes(self) -> bool {
        self == Self::Extended
    }

    /// Whether subjects of the bundle's bindings that are ServiceAccounts without a namespace get the install
    /// namespace. API servers reject them.
    pub(crate) fn sets_subject_namespaces(self) -> bool {
        self == Self::Extended
    }

    /// The current version for an object of a removed API version.
    pub(crate) fn current_api_version(self, other: &Other) -> Option<&'static str> {
        (self == Self::Extended).then(|| kinds::current_api_version(&other.api_version, &other.kind))?
    }

    /// Whether two objects in two namespaces, which get the same name in the install namespace, are an error. OLM v1
    /// emits both, and one of them is lost.
    pub(crate) fn refuses_collisions(self) -> bool {
        self == Self::Extended
    }

    /// Whether a Service that the bundle contains for its webhooks is merged into the generated one.
    pub(crate) fn merges_services(self) -> bool {
        self == Self::Extended
    }

    /// Whether a cluster that cannot run the operator is an error.
    pub(crate) fn refuses_old_kubernetes(self) -> bool {
        self == Self::Extended
    }

    /// The entry of the format's list that an object matches, if any. OLM v1 compares only the name of the kind,
    /// whatever the group.
    pub(crate) fn listed(self, other: &Other) -> Option<SupportedKind> {
        let listed = kinds::supported(&other.kind)?;
        let same_group = other.api_version.is_empty() || group(&other.api_version) == group(listed.api_version);
        (self == Self::Reference || same_group).then_some(listed)
    }

    /// Whether an object that is not on the list is an error.
    pub(crate) fn refuses_unlisted(self) -> bool {
        self == Self::Reference
    }

    /// The namespace of an object. Bundles are written without knowing the install namespace, so the namespace of a
    /// namespaced object is ignored; for kinds that are not on the list, only the object itself shows the scope.
    pub(crate) fn placement(self, other: &Other) -> Placement {
        match (self, self.listed(other)) {
            (_, Some(listed)) if listed.namespaced => Placement::Install,
            // This kind is namespaced; the list of OLM v1 is wrong.
            (Self::Extended, Some(listed)) if listed.kind == "VerticalPodAutoscaler" => Placement::Install,
            (Self::Extended, Some(_)) => Placement::Cluster,
            (Self::Extended, None) if other.value.pointer("/metadata/namespace").is_some() => Placement::Install,
            (Self::Reference, _) | (Self::Extended, None) => Placement::AsWritten,
        }
    }
}

/// The group of an apiVersion; empty for the core group.
fn group(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bundle::Place;

    #[test]
    fn install_namespaces_of_objects() {
        let cases = [
            ("v1", "Secret", None, Placement::Install, Placement::Install),
            ("", "Secret", None, Placement::Install, Placement::Install),
            ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", None, Placement::AsWritten, Placement::Install),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", Some("x"), Placement::AsWritten, Placement::Cluster),
            // A kind of another group with the name of a listed one.
            ("serving.knative.dev/v1", "Service", Some("x"), Placement::Install, Placement::Install),
            ("security.example.com/v1", "Role", None, Placement::Install, Placement::AsWritten),
            ("batch/v1", "Job", Some("x"), Placement::AsWritten, Placement::Install),
            ("example.com/v1", "Harbour", None, Placement::AsWritten, Placement::AsWritten),
        ];
        for (api_version, kind, namespace, reference, extended) in cases {
            let mut value = json!({"metadata": {}});
            if let Some(namespace) = namespace {
                value["metadata"]["namespace"] = json!(namespace);
            }
            let other = Other {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                name: String::new(),
                value,
                place: Place::default(),
            };
            let got = (Compatibility::Reference.placement(&other), Compatibility::Extended.placement(&other));
            assert_eq!(got, (reference, extended), "{api_version} {kind}");
        }
    }
}
