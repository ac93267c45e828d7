//! Errors of a rollout. Pure.

use std::{collections::BTreeSet, fmt};

use chandler_core::{ObjectKey, Reason};
use chandler_crd_upgrade::{CheckError, RefusedUpgrades};
use chandler_health::RuleError;
use chandler_permissions::{Account, Delegation, Missing};
use kube::core::Status;

use crate::pure::{existing_owner::Collisions, ledger::LedgerError, older_record::OlderRecord, secrets, untyped};

/// The number of objects that a message lists.
const LISTED: usize = 10;

/// A release could not be rolled out further. Completed writes remain; the next call continues from there.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// Kinds that neither the API server serves nor a CRD of the release defines.
    #[error("required resource not found: {}", list(.0, |(api_version, kind, object)| format!("no matches for kind {kind:?} in version {api_version:?} ({object})")))]
    UnknownKinds(Vec<(String, String, ObjectKey)>),
    /// Namespaces of objects that neither exist in the cluster nor are in the release.
    #[error("required resource not found: {}", list(.0, |namespace| format!("namespaces {namespace:?} not found")))]
    NamespacesNotFound(Vec<String>),
    /// Two objects of the release are the same object in the cluster.
    #[error("{first} and {second} in the release are the same object in the cluster")]
    Duplicate {
        /// The first object.
        first: Box<ObjectKey>,
        /// The second object.
        second: Box<ObjectKey>,
    },
    /// Objects that exist and belong to other owners.
    #[error("{0}")]
    Collisions(Collisions),
    /// The ServiceAccount to impersonate does not exist.
    #[error("the ServiceAccount {0} does not exist: create it, or name another one in spec.serviceAccount")]
    ServiceAccountNotFound(Account),
    /// The ServiceAccount does not list the owner among those that may use it.
    #[error(
        "the ServiceAccount {account} may not be used: its annotations list who may be installed on its behalf; its owner grants it with \
         the annotation {wanted}"
    )]
    ServiceAccountNotGranted {
        /// The ServiceAccount.
        account: Account,
        /// The annotation that grants it.
        wanted: String,
    },
    /// The ServiceAccount, or the user of the kubeconfig, lacks permissions.
    #[error(transparent)]
    PermissionsMissing(Box<PermissionsMissing>),
    /// Objects that belong to the installation of Chandler itself.
    #[error(
        "the release contains objects that belong to the installation of Chandler: {}; this requires a ServiceAccount \
         with all permissions: name one in spec.serviceAccount, or remove the objects from the bundle", list(.0, |(object, what)| format!("{object} {what}"))
    )]
    Reserved(Vec<(ObjectKey, Delegation)>),
    /// Objects that would make a Chandler of another cluster act.
    #[error(
        "the release contains objects that only Chandler's own cluster may get from a bundle: {}; remove them from the bundle, or install it \
         without spec.kubeConfig by the Chandler of that cluster", list(.0, |(object, what)| format!("{object} {what}"))
    )]
    ReservedElsewhere(Vec<(ObjectKey, Delegation)>),
    /// New versions of CustomResourceDefinitions would break clients or stored objects.
    #[error("{0}")]
    UnsafeCrdUpgrade(Box<RefusedUpgrades>),
    /// A new version of a CustomResourceDefinition, or its custom resources, are too large to check.
    #[error(transparent)]
    CrdUncheckable(Box<CheckError>),
    /// An object is too large to compare.
    #[error(transparent)]
    ComparisonTooLarge(Box<ComparisonTooLarge>),
    /// The controller is stopping.
    #[error("cancelled because the controller is stopping")]
    Cancelled,
    /// The owner is gone, or another object has its name.
    #[error("the owner {0} no longer exists")]
    OwnerGone(String),
    /// The owner is being deleted, so nothing is written for it any more.
    #[error("the owner {0} is being deleted")]
    OwnerDeleting(String),
    /// A rollout for one cluster was called with an owner of objects in another one. This is an error of the program.
    #[error("the objects of {0} are in another cluster (spec.kubeConfig), and nothing here can be compared with them")]
    WrongCluster(String),
    /// The owner has no record of its objects, so nothing can be written for it.
    #[error("{0} has no record of its objects; nothing is written without one")]
    Unrecorded(String),
    /// The record of the owner's objects cannot be written.
    #[error("{0}")]
    Ledger(#[from] LedgerError),
    /// The record of the owner's objects is older than the objects.
    #[error(transparent)]
    OlderRecord(#[from] OlderRecord),
    /// Requests about objects failed.
    #[error("{}", list(.0, ToString::to_string))]
    Objects(Vec<ObjectFailure>),
    /// A probe of the release is invalid.
    #[error(transparent)]
    Probe(RuleError),
    /// A health rule of the installer is invalid.
    #[error(transparent)]
    Rule(RuleError),
    /// A request that is not about a single object failed.
    #[error("cannot {action}: {error}")]
    Request {
        /// The action that failed.
        action: String,
        /// The answer of the API server.
        error: ApiError,
    },
}

impl RolloutError {
    /// The condition reason for this error.
    pub fn reason(&self) -> Reason {
        match self {
            Self::UnknownKinds(_) => Reason::RequiredResourceNotFound,
            Self::NamespacesNotFound(_) => Reason::InstallNamespaceNotFound,
            Self::ServiceAccountNotFound(_) => Reason::ServiceAccountNotFound,
            Self::ServiceAccountNotGranted { .. } => Reason::ServiceAccountNotGranted,
            // `chandler rbac` prints roles for ServiceAccounts only.
            Self::PermissionsMissing(missing) if missing.account.is_none() => Reason::Forbidden,
            Self::PermissionsMissing(_) => Reason::PermissionsMissing,
            Self::Reserved(_) | Self::ReservedElsewhere(_) => Reason::ReservedObjects,
            Self::Duplicate { .. } | Self::Probe(_) => Reason::InvalidOutput,
            Self::Rule(_) => Reason::InvalidConfiguration,
            Self::Collisions(_) => Reason::ObjectCollision,
            Self::UnsafeCrdUpgrade(_) => Reason::UnsafeCRDUpgrade,
            _ if self.is_cancelled() => Reason::Retrying,
            Self::CrdUncheckable(_) => Reason::CRDCheckLimitExceeded,
            Self::ComparisonTooLarge(_) => Reason::ComparisonTooLarge,
            _ if self.is_forbidden() => Reason::Forbidden,
            _ if self.is_transient() => Reason::Retrying,
            Self::Objects(failures) if failures.iter().any(ObjectFailure::is_immutable) => Reason::ImmutableField,
            Self::Objects(_) | Self::Request { .. } | Self::Cancelled => Reason::ObjectRefused,
            Self::OwnerGone(_) | Self::OwnerDeleting(_) => Reason::Deleting,
            Self::Unrecorded(_) | Self::Ledger(_) => Reason::RecordUnavailable,
            Self::WrongCluster(_) => Reason::InternalError,
            Self::OlderRecord(_) => Reason::RecordOutdated,
        }
    }

    /// Whether the error is about this object, so that the other objects of the release can be written without it.
    pub fn concerns(&self, object: &ObjectKey) -> bool {
        match self {
            Self::Objects(failures) => failures.iter().any(|failure| failure.object == *object),
            Self::ComparisonTooLarge(large) => large.object == *object,
            Self::Collisions(collisions) => collisions.found.iter().any(|collision| collision.object == *object),
            Self::UnknownKinds(unknown) => unknown.iter().any(|(_, _, key)| key == object),
            Self::NamespacesNotFound(missing) => {
                object.namespace.as_ref().is_some_and(|namespace| missing.contains(namespace))
            }
            _ => false,
        }
    }

    /// Whether a retry may succeed without any change by a user.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Objects(failures) => failures.iter().all(|failure| failure.error.is_transient()),
            Self::Request { error, .. } => error.is_transient(),
            Self::Ledger(error) => error.transient,
            _ => self.is_cancelled(),
        }
    }

    fn is_cancelled(&self) -> bool {
        match self {
            Self::Cancelled => true,
            Self::CrdUncheckable(error) => matches!(**error, CheckError::Cancelled { .. }),
            _ => false,
        }
    }

    /// Whether a check refused the release. Any other error means that a check could not be made.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Objects(failures) => {
                let refused = |error: &ApiError| matches!(error, ApiError::Invalid(_) | ApiError::Immutable(_));
                failures.iter().all(|failure| refused(&failure.error))
            }
            Self::Request { .. } | Self::OwnerGone(_) | Self::ServiceAccountNotFound(_) | Self::Cancelled => false,
            Self::CrdUncheckable(_) => !self.is_cancelled(),
            _ => true,
        }
    }

    /// Whether the release requires something that does not exist. Another release may provide it, so a retry from time to time
    /// may succeed.
    pub fn is_missing_requirement(&self) -> bool {
        matches!(self, Self::UnknownKinds(_) | Self::NamespacesNotFound(_))
    }

    /// Whether a permission, a ServiceAccount or a namespace is missing, which a user may add at any time. An admission policy or
    /// a quota forbids for other reasons.
    pub fn needs_grant(&self) -> bool {
        match self {
            Self::PermissionsMissing(_)
            | Self::ServiceAccountNotFound(_)
            | Self::ServiceAccountNotGranted { .. }
            | Self::NamespacesNotFound(_) => true,
            Self::Objects(failures) => failures.iter().any(|failure| failure.error.is_unauthorized()),
            Self::Request { error, .. } => error.is_unauthorized(),
            _ => false,
        }
    }

    /// Whether a permission is missing.
    pub fn is_forbidden(&self) -> bool {
        match self {
            Self::Objects(failures) => failures.iter().any(|failure| matches!(failure.error, ApiError::Forbidden(_))),
            Self::Request { error, .. } => matches!(error, ApiError::Forbidden(_)),
            _ => false,
        }
    }
}

