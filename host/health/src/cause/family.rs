//! The objects below an object, and what can be found in them.

use std::{cmp::Reverse, collections::BTreeSet};

use serde_json::Value;

use super::{Finding, Rank, pod, text};
use crate::reader::Reader;

/// The longest chain of owners: CronJob, Job, Pod, claim.
const GENERATIONS: usize = 4;
/// How many pending claims are worth reading Events about.
const CLAIMS: usize = 2;

/// The objects below an object: those that it owns, directly or not, and the claims that its Pods use.
pub(super) fn dependents<'a>(object: &'a Value, objects: &'a [Value]) -> Vec<&'a Value> {
    let mut owners = BTreeSet::from([Reader(object).text("/metadata/uid")]);
    owners.remove("");
    for _ in 0..GENERATIONS {
        let owned = objects.iter().filter(|candidate| is_owned(candidate, &owners));
        let found: Vec<&str> = owned.map(|owned| Reader(owned).text("/metadata/uid")).collect();
        let before = owners.len();
        owners.extend(found.into_iter().filter(|uid| !uid.is_empty()));
        if owners.len() == before {
            break;
        }
    }
    let pods = objects.iter().chain([object]).filter(|pod| owners.contains(Reader(pod).text("/metadata/uid")));
    let pods: Vec<&Value> = pods.collect();
    let is_below = |candidate: &&Value| is_owned(candidate, &owners) || pods.iter().any(|pod| mounts(pod, candidate));
    objects.iter().filter(is_below).collect()
}

/// The objects that an object owns directly, and for a Pod the claims that it mounts.
pub(super) fn owned<'a>(owner: &Value, objects: &'a [Value]) -> Vec<&'a Value> {
    let mut owners = BTreeSet::from([Reader(owner).text("/metadata/uid")]);
    owners.remove("");
    objects.iter().filter(|candidate| is_owned(candidate, &owners) || mounts(owner, candidate)).collect()
}

/// Whether an object is a claim that a Pod mounts.
fn mounts(pod: &Value, candidate: &Value) -> bool {
    let claim = Reader(candidate);
    claim.group_kind() == ("", "PersistentVolumeClaim")
        && Reader(pod).group_kind() == ("", "Pod")
        && claim.text("/metadata/namespace") == Reader(pod).text("/metadata/namespace")
        && claims_of(pod).any(|name| name == claim.text("/metadata/name"))
}

fn is_owned(object: &Value, owners: &BTreeSet<&str>) -> bool {
    Reader(object).list("/metadata/ownerReferences").any(|owner| owners.contains(owner.text("/uid")))
}

/// The names of the claims that a Pod mounts.
pub(super) fn claims_of(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = Reader(pod).list("/spec/volumes");
    volumes.map(|volume| volume.text("/persistentVolumeClaim/claimName")).filter(|name| !name.is_empty())
}

/// Events, by the object that they are about.
#[derive(Clone, Copy)]
pub(super) struct Events<'a>(pub(super) &'a [Value]);

impl<'a> Events<'a> {
    /// The messages of the warnings about an object with one of these reasons, the newest first.
    pub(super) fn warnings(self, about: Reader<'_>, reasons: &[&str]) -> Vec<(&'a str, &'a str)> {
        let uid = about.text("/metadata/uid");
        let concerns = |event: &Reader<'a>| {
            !uid.is_empty()
                && event.text("/involvedObject/uid") == uid
                && event.text("/type") != "Normal"
                && reasons.contains(&event.text("/reason"))
        };
        let mut found: Vec<Reader<'a>> = self.0.iter().map(Reader).filter(concerns).collect();
        found.sort_by_key(|event| Reverse((time(*event), event.text("/metadata/name"))));
        found.into_iter().map(|event| (event.text("/reason"), event.text("/message"))).collect()
    }
}

/// When an Event happened last. Times in UTC sort as text.
fn time(event: Reader<'_>) -> &str {
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    times.into_iter().map(|pointer| event.text(pointer)).find(|time| !time.is_empty()).unwrap_or_default()
}

/// An object with those below it.
pub(super) struct Family<'a> {
    object: Reader<'a>,
    /// The ReplicaSets, the newest revision first.
    sets: Vec<Reader<'a>>,
    /// The Pods: the newest revision first, then the newest Pods.
    pods: Vec<Reader<'a>>,
    claims: Vec<Reader<'a>>,
}

