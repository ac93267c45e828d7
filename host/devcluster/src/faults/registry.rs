//! The active faults, and which of them affect a request.

use std::time::Duration;

use http::Method;
use parking_lot::{Mutex, MutexGuard};

use super::{
    effect::{Effect, When},
    fault::Fault,
    matching::{ObjectOccasion, Occasion},
};
use crate::request::query::Query;

/// Names a fault of one cluster.
pub type FaultId = u64;

/// The faults of a cluster.
#[derive(Debug, Default)]
pub struct Faults(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: FaultId,
    faults: Vec<Report>,
}

/// A fault and what it did.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Names it.
    pub id: FaultId,
    /// The fault.
    pub fault: Fault,
    /// How many requests it has matched.
    pub matched: u64,
    /// How many of them it has affected.
    pub struck: u64,
}

/// The faults that affect one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strike {
    /// The faults, in the order in which they were added.
    pub faults: Vec<FaultId>,
    /// How long it waits before anything else happens.
    pub latency: Duration,
    /// The response that it gets instead of the real one.
    pub outcome: Option<Outcome>,
    /// How many revisions ago it sees, if it may be answered so.
    pub lag: u64,
    /// The effect on the events of a watch.
    pub watch: WatchStrike,
}

/// The replacement of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// 409.
    Conflict,
    /// 410.
    Gone,
    /// 429.
    TooManyRequests {
        /// `Retry-After`.
        retry_after: Duration,
    },
    /// 500.
    InternalError {
        /// Whether the request takes effect before.
        written: bool,
    },
    /// 503.
    Unavailable,
    /// No response.
    Reset {
        /// Whether the request takes effect before.
        written: bool,
    },
}

/// The effect on the events of a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchStrike {
    /// How it ends early.
    pub end: Option<(When, WatchEnd)>,
    /// The time before each event.
    pub delay: Duration,
    /// The time before each bookmark.
    pub bookmark_delay: Duration,
    /// Whether bookmarks are omitted.
    pub no_bookmarks: bool,
}

/// How a watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// In good form.
    Dropped,
    /// By a reset.
    Reset,
    /// With an ERROR event with code 410.
    Expired,
}

impl Faults {
    /// Adds one.
    pub fn add(&self, fault: Fault) -> FaultId {
        let mut state = self.state();
        state.last += 1;
        let id = state.last;
        state.faults.push(Report { id, fault, matched: 0, struck: 0 });
        id
    }

    /// Every fault and what it did so far, in the order in which they were added. Those that have acted as often as they may
    /// stay, until they are taken away.
    pub fn list(&self) -> Vec<Report> {
        self.state().faults.clone()
    }

    /// Takes one away; what it did, unless there is no such fault.
    pub fn remove(&self, id: FaultId) -> Option<Report> {
        let mut state = self.state();
        let index = state.faults.iter().position(|waiting| waiting.id == id)?;
        Some(state.faults.remove(index))
    }

    /// Takes all away; what they did.
    pub fn clear(&self) -> Vec<Report> {
        std::mem::take(&mut self.state().faults)
    }

    /// Decides which faults affect a request. Delays add up; of the faults that replace the response, the first one wins.
    pub fn strike(&self, occasion: &Occasion<'_>) -> Strike {
        let mut strike = Strike::default();
        let mut state = self.state();
        for waiting in &mut state.faults {
            if !waiting.is_for(occasion) || (strike.outcome.is_some() && outcome(waiting.fault.effect).is_some()) {
                continue;
            }
            if let Some(chance) = waiting.take() {
                strike.faults.push(waiting.id);
                strike.add(waiting.fault.effect, chance);
            }
        }
        strike
    }

