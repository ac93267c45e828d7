//! Why an object is unhealthy: the cause in the objects below it, which its own status does not show.
//!
//! A Deployment reports that no replica is available; the Pod reports that its image does not exist. The cause is one sentence
//! fragment such as `ImagePullBackOff: registry.example.com/x:1: not found`. It names no Pod, so that it stays the same while
//! Pods are replaced.
//!
//! The text comes from untrusted objects. It is one bounded line without deceptive characters, credentials in addresses and the output of
//! containers, which may hold secrets.

mod family;
mod image;
mod pod;
mod text;

use serde_json::Value;

use self::{family::Family, text::bounded};
use crate::reader::Reader;

/// What was read about an object.
#[derive(Clone, Debug, Default)]
pub struct Below {
    /// Objects that may be below it: ReplicaSets, Jobs, Pods and PersistentVolumeClaims. Others are ignored.
    pub objects: Vec<Value>,
    /// Events (`v1`) about the object and those below it. Others are ignored.
    pub events: Vec<Value>,
}

/// The maximum number of objects whose Events are worth reading.
pub const ASKED: usize = 4;

/// Whether objects of this kind have objects or Events that may explain their health.
pub fn has_causes(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
            | ("batch", "Job")
            | ("", "ReplicationController" | "Pod" | "PersistentVolumeClaim")
    )
}

/// The cause for an unhealthy object, as a sentence fragment, or `None` if nothing below it explains its health.
pub fn cause(object: &Value, below: &Below) -> Option<String> {
    find(object, &below.objects, &below.events).map(|finding| bounded(&finding.text))
}

/// The objects whose Events would add information: at most [`ASKED`].
pub fn asks<'a>(object: &'a Value, objects: &'a [Value]) -> Vec<&'a Value> {
    if !can_be_explained(Reader(object)) || find(object, objects, &[]).is_some_and(|finding| finding.is_complete) {
        return Vec::new();
    }
    let mut asked = Family::of(object, objects).undecided();
    asked.truncate(ASKED);
    asked
}

/// The names of the claims that a Pod mounts.
pub fn claims_of(pod: &Value) -> impl Iterator<Item = &str> {
    family::claims_of(pod)
}

/// The objects below an object: those that it owns, directly or not, and the claims that its Pods use.
pub fn dependents<'a>(object: &'a Value, objects: &'a [Value]) -> Vec<&'a Value> {
    family::dependents(object, objects)
}

/// The objects that an object owns directly, and for a Pod the claims that it mounts.
pub fn owned<'a>(owner: &Value, objects: &'a [Value]) -> Vec<&'a Value> {
    family::owned(owner, objects)
}

/// What was found, and how much it explains.
#[derive(Clone, Debug)]
struct Finding {
    rank: Rank,
    text: String,
    /// Whether Events would add nothing.
    is_complete: bool,
}

/// How well a finding explains the state of the object, the best one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A Pod cannot be created.
    NotCreated,
    /// A container cannot start, or fails.
    Container,
    /// A claim that a Pod needs is not bound.
    Claim,
    /// A Pod has no node.
    Unscheduled,
    /// A Pod waits for something else.
    Waiting,
    /// A Pod failed, and another one may have replaced it.
    Ended,
    /// A Pod that should be gone remains.
    Remaining,
}

impl Finding {
    fn new(rank: Rank, text: impl Into<String>) -> Self {
        Self { rank, text: text.into(), is_complete: true }
    }

    /// Events may have more information.
    fn incomplete(self) -> Self {
        Self { is_complete: false, ..self }
    }
}

/// An object that is deleted, paused or not observed yet is not unhealthy because of its Pods.
fn can_be_explained(object: Reader<'_>) -> bool {
    let generations = object.number("/metadata/generation").zip(object.number("/status/observedGeneration"));
    let is_observed = generations.is_none_or(|(generation, observed)| observed >= generation);
    !object.is_terminating() && !object.flag("/spec/paused") && !object.flag("/spec/suspend") && is_observed
}

fn find(object: &Value, objects: &[Value], events: &[Value]) -> Option<Finding> {
    if !can_be_explained(Reader(object)) {
        return None;
    }
    let events = family::Events(events);
    // The first of the best: Pods of the newest revision come first.
    Family::of(object, objects).findings(events).into_iter().min_by_key(|finding| finding.rank)
}

#[cfg(test)]
mod tests;
