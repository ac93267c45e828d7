//! Generated bundles in typical sizes.

use std::{fmt, fs, path::Path};

use serde_json::{Map, Value, json};

use crate::Error;

/// The size of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The bundle of a tenant: four objects of some hundred bytes (plain+v0).
    Tenant,
    /// An operator with one CRD of 30 kB (registry+v1).
    Operator,
    /// An operator with twelve CRDs of 100 kB (registry+v1).
    LargeOperator,
}

/// The number of bundles of each kind: of a hundred bundles, ninety are small and one is large.
pub(crate) struct Mix(Vec<Kind>);

impl Mix {
    pub(crate) fn of(count: usize) -> Self {
        let kind = |number: usize| match number % 100 {
            0 => Kind::LargeOperator,
            1..10 => Kind::Operator,
            _ => Kind::Tenant,
        };
        Self((0..count).map(kind).collect())
    }

    /// Operators of eleven objects with small CRDs only, as most published ones are.
    pub(crate) fn operators(count: usize) -> Self {
        Self(vec![Kind::Operator; count])
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = (usize, &Kind)> {
        self.0.iter().enumerate()
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |kind| self.0.iter().filter(|other| **other == kind).count();
        write!(
            f,
            "{} BundleDeployments: {} small, {} operators, {} large operators",
            self.0.len(),
            count(Kind::Tenant),
            count(Kind::Operator),
            count(Kind::LargeOperator)
        )
    }
}

impl Kind {
    /// The name of its image.
    pub(crate) fn image(self, number: usize) -> String {
        match self {
            Self::Tenant => "tenant".to_owned(),
            Self::Operator | Self::LargeOperator => format!("operator-{number}"),
        }
    }

    /// Writes the bundle into a directory.
    pub(crate) fn write(self, number: usize, directory: &Path) -> Result<(), Error> {
        fs::create_dir(directory.join("manifests"))?;
        match self {
            Self::Tenant => tenant(directory),
            Self::Operator => operator(number, 1, 150, directory),
            Self::LargeOperator => operator(number, 12, 500, directory),
        }
    }
}

fn tenant(directory: &Path) -> Result<(), Error> {
    let labels = json!({"app": "tenant"});
    let container = json!({
        "name": "main", "image": "registry.k8s.io/pause:3.10", "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
    });
    let objects = [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant"}}),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tenant"},
            "data": {"settings": "a: 1\nb: 2\n".repeat(20)},
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "tenant"},
            "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "tenant"},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"serviceAccountName": "tenant", "containers": [container]}},
            },
        }),
    ];
    for (number, object) in objects.iter().enumerate() {
        fs::write(directory.join(format!("manifests/{number}.yaml")), object.to_string())?;
    }
    Ok(())
}

/// A bundle with this number of CRDs and of fields in each.
fn operator(number: usize, crds: usize, fields: usize, directory: &Path) -> Result<(), Error> {
    let (name, group) = (format!("operator-{number}"), format!("operator{number}.example.com"));
    let mut owned = Vec::new();
    for index in 0..crds {
        let (kind, plural) = (format!("Kind{index}"), format!("kind{index}s"));
        owned.push(json!({"name": format!("{plural}.{group}"), "kind": kind, "version": "v1"}));
        let text = crd(&group, &kind, &plural, fields).to_string();
        fs::write(directory.join(format!("manifests/{plural}.yaml")), text)?;
    }
    let labels = json!({"app": name});
    let container = json!({"name": "manager", "image": "registry.k8s.io/pause:3.10"});
    let verbs = json!(["get", "list", "watch", "create", "update", "patch", "delete"]);
    let version = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("{name}.v1.0.0")},
        "spec": {
            "displayName": name, "version": "1.0.0",
            "installModes": [
                {"type": "OwnNamespace", "supported": true}, {"type": "SingleNamespace", "supported": true},
                {"type": "MultiNamespace", "supported": false}, {"type": "AllNamespaces", "supported": true},
            ],
            "customresourcedefinitions": {"owned": owned},
            "install": {"strategy": "deployment", "spec": {
                "clusterPermissions": [{
                    "serviceAccountName": name,
                    "rules": [{"apiGroups": [group], "resources": ["*"], "verbs": verbs}],
                }],
                "deployments": [{"name": name, "spec": {
                    "replicas": 1, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"serviceAccountName": name, "containers": [container]}},
                }}],
            }},
        },
    });
    fs::write(directory.join("manifests/operator.clusterserviceversion.yaml"), version.to_string())?;
    let prefix = "operators.operatorframework.io.bundle";
    let annotations = json!({"annotations": {
        format!("{prefix}.mediatype.v1"): "registry+v1", format!("{prefix}.manifests.v1"): "manifests/",
        format!("{prefix}.metadata.v1"): "metadata/", format!("{prefix}.package.v1"): name,
        format!("{prefix}.channels.v1"): "stable",
    }});
    fs::create_dir(directory.join("metadata"))?;
    fs::write(directory.join("metadata/annotations.yaml"), annotations.to_string())?;
    Ok(())
}

/// A CRD with many fields that have descriptions, as generators write them.
fn crd(group: &str, kind: &str, plural: &str, fields: usize) -> Value {
    let field = |number: usize| {
        let description = format!(
            "Field{number} says what the operator is to do about the part of that number, and how often it is to look."
        );
        let schema = match number % 3 {
            0 => json!({"description": description, "type": "string", "maxLength": 253}),
            1 => json!({"description": description, "type": "array", "items": {"type": "string"}}),
            _ => json!({"description": description, "type": "object", "properties": {
                "name": {"type": "string"}, "count": {"type": "integer", "format": "int32"},
            }}),
        };
        (format!("field{number}"), schema)
    };
    let fields: Map<String, Value> = (0..fields).map(field).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
                    "spec": {"type": "object", "properties": fields},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}
