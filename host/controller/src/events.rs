//! The Events of status changes: one for each problem, and one for everything else that a status write reports.

use std::fmt::Debug;

use chandler_api::{BundleWarning, ConditionType, Reason, Revision, find_condition};
use chandler_core::ObjectKey;
use chandler_runtime::{
    Events, Notice,
    events::{EventType, transitions},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;

/// The conditions whose transitions have an Event. `Ready` is not among them: it repeats another condition.
const REPORTED: &[ConditionType] = &[
    ConditionType::Unpacked,
    ConditionType::Installed,
    ConditionType::Healthy,
    ConditionType::Progressing,
    ConditionType::Drifted,
    ConditionType::Compiled,
    ConditionType::Resolved,
    ConditionType::Compatible,
    ConditionType::Valid,
];

/// Publishes the transitions of the conditions from the stored ones, if any: a warning for each cause, and one Event for all successes.
pub(crate) async fn publish<K>(events: &Events, object: &K, stored: Option<&[Condition]>, new: &[Condition])
where
    K: Resource<DynamicType = ()> + Debug + 'static,
{
    publish_of(REPORTED, events, object, stored, new).await;
}

/// Like [`publish`], for a kind whose only condition of its own is `Ready`.
pub(crate) async fn publish_ready<K>(events: &Events, object: &K, stored: Option<&[Condition]>, new: &[Condition])
where
    K: Resource<DynamicType = ()> + Debug + 'static,
{
    publish_of(&[ConditionType::Ready], events, object, stored, new).await;
}

async fn publish_of<K>(
    reported: &[ConditionType],
    events: &Events,
    object: &K,
    stored: Option<&[Condition]>,
    new: &[Condition],
) where
    K: Resource<DynamicType = ()> + Debug + 'static,
{
    for TransitionEvent { type_, reason, action, message } in of_transitions(reported, stored.unwrap_or_default(), new)
    {
        events.publish(object, Notice { type_, reason, action, message: &message }).await;
    }
}

/// Whether a transition between these conditions is a problem.
pub(crate) fn has_problem(old: &[Condition], new: &[Condition]) -> bool {
    of_transitions(REPORTED, old, new).iter().any(|event| matches!(event.type_, EventType::Warning))
}

/// What the new conditions are compared with if no Event is about the announced ones, so that one Event is about all that happened since
/// `before`: each condition as it was announced if it has changed since, and as it was before if not.
pub(crate) fn since(before: &[Condition], announced: &[Condition], new: &[Condition]) -> Vec<Condition> {
    let of = |conditions: &[Condition], type_: &str| conditions.iter().find(|it| it.type_ == type_).cloned();
    let last = |new: &Condition| {
        let changed = |it: &Condition| it.status != new.status || it.reason != new.reason;
        of(announced, &new.type_).filter(changed).or_else(|| of(before, &new.type_))
    };
    new.iter().filter_map(last).collect()
}

/// The Event about one or more transitions.
#[derive(Debug, PartialEq)]
struct TransitionEvent<'a> {
    type_: EventType,
    reason: &'a str,
    action: &'a str,
    message: String,
}

/// The conditions whose transition gives an Event about several its name, the first one before the others.
const NAMING: &[ConditionType] = &[ConditionType::Installed, ConditionType::Progressing, ConditionType::Healthy];

fn of_transitions<'a>(reported: &[ConditionType], old: &[Condition], new: &'a [Condition]) -> Vec<TransitionEvent<'a>> {
    let transitions = transitions(old, new, |before, condition| classify(reported, before, condition));
    let (warnings, mut normal): (Vec<_>, Vec<_>) =
        transitions.into_iter().partition(|(type_, _)| matches!(type_, EventType::Warning));
    let event = |type_, condition: &'a Condition, message: String| {
        let (reason, action) = (cause(condition, new), condition.type_.as_str());
        TransitionEvent { type_, reason, action, message }
    };
    let mut events: Vec<_> =
        warnings.into_iter().map(|(type_, condition)| event(type_, condition, condition.message.clone())).collect();
    let rank = |condition: &Condition| {
        NAMING.iter().position(|naming| naming.as_str() == condition.type_).unwrap_or(NAMING.len())
    };
    normal.sort_by_key(|(_, condition)| rank(condition));
    if let Some((_, first)) = normal.first() {
        let lines: Vec<&str> = normal.iter().map(|(_, condition)| condition.message.as_str()).collect();
        events.push(event(EventType::Normal, first, lines.join("\n")));
    }
    events
}

