//! The names that API servers accept.

use super::ObjectKey;
use crate::dns_name;

/// The group whose names may contain anything that a URL may contain in one segment.
const RBAC: &str = "rbac.authorization.k8s.io";

impl ObjectKey {
    /// Whether an API server may accept the name. Its rule depends on the kind; this one holds for all kinds of Kubernetes and for custom
    /// resources: names are RFC 1123 subdomains (`IsDNS1123Subdomain` of `k8s.io/apimachinery`), except in RBAC.
    pub fn has_valid_name(&self) -> bool {
        self.group == RBAC || dns_name::is_subdomain(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_subdomains_except_in_rbac() {
        let key = |group: &str, name: &str| ObjectKey {
            group: group.into(),
            kind: "Role".into(),
            namespace: None,
            name: name.into(),
            version: "v1".into(),
        };
        for name in ["a", "v1.apps", "0-1.x"] {
            assert!(key("", name).has_valid_name(), "{name}");
        }
        for name in ["A", "a_b", "-a", "a-", "a..b", "a.", &"a".repeat(254)] {
            assert!(!key("apps", name).has_valid_name(), "{name}");
        }
        assert!(key(RBAC, "system:A_b").has_valid_name());
    }
}
