//! ServiceAccounts, and which one a BundleDeployment is installed on behalf of.

use std::{fmt, str::FromStr};

use chandler_core::dns_name;

/// A ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Account {
    /// The user name of the account.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The value of `spec.serviceAccount` of a BundleDeployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedAccount<'a> {
    /// The namespace; none for the install namespace.
    pub namespace: Option<&'a str>,
    /// The name.
    pub name: &'a str,
}

/// What happens to a BundleDeployment that names no ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AccountPolicy {
    /// It is installed with the permissions of the controller.
    #[default]
    Optional,
    /// It is rejected.
    Required,
    /// It is installed on behalf of this account.
    Default(DefaultAccount),
}

/// The BundleDeployment names no ServiceAccount, but the policy requires one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("names no ServiceAccount")]
pub struct AccountRequired;

impl AccountPolicy {
    /// The policy for the options of a controller. With a default, every BundleDeployment has an account, so `required`
    /// has no effect.
    pub fn new(required: bool, default: Option<DefaultAccount>) -> Self {
        match default {
            Some(default) => Self::Default(default),
            None if required => Self::Required,
            None => Self::Optional,
        }
    }

    /// The account that a BundleDeployment is installed on behalf of; none for the controller itself.
    ///
    /// # Errors
    /// [`AccountRequired`] if it names none and the policy requires one.
    pub fn account(
        &self,
        named: Option<NamedAccount<'_>>,
        install_namespace: &str,
    ) -> Result<Option<Account>, AccountRequired> {
        let named = match (named, self) {
            (Some(named), _) => named,
            (None, Self::Default(default)) => {
                NamedAccount { namespace: default.namespace.as_deref(), name: &default.name }
            }
            (None, Self::Required) => return Err(AccountRequired),
            (None, Self::Optional) => return Ok(None),
        };
        let namespace = named.namespace.unwrap_or(install_namespace).to_owned();
        Ok(Some(Account { namespace, name: named.name.to_owned() }))
    }
}

/// The account of BundleDeployments that name none: `NAME` in the install namespace, or `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultAccount {
    /// The namespace; none for the install namespace.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// The text is not the name of a ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a ServiceAccount in the form NAME or NAMESPACE/NAME")]
pub struct NotAnAccount(String);

impl FromStr for DefaultAccount {
    type Err = NotAnAccount;

    fn from_str(text: &str) -> Result<Self, NotAnAccount> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        if !dns_name::is_subdomain(name) || !namespace.is_none_or(dns_name::is_label) {
            return Err(NotAnAccount(text.to_owned()));
        }
        Ok(Self { namespace: namespace.map(str::to_owned), name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default(text: &str) -> AccountPolicy {
        AccountPolicy::new(true, Some(text.parse().unwrap()))
    }

    #[test]
    fn the_account_of_the_spec_precedes_the_default() {
        let named = |namespace: Option<&'static str>| Some(NamedAccount { namespace, name: "deployer" });
        let cases = [
            // The policy, the account in the spec, the effective account.
            (AccountPolicy::Optional, named(None), Ok(Some("shop/deployer"))),
            (AccountPolicy::Optional, named(Some("ci")), Ok(Some("ci/deployer"))),
            (AccountPolicy::Optional, None, Ok(None)),
            (AccountPolicy::Required, named(None), Ok(Some("shop/deployer"))),
            (AccountPolicy::Required, None, Err(AccountRequired)),
            (default("bundles"), None, Ok(Some("shop/bundles"))),
            (default("ci/bundles"), None, Ok(Some("ci/bundles"))),
            (default("ci/bundles"), named(None), Ok(Some("shop/deployer"))),
        ];
        for (policy, named, expected) in cases {
            let account = policy.account(named, "shop").map(|account| account.map(|account| account.to_string()));
            assert_eq!(account, expected.map(|account| account.map(str::to_owned)), "{policy:?} {named:?}");
        }
        assert_eq!(AccountPolicy::new(false, None), AccountPolicy::Optional);
        assert_eq!(AccountPolicy::new(true, None), AccountPolicy::Required);
    }

    #[test]
    fn a_default_account_must_be_a_valid_name() {
        for text in ["", "/", "a/", "/a", "a/b/c", "A", "a_b", "-a", "a..b", "n.s/a"] {
            let error = text.parse::<DefaultAccount>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("{text:?} is not a ServiceAccount in the form NAME or NAMESPACE/NAME")
            );
        }
        let parsed: DefaultAccount = "team-a/my.account".parse().unwrap();
        assert_eq!((parsed.namespace.as_deref(), parsed.name.as_str()), (Some("team-a"), "my.account"));
    }
}
