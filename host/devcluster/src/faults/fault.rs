//! A fault: an effect with its conditions.

use std::time::Duration;

use http::Method;

use super::{
    effect::Effect,
    matching::{Matcher, Verb},
};

/// A failure that waits for its requests.
///
/// It is counted which requests it matches: the first [`after`](Self::after) of them are left alone, of the others each
/// [`every`](Self::every)th is affected, with the [`probability`](Self::probability), and [`times`](Self::times) at most.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub(super) effect: Effect,
    pub(super) matcher: Matcher,
    pub(super) after: u64,
    pub(super) every: u64,
    pub(super) times: Option<u64>,
    pub(super) probability: f64,
    pub(super) seed: u64,
}

impl Fault {
    /// A fault that affects every request that it applies to.
    pub fn new(effect: Effect) -> Self {
        let matcher = Matcher::default();
        Self { effect, matcher, after: 0, every: 1, times: None, probability: 1.0, seed: 0 }
    }

    /// Each request waits for so long.
    pub fn latency(duration: Duration) -> Self {
        Self::new(Effect::Latency { least: duration, most: duration })
    }

    /// The effect.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// To which requests.
    pub fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// Only requests with this verb; several may be named.
    pub fn verb(mut self, verb: Verb) -> Self {
        if !self.matcher.verbs.contains(&verb) {
            self.matcher.verbs.push(verb);
        }
        self
    }

    /// Only requests with this HTTP method; several may be named.
    pub fn method(mut self, method: Method) -> Self {
        if !self.matcher.methods.contains(&method) {
            self.matcher.methods.push(method);
        }
        self
    }

    /// Only requests whose path matches; in this pattern and those below, `*` matches any characters.
    pub fn path(mut self, pattern: impl Into<String>) -> Self {
        self.matcher.path = Some(pattern.into());
        self
    }

    /// Only requests for objects of this API group; empty for the core group.
    pub fn group(mut self, pattern: impl Into<String>) -> Self {
        self.matcher.group = Some(pattern.into());
        self
    }

    /// Only requests for objects of this resource, e.g. `pods` (in any group) or `deployments.apps`.
    pub fn resource(mut self, resource: &str) -> Self {
        match resource.split_once('.') {
            Some((plural, group)) => {
                self.matcher.resource = Some(plural.to_owned());
                self.matcher.group = Some(group.to_owned());
            }
            None => self.matcher.resource = Some(resource.to_owned()),
        }
        self
    }

    /// Only requests for this subresource; empty for the objects themselves.
    pub fn subresource(mut self, pattern: impl Into<String>) -> Self {
        self.matcher.subresource = Some(pattern.into());
        self
    }

    /// Only requests for this namespace; empty for cluster-scoped objects and requests about all namespaces.
    pub fn namespace(mut self, pattern: impl Into<String>) -> Self {
        self.matcher.namespace = Some(pattern.into());
        self
    }

    /// Only requests for an object of this name.
    pub fn name(mut self, pattern: impl Into<String>) -> Self {
        self.matcher.name = Some(pattern.into());
        self
    }

    /// Only requests of clients with this `User-Agent`.
    pub fn client(mut self, pattern: impl Into<String>) -> Self {
        self.matcher.client = Some(pattern.into());
        self
    }

    /// Only requests of this field manager.
    pub fn manager(mut self, pattern: impl Into<String>) -> Self {
        self.matcher.manager = Some(pattern.into());
        self
    }

    /// Only dry runs, or only real requests.
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.matcher.dry_run = Some(dry_run);
        self
    }

    /// The workload simulation is affected, too.
    pub fn with_simulation(mut self) -> Self {
        self.matcher.simulation = true;
        self
    }

    /// Strikes so often at most; without this, until it is taken away.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Leaves the first matching requests alone.
    pub fn after(mut self, requests: u64) -> Self {
        self.after = requests;
        self
    }

    /// Strikes each so-many-th matching request; 0 means the same as 1.
    pub fn every(mut self, requests: u64) -> Self {
        self.every = requests.max(1);
        self
    }

    /// Strikes with this probability, between 0 and 1; which requests that are is determined by the [seed](Self::seed) and the
    /// place of the fault among the others.
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = if probability.is_nan() { 0.0 } else { probability.clamp(0.0, 1.0) };
        self
    }

    /// The seed of random decisions: the same seed and the same requests give the same faults.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}
