//! Versions and constraints as Masterminds/semver v3 reads them, which Helm and Sprig use.

use std::{cmp::Ordering, fmt};

/// A version. Its parts are ordered as in semantic versioning; build metadata does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number; 0 if the text has none.
    pub minor: u64,
    /// The third number; 0 if the text has none.
    pub patch: u64,
    /// What follows `-`, without it.
    pub prerelease: String,
    /// What follows `+`, without it.
    pub metadata: String,
    /// The text it was read from.
    pub original: String,
}

/// The text is not a version.
const INVALID: &str = "invalid semantic version";

impl Version {
    /// Reads a version, with or without a leading `v`, whose minor and patch numbers may be missing.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = Parts::of(text.strip_prefix('v').unwrap_or(text)).filter(|parts| parts.rest.is_empty());
        let parts = parts.ok_or(INVALID)?;
        let number = |text: &str| -> Result<u64, String> {
            if text.is_empty() {
                return Ok(0);
            }
            if !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(INVALID.to_owned());
            }
            text.parse().map_err(|_| {
                format!("error parsing version segment: strconv.ParseUint: parsing {text:?}: value out of range")
            })
        };
        let (major, minor, patch) = (number(parts.major)?, number(parts.minor)?, number(parts.patch)?);
        let zero =
            |part: &str| part.len() > 1 && part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit());
        if parts.prerelease.split('.').any(zero) {
            return Err("version segment starts with 0".to_owned());
        }
        Ok(Self {
            major,
            minor,
            patch,
            prerelease: parts.prerelease.to_owned(),
            metadata: parts.metadata.to_owned(),
            original: text.to_owned(),
        })
    }

    /// The order of two versions.
    pub fn compare(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| compare_prereleases(&self.prerelease, &other.prerelease))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn compare_prereleases(one: &str, other: &str) -> Ordering {
    match (one.is_empty(), other.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut one, mut other) = (one.split('.'), other.split('.'));
    loop {
        let order = match (one.next(), other.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// A version or a pattern of versions, in parts; numbers may be wildcards.
struct Parts<'a> {
    major: &'a str,
    minor: &'a str,
    patch: &'a str,
    prerelease: &'a str,
    metadata: &'a str,
    /// What follows.
    rest: &'a str,
}

impl<'a> Parts<'a> {
    /// The longest pattern at the begin of the text, without a leading `v`.
    fn of(text: &'a str) -> Option<Self> {
        let number = |text: &'a str| -> Option<(&'a str, &'a str)> {
            let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, 'x' | 'X' | '*' | '|')));
            let (number, rest) = text.split_at(end.unwrap_or(text.len()));
            (!number.is_empty()).then_some((number, rest))
        };
        let (major, mut rest) = number(text)?;
        let mut further = || match rest.strip_prefix('.').and_then(number) {
            Some((part, after)) => {
                rest = after;
                part
            }
            None => "",
        };
        let (minor, patch) = (further(), further());
        let mut labels = |mark: char| match rest.strip_prefix(mark).and_then(identifiers) {
            Some((part, after)) => {
                rest = after;
                part
            }
            None => "",
        };
        let (prerelease, metadata) = (labels('-'), labels('+'));
        Some(Self { major, minor, patch, prerelease, metadata, rest })
    }
}

/// Identifiers with dots between them.
fn identifiers(text: &str) -> Option<(&str, &str)> {
    let mut end = 0;
    loop {
        let rest = text.get(end..)?;
        let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'-').count();
        if length == 0 {
            // A dot without an identifier behind it does not belong to the label.
            end = end.checked_sub(1)?;
            break;
        }
        end += length;
        if !text.get(end..)?.starts_with('.') {
            break;
        }
        end += 1;
    }
    Some(text.split_at(end))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

