//! ValidatingAdmissionPolicies: which are bound, what they read of this cluster, and what their decisions mean for a request.
//!
//! | module | holds |
//! |---|---|
//! | [`cluster`] | what policies read of this cluster |
//! | [`subresource`] | the kinds of subresources |
//! | this module | the policies and bindings, read once for each change |
//!
//! What they decide is in [`chandler_devcluster_apimachinery::policies`]; `api::policies` asks them about each change.

pub mod cluster;
pub mod subresource;

use std::sync::Arc;

use chandler_devcluster_apimachinery::policies::PolicySet;

use crate::{
    follow::{Followed, Table},
    store::Store,
};

const TABLES: &[Table<PolicySet>] = &[
    Table {
        name: "validatingadmissionpolicies.admissionregistration.k8s.io",
        set: |policies, objects| policies.set_policies(objects),
        put: PolicySet::put_policy,
        remove: PolicySet::remove_policy,
    },
    Table {
        name: "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        set: |policies, objects| policies.set_bindings(objects),
        put: PolicySet::put_binding,
        remove: PolicySet::remove_binding,
    },
];

/// The policies and bindings of a store.
#[derive(Debug)]
pub struct Policies(Followed<PolicySet>);

impl Default for Policies {
    fn default() -> Self {
        Self(Followed::new(TABLES))
    }
}

impl Policies {
    /// The policies and bindings as they are now.
    pub fn current(&self, store: &Store) -> Arc<PolicySet> {
        self.0.current(store)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::{Expected, Key};

    #[test]
    fn other_writes_change_nothing() {
        let (store, policies) = (Store::default(), Policies::default());
        let before = policies.current(&store);
        assert!(before.is_empty());
        for name in ["a", "b"] {
            store.put(Key::new("configmaps".into(), "default", name), Expected::Absent, json!({})).unwrap();
            assert!(Arc::ptr_eq(&before, &policies.current(&store)), "it is neither read nor copied");
        }
        let put = |table: &str, spec: serde_json::Value| {
            let key = Key::new(format!("{table}.admissionregistration.k8s.io").into(), "", "rule");
            store.put(key, Expected::Absent, json!({"metadata": {"name": "rule"}, "spec": spec})).unwrap()
        };
        put("validatingadmissionpolicies", json!({}));
        assert!(policies.current(&store).is_empty(), "a policy without a binding is not enforced");
        let binding = put("validatingadmissionpolicybindings", json!({"policyName": "rule"}));
        assert!(!policies.current(&store).is_empty());
        let key = Key::new("validatingadmissionpolicybindings.admissionregistration.k8s.io".into(), "", "rule");
        store.delete(&key, binding.revision(), None).unwrap();
        assert!(policies.current(&store).is_empty());
    }
}
