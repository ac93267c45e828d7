//! The bundles that are installed, and the accounts that install them.

use std::collections::BTreeMap;

use chandler_permissions::{Account, PolicyRule, roles};
use serde_json::{Value, json};

use crate::bundles::Bundle;

/// The number of objects in a bundle.
pub const OBJECTS: usize = 11;

/// The kinds of the objects that have no namespace.
const CLUSTER_SCOPED: [&str; 3] = ["CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"];

/// An operator as it is often packaged: a CRD, a workload, its account and permissions, and configuration. Names of cluster-scoped
/// objects contain `name`.
const OBJECTS_OF_BUNDLE: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.NAME.example.com}
spec:
  group: NAME.example.com
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: operator}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME-operator}
rules: [{apiGroups: [NAME.example.com], resources: [widgets], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAME-operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NAME-operator}
subjects: [{kind: ServiceAccount, name: operator, namespace: NAMESPACE}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: operator}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: operator}
subjects: [{kind: ServiceAccount, name: operator, namespace: NAMESPACE}]
---
apiVersion: v1
kind: Secret
metadata: {name: operator-key}
data: {key: dmFsdWU=}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: operator-settings}
data: {level: info}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: operator-version}
data: {version: 'VERSION'}
---
apiVersion: v1
kind: Service
metadata: {name: operator}
spec: {selector: {app: operator}, ports: [{port: 443, targetPort: 8443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator}
spec:
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec: {serviceAccountName: operator, containers: [{name: operator, image: 'registry.k8s.io/pause:VERSION'}]}
";

/// The versions of a bundle. They differ in a ConfigMap and in the image of the Deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The version that is installed first.
    First,
    /// The version that it is upgraded to.
    Second,
}

/// A bundle for an installation into this namespace.
pub fn bundle(name: &str, namespace: &str, version: Version) -> Bundle {
    Bundle::empty().with("manifests/objects.yaml", &text(name, namespace, version))
}

/// The objects of the bundle, as the controller creates them.
pub fn objects(name: &str, namespace: &str, version: Version) -> Vec<Value> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text(name, namespace, version)).expect("YAML");
    let in_namespace = |mut object: Value| {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        if !CLUSTER_SCOPED.contains(&kind)
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.insert("namespace".to_owned(), json!(namespace));
        }
        object
    };
    objects.into_iter().map(in_namespace).collect()
}

fn text(name: &str, namespace: &str, version: Version) -> String {
    let version = match version {
        Version::First => "3.9",
        Version::Second => "3.10",
    };
    OBJECTS_OF_BUNDLE.replace("NAMESPACE", namespace).replace("NAME", name).replace("VERSION", version)
}

/// A ServiceAccount and the roles that let it install, upgrade and delete a bundle in its own namespace.
pub fn account(name: &str, namespace: &str) -> Vec<Value> {
    let account = Account { namespace: namespace.to_owned(), name: "installer".to_owned() };
    let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let (rbac, own) = ("rbac.authorization.k8s.io", format!("{name}.example.com"));
    let in_cluster = json!([
        rule("core.rukpak.io", &["bundledeployments/finalizers"], &["update"]),
        rule("apiextensions.k8s.io", &["customresourcedefinitions"], &all),
        rule(&own, &["widgets"], &["get", "list", "watch"]),
        rule(rbac, &["clusterroles", "clusterrolebindings"], &all),
        rule(rbac, &["clusterroles"], &["bind", "escalate"]),
    ]);
    let in_namespace = json!([
        rule("", &["serviceaccounts", "secrets", "configmaps", "services"], &all),
        rule("apps", &["deployments"], &all),
        rule(rbac, &["roles", "rolebindings"], &all),
        rule(rbac, &["roles"], &["bind", "escalate"]),
    ]);
    let rules = |rules: Value| serde_json::from_value::<Vec<PolicyRule>>(rules).expect("rules");
    let places = BTreeMap::from([(None, rules(in_cluster)), (Some(namespace.to_owned()), rules(in_namespace))]);
    let mut objects = vec![json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account.name, "namespace": account.namespace},
    })];
    objects.extend(roles(&places, &account, &format!("{name}-installer")));
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_has_the_number_of_objects_that_the_documents_state() {
        assert_eq!(OBJECTS_OF_BUNDLE.split("\n---\n").count(), OBJECTS);
    }
}
