//! Events on transitions: one for each aspect that changed, none while nothing does.

use std::{
    collections::BTreeSet,
    fmt::Debug,
    sync::{Mutex, PoisonError},
};

use chandler_api::{BundleWarning, ConditionType, Reason, Revision, find_condition};
use chandler_core::{ObjectKey, text::printable};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

/// The aspects whose transitions are worth an Event. `Ready` only repeats one of them.
const REPORTED: &[ConditionType] = &[
    ConditionType::Unpacked,
    ConditionType::Installed,
    ConditionType::Healthy,
    ConditionType::Progressing,
    ConditionType::Drifted,
    ConditionType::Compiled,
    ConditionType::Resolved,
    ConditionType::Compatible,
];

/// Bytes of an Event's note that the API server accepts (`events.k8s.io/v1`, at most 1 KiB).
const NOTE_BYTES: usize = 1000;

/// How many Events one recorder publishes.
const EVENTS_PER_RECORDER: u32 = 1000;

/// Publishes Events. A recorder of kube keeps every Event of the last six minutes, to count the ones that recur, and looks at all
/// of them whenever it publishes one. Where thousands of BundleDeployments change, that takes hundreds of MiB and most of the time,
/// so a recorder is replaced after a while; what recurs afterwards is an Event of its own.
pub(crate) struct Events {
    make: Box<dyn Fn() -> Recorder + Send + Sync>,
    current: Mutex<Current>,
}

struct Current {
    recorder: Recorder,
    published: u32,
}

impl Events {
    /// Publishes by this client in the name of this reporter.
    pub(crate) fn new(client: Client, reporter: Reporter) -> Self {
        Self::made_by(move || Recorder::new(client.clone(), reporter.clone()))
    }

    fn made_by(make: impl Fn() -> Recorder + Send + Sync + 'static) -> Self {
        let current = Mutex::new(Current { recorder: make(), published: 0 });
        Self { make: Box::new(make), current }
    }

    /// The recorder of the next Event.
    fn recorder(&self) -> Recorder {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.published == EVENTS_PER_RECORDER {
            *current = Current { recorder: (self.make)(), published: 0 };
        }
        current.published += 1;
        current.recorder.clone()
    }
}

/// Publishes an Event for each transition between two states.
pub(crate) async fn publish<K>(events: &Events, object: &K, old: &[Condition], new: &[Condition])
where
    K: Resource<DynamicType = ()> + Debug,
{
    for condition in transitions(old, new) {
        let type_ = if is_trouble(condition) { EventType::Warning } else { EventType::Normal };
        send(events, object, type_, cause(condition, new), &condition.type_, &condition.message).await;
    }
}

/// The reason of an Event about a condition: that of `Progressing` where it has the same message, since it names the cause
/// (`InvalidContent`) and the condition its consequence (`UpgradeFailed`).
fn cause<'a>(condition: &'a Condition, all: &'a [Condition]) -> &'a str {
    let progressing = find_condition(all, ConditionType::Progressing);
    let same = progressing.filter(|progressing| progressing.message == condition.message);
    &same.unwrap_or(condition).reason
}

/// Publishes one Event about something that was done, where there is anything to say of it.
pub(crate) async fn publish_done<K>(events: &Events, object: &K, reason: &str, action: &str, lines: &[String])
where
    K: Resource<DynamicType = ()> + Debug,
{
    if !lines.is_empty() {
        send(events, object, EventType::Normal, reason, action, &lines.join("\n")).await;
    }
}

/// Publishes one Event where a revision was begun by an approval that was not known before.
pub(crate) async fn publish_approval<K>(events: &Events, object: &K, old: &[Revision], new: &[Revision])
where
    K: Resource<DynamicType = ()> + Debug,
{
    if let Some(approval) = approved(old, new) {
        send(events, object, EventType::Normal, "Approved", "Approve", &approval).await;
    }
}

/// Publishes one Event where there are warnings about a bundle that were not there before.
pub(crate) async fn publish_warnings<K>(
    events: &Events,
    object: &K,
    reason: &str,
    old: &[BundleWarning],
    new: &[BundleWarning],
) where
    K: Resource<DynamicType = ()> + Debug,
{
    if let Some(warnings) = warned(old, new) {
        send(events, object, EventType::Warning, reason, "Render", &warnings).await;
    }
}

/// Publishes one Event where objects of others were taken over.
pub(crate) async fn publish_adoption<K>(events: &Events, object: &K, adopted: &[ObjectKey])
where
    K: Resource<DynamicType = ()> + Debug,
{
    if let Some(adoption) = told_adoption(adopted) {
        send(events, object, EventType::Normal, "Adopted", "Adopt", &adoption).await;
    }
}

/// Publishes one Event. A failure is logged: Events are a courtesy.
async fn send<K>(events: &Events, object: &K, type_: EventType, reason: &str, action: &str, message: &str)
where
    K: Resource<DynamicType = ()> + Debug,
{
    let event = Event {
        type_,
        reason: reason.to_owned(),
        note: Some(note(message)),
        action: action.to_owned(),
        secondary: None,
    };
    if let Err(error) = events.recorder().publish(&event, &object.object_ref(&())).await {
        tracing::debug!(%error, "failed to publish an Event");
    }
}

/// How many objects that were taken over are named.
const NAMED: usize = 10;

fn told_adoption(adopted: &[ObjectKey]) -> Option<String> {
    let mut lines: Vec<String> = adopted.iter().take(NAMED).map(ToString::to_string).collect();
    if adopted.len() > NAMED {
        lines.push(format!("and {} more", adopted.len() - NAMED));
    }
    (!lines.is_empty()).then(|| format!("took over objects that Chandler did not make:\n{}", lines.join("\n")))
}