impl From<CheckError> for RolloutError {
    fn from(error: CheckError) -> Self {
        Self::CrdUncheckable(Box::new(error))
    }
}

/// A ServiceAccount, or the user of a kubeconfig, that lacks permissions.
#[derive(Clone, Debug, PartialEq)]
pub struct PermissionsMissing {
    /// The name of the owner.
    pub owner: String,
    /// The ServiceAccount; `None` for the user of a kubeconfig.
    pub account: Option<Account>,
    /// The missing permissions.
    pub missing: Missing,
    /// The namespaces that the release will create, which can hold no Role yet.
    pub not_yet: BTreeSet<String>,
}

impl fmt::Display for PermissionsMissing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, account, missing, .. } = self;
        match account {
            Some(account) => write!(
                f,
                "the ServiceAccount {account} lacks permissions: {}; `chandler rbac {owner}` prints roles that grant them",
                missing.summary()
            ),
            None => write!(
                f,
                "the user of the kubeconfig lacks permissions: {}; grant them in the cluster of the kubeconfig, \
                 status.missingPermissions lists all rules",
                missing.summary()
            ),
        }
    }
}

impl std::error::Error for PermissionsMissing {}

/// An object was not compared, because the comparison takes too many steps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{object} cannot be compared with the cluster in {limit} steps: use fewer pointers in \
     spec.ignoreDifferences, or make the object smaller"
)]
pub struct ComparisonTooLarge {
    /// The object.
    pub object: ObjectKey,
    /// The limit of steps.
    pub limit: u64,
}

