//! How a condition ends: by a retry, or by an action of a user or an administrator.
//!
//! The table of [reasons](crate::reason) has a remedy for each. The status, `chandler status` and the documentation read it, so that they
//! agree.

/// What ends a condition with a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// Nothing: the condition reports what is wanted.
    Nothing,
    /// A retry: the controller is working, or retries an operation that is likely to succeed.
    Time,
    /// Either: the message has the cause. The controller retries as long as that may help.
    TimeOrAction,
    /// Something that the release needs must appear in the cluster or change there: a namespace, an account, a permission, a kind.
    /// The controller looks again, and continues without a change of the object.
    Requirement,
    /// The object, or the content that it names, must change.
    User,
    /// The installation of Chandler must change: its options, its permissions, its records, or a provisioner.
    Administrator,
}

impl Remedy {
    /// Whether a retry may help.
    pub const fn time_may_help(self) -> bool {
        matches!(self, Self::Nothing | Self::Time | Self::TimeOrAction)
    }
}
