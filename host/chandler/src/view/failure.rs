//! Why a command ended without success, and the exit code that it then has. No other module chooses exit codes.

use chandler_api::Reason;
use kube::core::Status;

use super::api_error;

/// Why a command ended without success. It determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The operation failed.
    Failed,
    /// The arguments are wrong.
    Usage,
    /// A timeout expired.
    Timeout,
    /// Nothing failed: something would change, or differs.
    Changes,
    /// No set of bundles fits.
    Unsatisfiable,
    /// Nothing failed: a rollout waits for a decision of a user.
    Decision,
    /// The object, package or revision that the command is about does not exist.
    NotFound,
    /// The API server, a policy or a check of Chandler refused the change.
    Refused,
    /// The command received SIGINT or SIGTERM.
    Interrupted,
    /// The reader of standard output closed the pipe. That is not an error.
    Closed,
}

/// The exit codes in the help: the code, and what it means.
pub const EXIT_CODES: [(u8, &str); 10] = [
    (0, "success (`dev`, `install`, `upgrade` and `status`: the bundle is healthy)"),
    (1, "failure, or the bundle is not healthy"),
    (2, "wrong usage"),
    (3, "a timeout expired"),
    (4, "something would change (`diff`, `catalog diff`, `preflight`)"),
    (5, "no set of bundles fits (`resolve`, `install` from a catalog)"),
    (6, "nothing failed, and a change waits for a decision: approval, or `chandler resume`"),
    (7, "the object, package or revision that the command is about does not exist"),
    (8, "refused, and nothing was written: by permissions or a policy of the cluster, or by a check"),
    (130, "interrupted by SIGINT or SIGTERM"),
];

impl FailureKind {
    /// The exit code.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Closed => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Timeout => 3,
            Self::Changes => 4,
            Self::Unsatisfiable => 5,
            Self::Decision => 6,
            Self::NotFound => 7,
            Self::Refused => 8,
            Self::Interrupted => 130,
        }
    }

    /// The kind of a request that the API server answered with this error.
    pub fn of_status(status: &Status) -> Self {
        let is_denied = status.message.contains("denied request") || status.message.contains("denied the request");
        match status.code {
            // A policy answers with 422 unless it names another code, and a webhook with 400.
            403 => Self::Refused,
            400 | 422 if is_denied => Self::Refused,
            404 if !api_error::is_unserved(status) => Self::NotFound,
            _ => Self::Failed,
        }
    }

    /// The kind of a rollout that ended with this reason. Refused are rollouts that a check stops before the first write, and that another
    /// permission, another owner, an approval or the user's decision would let through.
    pub fn of_reason(reason: Reason) -> Self {
        match reason {
            Reason::CRDCheckLimitExceeded
            | Reason::CustomResourcesExist
            | Reason::Forbidden
            | Reason::ImmutableField
            | Reason::NoMatchingSignature
            | Reason::ObjectCollision
            | Reason::ObjectRefused
            | Reason::PermissionsMissing
            | Reason::PreflightFailed
            | Reason::ReservedObjects
            | Reason::ServiceAccountNotGranted
            | Reason::ServiceAccountRequired
            | Reason::TargetChanged
            | Reason::TargetNotAllowed
            | Reason::UnsafeCRDUpgrade => Self::Refused,
            _ => Self::Failed,
        }
    }
}

/// The exit codes as lines of the help.
pub fn exit_codes() -> String {
    let lines = EXIT_CODES.iter().map(|(code, meaning)| format!("  {code:<4} {meaning}"));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_code_of_its_own_that_the_help_explains() {
        let kinds = [
            (FailureKind::Closed, 0),
            (FailureKind::Failed, 1),
            (FailureKind::Usage, 2),
            (FailureKind::Timeout, 3),
            (FailureKind::Changes, 4),
            (FailureKind::Unsatisfiable, 5),
            (FailureKind::Decision, 6),
            (FailureKind::NotFound, 7),
            (FailureKind::Refused, 8),
            (FailureKind::Interrupted, 130),
        ];
        assert_eq!(kinds.map(|(kind, _)| kind.exit_code()), kinds.map(|(_, code)| code));
        assert_eq!(kinds.map(|(_, code)| code), EXIT_CODES.map(|(code, _)| code));
    }

    #[test]
    fn answers_of_the_api_server_are_missing_objects_refusals_or_failures() {
        let found = |message: &str, code: u16| FailureKind::of_status(&Status::failure(message, "").with_code(code));
        for (message, code, kind) in [
            ("bundledeployments.core.rukpak.io \"x\" not found", 404, FailureKind::NotFound),
            ("namespaces \"x\" not found", 404, FailureKind::NotFound),
            ("404 page not found", 404, FailureKind::Failed),
            ("the server could not find the requested resource", 404, FailureKind::Failed),
            ("User \"a\" cannot create resource", 403, FailureKind::Refused),
            ("is forbidden: exceeded quota", 403, FailureKind::Refused),
            (
                "x is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
                422,
                FailureKind::Refused,
            ),
            ("admission webhook \"w\" denied the request: no", 400, FailureKind::Refused),
            ("spec.source: Required value", 422, FailureKind::Failed),
            ("the object has been modified", 409, FailureKind::Failed),
            ("Unauthorized", 401, FailureKind::Failed),
            ("etcdserver: request timed out", 500, FailureKind::Failed),
        ] {
            assert_eq!(found(message, code), kind, "{code} {message}");
        }
    }

    #[test]
    fn rollouts_that_a_check_stops_are_refused() {
        let refused: Vec<&str> = Reason::ALL
            .iter()
            .filter(|reason| FailureKind::of_reason(**reason) == FailureKind::Refused)
            .map(|reason| reason.as_str())
            .collect();
        insta::assert_snapshot!(refused.join(" "));
        for reason in [Reason::ProgressDeadlineExceeded, Reason::InvalidConfiguration, Reason::UnpackFailed] {
            assert_eq!(FailureKind::of_reason(reason), FailureKind::Failed);
        }
    }
}