/// Who approved the newest revision, where that is news.
fn approved(old: &[Revision], new: &[Revision]) -> Option<String> {
    let current = new.last()?;
    let approval = current.approval.as_ref()?;
    let known = old.iter().any(|old| old.number == current.number && old.approval.as_ref() == Some(approval));
    (!known).then(|| format!("{} approved revision {}: {}", approval.approved_by, current.number, approval.change))
}

/// The warnings that are new, one per line.
fn warned(old: &[BundleWarning], new: &[BundleWarning]) -> Option<String> {
    let news: Vec<&str> =
        new.iter().filter(|warning| !old.contains(warning)).map(|warning| warning.message.as_str()).collect();
    (!news.is_empty()).then(|| news.join("\n"))
}

/// The reported conditions whose status or reason is another than before.
fn transitions<'a>(old: &[Condition], new: &'a [Condition]) -> Vec<&'a Condition> {
    let is_news = |condition: &&Condition| {
        let before = old.iter().find(|old| old.type_ == condition.type_);
        let changed = before.is_none_or(|old| old.status != condition.status || old.reason != condition.reason);
        // That nothing drifts is news only after something did.
        let idle =
            condition.type_ == ConditionType::Drifted.as_str() && condition.status == "False" && before.is_none();
        let reported = REPORTED.iter().any(|reported| reported.as_str() == condition.type_);
        reported && changed && !idle
    };
    // One cause shows in several aspects with one message; one Event says it.
    let mut messages = BTreeSet::new();
    new.iter().filter(is_news).filter(|condition| messages.insert(&condition.message)).collect()
}

fn is_trouble(condition: &Condition) -> bool {
    let benign = [
        Reason::Succeeded,
        Reason::Suspended,
        Reason::ApprovalRequired,
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
    // That objects are not healthy while a rollout goes on is no news.
    condition.status == "False"
        && condition.reason != Reason::Installing.as_str()
        && condition.reason != Reason::Unhealthy.as_str()
}

fn note(message: &str) -> String {
    let message = printable(message);
    let mut end = message.len().min(NOTE_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default().to_owned()
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

    #[tokio::test]
    async fn a_recorder_is_replaced_before_it_remembers_too_much() {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::try_from(config).unwrap();
        let made = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let count = std::sync::Arc::clone(&made);
        let events = Events::made_by(move || {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Recorder::new(client.clone(), "test".into())
        });
        for (published, recorders) in [(EVENTS_PER_RECORDER, 1), (1, 2), (EVENTS_PER_RECORDER, 3)] {
            for _ in 0..published {
                let _ = events.recorder();
            }
            assert_eq!(made.load(std::sync::atomic::Ordering::Relaxed), recorders);
        }
    }

    #[test]
    fn only_transitions_are_reported_and_each_message_once() {
        let old = [condition("Installed", "True", "InstallationSucceeded", "a")];
        let new = [
            condition("Installed", "False", "UpgradeFailed", "broken"),
            condition("Healthy", "False", "InstallationStatusFalse", "not installed"),
            condition("Progressing", "False", "InvalidContent", "broken"),
            condition("Ready", "False", "InvalidContent", "broken"),
        ];
        let reported: Vec<&str> = transitions(&old, &new).iter().map(|condition| cause(condition, &new)).collect();
        assert_eq!(reported, ["InvalidContent", "InstallationStatusFalse"], "the cause, not its consequence");
        assert!(transitions(&new, &new).is_empty());
        let still = [condition("Drifted", "False", "AsReleased", "all is well")];
        assert!(transitions(&[], &still).is_empty());
        let drifted = [condition("Drifted", "True", "DriftReported", "x was set")];
        assert_eq!((transitions(&drifted, &still).len(), transitions(&still, &drifted).len()), (1, 1));
        assert!(is_trouble(&drifted[0]) && !is_trouble(&still[0]));
        assert!(is_trouble(&new[0]) && is_trouble(&new[1]) && !is_trouble(&old[0]));
    }

    #[test]
    fn only_new_warnings_are_told() {
        let warning = |message: &str| BundleWarning { code: "Odd".into(), message: message.into() };
        let (a, b) = (warning("a"), warning("b"));
        assert_eq!(warned(&[], &[]), None);
        assert_eq!(warned(&[], &[a.clone(), b.clone()]).as_deref(), Some("a\nb"));
        assert_eq!(warned(std::slice::from_ref(&a), &[a.clone(), b]).as_deref(), Some("b"));
        assert_eq!(warned(std::slice::from_ref(&a), std::slice::from_ref(&a)), None);
    }

    #[test]
    fn what_was_taken_over_is_named() {
        let object = |number: usize| ObjectKey {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("n".into()),
            name: format!("x{number}"),
        };
        assert_eq!(told_adoption(&[]), None);
        let told = told_adoption(&(0..12).map(object).collect::<Vec<_>>()).unwrap();
        assert!(told.starts_with("took over objects that Chandler did not make:\nConfigMap n/x0\n"), "{told}");
        assert!(told.ends_with("\nConfigMap n/x9\nand 2 more"), "{told}");
    }

    #[test]
    fn an_approval_is_told_once() {
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

    #[test]
    fn a_note_is_cut_between_characters() {
        let note = note(&"ä".repeat(600));
        assert_eq!(note.chars().count(), NOTE_BYTES / 2);
    }
}
