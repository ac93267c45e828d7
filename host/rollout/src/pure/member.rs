//! An object of the owner, as it was read. Pure.

use chandler_core::ObjectKey;
use kube::api::ApiResource;
use serde_json::Value;

use crate::pure::{deletion_plan::Unwanted, dependents, live, resource_policy};

/// An object of the owner.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) key: ObjectKey,
    pub(crate) resource: ApiResource,
    pub(crate) object: Value,
}

impl Unwanted for Member {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn is_terminating(&self) -> bool {
        live::is_terminating(&self.object)
    }

    fn asks_to_stay(&self) -> bool {
        resource_policy::asks_to_stay(&self.key, &self.object)
    }

    fn depends_on(&self) -> Option<Vec<&str>> {
        dependents::is_member(&self.key).then(|| dependents::depends_on(&self.object).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pure::desired::tests::desired;

    #[test]
    fn a_member_with_a_deletion_timestamp_is_terminating() {
        let desired = desired(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}), true);
        let mut member = Member { key: desired.key, resource: desired.resource, object: json!({"metadata": {}}) };
        assert!(!member.is_terminating());
        member.object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(member.is_terminating());
    }
}
