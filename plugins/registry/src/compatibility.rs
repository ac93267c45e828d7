//! `compatibility`: whether known faults of the reference are kept.

use serde::Deserialize;

use crate::{csv::Webhook, kinds::SupportedKind};

/// Whether the objects are those of the reference, faults and all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compatibility {
    /// The same objects, field by field.
    #[default]
    Reference,
    /// The same, but for faults whose repair takes nothing away.
    Extended,
}

impl Compatibility {
    /// The port by which the API server calls a webhook. The reference writes the bundle's number even where there is
    /// none, although the Service in front then listens on 443.
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

    /// Whether objects of this kind are put into the install namespace.
    pub(crate) fn is_namespaced(self, kind: &SupportedKind) -> bool {
        kind.namespaced || self == Self::Extended && kind.kind == "VerticalPodAutoscaler"
    }
}
