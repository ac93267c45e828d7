//! Users.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Members may do everything, regardless of the policy.
pub const MASTERS: &str = "system:masters";
/// Every user with a valid credential.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Every user without a credential.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of a user who has shown no credential.
pub const ANONYMOUS: &str = "system:anonymous";
/// All ServiceAccounts.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// All nodes.
pub const NODES: &str = "system:nodes";
/// The key of [`User::extra`] for the node on which the bearer of a bound token runs.
pub const NODE_NAME_KEY: &str = "authentication.kubernetes.io/node-name";

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const NODE_PREFIX: &str = "system:node:";

/// A user, in JSON the `UserInfo` of `authentication.k8s.io`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct User {
    /// The name; unique among active users.
    #[serde(rename = "username", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Distinguishes users with the same name at different times; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups that the user is in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Extra information of the authenticator.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user of a name and groups.
    pub fn new(name: impl Into<String>, groups: &[&str]) -> Self {
        Self { name: name.into(), groups: groups.iter().map(|group| (*group).to_owned()).collect(), ..Self::default() }
    }

    /// The user of requests without credentials.
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, &[UNAUTHENTICATED])
    }

    /// A ServiceAccount that has shown a valid token.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let mut groups = service_account_groups(namespace);
        groups.push(AUTHENTICATED.to_owned());
        Self { name: service_account_user_name(namespace, name), uid: uid.to_owned(), groups, extra: BTreeMap::new() }
    }

    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|found| found == group)
    }

    /// Whether the user may do everything: kube-apiserver trusts this group before it looks at any policy.
    pub fn is_privileged(&self) -> bool {
        self.is_in(MASTERS)
    }

    /// Whether only the name of the user is set.
    pub fn is_only_a_name(&self) -> bool {
        self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }
}

/// The user name of a ServiceAccount.
pub fn service_account_user_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// Whether a user name belongs to this ServiceAccount. Called for every subject of a policy, so it allocates nothing.
pub fn is_service_account(user_name: &str, namespace: &str, name: &str) -> bool {
    let rest = user_name.strip_prefix(SERVICE_ACCOUNT_PREFIX).and_then(|rest| rest.strip_prefix(namespace));
    rest.and_then(|rest| rest.strip_prefix(':')) == Some(name)
}

/// The groups that a ServiceAccount of a namespace is in by its name alone.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")]
}

/// Namespace and name of the ServiceAccount of a user name; `None` for other users
/// (`k8s.io/apiserver/pkg/authentication/serviceaccount.SplitUsername`).
pub fn split_service_account(user_name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user_name.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    (is_label(namespace) && is_subdomain(name)).then_some((namespace, name))
}

/// The node of a user name.
pub fn split_node(user_name: &str) -> Option<&str> {
    user_name.strip_prefix(NODE_PREFIX).filter(|node| is_subdomain(node))
}

/// RFC 1123 label: at most 63 lower-case letters, digits and dashes, not a dash at either end.
fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_label_of_any_length(text)
}

/// RFC 1123 subdomain: labels with dots between them, at most 253 characters.
fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label_of_any_length)
}

fn is_label_of_any_length(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_are_users_and_back() {
        let user = User::service_account("shop", "robot", "1");
        assert_eq!(user.name, "system:serviceaccount:shop:robot");
        assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"]);
        let cases = [
            ("system:serviceaccount:shop:robot", Some(("shop", "robot"))),
            ("system:serviceaccount:shop:robot.v1", Some(("shop", "robot.v1"))),
            ("system:serviceaccount:shop", None),
            ("system:serviceaccount:shop:a:b", None),
            ("system:serviceaccount:sh.op:a", None),
            ("system:serviceaccount::a", None),
            ("system:serviceaccount:shop:", None),
            ("system:serviceaccount:shop:A", None),
            ("robot", None),
        ];
        for (name, expected) in cases {
            assert_eq!(split_service_account(name), expected, "{name}");
        }
        for (name, namespace, expected) in [("robot", "shop", true), ("robot", "sho", false), ("robo", "shop", false)] {
            assert_eq!(is_service_account(&user.name, namespace, name), expected, "{namespace}/{name}");
        }
        assert_eq!(split_node("system:node:n-1.example"), Some("n-1.example"));
        assert_eq!((split_node("system:node:"), split_node("system:node:*")), (None, None));
    }

    #[test]
    fn a_user_reads_as_user_info() {
        let mut user = User::new("jane", &["a"]);
        assert_eq!(serde_json::to_value(&user).unwrap(), serde_json::json!({"username": "jane", "groups": ["a"]}));
        user.extra.insert("k".into(), vec!["v".into()]);
        assert_eq!(serde_json::from_value::<User>(serde_json::to_value(&user).unwrap()).unwrap(), user);
        assert!(!user.is_privileged() && User::new("x", &[MASTERS]).is_privileged());
    }
}
