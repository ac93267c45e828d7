//! `compatibility`: whether the objects are those of the reference, or better ones where nothing is lost by it.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    bundle::Other,
    csv::Webhook,
    kinds::{self, SupportedKind},
    typed::Spelling,
};

/// Whether known faults and limits of the reference are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compatibility {
    /// The same objects, field by field, and the same refusals.
    Reference,
    /// The same, but for faults whose repair takes nothing away, and for what the reference refuses without need.
    #[default]
    Extended,
}

/// Which namespace an object of the bundle gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The install namespace.
    Install,
    /// What the object says.
    AsWritten,
    /// None: its kind is cluster-scoped.
    Cluster,
}

impl Compatibility {
    /// The port by which the API server calls a webhook. The reference writes the bundle's number even where there is
    /// none, although the Service in front then listens on 443; and API servers refuse port 0.
    pub(crate) fn webhook_port(self, webhook: &Webhook) -> i32 {
        match self {
            Self::Reference => webhook.container_port,
            Self::Extended => webhook.service_port(),
        }
    }

    /// Whether webhook configurations carry a namespace, which cluster-scoped objects cannot have.
    pub(crate) fn namespaces_webhook_configurations(self) -> bool {
        self == Self::Reference
    }

    /// Whether aggregated API servers are installed; the reference refuses bundles that own one.
    pub(crate) fn installs_api_services(self) -> bool {
        self == Self::Extended
    }

    /// Whether the host makes certificates where nobody is named who does; the reference refuses bundles that need some.
    pub(crate) fn has_certificates_made(self) -> bool {
        self == Self::Extended
    }

    /// Whether ServiceAccounts are made that only a Deployment names.
    pub(crate) fn makes_accounts_of_deployments(self) -> bool {
        self == Self::Extended
    }

    /// Whether CustomResourceDefinitions of v1beta1, which no API server takes any more, are installed as those of v1.
    pub(crate) fn upgrades_crds(self) -> bool {
        self == Self::Extended
    }

    /// How the names of fields are read. OLM's first generation took any case, and bundles were written with it.
    pub(crate) fn spelling(self) -> Spelling {
        match self {
            Self::Reference => Spelling::Exact,
            Self::Extended => Spelling::AnyCase,
        }
    }

    /// What a configuration asks for, whatever else is in it. What cannot be read is as good as not there, and reported
    /// with the rest of the configuration.
    pub(crate) fn requested(config: &Map<String, Value>) -> Self {
        config.get("compatibility").and_then(|value| Self::deserialize(value).ok()).unwrap_or_default()
    }

    /// Whether the name of a webhook may end in a dash, as in OLM's first generation, where a hash followed. The reference
    /// drops the dash when it makes objects, but refuses such names before it comes to that.
    pub(crate) fn takes_prefixes(self) -> bool {
        self == Self::Extended
    }

    /// Whether bindings of the bundle to ServiceAccounts of no namespace are taken to mean those beside the operator.
    /// API servers refuse them.
    pub(crate) fn fills_subjects(self) -> bool {
        self == Self::Extended
    }

    /// The version that takes the place of that of an object, if no API server serves its own any more.
    pub(crate) fn successor(self, other: &Other) -> Option<&'static str> {
        (self == Self::Extended).then(|| kinds::successor(&other.api_version, &other.kind))?
    }

    /// Whether two objects that were written for two namespaces, and have one name in the install namespace, are a reason to
    /// refuse. The reference passes both on, and one of them is lost.
    pub(crate) fn refuses_collisions(self) -> bool {
        self == Self::Extended
    }

    /// Whether a Service that the bundle brings for its webhooks keeps what the generated one does not say.
    pub(crate) fn merges_services(self) -> bool {
        self == Self::Extended
    }

    /// Whether a target that cannot run the operator is a reason to refuse.
    pub(crate) fn refuses_old_targets(self) -> bool {
        self == Self::Extended
    }

    /// The entry of the format's list that an object counts as, if it counts as any. To the reference the name of the
    /// kind is enough, whatever the group.
    pub(crate) fn listed(self, other: &Other) -> Option<SupportedKind> {
        let listed = kinds::supported(&other.kind)?;
        let same_group = other.api_version.is_empty() || group(&other.api_version) == group(listed.api_version);
        (self == Self::Reference || same_group).then_some(listed)
    }

    /// Whether an object that the list does not hold is a reason to refuse.
    pub(crate) fn refuses_unlisted(self) -> bool {
        self == Self::Reference
    }

    /// Which namespace an object gets. Bundles are written without knowing where they will be installed, so what a
    /// namespaced object says does not count; of kinds that are not on the list, only the object itself tells the scope.
    pub(crate) fn placement(self, other: &Other) -> Placement {
        match (self, self.listed(other)) {
            (_, Some(listed)) if listed.namespaced => Placement::Install,
            // Namespaced in truth; the list of the reference has it wrong.
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
            // Another group's kind with a name of the list.
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
