//! ValidatingAdmissionPolicies: which are bound, what they read of this cluster, and what their decisions mean for a request.
//!
//! | module | holds |
//! |---|---|
//! | [`cluster`] | what policies read of this cluster |
//! | [`subresource`] | the kinds of subresources |
//! | this module | the policies and bindings, read once for each change |
//!
//! What they decide is in `chandler-devcluster-policies`; `api::policies` asks them about each change.

pub mod cluster;
pub mod subresource;

use std::sync::Arc;

use chandler_devcluster_policies::PolicySet;

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