/// The reason of an Event about a condition: the reason of `Progressing` if it has the same message, since it names the cause
/// (`InvalidContent`) and the condition its consequence (`UpgradeFailed`).
fn cause<'a>(condition: &'a Condition, all: &'a [Condition]) -> &'a str {
    let progressing = find_condition(all, ConditionType::Progressing);
    let same = progressing.filter(|progressing| progressing.message == condition.message);
    &same.unwrap_or(condition).reason
}

/// Publishes one Event about an action, if `lines` describes any.
pub(crate) async fn publish_done<K>(events: &Events, object: &K, reason: &str, action: &str, lines: &[String])
where
    K: Resource<DynamicType = ()> + Debug + 'static,
{
    if !lines.is_empty() {
        let message = &lines.join("\n");
        events.publish(object, Notice { type_: EventType::Normal, reason, action, message }).await;
    }
}

/// Publishes one warning if CRDs were created again that another client had deleted: nothing else says that data may be lost.
pub(crate) async fn publish_recreated_crds<K>(events: &Events, object: &K, recreated: &[&ObjectKey])
where
    K: Resource<DynamicType = ()> + Debug + 'static,
{
    if let Some(message) = &recreation(recreated) {
        let notice = Notice { type_: EventType::Warning, reason: "CRDRecreated", action: "Repair", message };
        events.publish(object, notice).await;
    }
}

fn recreation(recreated: &[&ObjectKey]) -> Option<String> {
    let mut names: Vec<&str> = recreated.iter().take(NAMED).map(|key| key.name.as_str()).collect();
    let more = format!("and {} more", recreated.len().saturating_sub(NAMED));
    if recreated.len() > NAMED {
        names.push(&more);
    }
    (!names.is_empty()).then(|| {
        format!(
            "another client deleted these CRDs, which deletes all their custom resources, and Chandler created the CRDs again; it cannot \
             restore the custom resources, a backup can:\n{}",
            names.join("\n")
        )
    })
}

/// Publishes one Event if the newest revision was approved.
pub(crate) async fn publish_approval<K>(events: &Events, object: &K, old: &[Revision], new: &[Revision])
where
    K: Resource<DynamicType = ()> + Debug + 'static,
{
    if let Some(message) = &approved(old, new) {
        let notice = Notice { type_: EventType::Normal, reason: "Approved", action: "Approve", message };
        events.publish(object, notice).await;
    }
}

/// Publishes one Event if there are new warnings about a bundle.
pub(crate) async fn publish_warnings<K>(
    events: &Events,
    object: &K,
    reason: &str,
    old: &[BundleWarning],
    new: &[BundleWarning],
) where
    K: Resource<DynamicType = ()> + Debug + 'static,
{
    if let Some(message) = &new_warnings(old, new) {
        events.publish(object, Notice { type_: EventType::Warning, reason, action: "Render", message }).await;
    }
}

/// Publishes one Event if existing objects were adopted.
pub(crate) async fn publish_adoption<K>(events: &Events, object: &K, adopted: &[ObjectKey])
where
    K: Resource<DynamicType = ()> + Debug + 'static,
{
    if let Some(message) = &adoption(adopted) {
        let notice = Notice { type_: EventType::Normal, reason: "Adopted", action: "Adopt", message };
        events.publish(object, notice).await;
    }
}