/// The operators, longer ones first.
const OPERATORS: [(&str, Operator); 11] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterEqual),
    ("=>", Operator::GreaterEqual),
    ("<=", Operator::LessEqual),
    ("=<", Operator::LessEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

#[derive(Clone, Debug)]
struct Comparison {
    operator: Operator,
    version: Version,
    /// Whether a part is missing or a wildcard.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

/// A constraint: alternatives, of which one must hold in all of its comparisons.
#[derive(Clone, Debug)]
pub struct Constraint {
    alternatives: Vec<Vec<Comparison>>,
}

/// More bytes are refused, so that a constraint costs little.
const MOST_BYTES: usize = 4096;

impl Constraint {
    /// Reads a constraint.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MOST_BYTES {
            return Err(format!("the constraint has more than {MOST_BYTES} bytes"));
        }
        let rewritten = rewrite_ranges(text);
        let alternatives =
            rewritten.split("||").map(|part| group(part).ok_or_else(|| format!("improper constraint: {part}")));
        Ok(Self { alternatives: alternatives.collect::<Result<_, _>>()? })
    }

    /// Whether a version satisfies the constraint.
    pub fn check(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|group| {
            let prereleases = group.iter().any(|comparison| !comparison.version.prerelease.is_empty());
            (prereleases || version.prerelease.is_empty()) && group.iter().all(|comparison| comparison.holds(version))
        })
    }
}

/// Replaces `1.2 - 1.4` by two comparisons.
fn rewrite_ranges(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(" - ").or_else(|| rest.find("\t-").filter(|_| false)) {
        let before = rest.get(..at).unwrap_or_default().trim_end();
        let after = rest.get(at + 3..).unwrap_or_default().trim_start();
        // The longest end of the text before that is a version as a whole.
        let start = before
            .char_indices()
            .rev()
            .take_while(|(_, c)| c.is_ascii_alphanumeric() || matches!(c, '*' | '|' | '.' | '-' | '+'))
            .map(|(start, _)| start)
            .filter(|start| {
                let text = before.get(*start..).unwrap_or_default();
                Parts::of(text.strip_prefix('v').unwrap_or(text)).is_some_and(|parts| parts.rest.is_empty())
            })
            .last();
        let high = Parts::of(after.strip_prefix('v').unwrap_or(after));
        let (Some(start), Some(high)) = (start, high) else { break };
        let (lead, low) = before.split_at(start);
        let length = after.len() - high.rest.len();
        out.push_str(lead);
        out.push_str(">= ");
        out.push_str(low);
        out.push_str(", <= ");
        out.push_str(after.get(..length).unwrap_or_default());
        rest = high.rest;
    }
    out.push_str(rest);
    out
}

fn group(text: &str) -> Option<Vec<Comparison>> {
    let mut rest = text.trim_start();
    if rest.is_empty() && text.is_empty() {
        return Some(vec![Comparison {
            operator: Operator::Equal,
            version: Version::parse("0.0.0").ok()?,
            dirty: true,
            minor_dirty: false,
            patch_dirty: false,
        }]);
    }
    let mut comparisons = Vec::new();
    loop {
        let (comparison, after) = comparison(rest)?;
        comparisons.push(comparison);
        let trimmed = after.trim_start();
        if trimmed.is_empty() {
            return Some(comparisons);
        }
        rest = match trimmed.strip_prefix(',') {
            Some(behind) => behind.trim_start(),
            None if trimmed.len() < after.len() => trimmed,
            None => return None,
        };
    }
}

fn comparison(text: &str) -> Option<(Comparison, &str)> {
    let (operator, rest) = OPERATORS
        .iter()
        .find_map(|(sign, operator)| text.strip_prefix(sign).map(|rest| (*operator, rest)))
        .unwrap_or((Operator::Equal, text));
    let pattern = rest.trim_start();
    let pattern = pattern.strip_prefix('v').unwrap_or(pattern);
    let parts = Parts::of(pattern)?;
    let wild = |part: &str| part.is_empty() || matches!(part, "x" | "X" | "*");
    let label = if parts.prerelease.is_empty() { String::new() } else { format!("-{}", parts.prerelease) };
    let (mut dirty, mut minor_dirty, mut patch_dirty) = (true, false, false);
    let version = if wild(parts.major) {
        format!("0.0.0{label}")
    } else if wild(parts.minor) {
        minor_dirty = true;
        format!("{}.0.0{label}", parts.major)
    } else if wild(parts.patch) {
        patch_dirty = true;
        format!("{}.{}.0{label}", parts.major, parts.minor)
    } else {
        dirty = false;
        format!("{}.{}.{}{label}", parts.major, parts.minor, parts.patch)
    };
    let version = Version::parse(&version).ok()?;
    Some((Comparison { operator, version, dirty, minor_dirty, patch_dirty }, parts.rest))
}

