//! Ranges as catalogs write them, with the rules of blang/semver: full versions, or `x` for the last parts; pre-releases are
//! ordinary versions, and build metadata is ignored.

use semver::Version;

use super::{BYTES, COMPARISONS, VersionError, number};

/// A range: alternatives of comparisons that all hold.
#[derive(Clone, Debug)]
pub struct Range {
    text: String,
    alternatives: Vec<Vec<Comparison>>,
}

/// A version lies between two bounds, or outside of them.
#[derive(Clone, Debug)]
struct Comparison {
    /// The lower bound, and whether it is inside.
    from: Option<(Version, bool)>,
    /// The upper bound, and whether it is inside.
    to: Option<(Version, bool)>,
    not: bool,
}

impl Range {
    /// Reads a range such as `>=1.0.0 <2.0.0 || >3.0.0`, `!1.0.0` or `1.x`.
    ///
    /// # Errors
    /// If it is malformed or longer than the bounds.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let malformed = || VersionError::Range(text.chars().take(64).collect());
        if text.len() > BYTES {
            return Err(malformed());
        }
        let mut alternatives = Vec::new();
        for part in text.split("||") {
            let comparisons: Option<Vec<Comparison>> = tokens(part).iter().map(|token| comparison(token)).collect();
            let comparisons = comparisons.filter(|all| !all.is_empty() && all.len() <= COMPARISONS);
            alternatives.push(comparisons.ok_or_else(malformed)?);
        }
        Ok(Self { text: text.to_owned(), alternatives })
    }

    /// Whether a version is in the range.
    pub fn matches(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|all| all.iter().all(|one| one.matches(version)))
    }

    /// Whether it names a pre-release.
    pub fn names_prerelease(&self) -> bool {
        let named =
            |bound: &Option<(Version, bool)>| bound.as_ref().is_some_and(|(version, _)| !version.pre.is_empty());
        self.alternatives.iter().flatten().any(|one| named(&one.from) || named(&one.to))
    }

    /// The range as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The comparisons of an alternative; spaces may follow an operator.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match tokens.last_mut().filter(|last| last.ends_with(['>', '<', '='])) {
            Some(last) => last.push_str(word),
            None => tokens.push(word.to_owned()),
        }
    }
    tokens
}

fn comparison(token: &str) -> Option<Comparison> {
    let operators = ["==", ">=", "<=", "!=", "=", ">", "<", "!", ""];
    let (operator, text) = operators.iter().find_map(|operator| Some((*operator, token.strip_prefix(operator)?)))?;
    let (low, high) = bounds(text)?;
    let after = |high: Option<Version>, low: Version| high.map_or((low, false), |high| (high, true));
    let none = Comparison { from: None, to: None, not: false };
    Some(match operator {
        ">" => Comparison { from: Some(after(high, low)), ..none },
        ">=" => Comparison { from: Some((low, true)), ..none },
        "<" => Comparison { to: Some((low, false)), ..none },
        "<=" => Comparison { to: Some(high.map_or((low, true), |high| (high, false))), ..none },
        _ => {
            let to = high.map_or((low.clone(), true), |high| (high, false));
            Comparison { from: Some((low, true)), to: Some(to), not: operator.starts_with('!') }
        }
    })
}

/// The version, or with `x` the first version that matches and the first that is higher than all that match.
fn bounds(text: &str) -> Option<(Version, Option<Version>)> {
    if !text.contains(['x', 'X']) || text.contains(['-', '+']) {
        return Some((Version::parse(text).ok()?, None));
    }
    let (major, rest) = number(text)?;
    let rest = rest.strip_prefix('.')?;
    if is_open(rest) {
        return Some((Version::new(major, 0, 0), Some(Version::new(major.checked_add(1)?, 0, 0))));
    }
    let (minor, rest) = number(rest)?;
    let open = rest.strip_prefix('.').is_some_and(is_open);
    open.then_some((Version::new(major, minor, 0), Some(Version::new(major, minor.checked_add(1)?, 0))))
}

fn is_open(text: &str) -> bool {
    matches!(text, "x" | "X" | "x.x" | "X.X")
}

impl Comparison {
    fn matches(&self, version: &Version) -> bool {
        let above = self.from.as_ref().is_none_or(|(from, inside)| {
            let order = version.cmp_precedence(from);
            order.is_gt() || (*inside && order.is_eq())
        });
        let below = self.to.as_ref().is_none_or(|(to, inside)| {
            let order = version.cmp_precedence(to);
            order.is_lt() || (*inside && order.is_eq())
        });
        (above && below) != self.not
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_match_as_documented() {
        let cases = [
            (">=1.0.0 <2.0.0", "1.0.0 1.9.9 1.5.0-rc.1 2.0.0-rc.1", "0.9.0 2.0.0"),
            (">= 1.0.0 < 2.0.0", "1.0.0", "2.0.0"),
            (">1.0.0 <2.0.0 || >3.0.0 !4.2.1", "1.5.0 3.0.1 4.2.0", "2.5.0 4.2.1 1.0.0"),
            ("1.x", "1.0.0 1.9.0", "2.0.0"),
            ("1.2.x", "1.2.5", "1.3.0"),
            ("!1.x", "2.0.0", "1.5.0"),
            (">1.x", "2.0.0", "1.9.0"),
            ("<=1.2.x", "1.2.9", "1.3.0"),
            ("=1.0.0", "1.0.0 1.0.0+7", "1.0.1"),
            ("1.0.0", "1.0.0", "1.0.1"),
        ];
        for (range, inside, outside) in cases {
            let parsed = Range::parse(range).unwrap();
            assert_eq!(parsed.as_str(), range);
            for (versions, want) in [(inside, true), (outside, false)] {
                for version in versions.split(' ') {
                    assert_eq!(parsed.matches(&Version::parse(version).unwrap()), want, "{version} in {range:?}");
                }
            }
        }
        assert!(Range::parse(">=1.0.0-rc.1").unwrap().names_prerelease());
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "<4", ">=1.0", "1.0.0,2.0.0", "1.0.0 ||", "x", "v1.0.0", "^1.0.0", "~1.0.0", ">"] {
            assert!(Range::parse(text).is_err(), "{text:?}");
        }
    }
}
