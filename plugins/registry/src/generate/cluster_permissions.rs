//! ClusterRoles and ClusterRoleBindings: the cluster-wide permissions of the operator.
//!
//! For an operator that watches all namespaces, the namespaced permissions are promoted. It may then also read
//! namespaces, since it must discover them.

use std::borrow::Cow;

use super::{Context, Generated, permissions::Grant};
use crate::csv::{Permission, PolicyRule};

pub(super) fn generate<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    let strategy = &context.bundle.csv.spec.install.spec;
    let own = strategy.cluster_permissions.iter().map(Cow::Borrowed).enumerate();
    let own = own.map(|(index, permission)| (format!("/spec/install/spec/clusterPermissions/{index}"), permission));
    let promoted = if context.watches_all() { strategy.permissions.as_slice() } else { &[] };
    let promoted = promoted.iter().enumerate().map(|(index, permission)| {
        (format!("/spec/install/spec/permissions/{index}"), Cow::Owned(promote(permission)))
    });
    let mut objects = Vec::new();
    for (pointer, permission) in own.chain(promoted) {
        let origin = context.bundle.csv_place(&pointer);
        let grant = Grant { context, permission: &permission, namespace: None };
        objects.extend(grant.objects().iter().map(|object| Generated::new(object, origin.clone())));
    }
    objects
}

/// The rule is added before the name is computed, so that the hash includes it.
fn promote(permission: &Permission) -> Permission {
    let strings = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut rules = permission.rules.clone().unwrap_or_default();
    rules.push(PolicyRule {
        verbs: Some(strings(&["get", "list", "watch"])),
        api_groups: strings(&[""]),
        resources: strings(&["namespaces"]),
        resource_names: Vec::new(),
        non_resource_urls: Vec::new(),
    });
    Permission { service_account_name: permission.service_account_name.clone(), rules: Some(rules) }
}
