//! How many TLS handshakes there may be in a second, from one source and in sum: a handshake costs the processor a signature, before anything is
//! known of the caller.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// A limit: so many at once, and after that one in each such time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) at_once: u32,
    pub(crate) every: Duration,
}

impl Rate {
    /// When a bucket is full again that is full at `full_at`, and of which one is taken `now`; `None` if it is empty.
    fn taken(self, full_at: Duration, now: Duration) -> Option<Duration> {
        let next = full_at.max(now).saturating_add(self.every);
        (next <= now.saturating_add(self.every.saturating_mul(self.at_once))).then_some(next)
    }
}

/// The limits of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rates {
    /// For one source.
    pub(crate) of_one: Rate,
    /// For all sources together.
    pub(crate) of_all: Rate,
}

/// Counts by source. Clones share the counts.
#[derive(Debug)]
pub(crate) struct Rated<G>(Arc<Inner<G>>);

#[derive(Debug)]
struct Inner<G> {
    rates: Rates,
    began: Instant,
    state: Mutex<State<G>>,
}

#[derive(Debug)]
struct State<G> {
    /// When the bucket of a source is full again. A source that is not here has a full one.
    sources: HashMap<G, Duration>,
    all: Duration,
}

impl<G> Default for State<G> {
    fn default() -> Self {
        Self { sources: HashMap::new(), all: Duration::ZERO }
    }
}

impl<G: Eq + Hash> State<G> {
    /// Takes one for a source, unless it or all sources together had enough.
    fn take(&mut self, rates: Rates, source: G, now: Duration) -> bool {
        let own = self.sources.get(&source).copied().unwrap_or_default();
        // A source that had enough takes nothing from the others.
        let (Some(own), Some(all)) = (rates.of_one.taken(own, now), rates.of_all.taken(self.all, now)) else {
            return false;
        };
        self.all = all;
        // Each source that is kept took one of the sum lately, so that their number is limited.
        self.sources.retain(|_, full_at| *full_at > now);
        self.sources.insert(source, own);
        true
    }
}

impl<G> Clone for Rated<G> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<G: Eq + Hash> Rated<G> {
    /// None counted yet.
    pub(crate) fn new(rates: Rates) -> Self {
        Self(Arc::new(Inner { rates, began: Instant::now(), state: Mutex::default() }))
    }

    /// Counts one of a source. False if it must not happen.
    pub(crate) fn take(&self, source: G) -> bool {
        let now = self.0.began.elapsed();
        self.0.state.lock().take(self.0.rates, source, now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATES: Rates = Rates {
        of_one: Rate { at_once: 4, every: Duration::from_millis(500) },
        of_all: Rate { at_once: 10, every: Duration::from_millis(200) },
    };

    fn taken(state: &mut State<u8>, source: u8, seconds: u64) -> usize {
        let now = Duration::from_secs(seconds);
        (0..100).filter(|_| state.take(RATES, source, now)).count()
    }

    #[test]
    fn a_source_has_its_rate_and_leaves_the_rest_of_the_sum() {
        let mut state = State::default();
        assert_eq!(taken(&mut state, 1, 100), 4);
        assert_eq!(taken(&mut state, 2, 100), 4);
        assert_eq!(taken(&mut state, 3, 100), 2, "the sum");
        assert_eq!(taken(&mut state, 4, 100), 0);
        assert_eq!(taken(&mut state, 1, 101), 2);
        assert_eq!(taken(&mut state, 4, 101), 3, "what is left");
        assert_eq!(taken(&mut state, 1, 200), 4);
        assert_eq!(state.sources.len(), 1, "sources that did nothing lately are forgotten");
    }

    proptest! {
        #[test]
        fn no_sources_exceed_their_rates(takes in prop::collection::vec((0..3_u8, 0..300_u64), 1..200)) {
            let (mut state, mut now, mut granted) = (State::default(), Duration::ZERO, Vec::new());
            for (source, milliseconds) in takes {
                now += Duration::from_millis(milliseconds);
                if state.take(RATES, source, now) {
                    granted.push((source, now));
                }
            }
            let most = |rate: Rate, times: &[Duration]| {
                times.first().zip(times.last()).is_none_or(|(first, last)| {
                    let seconds = last.saturating_sub(*first).as_secs_f64();
                    f64::from(u32::try_from(times.len()).unwrap()) <= f64::from(rate.at_once) + seconds / rate.every.as_secs_f64() + 0.01
                })
            };
            let all: Vec<Duration> = granted.iter().map(|(_, time)| *time).collect();
            prop_assert!(most(RATES.of_all, &all));
            for of in 0..3 {
                let own: Vec<Duration> = granted.iter().filter(|(source, _)| *source == of).map(|(_, time)| *time).collect();
                prop_assert!(most(RATES.of_one, &own));
            }
        }
    }
}