/// A failed request about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFailure {
    /// The object.
    pub object: ObjectKey,
    /// The action, such as `create`.
    pub action: &'static str,
    /// The answer of the API server.
    pub error: ApiError,
}

impl ObjectFailure {
    fn is_immutable(&self) -> bool {
        matches!(self.error, ApiError::Immutable(_))
    }
}

impl fmt::Display for ObjectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.action, self.object, self.error)?;
        if self.is_immutable() {
            let ObjectKey { group, kind, .. } = &self.object;
            let group = if group.is_empty() { String::new() } else { format!("group: {group}, ") };
            write!(
                f,
                "; only a new object can have this value: spec.rollout.onImmutable: {{kinds: [{{{group}kind: {kind}, action: \
                 Recreate}}]}} lets the controller delete the object and create it again"
            )?;
        }
        Ok(())
    }
}

/// An error of the API server, by its meaning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The object does not exist (404).
    #[error("{0}")]
    NotFound(String),
    /// The object already exists (409 AlreadyExists).
    #[error("{0}")]
    AlreadyExists(String),
    /// Another client changed the object at the same time (409 Conflict).
    #[error("{0}")]
    Conflict(String),
    /// The request is not permitted (401, 403).
    #[error("{0}")]
    Forbidden(String),
    /// The object is not valid for its kind, or is not a valid update of the stored object (422; 400 for unknown fields; 500
    /// for a stored object of the wrong type).
    #[error("{0}")]
    Invalid(String),
    /// The object is valid, but the stored object cannot become it: an immutable field changes (422).
    #[error("{0}")]
    Immutable(String),
    /// The API server or an admission policy refused the request (other 4xx).
    #[error("{0}")]
    Refused(String),
    /// The API server is not available (429, 5xx), or was not reached.
    #[error("{0}")]
    Unavailable(String),
}

