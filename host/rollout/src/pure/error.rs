//! Why nothing could be done.

use std::{collections::BTreeSet, fmt};

use chandler_core::{ObjectKey, Reason};
use chandler_crd_upgrade::{CheckError, Finding};
use chandler_health::RuleError;
use chandler_permissions::{Account, Delegation, Missing};
use kube::core::Status;

use crate::pure::{existing_owner::Collisions, ledger::LedgerError, secrets, untyped};

/// How many objects a message lists.
const LISTED: usize = 10;

/// Why a release could not be brought further. What was done before stays; the next call goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// Kinds that neither the API server serves nor a CRD of the release defines.
    #[error("required resource not found: {}", list(.0, |(api_version, kind, object)| format!("no matches for kind {kind:?} in version {api_version:?} ({object})")))]
    UnknownKinds(Vec<(String, String, ObjectKey)>),
    /// Namespaces that objects name and neither the cluster nor the release has.
    #[error("required resource not found: {}", list(.0, |namespace| format!("namespaces {namespace:?} not found")))]
    NamespacesNotFound(Vec<String>),
    /// Two objects of the release are one in the cluster.
    #[error("{first} and {second} of the release are one object in the cluster")]
    Duplicate {
        /// The one.
        first: Box<ObjectKey>,
        /// The other.
        second: Box<ObjectKey>,
    },
    /// Objects that exist already and belong to somebody else.
    #[error("{0}")]
    Collisions(Collisions),
    /// The ServiceAccount on whose behalf everything is to be done does not exist.
    #[error("the ServiceAccount {0} does not exist: create it, or name another one in spec.serviceAccount")]
    ServiceAccountNotFound(Account),
    /// The ServiceAccount may not do all that has to be done.
    #[error(transparent)]
    PermissionsMissing(Box<PermissionsMissing>),
    /// Objects that are part of the installation of Chandler itself.
    #[error(
        "the release holds objects that are part of the installation of Chandler: {}; that takes an account that holds \
         every right: name one in spec.serviceAccount, or leave them out of the bundle", list(.0, |(object, what)| format!("{object} {what}"))
    )]
    Reserved(Vec<(ObjectKey, Delegation)>),
    /// New versions of CustomResourceDefinitions would break clients or stored objects.
    #[error("{}", chandler_crd_upgrade::explain(.0))]
    UnsafeCrdUpgrade(Vec<Finding>),
    /// A new version of a CustomResourceDefinition, or its custom resources, take too much to be checked.
    #[error(transparent)]
    CrdUncheckable(Box<CheckError>),
    /// Comparing an object with what is in the cluster takes too much.
    #[error(transparent)]
    ComparisonTooLarge(Box<ComparisonTooLarge>),
    /// The controller ends, and work with it.
    #[error("it was cancelled, since the controller is stopping")]
    Cancelled,
    /// The owner is gone, or another one has its name.
    #[error("the owner {0} no longer exists")]
    OwnerGone(String),
    /// The owner is being deleted: what was to be written for it would come too late.
    #[error("the owner {0} is being deleted")]
    OwnerDeleting(String),
    /// The owner has no record of what it holds, so nothing can be written for it.
    #[error("there is no record of what {0} holds; nothing is written without one")]
    Unrecorded(String),
    /// The record of what the owner holds cannot be written.
    #[error("{0}")]
    Ledger(#[from] LedgerError),
    /// Requests about objects failed.
    #[error("{}", list(.0, ToString::to_string))]
    Objects(Vec<ObjectFailure>),
    /// A probe of the release cannot be evaluated.
    #[error(transparent)]
    Probe(RuleError),
    /// A rule of whoever installs the release cannot be evaluated.
    #[error(transparent)]
    Rule(RuleError),
    /// A request that is not about one object failed.
    #[error("cannot {action}: {error}")]
    Request {
        /// What was to be done.
        action: String,
        /// What is wrong.
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
            Self::PermissionsMissing(_) => Reason::PermissionsMissing,
            Self::Reserved(_) => Reason::ReservedObjects,
            Self::Duplicate { .. } | Self::Probe(_) => Reason::InvalidOutput,
            Self::Rule(_) => Reason::InvalidConfiguration,
            Self::Collisions(_) => Reason::ObjectCollision,
            Self::UnsafeCrdUpgrade(_) => Reason::UnsafeCRDUpgrade,
            _ if self.is_cancelled() => Reason::Retrying,
            Self::CrdUncheckable(_) => Reason::CRDCheckLimitExceeded,
            Self::ComparisonTooLarge(_) => Reason::ComparisonTooLarge,
            _ if self.is_forbidden() => Reason::Forbidden,
            _ if self.is_transient() => Reason::Retrying,
            Self::Objects(_) | Self::Request { .. } | Self::Cancelled => Reason::ObjectRefused,
            Self::OwnerGone(_) | Self::OwnerDeleting(_) => Reason::Deleting,
            Self::Unrecorded(_) | Self::Ledger(_) => Reason::RecordUnavailable,
        }
    }

    /// Whether it is about this object, so that the others of the release may be written without it.
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

    /// Whether trying again soon may help, without anybody changing anything.
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

    /// Whether a check was made and says no, so that a rollout would be refused. Anything else says that a check could not be
    /// made.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Objects(failures) => failures.iter().all(|failure| matches!(failure.error, ApiError::Invalid(_))),
            Self::Request { .. } | Self::OwnerGone(_) | Self::ServiceAccountNotFound(_) | Self::Cancelled => false,
            Self::CrdUncheckable(_) => !self.is_cancelled(),
            _ => true,
        }
    }

    /// Whether something that the release needs is not there. It may come with another release, so trying again from time
    /// to time may help.
    pub fn is_missing_requirement(&self) -> bool {
        matches!(self, Self::UnknownKinds(_) | Self::NamespacesNotFound(_))
    }

    /// Whether the controller lacks a permission.
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

