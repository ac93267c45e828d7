//! Constraints on versions.

use std::cmp::Ordering;

use crate::{
    Version, VersionError,
    version::{Parts, compare_prereleases},
};

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

/// A constraint: alternatives, of which one must hold in all of its comparisons. A version with a pre-release satisfies only alternatives that name
/// a pre-release.
#[derive(Clone, Debug)]
pub struct Constraint {
    alternatives: Vec<Vec<Comparison>>,
}

/// More bytes are refused, so that a constraint costs little.
pub(crate) const MOST_BYTES: usize = 4096;

impl Constraint {
    /// Reads a constraint such as `>=1.2, <2`, `^1.2 || ~3.1`, `1.2 - 1.5` or `1.x`.
    ///
    /// # Errors
    /// The text is not a constraint, or has more than 4096 bytes.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        if text.len() > MOST_BYTES {
            return Err(VersionError::TooLong);
        }
        let rewritten = rewrite_ranges(text);
        let alternatives =
            rewritten.split("||").map(|part| group(part).ok_or_else(|| VersionError::Constraint(part.to_owned())));
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
    while let Some(at) = rest.find(" - ") {
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