/// The number of adopted objects that an Event names.
const NAMED: usize = 10;

fn adoption(adopted: &[ObjectKey]) -> Option<String> {
    let mut lines: Vec<String> = adopted.iter().take(NAMED).map(ToString::to_string).collect();
    if adopted.len() > NAMED {
        lines.push(format!("and {} more", adopted.len() - NAMED));
    }
    (!lines.is_empty()).then(|| format!("adopted objects that Chandler did not create:\n{}", lines.join("\n")))
}

/// The approval of the newest revision, if it is new.
fn approved(old: &[Revision], new: &[Revision]) -> Option<String> {
    let current = new.last()?;
    let approval = current.approval.as_ref()?;
    let known = old.iter().any(|old| old.number == current.number && old.approval.as_ref() == Some(approval));
    (!known).then(|| format!("{} approved revision {}: {}", approval.approved_by, current.number, approval.change))
}

/// The new warnings, one per line.
fn new_warnings(old: &[BundleWarning], new: &[BundleWarning]) -> Option<String> {
    let added: Vec<&str> =
        new.iter().filter(|warning| !old.contains(warning)).map(|warning| warning.message.as_str()).collect();
    (!added.is_empty()).then(|| added.join("\n"))
}

/// The type of the Event for a transition; `None` if it has no Event.
fn classify(reported: &[ConditionType], before: Option<&Condition>, condition: &Condition) -> Option<EventType> {
    let is_reported = reported.iter().any(|reported| reported.as_str() == condition.type_);
    // The absence of drift is an Event only after there was drift.
    let is_initial_sync =
        condition.type_ == ConditionType::Drifted.as_str() && condition.status == "False" && before.is_none();
    let type_ = if is_warning(condition) { EventType::Warning } else { EventType::Normal };
    (is_reported && !is_initial_sync).then_some(type_)
}