impl<'a> Family<'a> {
    pub(super) fn of(object: &'a Value, objects: &'a [Value]) -> Self {
        let all: Vec<Reader<'a>> = dependents(object, objects).into_iter().chain([object]).map(Reader).collect();
        let of_kind =
            |kind: (&'static str, &'static str)| all.iter().copied().filter(move |member| member.group_kind() == kind);
        let mut sets: Vec<Reader<'a>> = of_kind(("apps", "ReplicaSet")).collect();
        sets.sort_by_key(|set| Reverse((revision(*set), set.text("/metadata/creationTimestamp"))));
        let mut pods: Vec<Reader<'a>> = of_kind(("", "Pod")).collect();
        let object = Reader(object);
        pods.sort_by_key(|pod| {
            let is_new = sets.first().is_none_or(|newest| {
                pod.list("/metadata/ownerReferences").any(|owner| owner.text("/uid") == newest.text("/metadata/uid"))
            });
            let updated = object.text("/status/updateRevision");
            let hash = pod.text("/metadata/labels/controller-revision-hash");
            let is_new = is_new && (updated.is_empty() || hash.is_empty() || hash == updated);
            (!is_new, Reverse(pod.text("/metadata/creationTimestamp")), pod.text("/metadata/name"))
        });
        let claims = of_kind(("", "PersistentVolumeClaim")).collect();
        Self { object, sets, pods, claims }
    }

    /// Everything that may explain the state of the object.
    pub(super) fn findings(&self, events: Events<'_>) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.not_created(events).into_iter().collect();
        findings.extend(self.pods.iter().filter_map(|pod| pod::finding(*pod, events)));
        findings.extend(self.claims.iter().filter_map(|claim| self.unbound(*claim, events)));
        findings
    }

    /// The objects whose Events may have more information.
    pub(super) fn undecided(&self) -> Vec<&'a Value> {
        let claims = self.claims.iter().filter(|claim| is_pending(**claim)).take(CLAIMS);
        let pod = self.pods.iter().find(|pod| pod::needs_events(**pod));
        let creator = self.lacks_pods().then(|| self.creator());
        claims.chain(pod).map(|member| member.0).chain(creator.map(|creator| creator.0)).collect()
    }

    /// The object that creates the Pods.
    fn creator(&self) -> Reader<'a> {
        self.sets.first().copied().unwrap_or(self.object)
    }

    /// Whether there are fewer Pods than wanted.
    fn lacks_pods(&self) -> bool {
        let object = self.object;
        let living = self.pods.iter().filter(|pod| !matches!(pod.text("/status/phase"), "Failed" | "Succeeded"));
        let living = i64::try_from(living.count()).unwrap_or(i64::MAX);
        match object.group_kind() {
            ("apps", "DaemonSet") => living < object.count("desiredNumberScheduled"),
            ("batch", "Job") => living < 1 && !object.conditions().any(|it| it.is("Failed", "True")),
            ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") | ("", "ReplicationController") => {
                living < object.number("/spec/replicas").unwrap_or(1)
            }
            _ => false,
        }
    }

    fn not_created(&self, events: Events<'_>) -> Option<Finding> {
        let failed = |member: &Reader<'a>| {
            member.conditions().find(|condition| condition.is("ReplicaFailure", "True")).map(|it| it.text())
        };
        let message = failed(&self.object).or_else(|| self.sets.first().and_then(failed)).or_else(|| {
            let warned = self.lacks_pods().then(|| events.warnings(self.creator(), &["FailedCreate"]))?;
            warned.first().map(|(_, message)| (*message).to_owned())
        })?;
        Some(Finding::new(Rank::NotCreated, format!("pods cannot be created: {}", text::admission(&message))))
    }

    /// A claim that is not bound, if its Events explain why. One that only waits for a Pod has none.
    fn unbound(&self, claim: Reader<'_>, events: Events<'_>) -> Option<Finding> {
        if !is_pending(claim) {
            return None;
        }
        let warned = events.warnings(claim, &["ProvisioningFailed", "FailedBinding"]);
        let (reason, message) = warned.first()?;
        let text = if self.object.group_kind() == ("", "PersistentVolumeClaim") {
            format!("{reason}: {message}")
        } else {
            format!("PersistentVolumeClaim {} is not bound: {message}", claim.text("/metadata/name"))
        };
        Some(Finding::new(Rank::Claim, text))
    }
}

fn is_pending(claim: Reader<'_>) -> bool {
    claim.text("/status/phase") == "Pending"
}

/// The revision of a ReplicaSet of a Deployment.
fn revision(set: Reader<'_>) -> i64 {
    set.annotation("deployment.kubernetes.io/revision").and_then(|text| text.parse().ok()).unwrap_or_default()
}
