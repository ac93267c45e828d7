use super::*;
use crate::pure::existing_owner::{Collision, ExistingOwner};

#[test]
fn only_what_a_user_may_add_is_awaited() {
    let denied = r#"configmaps is forbidden: User "system:serviceaccount:n:a" cannot list resource "configmaps" in API group "" in the namespace "n""#;
    let quota = r#"pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"#;
    let request =
        |message: &str| RolloutError::Request { action: "list".into(), error: ApiError::Forbidden(message.to_owned()) };
    let account = Account { namespace: "n".into(), name: "a".into() };
    for (error, awaits) in [
        (request(denied), true),
        (request(quota), false),
        (RolloutError::NamespacesNotFound(vec!["n".into()]), true),
        (RolloutError::ServiceAccountNotFound(account), true),
        (RolloutError::UnknownKinds(Vec::new()), false),
        (RolloutError::Cancelled, false),
    ] {
        assert_eq!(error.needs_grant(), awaits, "{error}");
    }
}

#[test]
fn an_answer_is_unavailable_only_if_a_retry_may_succeed() {
    let invalid = |message: &str| ApiError::Invalid(message.to_owned());
    let unavailable = |message: &str| ApiError::Unavailable(message.to_owned());
    let not_typed = "failed to create typed patch object (n/a; /v1, Kind=ConfigMap): .a: field not declared in schema";
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
        let status = Status { code, reason: reason.to_owned(), message: message.to_owned(), ..Status::failure("", "") };
        assert_eq!(ApiError::of_status(&status), want, "{code} {reason} {message}");
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: Some("n".into()),
        name: name.into(),
    }
}

fn failed(errors: &[ApiError]) -> RolloutError {
    let failure = |error: &ApiError| object_failure(&key("x"), "create")(error.clone());
    RolloutError::Objects(errors.iter().map(failure).collect())
}

#[test]
fn what_an_error_means_for_the_reconcile() {
    let request = |error| RolloutError::Request { action: "read".into(), error };
    let ledger = |transient| RolloutError::Ledger(LedgerError { message: "full".into(), transient });
    let crd = |error| RolloutError::from(error);
    let conflict = ApiError::Conflict("no".into());
    let forbidden = ApiError::Forbidden("no".into());
    let invalid = ApiError::Invalid("no".into());
    let refused = ApiError::Refused("no".into());
    let unavailable = ApiError::Unavailable("no".into());
    let both = [forbidden.clone(), unavailable.clone()];
    let name = || "a".to_owned();
    // The reason, and whether the error is transient, a refusal, a missing permission and a missing requirement.
    for (error, want) in [
        (failed(&[conflict.clone(), unavailable.clone()]), (Reason::Retrying, true, false, false, false)),
        (failed(&[invalid.clone(), unavailable.clone()]), (Reason::ObjectRefused, false, false, false, false)),
        (failed(&[invalid.clone(), invalid.clone()]), (Reason::ObjectRefused, false, true, false, false)),
        (failed(&both), (Reason::Forbidden, false, false, true, false)),
        (request(conflict), (Reason::Retrying, true, false, false, false)),
        (request(forbidden), (Reason::Forbidden, false, false, true, false)),
        (request(refused), (Reason::ObjectRefused, false, false, false, false)),
        (ledger(true), (Reason::Retrying, true, true, false, false)),
        (ledger(false), (Reason::RecordUnavailable, false, true, false, false)),
        (RolloutError::Cancelled, (Reason::Retrying, true, false, false, false)),
        (crd(CheckError::Cancelled { crd: name() }), (Reason::Retrying, true, false, false, false)),
        (RolloutError::OwnerGone(name()), (Reason::Deleting, false, false, false, false)),
        (RolloutError::UnknownKinds(vec![]), (Reason::RequiredResourceNotFound, false, true, false, true)),
        (RolloutError::NamespacesNotFound(vec![]), (Reason::InstallNamespaceNotFound, false, true, false, true)),
    ] {
        let found = (
            error.reason(),
            error.is_transient(),
            error.is_refusal(),
            error.is_forbidden(),
            error.is_missing_requirement(),
        );
        assert_eq!(found, want, "{error:?}");
    }
}

#[test]
fn an_error_concerns_the_objects_that_it_names() {
    let (x, y) = (key("x"), key("y"));
    let elsewhere = ObjectKey { namespace: Some("m".into()), ..key("x") };
    let collision = Collision { object: key("x"), existing_owner: ExistingOwner::Unknown };
    let collisions = Collisions { owner_kind: "K".into(), owner: "a".into(), found: vec![collision], lost: false };
    for error in [
        failed(&[ApiError::Invalid("no".into())]),
        RolloutError::ComparisonTooLarge(Box::new(ComparisonTooLarge { object: key("x"), limit: 1 })),
        RolloutError::Collisions(collisions),
        RolloutError::UnknownKinds(vec![("v1".into(), "ConfigMap".into(), key("x"))]),
    ] {
        assert!(error.concerns(&x) && !error.concerns(&y), "{error:?}");
    }
    let missing = RolloutError::NamespacesNotFound(vec!["n".into()]);
    assert!(missing.concerns(&x) && missing.concerns(&y) && !missing.concerns(&elsewhere));
    assert!(!missing.concerns(&ObjectKey { namespace: None, ..key("x") }));
    assert!(!RolloutError::Cancelled.concerns(&x));
}

#[test]
fn a_message_lists_ten_items_and_counts_the_others() {
    let listed = |count: usize| list(&(0..count).collect::<Vec<_>>(), |number| format!("item {number}"));
    assert_eq!(listed(2), "item 0\nitem 1");
    assert_eq!(listed(10).lines().last(), Some("item 9"));
    assert_eq!(listed(13).lines().skip(9).collect::<Vec<_>>(), ["item 9", "and 3 more"]);
}

#[test]
fn a_message_names_every_cause_once() {
    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Cause {
        text: &'static str,
        source: Option<Box<Cause>>,
    }
    let cause = |text, source: Option<Cause>| Cause { text, source: source.map(Box::new) };
    let chain = cause("sending failed", Some(cause("connection refused", Some(cause("refused", None)))));
    assert_eq!(
        ApiError::from(kube::Error::Service(Box::new(chain))),
        ApiError::Unavailable("ServiceError: sending failed: connection refused".to_owned())
    );
}