impl Comparison {
    fn holds(&self, v: &Version) -> bool {
        let c = &self.version;
        match self.operator {
            Operator::Equal if self.dirty => self.tilde(v),
            Operator::Equal => v.compare(c) == Ordering::Equal,
            Operator::NotEqual => self.not_equal(v),
            Operator::Greater if !self.dirty => v.compare(c) == Ordering::Greater,
            Operator::Greater => match v.major.cmp(&c.major) {
                Ordering::Greater => true,
                Ordering::Less => false,
                Ordering::Equal if self.minor_dirty => false,
                Ordering::Equal if self.patch_dirty => v.minor > c.minor,
                Ordering::Equal => v.compare(c) == Ordering::Greater,
            },
            Operator::Less => v.compare(c) == Ordering::Less,
            Operator::GreaterEqual => v.compare(c) != Ordering::Less,
            Operator::LessEqual if !self.dirty => v.compare(c) != Ordering::Greater,
            Operator::LessEqual => {
                v.major <= c.major && !(v.major == c.major && v.minor > c.minor && !self.minor_dirty)
            }
            Operator::Tilde => self.tilde(v),
            Operator::Caret => self.caret(v),
        }
    }

    fn not_equal(&self, v: &Version) -> bool {
        let c = &self.version;
        if self.dirty {
            if c.major != v.major || (c.minor != v.minor && !self.minor_dirty) {
                return true;
            }
            if self.minor_dirty {
                return false;
            }
            if c.patch != v.patch && !self.patch_dirty {
                return true;
            }
            if self.patch_dirty {
                return compare_prereleases(&v.prerelease, &c.prerelease) != Ordering::Equal;
            }
        }
        v.compare(c) != Ordering::Equal
    }

    fn tilde(&self, v: &Version) -> bool {
        let c = &self.version;
        if v.compare(c) == Ordering::Less {
            return false;
        }
        let any = (c.major, c.minor, c.patch) == (0, 0, 0) && !self.minor_dirty && !self.patch_dirty;
        any || (v.major == c.major && (v.minor == c.minor || self.minor_dirty))
    }

    fn caret(&self, v: &Version) -> bool {
        let c = &self.version;
        if v.compare(c) == Ordering::Less {
            return false;
        }
        if c.major > 0 || self.minor_dirty {
            return v.major == c.major;
        }
        if v.major > 0 {
            return false;
        }
        if c.minor > 0 || self.patch_dirty {
            return v.minor == c.minor;
        }
        v.minor == 0 && c.patch == v.patch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_hold_as_in_go() {
        for (constraint, version, holds) in [
            ("<1.25-0", "v1.33.0", false),
            (">=1.19", "v1.33.0-gke.1", false),
            (">=1.19-0", "v1.33.0-gke.1", true),
            (">=1.4-0, <1.7-0", "1.6.9", true),
            (">= 1.18-0", "1.18.0", true),
            ("^1.7-0", "1.33.0", true),
            ("^0.2", "0.3.0", false),
            ("~1.2.3", "1.2.9", true),
            ("~1", "1.9.9", true),
            ("2.x.x", "2.31.3", true),
            ("*", "0.0.1", true),
            ("", "3.0.0", true),
            ("1.2 - 1.4", "1.4.0", true),
            ("1.2 - 1.4", "1.5.0", false),
            ("<1 || >=2", "2.1.0", true),
            ("<1 || >=2", "1.1.0", false),
            (">1", "1.9.0", false),
            ("!=1.2", "1.2.5", false),
            ("<=1.2", "1.2.9", true),
            (">=0.0.0-0", "0.21.0-SNAPSHOT", true),
            (">=1.16.0-0 <1.30", "1.20.1", true),
        ] {
            let parsed = Constraint::parse(constraint).unwrap();
            assert_eq!(parsed.check(&Version::parse(version).unwrap()), holds, "{constraint} {version}");
        }
    }

    #[test]
    fn versions_and_constraints_that_are_none_are_refused() {
        for text in ["", "a", "1.2.3.4", "1.2.3-", "v", "1.2.3-01"] {
            assert!(Version::parse(text).is_err(), "{text}");
        }
        for text in ["foo", "> ", "1.2.3.4", ">=1.2,,<3", "1.2 !"] {
            assert!(Constraint::parse(text).is_err(), "{text}");
        }
        let version = Version::parse("v1.2-rc.1+b").unwrap();
        assert_eq!((version.to_string(), version.original), ("1.2.0-rc.1+b".to_owned(), "v1.2-rc.1+b".to_owned()));
    }
}
