//! Figures about the calls of a component, for the status of its class.
//!
//! Readers of a class need not be allowed to read bundles: the figures name kinds of objects, and nothing else of them. Bundles are
//! untrusted, so the number of kinds and their length are limited.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use chandler_api::ClassCalls;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// How many kinds are kept.
const KINDS: usize = 32;
/// Bytes of a kind with its group. A longer one is left out.
const KIND_BYTES: usize = 253;
/// From how many calls, the last ones, the times come.
const TIMES: usize = 256;
/// How long figures in the status stay when only numbers changed and none doubled, in seconds: a status must not be written after each call.
const STAY: i64 = 3600;

/// Figures about the calls of one component.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    total: u64,
    failed: u64,
    has_schema: bool,
    kinds: BTreeSet<String>,
    times: VecDeque<Duration>,
}

impl Figures {
    /// Notes a call that rendered objects of these kinds and groups, what it used of its time, and whether it returned a schema of the
    /// configuration.
    pub fn rendered<'a>(
        &mut self,
        kinds: impl IntoIterator<Item = (&'a str, &'a str)>,
        time: Duration,
        has_schema: bool,
    ) {
        self.note(time);
        self.has_schema |= has_schema;
        for (kind, group) in kinds {
            if kind.len().saturating_add(group.len()) >= KIND_BYTES || !is_plain(kind) || !is_plain(group) {
                continue;
            }
            let name = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
            if self.kinds.len() < KINDS {
                self.kinds.insert(name);
            }
        }
    }

    /// Notes a call that crashed or exceeded a limit.
    pub fn failed(&mut self, time: Duration) {
        self.note(time);
        self.failed = self.failed.saturating_add(1);
    }

    /// Notes a call that refused its bundle.
    pub fn refused(&mut self, time: Duration) {
        self.note(time);
    }

    fn note(&mut self, time: Duration) {
        self.total = self.total.saturating_add(1);
        if self.times.len() >= TIMES {
            self.times.pop_front();
        }
        self.times.push_back(time);
    }

    /// The figures as the status has them; `None` without a call.
    pub fn report(&self, component: &str, now: Time) -> Option<ClassCalls> {
        let mut times: Vec<Duration> = self.times.iter().copied().collect();
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        let at = |percent: usize| {
            let time = times.get(last.saturating_mul(percent) / 100).copied().unwrap_or_default();
            i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
        };
        let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Some(ClassCalls {
            component: component.to_owned(),
            total: count(self.total),
            failed: count(self.failed),
            median_milliseconds: at(50),
            p99_milliseconds: at(99),
            configuration_schema: self.has_schema,
            kinds: self.kinds.iter().cloned().collect(),
            observed: now,
        })
    }
}

/// Whether a kind or a group has only characters of names, so that it can be printed.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}

/// The figures for the status of a class with this component: the stored ones, unless newer ones have another kind, the first schema or
/// twice as many calls or failures, or the stored ones are an hour old. After a restart, kinds that were found before stay.
pub fn refreshed(stored: Option<&ClassCalls>, seen: Option<ClassCalls>, component: &str) -> Option<ClassCalls> {
    let stored = stored.filter(|stored| stored.component == component);
    let (Some(stored), Some(mut seen)) = (stored, seen.clone()) else { return seen.or_else(|| stored.cloned()) };
    seen.configuration_schema |= stored.configuration_schema;
    // A user who may write the status may have put more there.
    let known: BTreeSet<&String> = stored.kinds.iter().take(KINDS).chain(&seen.kinds).collect();
    seen.kinds = known.into_iter().take(KINDS).cloned().collect();
    let age = seen.observed.0.as_second().saturating_sub(stored.observed.0.as_second());
    let doubled = |before: i64, now: i64| now > 0 && now >= before.max(0).saturating_mul(2);
    let is_news = seen.kinds != stored.kinds
        || seen.configuration_schema != stored.configuration_schema
        || doubled(stored.total, seen.total)
        || doubled(stored.failed, seen.failed);
    let differs = seen.total != stored.total || seen.failed != stored.failed;
    Some(if is_news || differs && !(0..STAY).contains(&age) { seen } else { stored.clone() })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn milliseconds(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn figures_count_calls_and_name_kinds() {
        let mut figures = Figures::default();
        assert_eq!(figures.report("d", at(0)), None);
        for number in 1..=98 {
            figures.rendered([("Deployment", "apps"), ("ConfigMap", "")], milliseconds(number), number == 7);
        }
        figures.failed(milliseconds(900));
        figures.refused(milliseconds(99));
        let report = figures.report("d", at(5)).unwrap();
        assert_eq!(
            (report.total, report.failed, report.median_milliseconds, report.p99_milliseconds),
            (100, 1, 50, 99)
        );
        assert_eq!(
            (report.kinds.as_slice(), report.configuration_schema),
            (&["ConfigMap".to_owned(), "Deployment.apps".to_owned()][..], true)
        );
    }

    #[test]
    fn kinds_are_bounded_and_printable() {
        let mut figures = Figures::default();
        let long = "x".repeat(300);
        let many: Vec<String> = (0..1000).map(|number| format!("Kind{number}")).collect();
        let kinds = [(long.as_str(), ""), ("a\u{1b}[2J", ""), ("Ox", "a b")];
        figures.rendered(kinds, milliseconds(1), false);
        assert_eq!(figures.report("d", at(0)).unwrap().kinds, [""; 0]);
        for _ in 0..1000 {
            figures.rendered(many.iter().map(|kind| (kind.as_str(), "example.com")), milliseconds(1), false);
        }
        assert_eq!((figures.report("d", at(0)).unwrap().kinds.len(), figures.times.len()), (KINDS, TIMES));
    }

    #[test]
    fn a_status_changes_for_news_and_once_an_hour() {
        let report = |kinds: &[&str], total: u64, second| {
            let mut figures = Figures::default();
            for _ in 0..total {
                figures.rendered(kinds.iter().map(|kind| (*kind, "")), milliseconds(1), false);
            }
            figures.report("d", at(second)).unwrap()
        };
        let stored = report(&["Pod"], 5, 1000);
        let refreshed = |seen: Option<ClassCalls>, component| refreshed(Some(&stored), seen, component);
        assert_eq!(refreshed(None, "d"), Some(stored.clone()), "after a restart");
        assert_eq!(refreshed(None, "other"), None, "another component");
        assert_eq!(refreshed(Some(report(&["Pod"], 9, 1010)), "d"), Some(stored.clone()), "only numbers");
        assert_eq!(refreshed(Some(report(&["Pod"], 5, 9000)), "d"), Some(stored.clone()), "nothing changed");
        assert_eq!(refreshed(Some(report(&["Pod"], 9, 9000)), "d").unwrap().total, 9);
        assert_eq!(refreshed(Some(report(&["Pod"], 10, 1010)), "d").unwrap().total, 10, "twice as many");
        let news = refreshed(Some(report(&["Service"], 1, 1010)), "d").unwrap();
        assert_eq!((news.kinds.join(" "), news.total), ("Pod Service".to_owned(), 1));
    }
}
