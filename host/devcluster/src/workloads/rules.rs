//! Rules of tests and tools for the simulation, besides annotations. They can be changed at run time.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::behaviour::Behaviour;

/// Which objects a rule is about. Fields that are `None` match everything.
///
/// A rule about a workload holds for everything below it: one about a Deployment for its ReplicaSets and their Pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The kind, e.g. `Deployment`.
    pub kind: Option<String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The name.
    pub name: Option<String>,
}

impl Subject {
    /// Every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// One object.
    pub fn object(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: Some(kind.to_owned()), namespace: Some(namespace.to_owned()), name: Some(name.to_owned()) }
    }

    /// Every object of a kind.
    pub fn kind(kind: &str) -> Self {
        Self { kind: Some(kind.to_owned()), ..Self::default() }
    }

    fn covers(&self, kind: &str, namespace: &str, name: &str) -> bool {
        let fits = |wanted: &Option<String>, actual: &str| wanted.as_ref().is_none_or(|wanted| wanted == actual);
        fits(&self.kind, kind) && fits(&self.namespace, namespace) && fits(&self.name, name)
    }
}

/// The steps that take time in a cluster. Every step is immediate by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A Pod waits for its node.
    Schedule,
    /// A Pod's images are pulled and its containers started.
    Start,
    /// A Pod of a Job runs.
    Complete,
    /// A deleted Pod stops.
    Terminate,
    /// A Job waits before it replaces a Pod that failed.
    Retry,
    /// A claim waits for its volume.
    Bind,
    /// A Service waits for the address of its load balancer.
    Expose,
}

#[derive(Debug)]
enum Effect {
    Behave(Behaviour),
    Delay(Step, Duration),
}

/// Rules that are shared with a running simulation. Of the rules that cover an object the last one counts.
#[derive(Clone, Debug)]
pub struct Rules(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    rules: Mutex<Vec<(Subject, Effect)>>,
    changed: watch::Sender<()>,
}

impl Default for Rules {
    fn default() -> Self {
        Self(Arc::new(Shared { rules: Mutex::default(), changed: watch::Sender::new(()) }))
    }
}

impl Rules {
    /// Makes the subject's objects behave this way, regardless of annotations and images, until another rule changes it.
    pub fn behave(&self, subject: Subject, behaviour: Behaviour) {
        self.change(|rules| {
            rules.retain(|(other, effect)| !(*other == subject && matches!(effect, Effect::Behave(_))));
            rules.push((subject, Effect::Behave(behaviour)));
        });
    }

    /// Makes a step take so long, by the cluster's clock.
    pub fn delay(&self, subject: Subject, step: Step, delay: Duration) {
        self.change(|rules| {
            rules.retain(|(other, effect)| {
                !(*other == subject && matches!(effect, Effect::Delay(known, _) if *known == step))
            });
            rules.push((subject, Effect::Delay(step, delay)));
        });
    }

    /// Forgets the rules of a subject.
    pub fn forget(&self, subject: &Subject) {
        self.change(|rules| rules.retain(|(other, _)| other != subject));
    }

    fn change(&self, with: impl FnOnce(&mut Vec<(Subject, Effect)>)) {
        with(&mut self.0.rules.lock());
        self.0.changed.send_replace(());
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    /// The rule for an object, given by kind, namespace and name.
    pub(super) fn behaviour(&self, kind: &str, namespace: &str, name: &str) -> Option<Behaviour> {
        self.last(kind, namespace, name, |effect| match effect {
            Effect::Behave(behaviour) => Some(*behaviour),
            Effect::Delay(..) => None,
        })
    }

    /// How long a step takes an object, when that is stated.
    pub(super) fn delay_of(&self, step: Step, kind: &str, namespace: &str, name: &str) -> Option<Duration> {
        self.last(kind, namespace, name, |effect| match effect {
            Effect::Delay(known, delay) if *known == step => Some(*delay),
            _ => None,
        })
    }

    fn last<T>(&self, kind: &str, namespace: &str, name: &str, read: impl Fn(&Effect) -> Option<T>) -> Option<T> {
        let rules = self.0.rules.lock();
        let covering = rules.iter().rev().filter(|(subject, _)| subject.covers(kind, namespace, name));
        covering.into_iter().find_map(|(_, effect)| read(effect))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rule_that_covers_an_object_counts() {
        let rules = Rules::default();
        let mut changes = rules.changes();
        let of = |rules: &Rules, name: &str| rules.behaviour("Deployment", "n", name);
        assert_eq!(of(&rules, "a"), None);
        rules.behave(Subject::kind("Deployment"), Behaviour::Stall);
        rules.behave(Subject::object("Deployment", "n", "a"), Behaviour::CrashLoop);
        rules.delay(Subject::everything(), Step::Start, Duration::from_secs(1));
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        assert_eq!((of(&rules, "a"), of(&rules, "b")), (Some(Behaviour::CrashLoop), Some(Behaviour::Stall)));
        assert_eq!(rules.behaviour("Pod", "n", "a"), None);
        rules.behave(Subject::kind("Deployment"), Behaviour::Healthy);
        assert_eq!(of(&rules, "a"), Some(Behaviour::Healthy), "told later");
        rules.forget(&Subject::kind("Deployment"));
        assert_eq!((of(&rules, "a"), of(&rules, "b")), (Some(Behaviour::CrashLoop), None));
        assert!(changes.has_changed().unwrap());
    }

    #[test]
    fn each_step_has_its_delay() {
        let rules = Rules::default();
        let second = Duration::from_secs(1);
        rules.delay(Subject::everything(), Step::Start, second);
        rules.delay(Subject::object("Pod", "n", "slow"), Step::Start, 9 * second);
        assert_eq!(rules.delay_of(Step::Start, "Pod", "n", "a"), Some(second));
        assert_eq!(rules.delay_of(Step::Start, "Pod", "n", "slow"), Some(9 * second));
        assert_eq!(rules.delay_of(Step::Schedule, "Pod", "n", "a"), None);
        rules.delay(Subject::everything(), Step::Start, Duration::ZERO);
        assert_eq!(rules.delay_of(Step::Start, "Pod", "n", "slow"), Some(Duration::ZERO));
    }
}
