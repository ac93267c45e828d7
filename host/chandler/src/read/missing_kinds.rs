//! Kinds that a release needs from other software, and who provides them on a cluster.

use std::{collections::BTreeSet, fmt};

use chandler_core::Release;

use crate::view::terminal::Terminal;

/// Who provides the kinds of an API group.
const PROVIDERS: &[(&str, &str)] = &[
    ("cert-manager.io", "cert-manager"),
    ("console.openshift.io", "OpenShift"),
    ("config.openshift.io", "OpenShift"),
    ("gateway.networking.k8s.io", "the Gateway API"),
    ("image.openshift.io", "OpenShift"),
    ("keda.sh", "KEDA"),
    ("monitoring.coreos.com", "the Prometheus Operator"),
    ("networking.istio.io", "Istio"),
    ("route.openshift.io", "OpenShift"),
    ("security.openshift.io", "OpenShift"),
    ("serving.knative.dev", "Knative Serving"),
    ("snapshot.storage.k8s.io", "the CSI snapshot controller"),
];

/// A kind that a release needs and nothing provides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingKind {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
}

impl fmt::Display for MissingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind, self.group)
    }
}

impl MissingKind {
    /// The kind, and what provides it.
    fn describe(&self) -> String {
        match PROVIDERS.iter().find(|(group, _)| *group == self.group) {
            Some((_, provider)) => format!("{self} (a kind of {provider})"),
            None => self.to_string(),
        }
    }
}

/// Reports which kinds a release needs and a cluster does not serve, before a command waits for them.
pub fn report(missing: &[MissingKind], terminal: &Terminal) {
    if missing.is_empty() {
        return;
    }
    for kind in missing {
        terminal.line(format!("missing: the cluster does not serve {}", kind.describe()));
    }
    let it = if missing.len() == 1 { "it" } else { "them" };
    terminal.line(format!(
        "hint: install what provides {it}, or the CRDs (`kubectl apply --server-side -f FILE`); until then nothing of the bundle is installed"
    ));
}

/// The kinds of a release's objects that are neither served (`group/version/Kind`) nor defined by a CRD in the release.
pub fn missing(release: &Release, served: &[String]) -> Vec<MissingKind> {
    let defined: BTreeSet<(&str, &str)> = release
        .objects()
        .iter()
        .filter(|object| object.key.kind == "CustomResourceDefinition")
        .filter_map(|object| {
            let spec = object.value.get("spec")?;
            Some((spec.get("group")?.as_str()?, spec.pointer("/names/kind")?.as_str()?))
        })
        .collect();
    let is_served = |group: &str, kind: &str| {
        served.iter().any(|served| {
            let mut parts = served.rsplitn(3, '/');
            let (found, _version) = (parts.next(), parts.next());
            found == Some(kind) && parts.next().unwrap_or_default() == group
        })
    };
    let missing: BTreeSet<MissingKind> = release
        .objects()
        .iter()
        .map(|object| (object.key.group.as_str(), object.key.kind.as_str()))
        .filter(|(group, kind)| !defined.contains(&(*group, *kind)) && !is_served(group, kind))
        .map(|(group, kind)| MissingKind { group: group.to_owned(), kind: kind.to_owned() })
        .collect();
    missing.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_kind_names_its_provider_if_it_is_known() {
        let kind = |group: &str, kind: &str| MissingKind { group: group.to_owned(), kind: kind.to_owned() };
        for (missing, expected) in [
            (
                kind("monitoring.coreos.com", "ServiceMonitor"),
                "ServiceMonitor.monitoring.coreos.com (a kind of the Prometheus Operator)",
            ),
            (kind("cert-manager.io", "Issuer"), "Issuer.cert-manager.io (a kind of cert-manager)"),
            (kind("acme.cert-manager.io", "Order"), "Order.acme.cert-manager.io"),
        ] {
            assert_eq!(missing.describe(), expected);
        }
    }
}
