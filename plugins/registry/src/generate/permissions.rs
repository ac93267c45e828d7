//! Roles and RoleBindings: the operator's permissions in the namespaces that it watches.
//!
//! An operator that watches all namespaces gets none; its permissions are promoted to ClusterRoles.

use serde_json::{Value, json};

use super::{Context, Generated, service_account_or_default};
use crate::{csv::Permission, json::set, names::role_name};

pub(super) fn generate<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    if context.watches_all() {
        return Vec::new();
    }
    let mut objects = Vec::new();
    for namespace in context.targets {
        for (index, permission) in context.bundle.csv.spec.install.spec.permissions.iter().enumerate() {
            let origin = context.bundle.csv_place(&format!("/spec/install/spec/permissions/{index}"));
            let grant = Grant { context, permission, namespace: Some(namespace) };
            objects.extend(grant.objects().iter().map(|object| Generated::new(object, origin.clone())));
        }
    }
    objects
}

/// A permission and its scope.
pub(super) struct Grant<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) permission: &'a Permission,
    /// The namespace of a Role; none for a ClusterRole.
    pub(super) namespace: Option<&'a str>,
}

impl Grant<'_> {
    /// The role and its binding to the service account.
    pub(super) fn objects(&self) -> [Value; 2] {
        let account = service_account_or_default(&self.permission.service_account_name);
        let base = format!("{}-{account}", self.context.bundle.csv.metadata.name);
        let rules = self.permission.rules.as_deref();
        let name = role_name(&base, &self.permission.service_account_name, rules);
        let role_kind = if self.namespace.is_some() { "Role" } else { "ClusterRole" };
        let mut metadata = json!({"name": name});
        if let Some(namespace) = self.namespace {
            set(&mut metadata, ["namespace"], namespace);
        }
        let mut role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": role_kind,
            "metadata": metadata,
        });
        if let Some(rules) = rules {
            set(&mut role, ["rules"], json!(rules));
        }
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": format!("{role_kind}Binding"),
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": self.context.namespace}],
        });
        [role, binding]
    }
}