    /// How long a CRD takes to be established, if a fault delays it.
    pub fn established_delay(&self, crd: &str) -> Option<Duration> {
        let mut state = self.state();
        let query = Query::default();
        let object = ObjectOccasion {
            group: "apiextensions.k8s.io",
            plural: "customresourcedefinitions",
            subresource: "",
            namespace: "",
            name: crd,
        };
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let creation = Occasion::new(&Method::POST, path, &query, Some(object));
        state.faults.iter_mut().find_map(|waiting| match waiting.fault.effect {
            Effect::EstablishedDelay { delay } if waiting.fault.matcher.matches(&creation) => {
                waiting.take().map(|_| delay)
            }
            _ => None,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl Report {
    fn is_for(&self, occasion: &Occasion<'_>) -> bool {
        let effect = self.fault.effect;
        let verb = |verb| effect.verbs().is_none_or(|verbs| verbs.contains(&verb));
        // Without a verb only what can happen to every request.
        let possible = occasion.verb().map_or(effect.verbs().is_none(), verb)
            && match effect {
                Effect::EstablishedDelay { .. } => false,
                Effect::Stale { .. } => occasion.object.is_some() && occasion.tolerates_lag(),
                _ => effect.verbs().is_none() || occasion.object.is_some(),
            };
        possible && self.fault.matcher.matches(occasion)
    }

    /// Counts a matching request. Returns a random number if the fault affects it.
    fn take(&mut self) -> Option<u64> {
        let fault = &self.fault;
        if fault.times.is_some_and(|times| self.struck >= times) {
            return None;
        }
        self.matched += 1;
        let turn = self.matched.checked_sub(fault.after).filter(|turn| *turn > 0)?;
        if turn % fault.every.max(1) != 0 {
            return None;
        }
        let random = |purpose: u64| mix(fault.seed ^ mix(self.id ^ mix(self.matched ^ (purpose << 63))));
        if !is_within(random(0), fault.probability) {
            return None;
        }
        let chance = random(1);
        self.struck += 1;
        Some(chance)
    }
}

impl Strike {
    fn add(&mut self, effect: Effect, chance: u64) {
        match effect {
            Effect::Latency { least, most } => {
                self.latency = self.latency.saturating_add(between(least, most, chance));
            }
            Effect::Stale { revisions } => self.lag = self.lag.max(revisions),
            Effect::DropWatch(when) => self.watch.ends(when, WatchEnd::Dropped),
            Effect::ResetWatch(when) => self.watch.ends(when, WatchEnd::Reset),
            Effect::ExpireWatch(when) => self.watch.ends(when, WatchEnd::Expired),
            Effect::SlowWatch { delay } => self.watch.delay = self.watch.delay.saturating_add(delay),
            Effect::LateBookmarks { delay } => {
                self.watch.bookmark_delay = self.watch.bookmark_delay.saturating_add(delay);
            }
            Effect::NoBookmarks => self.watch.no_bookmarks = true,
            other => self.outcome = self.outcome.or(outcome(other)),
        }
    }
}

impl WatchStrike {
    fn ends(&mut self, when: When, how: WatchEnd) {
        self.end.get_or_insert((when, how));
    }

    /// Whether nothing happens.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The replacement of the response.
fn outcome(effect: Effect) -> Option<Outcome> {
    Some(match effect {
        Effect::Conflict => Outcome::Conflict,
        Effect::Gone => Outcome::Gone,
        Effect::TooManyRequests { retry_after } => Outcome::TooManyRequests { retry_after },
        Effect::InternalError => Outcome::InternalError { written: false },
        Effect::InternalErrorAfterWrite => Outcome::InternalError { written: true },
        Effect::Unavailable => Outcome::Unavailable,
        Effect::Reset => Outcome::Reset { written: false },
        Effect::ResetAfterWrite => Outcome::Reset { written: true },
        _ => return None,
    })
}

/// A duration between two, chosen by a random number.
fn between(least: Duration, most: Duration, chance: u64) -> Duration {
    let width = most.saturating_sub(least).as_nanos().saturating_add(1);
    let more = u64::try_from(u128::from(chance) % width).unwrap_or(u64::MAX);
    least.saturating_add(Duration::from_nanos(more))
}

/// Whether a random number is in the share of lowest numbers that the probability defines.
fn is_within(random: u64, probability: f64) -> bool {
    // 32 bits are exact in a float and fine enough.
    f64::from(u32::try_from(random >> 32).unwrap_or(u32::MAX)) < probability * (f64::from(u32::MAX) + 1.0)
}

/// A number that looks random, from one that does not (the finaliser of SplitMix64).
fn mix(number: u64) -> u64 {
    let mut number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the next twenty requests a fault affects.
    fn pattern(faults: &Faults) -> String {
        let query = Query::default();
        (0..20)
            .map(|_| faults.strike(&Occasion::new(&Method::GET, "/api", &query, None)))
            .map(|strike| if strike.faults.is_empty() { '.' } else { 'x' })
            .collect()
    }

    #[test]
    fn a_fault_strikes_as_often_as_it_says() {
        let fault = || Fault::new(Effect::Conflict);
        let cases = [
            (fault(), "xxxxxxxxxxxxxxxxxxxx"),
            (fault().times(2), "xx.................."),
            (fault().times(0), "...................."),
            (fault().after(3).times(2), "...xx..............."),
            (fault().every(4), "...x...x...x...x...x"),
            (fault().after(2).every(3).times(2), "....x..x............"),
            (fault().probability(0.0), "...................."),
            (fault().probability(1.0), "xxxxxxxxxxxxxxxxxxxx"),
        ];
        for (fault, expected) in cases {
            let faults = Faults::default();
            faults.add(fault.clone());
            assert_eq!(pattern(&faults), expected, "{fault:?}");
        }
    }

    #[test]
    fn a_seed_determines_the_affected_requests() {
        let strikes = |seed| {
            let faults = Faults::default();
            faults.add(Fault::new(Effect::Conflict).probability(0.5).seed(seed));
            pattern(&faults)
        };
        let all: Vec<String> = (0..20).map(strikes).collect();
        assert_eq!(all, (0..20).map(strikes).collect::<Vec<_>>());
        let struck: usize = all.iter().map(|pattern| pattern.matches('x').count()).sum();
        assert!((150..250).contains(&struck), "{struck} of 400");
        // Two faults with the same seed do not affect the same requests.
        let faults = Faults::default();
        faults.add(Fault::new(Effect::NoBookmarks).times(0));
        faults.add(Fault::new(Effect::Conflict).probability(0.5));
        assert_ne!(pattern(&faults), strikes(0));
    }

    #[test]
    fn delays_add_up_and_the_first_answer_counts() {
        let (second, query) = (Duration::from_secs(1), Query::default());
        let faults = Faults::default();
        let ids = [
            Fault::latency(second),
            Fault::new(Effect::Conflict).times(1),
            Fault::new(Effect::Unavailable).times(1),
            Fault::new(Effect::Latency { least: second, most: 2 * second }),
            Fault::new(Effect::InternalErrorAfterWrite),
        ]
        .map(|fault| faults.add(fault));
        let occasion = Occasion::new(&Method::GET, "/api", &query, None);
        let first = faults.strike(&occasion);
        assert_eq!((first.faults, first.outcome), (vec![ids[0], ids[1], ids[3]], Some(Outcome::Conflict)));
        assert!((2 * second..=3 * second).contains(&first.latency), "{:?}", first.latency);
        assert_eq!(faults.strike(&occasion).outcome, Some(Outcome::Unavailable));
        assert_eq!(faults.strike(&occasion).outcome, None, "nothing is written by a GET");
        let counts: Vec<_> = faults.list().iter().map(|report| (report.matched, report.struck)).collect();
        assert_eq!(counts, [(3, 3), (1, 1), (1, 1), (3, 3), (0, 0)]);
        assert_eq!(faults.remove(ids[1]).map(|report| report.struck), Some(1));
        assert_eq!(faults.remove(ids[1]), None);
        assert_eq!(faults.clear().len(), 4);
        assert_eq!(faults.strike(&occasion), Strike::default());
    }

    #[test]
    fn only_reads_that_may_lag_are_stale() {
        let object = Some(ObjectOccasion { group: "", plural: "pods", subresource: "", namespace: "", name: "" });
        let lag = |text: &str| {
            let faults = Faults::default();
            faults.add(Fault::new(Effect::Stale { revisions: 7 }));
            faults.strike(&Occasion::new(&Method::GET, "/api/v1/pods", &Query::parse(text), object)).lag
        };
        for (query, expected) in [
            ("", 0),
            ("resourceVersion=0", 7),
            ("resourceVersion=5", 0),
            ("resourceVersion=5&resourceVersionMatch=NotOlderThan", 7),
            ("resourceVersion=5&resourceVersionMatch=Exact", 0),
            ("watch=1", 0),
            ("watch=1&resourceVersion=0", 7),
            ("watch=1&resourceVersion=9", 0),
        ] {
            assert_eq!(lag(query), expected, "{query}");
        }
    }
}