/// A ServiceAccount that may not do all that has to be done.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "the ServiceAccount {account} may not do all that is needed; it lacks {}: `chandler rbac {owner}` prints roles that \
     grant it", .missing.summary()
)]
pub struct PermissionsMissing {
    /// The name of the owner.
    pub owner: String,
    /// The ServiceAccount.
    pub account: Account,
    /// What it lacks.
    pub missing: Missing,
    /// The namespaces that come with the release and are not there yet, so that they can hold no Role.
    pub not_yet: BTreeSet<String>,
}

/// An object was not compared, since that takes too many steps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{object} cannot be compared with the cluster: it takes more than {limit} steps; use fewer pointers in \
     spec.ignoreDifferences, or make the object smaller"
)]
pub struct ComparisonTooLarge {
    /// The object.
    pub object: ObjectKey,
    /// How many steps it may take.
    pub limit: u64,
}

/// A request about an object that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFailure {
    /// The object.
    pub object: ObjectKey,
    /// What was to be done, as in `create`.
    pub action: &'static str,
    /// What is wrong.
    pub error: ApiError,
}

impl fmt::Display for ObjectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.action, self.object, self.error)
    }
}

/// What an API server's answer means.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// It is not there (404).
    #[error("{0}")]
    NotFound(String),
    /// It exists already (409 AlreadyExists).
    #[error("{0}")]
    AlreadyExists(String),
    /// Somebody else changed it at the same time (409 Conflict).
    #[error("{0}")]
    Conflict(String),
    /// The controller may not do this (401, 403).
    #[error("{0}")]
    Forbidden(String),
    /// It is not a legal object of its kind, or not a legal successor of what is there (422; 400 where its kind does not have one
    /// of its fields; 500 where what is there is not of its type).
    #[error("{0}")]
    Invalid(String),
    /// The API server or an admission policy refused it (other 4xx).
    #[error("{0}")]
    Refused(String),
    /// The API server cannot answer now (429, 5xx), or was not progress.
    #[error("{0}")]
    Unavailable(String),
}

/// What the API server says of fields that a kind does not have (`strictDecodingError` in `k8s.io/apimachinery/pkg/runtime`).
const UNKNOWN_FIELDS: &str = "strict decoding error: ";

impl ApiError {
    /// Whether trying again soon may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::Unavailable(_))
    }

    /// What this answer means.
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
            // The outermost text alone says little, the whole chain is what an administrator needs.
            other => {
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

/// Why an apply was refused.
#[derive(Debug)]
pub(crate) struct ApplyError {
    pub(crate) error: ApiError,
    /// The fields that the API server names, as in `spec.ports[1].name`.
    pub(crate) fields: Vec<String>,
    /// The values of the stored object that are not of their type.
    pub(crate) untyped: Vec<untyped::Untyped>,
}

impl ApplyError {
    /// Whether it may be what others wrote that makes the apply impossible.
    pub(crate) fn is_about_stored(&self) -> bool {
        matches!(&self.error, ApiError::Invalid(message) if !untyped::is_applied(message))
    }
}

impl From<ApiError> for ApplyError {
    fn from(error: ApiError) -> Self {
        Self { error, fields: Vec::new(), untyped: Vec::new() }
    }
}

impl From<kube::Error> for ApplyError {
    fn from(error: kube::Error) -> Self {
        let causes = match &error {
            kube::Error::Api(status) => status.details.as_ref().map(|details| details.causes.as_slice()),
            _ => None,
        };
        let fields = causes.unwrap_or_default().iter().map(|cause| cause.field.clone()).collect();
        let error = ApiError::from(error);
        let untyped = match &error {
            ApiError::Invalid(message) => untyped::named(message),
            _ => Vec::new(),
        };
        Self { error, fields, untyped }
    }
}

/// A error as one with an object.
pub(crate) fn object_failure(object: &ObjectKey, action: &'static str) -> impl FnOnce(ApiError) -> ObjectFailure {
    let object = object.clone();
    move |error| ObjectFailure { object, action, error }
}

/// One line for each, the first few of them.
pub(crate) fn list<T>(items: &[T], line: impl Fn(&T) -> String) -> String {
    let mut lines: Vec<String> = items.iter().take(LISTED).map(line).collect();
    if items.len() > LISTED {
        lines.push(format!("and {} more", items.len() - LISTED));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_an_outage_only_where_waiting_may_help() {
        let invalid = |message: &str| ApiError::Invalid(message.to_owned());
        let unavailable = |message: &str| ApiError::Unavailable(message.to_owned());
        let not_typed =
            "failed to create typed patch object (n/a; /v1, Kind=ConfigMap): .a: field not declared in schema";
        let unknown =
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "a""#;
        for (code, reason, message, want) in [
            (400, "BadRequest", unknown, invalid(unknown)),
            (400, "BadRequest", "no", ApiError::Refused("no".to_owned())),
            (422, "Invalid", "no", invalid("no")),
            (500, "", not_typed, invalid(not_typed)),
            (500, "InternalError", not_typed, unavailable(not_typed)),
            (500, "", "etcdserver: request timed out", unavailable("etcdserver: request timed out")),
            (409, "Conflict", "no", ApiError::Conflict("no".to_owned())),
            (409, "AlreadyExists", "no", ApiError::AlreadyExists("no".to_owned())),
            (503, "ServiceUnavailable", "", unavailable("status 503")),
        ] {
            let status =
                Status { code, reason: reason.to_owned(), message: message.to_owned(), ..Status::failure("", "") };
            assert_eq!(ApiError::of_status(&status), want, "{code} {reason} {message}");
        }
    }
}
