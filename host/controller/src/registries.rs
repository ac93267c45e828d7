//! BundleDeployments whose registry does not answer.
//!
//! A thousand BundleDeployments must not ask a registry that is down every few seconds, and none of them should wait for minutes after it
//! is back. So one of them, the scout, asks often on behalf of all; when the registry answers any BundleDeployment, all that wait for it
//! continue.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::MissedTickBehavior,
};

/// How often the scout asks, before jitter.
pub(crate) const SCOUT: Duration = Duration::from_secs(3);
/// A scout that has been idle this long is replaced: a registry that accepts connections and never answers takes half a minute.
const RETIRED: Duration = Duration::from_mins(1);
/// The minimum time until a BundleDeployment whose retry failed continues again; each time twice as long. A registry may answer some
/// requests and fail others all the time.
const VAIN: Duration = Duration::from_secs(4);
/// The longest such time.
const LONGEST_VAIN: Duration = Duration::from_mins(5);

/// The registries that do not answer, and who waits for them. Pure: the clock comes in as an argument.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RegistryWaits(HashMap<String, Waits>);

#[derive(Debug, Default, PartialEq, Eq)]
struct Waits {
    /// The name of the scout, and when it asked last.
    scout: Option<(String, Duration)>,
    /// By name.
    waiting: BTreeMap<String, Waiter>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waiter {
    /// Whether it waits, or may continue.
    waits: bool,
    /// How often a retry failed.
    vain: u32,
    /// Before this it does not continue again.
    not_before: Duration,
}

impl RegistryWaits {
    /// Whether a BundleDeployment waits for a registry.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.values().any(|waits| waits.waiting.get(name).is_some_and(|waiter| waiter.waits))
    }

    /// Notes that a registry did not answer a BundleDeployment. Returns whether that one is the scout, which asks again soon.
    pub(crate) fn failed(&mut self, registry: &str, name: &str, now: Duration) -> bool {
        self.leave(name, Some(registry));
        let waits = self.0.entry(registry.to_owned()).or_default();
        let waiter = waits.waiting.entry(name.to_owned()).or_insert(Waiter { waits: true, ..Waiter::default() });
        if !waiter.waits {
            let pause = VAIN.saturating_mul(2_u32.saturating_pow(waiter.vain)).min(LONGEST_VAIN);
            *waiter =
                Waiter { waits: true, vain: waiter.vain.saturating_add(1), not_before: now.saturating_add(pause) };
        }
        let is_scout = waits.has_no_scout(now) || waits.scout.as_ref().is_some_and(|(scout, _)| scout == name);
        if is_scout {
            waits.scout = Some((name.to_owned(), now));
        }
        is_scout
    }

    /// The registry answers again. Returns the BundleDeployments that continue.
    pub(crate) fn answers(&mut self, registry: &str, now: Duration) -> Vec<String> {
        let Some(waits) = self.0.get_mut(registry) else { return Vec::new() };
        waits.scout = None;
        let go_on = waits.waiting.iter_mut().filter(|(_, waiter)| waiter.waits && waiter.not_before <= now);
        go_on
            .map(|(name, waiter)| {
                waiter.waits = false;
                name.clone()
            })
            .collect()
    }

    /// A BundleDeployment no longer waits.
    pub(crate) fn forget(&mut self, name: &str) {
        self.leave(name, None);
    }

    /// The BundleDeployments that ask now: the new scouts of registries without a scout.
    pub(crate) fn new_scouts(&mut self, now: Duration) -> Vec<String> {
        let mut chosen = Vec::new();
        for waits in self.0.values_mut().filter(|waits| waits.has_no_scout(now)) {
            let waiting = waits.waiting.iter().find(|(_, waiter)| waiter.waits);
            if let Some((name, _)) = waiting {
                chosen.push(name.clone());
                waits.scout = Some((name.clone(), now));
            }
        }
        chosen
    }

    /// Removes a BundleDeployment from all registries but one.
    fn leave(&mut self, name: &str, except: Option<&str>) {
        self.0.retain(|registry, waits| {
            if Some(registry.as_str()) == except {
                return true;
            }
            waits.waiting.remove(name);
            if waits.scout.as_ref().is_some_and(|(scout, _)| scout == name) {
                waits.scout = None;
            }
            !waits.waiting.is_empty()
        });
    }
}

