//! The text format of faults: `EFFECT[=VALUE][,CONDITION=VALUE]...`.
//!
//! In values, a comma is written `%2C` and a percent sign `%25`.

use std::{
    fmt::{self, Display, Formatter},
    str::FromStr,
    time::Duration,
};

use http::Method;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::{
    effect::{Effect, When},
    fault::Fault,
    matching::Verb,
};

/// The name of an effect, the format of its value, and its meaning; for help texts.
pub const EFFECTS: &[(&str, &str, &str)] = &[
    ("latency", "=TIME[..TIME]", "the request waits, between the two times"),
    ("conflict", "", "409, nothing is written"),
    ("gone", "", "410 as the status, as for a compacted resource version"),
    ("too-many-requests", "[=TIME]", "429 with Retry-After, 1s by default"),
    ("internal-error", "", "500, nothing is written"),
    ("internal-error-after-write", "", "500, although the write took effect"),
    ("unavailable", "", "503, nothing is written"),
    ("reset", "", "no response, nothing is written"),
    ("reset-after-write", "", "no response, although the write took effect"),
    ("stale", "=N", "reads with resourceVersion=0 see N revisions ago"),
    ("drop-watch", "[=N|TIME]", "a watch ends at once, after N events or a time"),
    ("reset-watch", "[=N|TIME]", "like drop-watch, by a reset of the connection"),
    ("expire-watch", "[=N|TIME]", "like drop-watch, by an ERROR event with code 410"),
    ("slow-watch", "=TIME", "each event is sent this long after the previous one"),
    ("late-bookmarks", "=TIME", "each bookmark is delayed by this time"),
    ("no-bookmarks", "", "bookmarks are omitted"),
    ("established-delay", "=TIME", "the establishment of a CRD is delayed by this time"),
];

/// The name of a condition, the format of its value, and its meaning; for help texts.
pub const CONDITIONS: &[(&str, &str, &str)] = &[
    ("verb", "=VERB[+VERB]", "such as get, list, watch, create, update, patch, delete"),
    ("method", "=METHOD[+METHOD]", "the HTTP method, such as PUT"),
    ("path", "=PATTERN", "the path; in patterns `*` matches any characters"),
    ("resource", "=NAME[.GROUP]", "such as pods or deployments.apps"),
    ("group", "=PATTERN", "the API group; empty for the core group"),
    ("subresource", "=PATTERN", "such as status; empty for the object itself"),
    ("namespace", "=PATTERN", "empty for cluster-scoped objects and all namespaces"),
    ("name", "=PATTERN", "the object's name"),
    ("client", "=PATTERN", "the User-Agent"),
    ("manager", "=PATTERN", "the field manager"),
    ("dry-run", "=true|false", "only dry runs, or none"),
    ("simulation", "=true|false", "also affect simulated workloads [default: false]"),
    ("times", "=N", "at most N times [default: always]"),
    ("after", "=N", "not the first N matching requests"),
    ("every", "=N", "each Nth matching request"),
    ("probability", "=P", "between 0 and 1, or as 30%"),
    ("seed", "=N", "the seed of random decisions [default: 0]"),
];

/// Why a text is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// There is nothing.
    #[error("a fault is written EFFECT[=VALUE][,CONDITION=VALUE]..., such as `conflict,verb=patch,times=3`")]
    Empty,
    /// There is no such effect.
    #[error("{name:?} is not an effect: {}", suggestion(name, EFFECTS))]
    Effect {
        /// The given text.
        name: String,
    },
    /// There is no such condition.
    #[error("{name:?} is not a condition: {}", suggestion(name, CONDITIONS))]
    Condition {
        /// The given text.
        name: String,
    },
    /// A duplicate condition.
    #[error("{name} is given twice")]
    Twice {
        /// The condition.
        name: String,
    },
    /// An effect or a condition has the wrong value.
    #[error("{name}{}: {expected}", value.as_ref().map(|value| format!("={value}")).unwrap_or_default())]
    Value {
        /// The effect or the condition.
        name: String,
        /// The given text.
        value: Option<String>,
        /// What is expected.
        expected: &'static str,
    },
    /// The effect cannot happen to requests with the verb.
    #[error("{effect} applies to requests with the verb {possible}, not {verb}")]
    Verb {
        /// The effect.
        effect: String,
        /// The verbs to which it happens.
        possible: String,
        /// The one that was requested.
        verb: &'static str,
    },
}

const TIME: &str = "expected a time, such as 200ms, 2s or 1m";
const NUMBER: &str = "expected a whole number";
const TRUTH: &str = "expected true or false";
const WHEN: &str = "expected a number of events or a time, such as 3 or 10s";
const NOTHING: &str = "it takes no value";

