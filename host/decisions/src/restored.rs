//! A BundleDeployment that was restored from a backup: how long it waits for its objects. Pure.
//!
//! A tool that restores a backup creates one object after the other, and BundleDeployments before most of what they installed. An object that
//! the controller creates meanwhile is not restored: it lacks all that other clients had written into it.

use std::time::Duration;

use chandler_api::{BundleDeployment, Reason, names::REQUESTED_AT_ANNOTATION};
use chandler_core::ObjectKey;
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
    jiff::{Timestamp, Unit},
};
use kube_core::ResourceExt as _;

use crate::intent::has_finalizer;

/// The number of objects that a message lists.
const LISTED: usize = 5;

/// What the names of the field managers begin with under which the controller applies.
const FIELD_MANAGERS: &str = "chandler";

/// When a restored BundleDeployment stops waiting: this long after the restore created it. `None` if it has waited that long, or if a user
/// has requested a reconcile since.
pub fn waits_until(deployment: &BundleDeployment, longest: Duration, now: Timestamp) -> Option<Timestamp> {
    let created = deployment.creation_timestamp()?.0;
    let requested = deployment.annotations().get(REQUESTED_AT_ANNOTATION);
    let requested = requested.and_then(|text| text.parse::<Timestamp>().ok());
    if requested.is_some_and(|requested| requested >= created) {
        return None;
    }
    created.checked_add(longest).ok().filter(|end| *end > now)
}

/// Whether a BundleDeployment without a record may have been restored before its record was: it has the finalizer, which the controller
/// writes just before the record, and no status but one that says so.
pub fn lacks_record(deployment: &BundleDeployment) -> bool {
    has_finalizer(deployment)
        && deployment.status.as_ref().is_none_or(|status| {
            let mut reasons = status.conditions.iter().map(|condition| &condition.reason);
            status.history.is_empty()
                && (status.conditions.is_empty() || reasons.any(|reason| reason == Reason::RestoreIncomplete.as_str()))
        })
}

/// Whether the controller has written the object since it was created, other than its status. It has not if the object was restored with the
/// finalizer; it has if it was interrupted before it wrote the record.
pub fn was_written_since(metadata: &ObjectMeta) -> bool {
    let Some(created) = &metadata.creation_timestamp else { return false };
    metadata.managed_fields.iter().flatten().any(|entry| {
        entry.manager.as_deref().is_some_and(|manager| manager.starts_with(FIELD_MANAGERS))
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.is_none()
            && entry.time.as_ref().is_some_and(|time| time.0 >= created.0)
    })
}

/// What a restored BundleDeployment waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Its record, which lists what it installed.
    Record,
    /// These of its objects.
    Objects(Vec<ObjectKey>),
    /// That its objects can be read: this error says why not.
    Permissions(String),
}

