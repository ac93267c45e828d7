//! Ranges as OLM v1 reads them from users, with the rules of Masterminds/semver.
//!
//! Pre-releases match only alternatives that name one, and build metadata is ignored.

mod intersection;

use semver::{Prerelease, Version};

use super::{BYTES, COMPARISONS, VersionError, number};

/// A range: alternatives of comparisons that all hold.
#[derive(Clone, Debug)]
pub struct Range {
    alternatives: Vec<Vec<Comparison>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Same,
    NotEqual,
    Greater,
    Less,
    AtLeast,
    AtMost,
    Tilde,
    Caret,
}

/// Longer ones come before their prefixes.
const OPERATORS: [(&str, Operator); 12] = [
    (">=", Operator::AtLeast),
    ("=>", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("=<", Operator::AtMost),
    ("!=", Operator::NotEqual),
    ("~>", Operator::Tilde),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
    ("=", Operator::Same),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("", Operator::Same),
];

/// How much of a version is given: `1.x` and `1` leave the minor version open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Nothing,
    Patch,
    Minor,
    Everything,
}

#[derive(Clone, Debug)]
struct Comparison {
    operator: Operator,
    version: Version,
    open: Open,
}

impl Range {
    /// Reads a range such as `>=1.2.0 <2`, `^1.2 || ~3.1`, `1.2 - 1.5` or `1.x`.
    ///
    /// # Errors
    /// If it is malformed or longer than the bounds.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let improper = |part: &str| VersionError::Constraint(part.chars().take(64).collect());
        if text.len() > BYTES {
            return Err(improper(text));
        }
        let mut alternatives = Vec::new();
        for part in text.split("||") {
            let comparisons = alternative(part).ok_or_else(|| improper(part))?;
            if comparisons.len() > COMPARISONS {
                return Err(improper(part));
            }
            alternatives.push(comparisons);
        }
        Ok(Self { alternatives })
    }

    /// Whether a version is in the range.
    pub fn matches(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|all| {
            let names_prerelease = all.iter().any(|one| !one.version.pre.is_empty());
            (version.pre.is_empty() || names_prerelease) && all.iter().all(|one| one.matches(version))
        })
    }

    /// Whether it names a pre-release.
    pub fn names_prerelease(&self) -> bool {
        self.alternatives.iter().flatten().any(|one| !one.version.pre.is_empty())
    }
}

fn alternative(text: &str) -> Option<Vec<Comparison>> {
    let mut comparisons = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let (operator, after) =
            OPERATORS.iter().find_map(|(token, operator)| Some((*operator, rest.strip_prefix(token)?)))?;
        let bare = after.len() == rest.len();
        let (version, open, after) = partial(after.trim_start())?;
        if let (true, Some(upper)) = (bare, hyphen(after)) {
            let (to, upper_open, after) = partial(upper)?;
            comparisons.push(Comparison { operator: Operator::AtLeast, version, open });
            comparisons.push(Comparison { operator: Operator::AtMost, version: to, open: upper_open });
            rest = after;
        } else {
            comparisons.push(Comparison { operator, version, open });
            rest = after;
        }
        let spaced = rest.trim_start();
        let comma = spaced.strip_prefix(',');
        if comma.is_none() && spaced.is_empty() {
            return Some(comparisons);
        }
        if comma.is_none() && spaced.len() == rest.len() {
            return None;
        }
        rest = comma.unwrap_or(spaced).trim_start();
    }
}

/// The text after ` - `.
fn hyphen(text: &str) -> Option<&str> {
    let spaced = text.trim_start();
    let after = spaced.strip_prefix('-').filter(|_| spaced.len() < text.len())?;
    let upper = after.trim_start();
    (upper.len() < after.len()).then_some(upper)
}

/// A version whose last parts may be missing or `x`.
fn partial(text: &str) -> Option<(Version, Open, &str)> {
    let mut rest = text.strip_prefix('v').unwrap_or(text);
    let mut parts = [None; 3];
    for (index, part) in parts.iter_mut().enumerate() {
        let after = if index == 0 { Some(rest) } else { rest.strip_prefix('.') };
        let Some(after) = after else { break };
        if let Some(after) = after.strip_prefix(['x', 'X', '*']) {
            rest = after;
        } else {
            let (value, after) = number(after)?;
            *part = Some(value);
            rest = after;
        }
    }
    let (pre, rest) = suffix(rest, '-')?;
    let (_, rest) = suffix(rest, '+')?;
    let (open, [major, minor, patch]) = match parts {
        [None, _, _] => (Open::Everything, [0, 0, 0]),
        [Some(major), None, _] => (Open::Minor, [major, 0, 0]),
        [Some(major), Some(minor), None] => (Open::Patch, [major, minor, 0]),
        [Some(major), Some(minor), Some(patch)] => (Open::Nothing, [major, minor, patch]),
    };
    let mut version = Version::new(major, minor, patch);
    version.pre = Prerelease::new(pre).ok()?;
    Some((version, open, rest))
}

/// The identifiers after a sign; empty without it.
fn suffix(text: &str, sign: char) -> Option<(&str, &str)> {
    let Some(after) = text.strip_prefix(sign) else { return Some(("", text)) };
    let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.')).unwrap_or(after.len());
    let (identifiers, rest) = after.split_at_checked(end)?;
    let proper = identifiers.split('.').all(|identifier| !identifier.is_empty());
    proper.then_some((identifiers, rest))
}