/// The known name that is nearest, if one is near; else all of them.
fn suggestion(name: &str, known: &[(&str, &str, &str)]) -> String {
    let nearest = known.iter().map(|(known, ..)| (distance(name, known), *known)).min();
    match nearest {
        Some((distance, name)) if distance <= 3 => format!("did you mean {name}?"),
        _ => format!("expected one of {}", known.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ")),
    }
}

/// How many characters have to be added, removed or replaced (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    // A name that long is nothing known.
    const LONGEST: usize = 40;
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (above, character) in from.chars().take(LONGEST).enumerate() {
        let mut next = vec![above + 1];
        for ((other, pair), left) in to.chars().zip(row.windows(2)).zip(0_usize..) {
            if let ([diagonal, up], Some(before)) = (pair, next.get(left).copied()) {
                next.push((diagonal + usize::from(other != character)).min(up + 1).min(before + 1));
            }
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

/// One element of the text: a name and perhaps a value.
#[derive(Clone, Copy)]
struct Term<'a> {
    name: &'a str,
    value: Option<&'a str>,
}

impl<'a> Term<'a> {
    fn new(text: &'a str) -> Self {
        match text.split_once('=') {
            Some((name, value)) => Self { name: name.trim(), value: Some(value.trim()) },
            None => Self { name: text.trim(), value: None },
        }
    }

    fn wrong(self, expected: &'static str) -> FaultError {
        FaultError::Value { name: self.name.to_owned(), value: self.value.map(str::to_owned), expected }
    }

    fn nothing(self) -> Result<(), FaultError> {
        if self.value.is_none() { Ok(()) } else { Err(self.wrong(NOTHING)) }
    }

    fn time(self) -> Result<Duration, FaultError> {
        self.value.and_then(parse_time).ok_or_else(|| self.wrong(TIME))
    }

    fn times(self) -> Result<(Duration, Duration), FaultError> {
        let wrong = || self.wrong("expected a time or a range, such as 200ms or 100ms..2s");
        let value = self.value.ok_or_else(wrong)?;
        let (least, most) = value.split_once("..").unwrap_or((value, value));
        match (parse_time(least), parse_time(most)) {
            (Some(least), Some(most)) if least <= most => Ok((least, most)),
            _ => Err(wrong()),
        }
    }

    fn when(self) -> Result<When, FaultError> {
        let Some(value) = self.value else { return Ok(When::AT_ONCE) };
        let events = value.parse().ok().map(When::Events);
        events.or_else(|| parse_time(value).map(When::Time)).ok_or_else(|| self.wrong(WHEN))
    }

    fn number(self) -> Result<u64, FaultError> {
        self.value.and_then(|value| value.parse().ok()).ok_or_else(|| self.wrong(NUMBER))
    }

    fn truth(self) -> Result<bool, FaultError> {
        self.value.and_then(|value| value.parse().ok()).ok_or_else(|| self.wrong(TRUTH))
    }

    fn probability(self) -> Result<f64, FaultError> {
        let parse = |value: &str| match value.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
            None => value.parse().ok(),
        };
        let probability = self.value.and_then(parse).filter(|probability| (0.0..=1.0).contains(probability));
        probability.ok_or_else(|| self.wrong("expected a number between 0 and 1, or a percentage such as 30%"))
    }

    fn text(self) -> Result<String, FaultError> {
        let value = self.value.ok_or_else(|| self.wrong("expected a value, which may be empty"))?;
        let text = percent_decode_str(value).decode_utf8();
        text.map(std::borrow::Cow::into_owned).map_err(|_| self.wrong("expected percent-encoded UTF-8"))
    }
}

fn parse_effect(term: Term<'_>) -> Result<Effect, FaultError> {
    let plain = |effect| term.nothing().map(|()| effect);
    match term.name {
        "latency" => term.times().map(|(least, most)| Effect::Latency { least, most }),
        "conflict" => plain(Effect::Conflict),
        "gone" => plain(Effect::Gone),
        "too-many-requests" => {
            let retry_after = if term.value.is_some() { term.time()? } else { RETRY_AFTER };
            Ok(Effect::TooManyRequests { retry_after })
        }
        "internal-error" => plain(Effect::InternalError),
        "internal-error-after-write" => plain(Effect::InternalErrorAfterWrite),
        "unavailable" => plain(Effect::Unavailable),
        "reset" => plain(Effect::Reset),
        "reset-after-write" => plain(Effect::ResetAfterWrite),
        "stale" => term.number().map(|revisions| Effect::Stale { revisions }),
        "drop-watch" => term.when().map(Effect::DropWatch),
        "reset-watch" => term.when().map(Effect::ResetWatch),
        "expire-watch" => term.when().map(Effect::ExpireWatch),
        "slow-watch" => term.time().map(|delay| Effect::SlowWatch { delay }),
        "late-bookmarks" => term.time().map(|delay| Effect::LateBookmarks { delay }),
        "no-bookmarks" => plain(Effect::NoBookmarks),
        "established-delay" => term.time().map(|delay| Effect::EstablishedDelay { delay }),
        "" => Err(FaultError::Empty),
        other => Err(FaultError::Effect { name: other.to_owned() }),
    }
}

/// `Retry-After` where none is stated.
const RETRY_AFTER: Duration = Duration::from_secs(1);

fn with_condition(fault: Fault, term: Term<'_>) -> Result<Fault, FaultError> {
    Ok(match term.name {
        "verb" => {
            let text = term.text()?;
            let known = |name: &str| Verb::ALL.iter().copied().find(|verb| verb.name() == name);
            let verbs: Option<Vec<Verb>> = text.split('+').map(known).collect();
            let expected = "expected verbs of the Kubernetes API, joined by +; HTTP methods are named by method=";
            verbs.ok_or_else(|| term.wrong(expected))?.into_iter().fold(fault, Fault::verb)
        }
        "method" => {
            let text = term.text()?;
            let known = |name: &str| Method::from_bytes(name.to_ascii_uppercase().as_bytes()).ok();
            let methods: Option<Vec<Method>> = text.split('+').map(known).collect();
            let expected = "expected HTTP methods, joined by +";
            methods.ok_or_else(|| term.wrong(expected))?.into_iter().fold(fault, Fault::method)
        }
        "path" => fault.path(term.text()?),
        "resource" => {
            let text = term.text()?;
            if text.is_empty() {
                return Err(term.wrong("expected a resource, such as pods or deployments.apps"));
            }
            fault.resource(&text)
        }
        "group" => fault.group(term.text()?),
        "subresource" => fault.subresource(term.text()?),
        "namespace" => fault.namespace(term.text()?),
        "name" => fault.name(term.text()?),
        "client" => fault.client(term.text()?),
        "manager" => fault.manager(term.text()?),
        "dry-run" => fault.dry_run(term.truth()?),
        "simulation" => {
            let mut fault = fault;
            fault.matcher.simulation = term.truth()?;
            fault
        }
        "times" => fault.times(term.number()?),
        "after" => fault.after(term.number()?),
        "every" => match term.number()? {
            0 => return Err(term.wrong("expected a whole number of at least 1")),
            number => fault.every(number),
        },
        "probability" => fault.probability(term.probability()?),
        "seed" => fault.seed(term.number()?),
        other => return Err(FaultError::Condition { name: other.to_owned() }),
    })
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let mut terms = text.split(',').map(Term::new);
        let head = terms.next().ok_or(FaultError::Empty)?;
        let mut fault = Self::new(parse_effect(head)?);
        let mut seen = Vec::new();
        for term in terms {
            if seen.contains(&term.name) {
                return Err(FaultError::Twice { name: term.name.to_owned() });
            }
            seen.push(term.name);
            if term.name == "group" && fault.matcher.group.is_some() {
                return Err(term.wrong("the resource already has a group"));
            }
            let group = fault.matcher.group.clone();
            fault = with_condition(fault, term)?;
            if term.name == "resource" && group.is_some() && fault.matcher.group != group {
                return Err(term.wrong("another group is given, too"));
            }
        }
        if let Some(possible) = fault.effect.verbs()
            && let Some(verb) = fault.matcher.verbs.iter().find(|verb| !possible.contains(verb))
        {
            return Err(FaultError::Verb {
                effect: head.name.to_owned(),
                possible: possible.iter().map(|verb| verb.name()).collect::<Vec<_>>().join(", "),
                verb: verb.name(),
            });
        }
        Ok(fault)
    }
}

