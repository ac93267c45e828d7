//! Kinds that bundles expect from other software: minimal CRDs of our own.
//!
//! The CRDs are placeholders, not the projects' own. They accept any spec, so an object that is accepted here can be refused by a cluster.
//! Nothing acts on the objects; cert-manager's are Ready by default, because their health depends on it.

use std::path::Path;

use chandler_yaml::{Limits, from_node, parse};
use serde_json::{Value, json};

use super::{file, missing_kinds::MissingKind};
use crate::CommandError;

/// The largest file with CRDs, in bytes.
const LIMIT: u64 = 32 << 20;

/// A set of kinds that bundles expect and that other software provides in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindSet {
    /// The kinds of the Prometheus operator.
    Monitoring,
    /// The kinds of cert-manager.
    CertManager,
}

impl KindSet {
    /// All sets.
    pub const ALL: [Self; 2] = [Self::Monitoring, Self::CertManager];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Monitoring => "monitoring",
            Self::CertManager => "cert-manager",
        }
    }
}

/// One kind of a set.
struct Expected {
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    scope: &'static str,
}

const fn namespaced(version: &'static str, kind: &'static str, plural: &'static str) -> Expected {
    Expected { version, kind, plural, scope: "Namespaced" }
}

const MONITORING: &[Expected] = &[
    namespaced("v1", "ServiceMonitor", "servicemonitors"),
    namespaced("v1", "PodMonitor", "podmonitors"),
    namespaced("v1", "Probe", "probes"),
    namespaced("v1", "PrometheusRule", "prometheusrules"),
    namespaced("v1alpha1", "AlertmanagerConfig", "alertmanagerconfigs"),
    namespaced("v1alpha1", "ScrapeConfig", "scrapeconfigs"),
];

const CERT_MANAGER: &[Expected] = &[
    namespaced("v1", "Certificate", "certificates"),
    namespaced("v1", "CertificateRequest", "certificaterequests"),
    namespaced("v1", "Issuer", "issuers"),
    Expected { version: "v1", kind: "ClusterIssuer", plural: "clusterissuers", scope: "Cluster" },
];

fn contents(set: KindSet) -> (&'static str, &'static [Expected]) {
    match set {
        KindSet::Monitoring => ("monitoring.coreos.com", MONITORING),
        KindSet::CertManager => ("cert-manager.io", CERT_MANAGER),
    }
}

/// The set with a kind.
pub fn provider(group: &str, kind: &str) -> Option<KindSet> {
    KindSet::ALL.into_iter().find(|set| {
        let (own, kinds) = contents(*set);
        own == group && kinds.iter().any(|expected| expected.kind == kind)
    })
}

/// The CRDs of a set.
pub fn crds(set: KindSet) -> Vec<Value> {
    let (group, kinds) = contents(set);
    kinds.iter().map(|expected| crd(set, group, expected)).collect()
}

fn crd(set: KindSet, group: &str, expected: &Expected) -> Value {
    let Expected { version, kind, plural, scope } = expected;
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut status = any.clone();
    if let (KindSet::CertManager, Some(status)) = (set, status.as_object_mut()) {
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "Simulated", "lastTransitionTime": "1970-01-01T00:00:00Z",
            "message": "chandler dev simulates this kind: no certificate is issued",
        });
        status.insert("default".to_owned(), json!({"conditions": [ready]}));
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_ascii_lowercase(),
            },
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": format!("A minimal {kind} of `chandler dev --with {}`: it accepts any spec, and nothing acts on it.", set.name()),
                    "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"spec": any, "status": status},
                }},
            }],
        },
    })
}

/// The CRDs in a file with YAML documents or JSON.
pub fn read(path: &Path) -> Result<Vec<Value>, CommandError> {
    let failed = || CommandError::usage(format!("failed to read the CRDs in {}", path.display()));
    let bytes = file::read(path, LIMIT).map_err(|error| failed().because(&error))?;
    let limits = Limits { bytes: bytes.len(), nodes: 4_000_000, ..Limits::default() };
    let documents = parse(&bytes, &limits).map_err(|error| {
        CommandError::usage(format!("{}:{}:{}: {}", path.display(), error.line, error.column, error.message))
    })?;
    let mut crds = Vec::new();
    for document in &documents {
        let value: Value = from_node(&document.root).map_err(|error| failed().because(&error))?;
        match value.get("kind").and_then(Value::as_str) {
            Some("CustomResourceDefinition") => crds.push(value),
            // An empty document.
            None if value.is_null() => {}
            kind => {
                let kind = kind.unwrap_or("an object without a kind");
                return Err(failed().hint(format!("--with takes CustomResourceDefinitions only; the file has {kind}")));
            }
        }
    }
    Ok(crds)
}

/// A kind that a release needs, and the flag of `chandler dev` that provides it.
pub fn describe(missing: &MissingKind) -> String {
    match provider(&missing.group, &missing.kind) {
        Some(set) => format!("{missing}: --with {} provides it", set.name()),
        None => format!("{missing}: --with FILE installs the CRDs in a file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crd_is_named_after_its_kind_and_says_what_it_is() {
        for set in KindSet::ALL {
            for crd in crds(set) {
                let (group, names) = (crd["spec"]["group"].as_str().unwrap(), &crd["spec"]["names"]);
                assert_eq!(crd["metadata"]["name"], format!("{}.{group}", names["plural"].as_str().unwrap()));
                assert_eq!(provider(group, names["kind"].as_str().unwrap()), Some(set));
                let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
                assert!(schema["description"].as_str().unwrap().contains("accepts any spec"));
            }
        }
        assert_eq!(provider("example.com", "ServiceMonitor"), None);
    }

    #[test]
    fn a_missing_kind_names_the_flag() {
        let kind = |group: &str, kind: &str| MissingKind { group: group.to_owned(), kind: kind.to_owned() };
        let monitor = describe(&kind("monitoring.coreos.com", "ServiceMonitor"));
        assert_eq!(monitor, "ServiceMonitor.monitoring.coreos.com: --with monitoring provides it");
        assert!(describe(&kind("example.com", "Widget")).ends_with("--with FILE installs the CRDs in a file"));
    }

    #[test]
    fn only_crds_are_read_from_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "---\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\n---\nkind: CustomResourceDefinition\n",
        )
        .unwrap();
        assert_eq!(read(file.path()).unwrap().len(), 2);
        std::fs::write(file.path(), "kind: Secret\n").unwrap();
        assert!(read(file.path()).unwrap_err().to_string().contains("the file has Secret"));
    }
}
