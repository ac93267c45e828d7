//! What a spec asks for and cannot get, whatever the cluster holds.

use chandler_permissions::Account;
use chandler_rollout::IgnoredFieldsError;

/// Why a spec is refused before anything is fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// It names no ServiceAccount, and the installation requires one.
    #[error(
        "spec.serviceAccount names no ServiceAccount, and the controller runs with --require-service-account: set \
         spec.serviceAccount.name to one that may install the bundle (`chandler rbac` prints the roles that it needs), or run the \
         controller with --default-service-account"
    )]
    AccountRequired,
    /// It names a ServiceAccount of a namespace whose accounts install nothing.
    #[error(
        "spec.serviceAccount is ServiceAccount {account}, and the controller runs with --accounts-in {}: set spec.serviceAccount to an \
         account that administrators created there", namespaces.join(",")
    )]
    AccountOfOtherNamespace {
        /// The account.
        account: Account,
        /// The namespaces whose accounts install bundles.
        namespaces: Vec<String>,
    },
    /// `spec.ignoreDifferences` names a field that cannot be ignored.
    #[error(transparent)]
    IgnoredFields(#[from] IgnoredFieldsError),
    /// `spec.rollout.toRevision` names a revision that the history does not hold.
    #[error("spec.rollout.toRevision: status.history does not hold revision {number}, but {kept}")]
    RevisionNotKept {
        /// The revision.
        number: i64,
        /// The revisions that the history holds.
        kept: String,
    },
    /// The configuration has more levels than Chandler reads.
    #[error(
        "spec.config, or spec.config of the ProvisionerClass {class}, is nested more than about {levels} levels deep, so that Chandler \
         cannot read all of it: nest it less deeply"
    )]
    ConfigTooDeep {
        /// The class.
        class: String,
        /// About so many levels are read.
        levels: usize,
    },
    /// The configuration has a member that only Chandler itself sets.
    #[error(
        "spec.config, or spec.config of the ProvisionerClass {class}, has {member:?}, which only Chandler itself sets: remove it"
    )]
    ReservedConfig {
        /// The class.
        class: String,
        /// The member.
        member: String,
    },
    /// The object has no UID.
    #[error("the BundleDeployment was never stored")]
    NeverStored,
}
