//! ServiceAccounts, and which one a BundleDeployment is installed on behalf of.

use std::{collections::BTreeSet, fmt, str::FromStr};

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

/// Which ServiceAccounts install BundleDeployments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountPolicy {
    /// What happens to a BundleDeployment that names no ServiceAccount.
    pub unnamed: Unnamed,
    /// The namespaces of the accounts that install bundles; empty for all namespaces. A tenant who may create ServiceAccounts and roles in
    /// another namespace can otherwise make an account that grants itself to every BundleDeployment.
    pub namespaces: BTreeSet<String>,
}

/// What happens to a BundleDeployment that names no ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Unnamed {
    /// It is installed with the permissions of the controller.
    #[default]
    Controller,
    /// It is rejected.
    Refused,
    /// It is installed on behalf of this account.
    Default(DefaultAccount),
}

/// The policy admits no account for a BundleDeployment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountRefused {
    /// It names no ServiceAccount, but the policy requires one.
    #[error("names no ServiceAccount")]
    Required,
    /// The ServiceAccount is in a namespace whose accounts install nothing.
    #[error("the ServiceAccount {0} is in a namespace whose accounts install nothing")]
    OtherNamespace(Account),
}

/// The options of a controller exclude each other: a BundleDeployment that names no ServiceAccount could not be installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefaultRefused {
    /// The default account is in the install namespace, which the author of the BundleDeployment chooses.
    #[error("the default ServiceAccount {0} is in the install namespace of each BundleDeployment")]
    InEveryNamespace(String),
    /// The default account is in a namespace whose accounts install nothing.
    #[error("the default ServiceAccount {0} is in another namespace")]
    OtherNamespace(Account),
}

impl AccountPolicy {
    /// A BundleDeployment may name every account, or none.
    pub const OPTIONAL: Self = Self { unnamed: Unnamed::Controller, namespaces: BTreeSet::new() };
    /// A BundleDeployment may name every account, and must name one.
    pub const REQUIRED: Self = Self { unnamed: Unnamed::Refused, namespaces: BTreeSet::new() };

    /// The policy for the options of a controller. With a default, every BundleDeployment has an account, so `required`
    /// has no effect.
    pub fn new(required: bool, default: Option<DefaultAccount>) -> Self {
        match default {
            Some(default) => Self::with_default(default),
            None if required => Self::REQUIRED,
            None => Self::OPTIONAL,
        }
    }

    /// A BundleDeployment may name every account, and this one is used where it names none.
    pub const fn with_default(default: DefaultAccount) -> Self {
        Self { unnamed: Unnamed::Default(default), namespaces: BTreeSet::new() }
    }

    /// This policy, with accounts of these namespaces only; of all namespaces if there are none.
    ///
    /// # Errors
    /// [`DefaultRefused`] if the default account is not always in one of these namespaces.
    pub fn within(self, namespaces: impl IntoIterator<Item = String>) -> Result<Self, DefaultRefused> {
        let policy = Self { namespaces: namespaces.into_iter().collect(), ..self };
        match &policy.unnamed {
            Unnamed::Default(DefaultAccount { namespace: None, name }) if !policy.namespaces.is_empty() => {
                Err(DefaultRefused::InEveryNamespace(name.clone()))
            }
            Unnamed::Default(DefaultAccount { namespace: Some(namespace), name }) if !policy.admits(namespace) => {
                Err(DefaultRefused::OtherNamespace(Account { namespace: namespace.clone(), name: name.clone() }))
            }
            _ => Ok(policy),
        }
    }

    /// Whether accounts of this namespace install bundles.
    pub fn admits(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.contains(namespace)
    }

