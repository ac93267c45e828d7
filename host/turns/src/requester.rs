//! On whose behalf work is done.

use std::sync::Arc;

/// The account on whose behalf work is done, by namespace and name. Clones are cheap.
///
/// Namespaces take turns, and within a namespace its accounts: a tenant that may create ServiceAccounts in its namespace gets no further turns
/// by it, and tenants whose accounts an administrator keeps in one namespace do not wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requester {
    pub(crate) namespace: Arc<str>,
    pub(crate) account: Arc<str>,
    pub(crate) lane: Lane,
}

/// Whether work continues something that has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Lane {
    /// It begins something.
    #[default]
    New,
    /// It continues something.
    Begun,
}

impl Requester {
    /// An account of a namespace.
    pub fn new(namespace: &str, account: &str) -> Self {
        Self { namespace: namespace.into(), account: account.into(), lane: Lane::New }
    }

    /// This account, for work that continues something that has begun. It gets [up to three of four turns](crate::Rotation), so that much
    /// new work does not keep everything unfinished.
    #[must_use]
    pub fn continuing(self) -> Self {
        Self { lane: Lane::Begun, ..self }
    }

    /// Its namespace; empty for the controller.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name of the account; empty for the controller, and for the users of a namespace without an account.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The controller itself, and what administrators alone may create: Catalogs, ProvisionerClasses.
    pub fn controller() -> Self {
        Self::new("", "")
    }
}
