//! Polls of sources at the request of a server, instead of at the next interval.

use std::collections::BTreeSet;

use chandler_source::Source;
use chandler_turns::{Requester, Rotation};
use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    polls::{CONCURRENCY, poll, requester_of, wants},
    preparer::Preparer,
};
use crate::signals::Signal;

/// BundleDeployments whose sources are to be polled. Each is there once: requests that arrive while it waits are one.
#[derive(Default)]
pub(crate) struct AskedPolls {
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Default)]
struct Queue {
    /// Requesters take turns.
    waiting: Rotation<(Requester, String)>,
    names: BTreeSet<String>,
}

impl AskedPolls {
    /// Adds a BundleDeployment.
    fn ask(&self, name: &str, requester: Requester) {
        let mut queue = self.queue.lock();
        if queue.names.insert(name.to_owned()) {
            queue.waiting.push(&requester.clone(), (requester, name.to_owned()));
        }
        drop(queue);
        self.changed.notify_one();
    }

    /// Takes the next one that is not being polled.
    fn next(&self, busy: &BTreeSet<String>) -> Option<String> {
        let mut queue = self.queue.lock();
        let (mut later, mut found) = (Vec::new(), None);
        while let Some((requester, name)) = queue.waiting.pop() {
            if !busy.contains(&name) {
                found = Some(name);
                break;
            }
            later.push((requester, name));
        }
        for (requester, name) in later {
            queue.waiting.push(&requester.clone(), (requester, name));
        }
        if let Some(name) = &found {
            queue.names.remove(name);
        }
        found
    }
}

impl Preparer {
    /// Requests a poll of the source of a BundleDeployment.
    pub(crate) fn ask(&self, name: &str) {
        self.memory.asked.ask(name, requester_of(name, self));
    }
}

/// Polls the sources that are asked for. Never ends.
pub(crate) async fn run(preparer: &Preparer) {
    let asked = &preparer.memory.asked;
    let (mut busy, mut polls) = (BTreeSet::new(), FuturesUnordered::new());
    loop {
        while polls.len() < CONCURRENCY
            && let Some(name) = asked.next(&busy)
        {
            busy.insert(name.clone());
            let polled = async move {
                poll_now(&name, preparer).await;
                name
            };
            polls.push(polled.boxed());
        }
        tokio::select! {
            Some(name) = polls.next() => drop(busy.remove(&name)),
            () = asked.changed.notified() => {}
        }
    }
}

/// Polls the source of a BundleDeployment. One that has not been resolved yet is tried again, unless its registry does not answer: then it
/// continues with all others that wait for the registry.
async fn poll_now(name: &str, preparer: &Preparer) {
    let Some(deployment) = preparer.deployments.get(name) else { return };
    let Ok(source) = Source::parse(&deployment.spec.source) else { return };
    let is_due = if let Some(resolution) = preparer.memory.resolutions.last(name, &source) {
        poll(name, &resolution, preparer).await
    } else {
        let is_waiting = preparer.memory.registries.with(|waits, _| waits.has(name));
        !is_waiting && source.can_move() && wants(&deployment, &source, &preparer.cluster.options.accounts)
    };
    if is_due {
        preparer.signals.send(Signal::DeploymentInputChanged(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_one_object_are_one_and_requesters_take_turns() {
        let asked = AskedPolls::default();
        let (one, other) = (Requester::new("a", "x"), Requester::new("b", "x"));
        for (name, requester) in [("a1", &one), ("a2", &one), ("a1", &one), ("b1", &other)] {
            asked.ask(name, requester.clone());
        }
        let mut busy = BTreeSet::new();
        let mut next = |is_busy: bool| {
            let found = asked.next(&busy);
            if is_busy {
                busy.extend(found.clone());
            }
            found
        };
        assert_eq!(next(true).as_deref(), Some("a1"));
        assert_eq!(next(false).as_deref(), Some("b1"));
        assert_eq!((next(false).as_deref(), next(false)), (Some("a2"), None));
        // One that is asked for during its poll is polled again after it.
        asked.ask("a1", one);
        assert_eq!(asked.next(&busy), None);
        assert_eq!(asked.next(&BTreeSet::new()).as_deref(), Some("a1"));
    }
}
