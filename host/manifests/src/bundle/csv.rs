//! The ClusterServiceVersion of the bundle.

use serde_json::{Value, json};

use super::registry::text;
use crate::{
    ManifestsError, Settings, VERSION,
    about::{DESCRIPTION, REPOSITORY},
};

/// The oldest version of Kubernetes that has what the objects use.
const KUBERNETES: &str = "1.30.0";

/// The permissions of the controller beyond its namespace. Roles of its namespace are objects of the bundle: OLM makes cluster-wide ones of
/// the `permissions` of an operator that watches all namespaces.
pub(super) struct Permissions {
    rules: Vec<Value>,
    /// The objects that the rules replace: kind, namespace and name.
    replaced: Vec<(String, String, String)>,
}

impl Permissions {
    /// The permissions that these objects grant to the controller in this namespace.
    pub(super) fn of(objects: &[Value], namespace: &str) -> Self {
        let mut found = Self { rules: Vec::new(), replaced: Vec::new() };
        for binding in objects.iter().filter(|object| is_binding(object, namespace)) {
            let role = objects.iter().find(|object| {
                text(object, "/kind") == text(binding, "/roleRef/kind")
                    && text(object, "/metadata/name") == text(binding, "/roleRef/name")
                    && text(object, "/metadata/namespace") == text(binding, "/metadata/namespace")
            });
            match role {
                Some(role) => {
                    found.rules.extend(role.get("rules").and_then(Value::as_array).into_iter().flatten().cloned());
                    found.replaced.push(key(role));
                }
                // The role cluster-admin of Kubernetes.
                None => found.rules.extend([
                    json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
                    json!({"nonResourceURLs": ["*"], "verbs": ["*"]}),
                ]),
            }
            found.replaced.push(key(binding));
        }
        found
    }

    /// Whether the rules replace this object.
    pub(super) fn has(&self, object: &Value) -> bool {
        self.replaced.contains(&key(object))
    }
}

/// Whether this binds the controller to a role that is not one of its namespace.
fn is_binding(object: &Value, namespace: &str) -> bool {
    let is_elsewhere = match text(object, "/kind") {
        "ClusterRoleBinding" => true,
        "RoleBinding" => text(object, "/metadata/namespace") != namespace,
        _ => false,
    };
    is_elsewhere
        && text(object, "/subjects/0/kind") == "ServiceAccount"
        && text(object, "/subjects/0/name") == "chandler"
}

fn key(object: &Value) -> (String, String, String) {
    let [kind, namespace, name] =
        ["/kind", "/metadata/namespace", "/metadata/name"].map(|part| text(object, part).to_owned());
    (kind, namespace, name)
}

/// The ClusterServiceVersion.
pub(super) fn csv(settings: &Settings, objects: &[Value], permissions: &Permissions) -> Result<Value, ManifestsError> {
    let deployment = objects.iter().find(|object| text(object, "/kind") == "Deployment");
    let missing = || ManifestsError::File { name: "controller.yaml", message: "it has no Deployment".to_owned() };
    let deployment = deployment.ok_or_else(missing)?;
    let name = text(deployment, "/metadata/name");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": settings.namespace,
        "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
    }});
    let examples = json!([{
        "apiVersion": "core.rukpak.io/v1alpha2",
        "kind": "BundleDeployment",
        "metadata": {"name": "harbour"},
        "spec": {
            "installNamespace": "shop",
            "serviceAccount": {"namespace": "shop", "name": "deployer"},
            "source": {"type": "image", "image": {"ref": "registry.corp.example/harbour-bundle:v0.1.0"}},
        },
    }]);
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
        .map(|mode| json!({"type": mode, "supported": mode == "AllNamespaces"}));
    Ok(json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{}.v{VERSION}", super::PACKAGE),
            "annotations": {
                "alm-examples": examples.to_string(),
                "capabilities": "Seamless Upgrades",
                "categories": "Integration & Delivery",
                "certified": "false",
                "containerImage": settings.image(),
                "description": DESCRIPTION,
                "operatorframework.io/suggested-namespace": settings.namespace,
                "operatorframework.io/suggested-namespace-template": namespace.to_string(),
                "repository": REPOSITORY,
                "support": REPOSITORY,
            },
        },
        "spec": {
            "displayName": "Chandler",
            "description": format!("{DESCRIPTION}.\n\nInstall it in the namespace `{}`.", settings.namespace),
            "version": VERSION,
            "maturity": "alpha",
            "minKubeVersion": KUBERNETES,
            "provider": {"name": "The authors of Chandler", "url": REPOSITORY},
            "keywords": ["bundles", "operators", "packages"],
            "links": [{"name": "Documentation", "url": format!("{REPOSITORY}/tree/main/docs")}],
            "maintainers": [],
            "installModes": modes,
            "install": {"strategy": "deployment", "spec": {
                "clusterPermissions": [{"serviceAccountName": "chandler", "rules": permissions.rules}],
                "deployments": [{"name": name, "label": {"app": "chandler"}, "spec": deployment.get("spec")}],
            }},
            "customresourcedefinitions": {"owned": owned(objects)},
            "relatedImages": [{"name": "chandler", "image": settings.image()}],
        },
    }))
}

/// The CRDs, as a ClusterServiceVersion lists them.
fn owned(objects: &[Value]) -> Vec<Value> {
    let mut owned = Vec::new();
    for crd in objects.iter().filter(|object| text(object, "/kind") == "CustomResourceDefinition") {
        for version in crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten() {
            let description = text(version, "/schema/openAPIV3Schema/description");
            owned.push(json!({
                "name": text(crd, "/metadata/name"),
                "version": text(version, "/name"),
                "kind": text(crd, "/spec/names/kind"),
                "displayName": text(crd, "/spec/names/kind"),
                "description": description.lines().next().unwrap_or_default(),
            }));
        }
    }
    owned
}