impl Waits {
    fn has_no_scout(&self, now: Duration) -> bool {
        self.scout.as_ref().is_none_or(|(_, asked)| now >= asked.saturating_add(RETIRED))
    }
}

/// The state behind a lock, and the clock.
#[derive(Debug)]
pub(crate) struct Registries {
    origin: Instant,
    waits: Mutex<RegistryWaits>,
}

impl Default for Registries {
    fn default() -> Self {
        Self { origin: Instant::now(), waits: Mutex::default() }
    }
}

impl Registries {
    /// Calls `act` with the state and the time.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut RegistryWaits, Duration) -> T) -> T {
        let mut waits = self.waits.lock();
        act(&mut waits, self.origin.elapsed())
    }
}

/// Calls `retry` for each BundleDeployment that waits for a registry, once the registry answers again or it is its turn to try. Never ends.
pub(crate) async fn run(registries: &Registries, mut returns: Receiver<String>, retry: impl Fn(&str)) {
    let mut tick = tokio::time::interval(SCOUT);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let waiting = tokio::select! {
            returned = returns.recv() => match returned {
                Ok(registry) => {
                    let waiting = registries.with(|waits, now| waits.answers(&registry, now));
                    tracing::info!(registry, waiting = waiting.len(), "the registry answers again");
                    waiting
                }
                // So many returned at once that some are no longer known: the scouts find them.
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return std::future::pending().await,
            },
            _ = tick.tick() => registries.with(RegistryWaits::new_scouts),
        };
        for name in &waiting {
            retry(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn one_of_all_asks_often() {
        let mut waits = RegistryWaits::default();
        assert!(waits.failed("r", "a", at(0)));
        assert!((1..100).all(|number| !waits.failed("r", &format!("b{number}"), at(1))));
        assert!(waits.failed("r", "a", at(4)) && waits.failed("other", "c", at(4)));
        assert!(!waits.failed("r", "b1", at(3) + RETIRED));
        assert!(waits.failed("r", "b1", at(4) + RETIRED), "the scout is gone");
        assert!(!waits.failed("r", "a", at(5) + RETIRED));
    }

    #[test]
    fn everybody_goes_on_when_the_registry_answers() {
        let mut waits = RegistryWaits::default();
        for name in ["a", "b", "c"] {
            waits.failed("r", name, at(0));
        }
        waits.failed("other", "d", at(0));
        assert_eq!(waits.answers("r", at(1)), ["a", "b", "c"]);
        assert!(waits.answers("r", at(1)).is_empty(), "they have been told");
        for name in ["a", "b", "c"] {
            waits.forget(name);
        }
        waits.forget("d");
        assert_eq!(waits, RegistryWaits::default());
    }

    #[test]
    fn a_deployment_that_fails_again_waits_longer_each_time() {
        let mut waits = RegistryWaits::default();
        let (mut now, mut times) = (0, Vec::new());
        while times.len() < 8 {
            waits.failed("r", "a", at(now));
            now += 1;
            if !waits.answers("r", at(now)).is_empty() {
                times.push(now);
            }
        }
        let pauses: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(pauses, [4, 8, 16, 32, 64, 128, 256]);
        waits.forget("a");
        waits.failed("r", "a", at(now));
        assert_eq!(waits.answers("r", at(now)), ["a"]);
    }

    #[test]
    fn a_scout_that_leaves_has_a_successor() {
        let mut waits = RegistryWaits::default();
        for name in ["a", "b", "c"] {
            waits.failed("r", name, at(0));
        }
        waits.forget("c");
        assert_eq!(waits.new_scouts(at(0)), [""; 0]);
        waits.forget("a");
        assert_eq!(waits.new_scouts(at(0)), ["b"]);
        assert!(waits.failed("r", "b", at(1)) && waits.new_scouts(at(1)).is_empty());
        assert_eq!(waits.new_scouts(at(1) + RETIRED), ["b"]);
        // It has another image now.
        assert!(waits.failed("other", "b", at(2)));
        assert_eq!(waits.answers("r", at(3)), [""; 0]);
    }
}