impl Comparison {
    fn matches(&self, version: &Version) -> bool {
        let order = version.cmp_precedence(&self.version);
        let (major, minor) = (version.major == self.version.major, version.minor == self.version.minor);
        match self.operator {
            Operator::Same if self.open != Open::Nothing => self.tilde(version),
            Operator::Same => order.is_eq(),
            Operator::NotEqual => match self.open {
                Open::Nothing => order.is_ne(),
                Open::Patch => !(major && minor),
                Open::Minor => !major,
                Open::Everything => !(major && minor && version.patch == self.version.patch) || order.is_ne(),
            },
            Operator::Greater => match self.open {
                Open::Nothing | Open::Everything => order.is_gt(),
                Open::Minor => version.major > self.version.major,
                Open::Patch => version.major > self.version.major || (major && version.minor > self.version.minor),
            },
            Operator::Less => order.is_lt(),
            Operator::AtLeast => order.is_ge(),
            Operator::AtMost => match self.open {
                Open::Nothing => order.is_le(),
                Open::Minor => version.major <= self.version.major,
                Open::Patch | Open::Everything => {
                    version.major < self.version.major || (major && version.minor <= self.version.minor)
                }
            },
            Operator::Tilde => self.tilde(version),
            Operator::Caret => self.caret(version),
        }
    }

    /// `~1.2.3` is `>=1.2.3 <1.3.0`, `~1` is `>=1.0.0 <2.0.0`, and `~*` is everything.
    fn tilde(&self, version: &Version) -> bool {
        if version.cmp_precedence(&self.version).is_lt() {
            return false;
        }
        let zero = (self.version.major, self.version.minor, self.version.patch) == (0, 0, 0);
        if zero && matches!(self.open, Open::Nothing | Open::Everything) {
            return true;
        }
        version.major == self.version.major && (version.minor == self.version.minor || self.open == Open::Minor)
    }

    /// The leftmost part that is not zero stays.
    fn caret(&self, version: &Version) -> bool {
        let base = &self.version;
        if version.cmp_precedence(base).is_lt() {
            return false;
        }
        if base.major > 0 || matches!(self.open, Open::Minor | Open::Everything) {
            return version.major == base.major || self.open == Open::Everything;
        }
        if version.major > 0 {
            return false;
        }
        if base.minor > 0 || self.open == Open::Patch {
            return version.minor == base.minor;
        }
        version.minor == 0 && version.patch == base.patch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_match_as_documented() {
        let cases = [
            (">=1.0.0 <2.0.0", "1.9.9 1.0.0", "2.0.0 0.9.0 1.5.0-rc.1"),
            (">=1.0.0, <2.0.0", "1.9.9 1.0.0", "2.0.0 0.9.0"),
            (">= 1.2", "1.2.0 3.0.0", "1.1.9"),
            ("1.2 - 1.5", "1.2.0 1.4.9 1.5.9", "1.1.9 1.6.0"),
            ("1.2.0 - 1.5.0", "1.5.0", "1.5.1"),
            ("1.x", "1.0.0 1.9.9", "2.0.0 0.9.9"),
            ("1", "1.0.0 1.9.9", "2.0.0"),
            ("1.2", "1.2.0 1.2.9", "1.3.0"),
            ("*", "0.0.1 9.9.9", "1.0.0-rc.1"),
            ("^1.2.3", "1.2.3 1.9.0", "2.0.0 1.2.2"),
            ("^0.2.3", "0.2.3 0.2.9", "0.3.0 1.0.0"),
            ("^0.0.3", "0.0.3", "0.0.4"),
            ("^0", "0.9.0", "1.0.0"),
            ("^0.0", "0.0.9", "0.1.0"),
            ("~1.2.3", "1.2.9", "1.3.0"),
            ("~1", "1.9.0", "2.0.0"),
            (">11", "12.0.0", "11.1.0"),
            (">11.1", "11.2.0", "11.1.9"),
            ("<=11", "11.9.0", "12.0.0"),
            ("<=11.1", "11.1.9 10.9.0", "11.2.0"),
            ("!=1.x", "2.0.0", "1.5.0"),
            ("!=1.2.3", "1.2.4", "1.2.3"),
            ("<1.0.0 || >=3", "0.9.0 3.1.0", "2.0.0"),
            (">=1.0.0-0", "1.0.0-rc.1 1.5.0", "0.9.0"),
            ("1.0.0+1", "1.0.0 1.0.0+1 1.0.0+2", "1.0.1"),
            ("v1.0.0", "1.0.0", "1.0.1"),
        ];
        for (range, inside, outside) in cases {
            let parsed = Range::parse(range).unwrap();
            for (versions, want) in [(inside, true), (outside, false)] {
                for version in versions.split(' ') {
                    assert_eq!(parsed.matches(&Version::parse(version).unwrap()), want, "{version} in {range:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        let long = ">=1.0.0 ".repeat(100);
        for text in
            ["", "foobar", "not-a-valid-version", ">=1.0.0<2.0.0", "1.0.0 ||", "1.2.3.4", ">>1", "1.0.0-", &long]
        {
            assert!(Range::parse(text).is_err(), "{text:?}");
        }
        let error = Range::parse("foobar").unwrap_err();
        assert_eq!(error.to_string(), "improper constraint: \"foobar\"");
    }
}