    /// The account that a BundleDeployment is installed on behalf of; none for the controller itself.
    ///
    /// # Errors
    /// [`AccountRefused`] if it names none and the policy requires one, or one in a namespace whose accounts install nothing.
    pub fn account(
        &self,
        named: Option<NamedAccount<'_>>,
        install_namespace: &str,
    ) -> Result<Option<Account>, AccountRefused> {
        let named = match (named, &self.unnamed) {
            (Some(named), _) => named,
            (None, Unnamed::Default(default)) => {
                NamedAccount { namespace: default.namespace.as_deref(), name: &default.name }
            }
            (None, Unnamed::Refused) => return Err(AccountRefused::Required),
            (None, Unnamed::Controller) => return Ok(None),
        };
        let namespace = named.namespace.unwrap_or(install_namespace).to_owned();
        let account = Account { namespace, name: named.name.to_owned() };
        if self.admits(&account.namespace) { Ok(Some(account)) } else { Err(AccountRefused::OtherNamespace(account)) }
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
            (AccountPolicy::OPTIONAL, named(None), Ok(Some("shop/deployer"))),
            (AccountPolicy::OPTIONAL, named(Some("ci")), Ok(Some("ci/deployer"))),
            (AccountPolicy::OPTIONAL, None, Ok(None)),
            (AccountPolicy::REQUIRED, named(None), Ok(Some("shop/deployer"))),
            (AccountPolicy::REQUIRED, None, Err(AccountRefused::Required)),
            (default("bundles"), None, Ok(Some("shop/bundles"))),
            (default("ci/bundles"), None, Ok(Some("ci/bundles"))),
            (default("ci/bundles"), named(None), Ok(Some("shop/deployer"))),
        ];
        for (policy, named, expected) in cases {
            let account = policy.account(named, "shop").map(|account| account.map(|account| account.to_string()));
            assert_eq!(account, expected.map(|account| account.map(str::to_owned)), "{policy:?} {named:?}");
        }
        assert_eq!(AccountPolicy::new(false, None), AccountPolicy::OPTIONAL);
        assert_eq!(AccountPolicy::new(true, None), AccountPolicy::REQUIRED);
    }

    #[test]
    fn accounts_of_other_namespaces_install_nothing() {
        let namespaces = || ["accounts".to_owned(), "ci".to_owned()];
        let named = |namespace: Option<&'static str>| Some(NamedAccount { namespace, name: "mine" });
        let other = |namespace: &str| {
            Err(AccountRefused::OtherNamespace(Account { namespace: namespace.into(), name: "mine".into() }))
        };
        let required = AccountPolicy::REQUIRED.within(namespaces()).unwrap();
        let optional = AccountPolicy::OPTIONAL.within(namespaces()).unwrap();
        let with_default = default("ci/bundles").within(namespaces()).unwrap();
        for (policy, named, expected) in [
            (&required, named(Some("accounts")), Ok(Some("accounts/mine"))),
            (&required, named(Some("team-b")), other("team-b")),
            // The install namespace is as foreign as any other.
            (&required, named(None), other("shop")),
            (&required, None, Err(AccountRefused::Required)),
            (&optional, named(None), other("shop")),
            (&optional, None, Ok(None)),
            (&with_default, named(Some("team-b")), other("team-b")),
            (&with_default, None, Ok(Some("ci/bundles"))),
        ] {
            let account = policy.account(named, "shop").map(|account| account.map(|account| account.to_string()));
            assert_eq!(account, expected.map(|account| account.map(str::to_owned)), "{policy:?} {named:?}");
        }
        assert_eq!(AccountPolicy::REQUIRED.within([]), Ok(AccountPolicy::REQUIRED));
        assert_eq!(default("bundles").within([]), Ok(default("bundles")));
        let every = DefaultRefused::InEveryNamespace("bundles".into());
        assert_eq!(default("bundles").within(namespaces()), Err(every));
        let elsewhere = Account { namespace: "team-b".into(), name: "bundles".into() };
        assert_eq!(default("team-b/bundles").within(namespaces()), Err(DefaultRefused::OtherNamespace(elsewhere)));
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