/// The message of the API server about unknown fields (`strictDecodingError` in `k8s.io/apimachinery/pkg/runtime`).
const UNKNOWN_FIELDS: &str = "strict decoding error: ";

impl ApiError {
    /// Whether a retry may succeed soon.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::Unavailable(_))
    }

    /// Whether an authorizer denied the request. Its messages have this form, unlike the messages of admission policies
    /// (`Forbidden` in `k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`).
    fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Forbidden(message) if message.contains(": User \"") && message.contains(" cannot "))
    }

    /// The error for this status.
    pub(crate) fn of_status(status: &Status) -> Self {
        let message = if status.message.is_empty() {
            format!("status {}", status.code)
        } else {
            secrets::without_values(&status.message)
        };
        match status.code {
            400 if message.contains(UNKNOWN_FIELDS) => Self::Invalid(message),
            500 if status.reason.is_empty() && untyped::is_untyped(&message) => Self::Invalid(message),
            404 => Self::NotFound(message),
            409 if status.reason == "AlreadyExists" => Self::AlreadyExists(message),
            409 => Self::Conflict(message),
            422 => Self::Invalid(message),
            401 | 403 => Self::Forbidden(message),
            429 | 500.. => Self::Unavailable(message),
            _ => Self::Refused(message),
        }
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_status(&status),
            // The outermost text alone says little, so the message includes the whole chain of causes.
            other => {
                if let Some(exhausted) = chandler_core::descriptors_exhausted(&other) {
                    return Self::Unavailable(exhausted.to_string());
                }
                let mut message = other.to_string();
                let mut source = std::error::Error::source(&other);
                while let Some(cause) = source {
                    let cause_text = cause.to_string();
                    if !message.contains(&cause_text) {
                        message.push_str(": ");
                        message.push_str(&cause_text);
                    }
                    source = cause.source();
                }
                Self::Unavailable(message)
            }
        }
    }
}

/// An error of a server-side apply, with the fields that it is about.
#[derive(Debug)]
pub(crate) struct ApplyError {
    pub(crate) error: ApiError,
    /// The fields that the API server names, as in `spec.ports[1].name`.
    pub(crate) fields: Vec<String>,
    /// The reason of each cause, as in `FieldValueInvalid`.
    pub(crate) causes: Vec<String>,
    /// The values of the stored object that have the wrong type.
    pub(crate) untyped: Vec<untyped::Untyped>,
}

impl ApplyError {
    /// Whether fields of other field managers may have caused the error.
    pub(crate) fn is_about_stored(&self) -> bool {
        matches!(&self.error, ApiError::Invalid(message) if !untyped::is_applied(message))
    }
}

impl From<ApiError> for ApplyError {
    fn from(error: ApiError) -> Self {
        Self { error, fields: Vec::new(), causes: Vec::new(), untyped: Vec::new() }
    }
}

impl From<kube::Error> for ApplyError {
    fn from(error: kube::Error) -> Self {
        let details = match &error {
            kube::Error::Api(status) => status.details.as_ref().map(|details| details.causes.as_slice()),
            _ => None,
        };
        let details = details.unwrap_or_default();
        let fields = details.iter().map(|cause| cause.field.clone()).collect();
        let causes = details.iter().map(|cause| cause.reason.clone()).collect();
        let error = ApiError::from(error);
        let untyped = match &error {
            ApiError::Invalid(message) => untyped::named(message),
            _ => Vec::new(),
        };
        Self { error, fields, causes, untyped }
    }
}

/// Converts an error to a failure of an object.
pub(crate) fn object_failure(object: &ObjectKey, action: &'static str) -> impl FnOnce(ApiError) -> ObjectFailure {
    let object = object.clone();
    move |error| ObjectFailure { object, action, error }
}

/// One line for each of the first items, and the number of further ones.
pub(crate) fn list<T>(items: &[T], line: impl Fn(&T) -> String) -> String {
    let mut lines: Vec<String> = items.iter().take(LISTED).map(line).collect();
    if items.len() > LISTED {
        lines.push(format!("and {} more", items.len() - LISTED));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
