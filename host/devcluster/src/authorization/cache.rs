//! The stored roles and bindings, read once for each change.

use chandler_devcluster_apimachinery::access::PolicySet;

use crate::follow::{Followed, Table};

const TABLES: &[Table<PolicySet>] = &[
    Table {
        name: "roles.rbac.authorization.k8s.io",
        set: |policy, objects| policy.set_roles(objects),
        put: PolicySet::put_role,
        remove: PolicySet::remove_role,
    },
    Table {
        name: "clusterroles.rbac.authorization.k8s.io",
        set: |policy, objects| policy.set_cluster_roles(objects),
        put: PolicySet::put_cluster_role,
        remove: PolicySet::remove_cluster_role,
    },
    Table {
        name: "rolebindings.rbac.authorization.k8s.io",
        set: |policy, objects| policy.set_role_bindings(objects),
        put: PolicySet::put_role_binding,
        remove: PolicySet::remove_role_binding,
    },
    Table {
        name: "clusterrolebindings.rbac.authorization.k8s.io",
        set: |policy, objects| policy.set_cluster_role_bindings(objects),
        put: PolicySet::put_cluster_role_binding,
        remove: PolicySet::remove_cluster_role_binding,
    },
];

/// The policy of a store.
pub fn new() -> Followed<PolicySet> {
    Followed::new(TABLES)
}