fn is_warning(condition: &Condition) -> bool {
    let benign = [
        Reason::Succeeded,
        Reason::Suspended,
        Reason::ApprovalRequired,
        Reason::Unpacking,
        Reason::UploadPending,
        Reason::Installing,
        Reason::RollingOut,
        Reason::Deleting,
    ];
    if condition.type_ == ConditionType::Progressing.as_str() {
        return !benign.iter().any(|reason| reason.as_str() == condition.reason);
    }
    if condition.type_ == ConditionType::Drifted.as_str() {
        return condition.status == "True";
    }
    if condition.type_ == ConditionType::Ready.as_str() && condition.reason == Reason::Suspended.as_str() {
        return false;
    }
    // Objects are expected to be unhealthy during a rollout.
    let expected = [
        Reason::Installing,
        Reason::Unhealthy,
        Reason::Unpacking,
        Reason::UploadPending,
        Reason::UnpackPending,
        Reason::InstallPending,
    ];
    condition.status == "False" && !expected.iter().any(|reason| reason.as_str() == condition.reason)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Condition {
        Condition {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            observed_generation: None,
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn only_transitions_are_published_and_each_message_once() {
        let old = [condition("Installed", "True", "InstallationSucceeded", "a")];
        let new = [
            condition("Installed", "False", "UpgradeFailed", "broken"),
            condition("Healthy", "False", "InstallationStatusFalse", "not installed"),
            condition("Progressing", "False", "InvalidContent", "broken"),
            condition("Ready", "False", "InvalidContent", "broken"),
        ];
        let published = |old: &[Condition], new: &[Condition]| -> Vec<(EventType, String)> {
            of_transitions(REPORTED, old, new).into_iter().map(|event| (event.type_, event.reason.to_owned())).collect()
        };
        let warning = |reason: &str| (EventType::Warning, reason.to_owned());
        assert_eq!(
            published(&old, &new),
            [warning("InvalidContent"), warning("InstallationStatusFalse")],
            "the cause, not its consequence"
        );
        assert!(published(&new, &new).is_empty());
        let still = [condition("Drifted", "False", "AsReleased", "all is well")];
        assert!(published(&[], &still).is_empty());
        let drifted = [condition("Drifted", "True", "DriftReported", "x was set")];
        assert_eq!(published(&drifted, &still), [(EventType::Normal, "AsReleased".to_owned())]);
        assert_eq!(published(&still, &drifted), [warning("DriftReported")]);
        assert_eq!(published(&[], &old), [(EventType::Normal, "InstallationSucceeded".to_owned())]);
    }

    #[test]
    fn fetching_and_awaiting_an_upload_emit_normal_events() {
        for reason in ["Unpacking", "UploadPending"] {
            let new = [
                condition("Unpacked", "False", reason, "waiting"),
                condition("Progressing", "True", reason, "waiting"),
                condition("Ready", "False", reason, "waiting"),
            ];
            let events = of_transitions(REPORTED, &[], &new);
            assert_eq!(events.len(), 1, "{events:?}");
            assert_eq!((events[0].type_, events[0].reason), (EventType::Normal, reason));
            assert!(!has_problem(&[], &new));
        }
    }

    #[test]
    fn an_installation_that_takes_a_while_has_two_events_and_a_quick_one_has_one() {
        let announced = [
            condition("Unpacked", "True", "UnpackSuccessful", "unpacked"),
            condition("Progressing", "True", "RollingOut", "revision 1"),
            condition("Ready", "False", "RollingOut", "revision 1"),
        ];
        let done = [
            condition("Unpacked", "True", "UnpackSuccessful", "unpacked"),
            condition("Installed", "True", "InstallationSucceeded", "every object is applied"),
            condition("Healthy", "True", "Healthy", "it is healthy"),
            condition("Progressing", "True", "Succeeded", "revision 1 is rolled out"),
            condition("Ready", "True", "Succeeded", "revision 1 is rolled out"),
        ];
        let event = |reason, action, message: &str| TransitionEvent {
            type_: EventType::Normal,
            reason,
            action,
            message: message.to_owned(),
        };
        assert_eq!(
            of_transitions(REPORTED, &[], &announced),
            [event("RollingOut", "Progressing", "revision 1\nunpacked")]
        );
        let message = "every object is applied\nrevision 1 is rolled out\nit is healthy";
        assert_eq!(of_transitions(REPORTED, &announced, &done), [event("InstallationSucceeded", "Installed", message)]);
        let quick = since(&[], &announced, &done);
        let message = format!("{message}\nunpacked");
        assert_eq!(
            of_transitions(REPORTED, &quick, &done),
            [event("InstallationSucceeded", "Installed", &message)],
            "what was announced has no other Event"
        );
        let mut waiting = announced.clone();
        waiting[1].message = "it waits for x".to_owned();
        assert_eq!(
            of_transitions(REPORTED, &since(&[], &announced, &waiting), &waiting),
            [event("RollingOut", "Progressing", "it waits for x\nunpacked")]
        );
    }

    #[test]
    fn an_upgrade_that_ends_as_it_began_has_an_event() {
        let succeeded = |message: &str| [condition("Progressing", "True", "Succeeded", message)];
        let (before, done) = (succeeded("revision 1"), succeeded("revision 2"));
        let announced = [condition("Progressing", "True", "RollingOut", "revision 2")];
        let published = of_transitions(REPORTED, &since(&before, &announced, &done), &done).len();
        assert_eq!((published, of_transitions(REPORTED, &before, &done).len()), (1, 0));
        assert!(!has_problem(&before, &announced));
        assert!(has_problem(&before, &[condition("Progressing", "False", "InvalidContent", "broken")]));
    }

    #[test]
    fn a_kind_with_ready_alone_has_events_of_it() {
        let of = |status: &str, reason: &str| {
            [condition("Ready", status, reason, ""), condition("Stalled", "True", "x", "")]
        };
        let states = [
            (of("False", "TokenNotFound"), EventType::Warning),
            (of("True", "ReceiverReady"), EventType::Normal),
            (of("False", "Suspended"), EventType::Normal),
            (of("False", "InvalidToken"), EventType::Warning),
            (of("False", "InvalidOidc"), EventType::Warning),
        ];
        let mut stored = Vec::new();
        for (new, type_) in states {
            let events = of_transitions(&[ConditionType::Ready], &stored, &new);
            assert_eq!(
                events.iter().map(|it| (it.type_, it.reason)).collect::<Vec<_>>(),
                [(type_, new[0].reason.as_str())]
            );
            assert_eq!(of_transitions(&[ConditionType::Ready], &new, &new), []);
            stored = new.to_vec();
        }
    }

    #[test]
    fn a_problem_has_an_event_of_its_own() {
        let old = [condition("Healthy", "False", "Unhealthy", "a: not ready")];
        let new = [
            condition("Unpacked", "True", "UnpackSuccessful", "unpacked"),
            condition("Healthy", "True", "Healthy", "it is healthy"),
            condition("Progressing", "True", "Forbidden", "may not"),
            condition("Drifted", "True", "DriftReported", "x was set"),
        ];
        let reasons: Vec<_> = of_transitions(REPORTED, &old, &new).iter().map(|event| event.reason).collect();
        assert_eq!(reasons, ["Forbidden", "DriftReported", "Healthy"]);
    }

    #[test]
    fn crds_that_were_created_again_are_named() {
        let key = |name: &str| ObjectKey {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            kind: "CustomResourceDefinition".into(),
            namespace: None,
            name: name.into(),
        };
        assert_eq!(recreation(&[]), None);
        insta::assert_snapshot!(recreation(&[&key("berths.example.com"), &key("ships.example.com")]).unwrap(), @r"
        another client deleted these CRDs, which deletes all their custom resources, and Chandler created the CRDs again; it cannot restore the custom resources, a backup can:
        berths.example.com
        ships.example.com
        ");
    }

    #[test]
    fn only_new_warnings_are_published() {
        let warning = |message: &str| BundleWarning { code: "Odd".into(), message: message.into() };
        let (a, b) = (warning("a"), warning("b"));
        assert_eq!(new_warnings(&[], &[]), None);
        assert_eq!(new_warnings(&[], &[a.clone(), b.clone()]).as_deref(), Some("a\nb"));
        assert_eq!(new_warnings(std::slice::from_ref(&a), &[a.clone(), b]).as_deref(), Some("b"));
        assert_eq!(new_warnings(std::slice::from_ref(&a), std::slice::from_ref(&a)), None);
    }

    #[test]
    fn adopted_objects_are_named() {
        let object = |number: usize| ObjectKey {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("n".into()),
            name: format!("x{number}"),
        };
        assert_eq!(adoption(&[]), None);
        let message = adoption(&(0..12).map(object).collect::<Vec<_>>()).unwrap();
        assert!(message.starts_with("adopted objects that Chandler did not create:\nConfigMap n/x0\n"), "{message}");
        assert!(message.ends_with("\nConfigMap n/x9\nand 2 more"), "{message}");
    }

    #[test]
    fn an_approval_is_published_once() {
        let approval =
            Some(chandler_api::ApprovedChange { change: "sha256:1".into(), approved_by: "alice".into(), terms: None });
        let begun = [Revision { number: 2, ..Revision::default() }];
        let approved_later = [Revision { number: 2, approval: approval.clone(), ..Revision::default() }];
        let next = [approved_later[0].clone(), Revision { number: 3, approval, ..Revision::default() }];
        assert_eq!(approved(&[], &begun), None);
        assert_eq!(approved(&begun, &approved_later).as_deref(), Some("alice approved revision 2: sha256:1"));
        assert_eq!(approved(&approved_later, &approved_later), None);
        assert_eq!(approved(&approved_later, &next).as_deref(), Some("alice approved revision 3: sha256:1"));
    }
}