impl Display for Effect {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let when = |f: &mut Formatter<'_>, name: &str, when: &When| match when {
            When::Events(0) => f.write_str(name),
            When::Events(events) => write!(f, "{name}={events}"),
            When::Time(time) => write!(f, "{name}={}", Time(*time)),
        };
        match self {
            Self::Latency { least, most } if least == most => write!(f, "latency={}", Time(*least)),
            Self::Latency { least, most } => write!(f, "latency={}..{}", Time(*least), Time(*most)),
            Self::Conflict => f.write_str("conflict"),
            Self::Gone => f.write_str("gone"),
            Self::TooManyRequests { retry_after } if *retry_after == RETRY_AFTER => f.write_str("too-many-requests"),
            Self::TooManyRequests { retry_after } => write!(f, "too-many-requests={}", Time(*retry_after)),
            Self::InternalError => f.write_str("internal-error"),
            Self::InternalErrorAfterWrite => f.write_str("internal-error-after-write"),
            Self::Unavailable => f.write_str("unavailable"),
            Self::Reset => f.write_str("reset"),
            Self::ResetAfterWrite => f.write_str("reset-after-write"),
            Self::Stale { revisions } => write!(f, "stale={revisions}"),
            Self::DropWatch(moment) => when(f, "drop-watch", moment),
            Self::ResetWatch(moment) => when(f, "reset-watch", moment),
            Self::ExpireWatch(moment) => when(f, "expire-watch", moment),
            Self::SlowWatch { delay } => write!(f, "slow-watch={}", Time(*delay)),
            Self::LateBookmarks { delay } => write!(f, "late-bookmarks={}", Time(*delay)),
            Self::NoBookmarks => f.write_str("no-bookmarks"),
            Self::EstablishedDelay { delay } => write!(f, "established-delay={}", Time(*delay)),
        }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        /// Characters with a meaning between the parts of a fault, or that are trimmed at their edges.
        const RESERVED: &AsciiSet = &CONTROLS.add(b',').add(b'%').add(b' ');
        let matcher = &self.matcher;
        write!(f, "{}", self.effect)?;
        if !matcher.verbs.is_empty() {
            let verbs: Vec<&str> = matcher.verbs.iter().map(|verb| verb.name()).collect();
            write!(f, ",verb={}", verbs.join("+"))?;
        }
        if !matcher.methods.is_empty() {
            let methods: Vec<&str> = matcher.methods.iter().map(Method::as_str).collect();
            write!(f, ",method={}", methods.join("+"))?;
        }
        let group = match (&matcher.resource, &matcher.group) {
            // Joined, where the two come apart again at the same place.
            (Some(resource), Some(group)) if !resource.is_empty() && !resource.contains('.') => {
                write!(
                    f,
                    ",resource={resource}.{group}",
                    resource = utf8_percent_encode(resource, RESERVED),
                    group = utf8_percent_encode(group, RESERVED)
                )?;
                None
            }
            (Some(resource), group) => {
                write!(f, ",resource={}", utf8_percent_encode(resource, RESERVED))?;
                group.as_ref()
            }
            (None, group) => group.as_ref(),
        };
        let texts = [
            ("group", group),
            ("path", matcher.path.as_ref()),
            ("subresource", matcher.subresource.as_ref()),
            ("namespace", matcher.namespace.as_ref()),
            ("name", matcher.name.as_ref()),
            ("client", matcher.client.as_ref()),
            ("manager", matcher.manager.as_ref()),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                write!(f, ",{name}={}", utf8_percent_encode(text, RESERVED))?;
            }
        }
        if let Some(dry_run) = matcher.dry_run {
            write!(f, ",dry-run={dry_run}")?;
        }
        if matcher.simulation {
            f.write_str(",simulation=true")?;
        }
        if let Some(times) = self.times {
            write!(f, ",times={times}")?;
        }
        for (name, number, usual) in [("after", self.after, 0), ("every", self.every, 1), ("seed", self.seed, 0)] {
            if number != usual {
                write!(f, ",{name}={number}")?;
            }
        }
        if self.probability < 1.0 {
            write!(f, ",probability={}", self.probability)?;
        }
        Ok(())
    }
}

/// A time in the largest unit in which it is a whole number.
struct Time(Duration);

/// Units and their length in nanoseconds.
const UNITS: &[(&str, u128)] = &[
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        if nanoseconds == 0 {
            return f.write_str("0s");
        }
        let fitting = UNITS.iter().find(|(_, length)| nanoseconds.is_multiple_of(*length));
        fitting.map_or(Ok(()), |(unit, length)| write!(f, "{}{unit}", nanoseconds / length))
    }
}

fn parse_time(text: &str) -> Option<Duration> {
    let split = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(split);
    let (_, length) = UNITS.iter().find(|(known, _)| *known == unit)?;
    let nanoseconds = number.parse::<u128>().ok()?.checked_mul(*length)?;
    let seconds = u64::try_from(nanoseconds / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, u32::try_from(nanoseconds % 1_000_000_000).ok()?))
}

#[cfg(test)]
mod tests;