/// The message about a wait that ends then.
pub fn message(name: &str, awaited: &Awaited, until: Timestamp) -> String {
    let what = match awaited {
        Awaited::Record => "its record does not exist yet".to_owned(),
        Awaited::Permissions(error) => format!("its objects cannot be read yet: {error}"),
        Awaited::Objects(missing) => {
            let listed: Vec<String> = missing.iter().take(LISTED).map(ToString::to_string).collect();
            let more = missing.len().saturating_sub(LISTED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            format!("these of its objects do not exist yet: {}{more}", listed.join(", "))
        }
    };
    let until = until.round(Unit::Second).unwrap_or(until);
    format!(
        "it was restored from a backup, and {what}; the controller creates what is still missing at {until}, or at once after \
         `chandler reconcile {name}`"
    )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ManagedFieldsEntry, Time};

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn restored(requested: Option<&str>) -> BundleDeployment {
        let mut deployment = BundleDeployment::new("a", chandler_api::BundleDeploymentSpec::default());
        deployment.metadata.creation_timestamp = Some(Time(at("2026-01-01T10:00:00Z")));
        let requested = requested.map(|text| (REQUESTED_AT_ANNOTATION.to_owned(), text.to_owned()));
        deployment.annotations_mut().extend(requested);
        deployment
    }

    #[test]
    fn the_wait_ends_after_a_while_or_with_a_request() {
        let waits = |requested, now| waits_until(&restored(requested), Duration::from_mins(10), at(now));
        let end = Some(at("2026-01-01T10:10:00Z"));
        assert_eq!(waits(None, "2026-01-01T10:04:00Z"), end);
        assert_eq!(waits(None, "2026-01-01T09:59:00Z"), end, "clocks differ");
        assert_eq!(waits(None, "2026-01-01T10:10:00Z"), None);
        // The backup has an earlier request.
        assert_eq!(waits(Some("2025-12-01T10:00:00Z"), "2026-01-01T10:04:00Z"), end);
        assert_eq!(waits(Some("never"), "2026-01-01T10:04:00Z"), end);
        assert_eq!(waits(Some("2026-01-01T10:01:00Z"), "2026-01-01T10:04:00Z"), None);
    }

    #[test]
    fn a_restored_object_was_not_written_since() {
        let was_written = |manager: &str, operation: &str, time: &str, subresource: Option<&str>| {
            let mut metadata = restored(None).metadata;
            metadata.managed_fields = Some(vec![ManagedFieldsEntry {
                manager: Some(manager.to_owned()),
                operation: Some(operation.to_owned()),
                time: Some(Time(at(time))),
                subresource: subresource.map(str::to_owned),
                ..ManagedFieldsEntry::default()
            }]);
            was_written_since(&metadata)
        };
        let now = "2026-01-01T10:00:00Z";
        assert!(was_written("chandler", "Apply", now, None), "interrupted in the second of its creation");
        assert!(!was_written("chandler", "Apply", "2025-12-01T10:00:00Z", None), "some tools restore managed fields");
        assert!(!was_written("velero-server", "Update", now, None));
        assert!(!was_written("chandler-install", "Update", now, None), "a command of a user");
        assert!(!was_written("chandler", "Apply", now, Some("status")), "it reports that it waits");
        assert!(!was_written_since(&restored(None).metadata));
    }

    #[test]
    fn only_an_object_with_the_finalizer_and_without_a_history_may_lack_its_record() {
        let mut deployment = restored(None);
        assert!(!lacks_record(&deployment), "it is new");
        deployment.finalizers_mut().push(chandler_api::names::TEARDOWN_FINALIZER.to_owned());
        assert!(lacks_record(&deployment));
        let ready = |reason: &str| Condition {
            type_: "Ready".into(),
            status: "False".into(),
            reason: reason.into(),
            message: String::new(),
            last_transition_time: Time(at("2026-01-01T10:00:00Z")),
            observed_generation: None,
        };
        let status = |conditions| chandler_api::BundleDeploymentStatus { conditions, ..Default::default() };
        deployment.status = Some(status(vec![]));
        assert!(lacks_record(&deployment), "the schema has a default");
        deployment.status = Some(status(vec![ready("Unpacking")]));
        assert!(!lacks_record(&deployment), "the controller has seen it");
        deployment.status = Some(status(vec![ready("RestoreIncomplete")]));
        assert!(lacks_record(&deployment));
        deployment.status.as_mut().unwrap().history.push(chandler_api::Revision::default());
        assert!(!lacks_record(&deployment));
    }

    #[test]
    fn a_message_says_what_is_awaited_and_for_how_long() {
        let key = |number: usize| ObjectKey {
            group: "apps".into(),
            version: "v1".into(),
            kind: "Deployment".into(),
            namespace: Some("shop".into()),
            name: format!("x{number}"),
        };
        let messages = [
            Awaited::Record,
            Awaited::Permissions("deployments.apps is forbidden".into()),
            Awaited::Objects(vec![key(0)]),
            Awaited::Objects((0..7).map(key).collect()),
        ];
        let messages = messages.map(|awaited| message("harbour", &awaited, at("2026-01-01T10:10:00.4Z")));
        insta::assert_snapshot!(messages.join("\n"), @r"
        it was restored from a backup, and its record does not exist yet; the controller creates what is still missing at 2026-01-01T10:10:00Z, or at once after `chandler reconcile harbour`
        it was restored from a backup, and its objects cannot be read yet: deployments.apps is forbidden; the controller creates what is still missing at 2026-01-01T10:10:00Z, or at once after `chandler reconcile harbour`
        it was restored from a backup, and these of its objects do not exist yet: Deployment.apps shop/x0; the controller creates what is still missing at 2026-01-01T10:10:00Z, or at once after `chandler reconcile harbour`
        it was restored from a backup, and these of its objects do not exist yet: Deployment.apps shop/x0, Deployment.apps shop/x1, Deployment.apps shop/x2, Deployment.apps shop/x3, Deployment.apps shop/x4 and 2 more; the controller creates what is still missing at 2026-01-01T10:10:00Z, or at once after `chandler reconcile harbour`
        ");
    }
}
