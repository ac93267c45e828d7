//! Patterns of paths as Go's `filepath.Match` reads them.

use crate::{Steps, TooManySteps};

/// A pattern that is complete: each class is closed, and something follows each backslash.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Vec<char>);

impl Pattern {
    /// The pattern with this text; `None` if it is not complete.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let pattern: Vec<char> = text.chars().collect();
        check(&pattern)?;
        Some(Self(pattern))
    }

    /// Whether a path matches.
    pub(crate) fn matches(&self, path: &[char], steps: &mut Steps) -> Result<bool, TooManySteps> {
        let pattern = &self.0;
        // The place to continue from, if what follows the last star does not match here.
        let mut retry: Option<(usize, usize)> = None;
        let (mut at, mut to) = (0, 0);
        loop {
            steps.take(1)?;
            if pattern.get(at) == Some(&'*') {
                retry = Some((at + 1, to));
                at += 1;
                continue;
            }
            let step = match (pattern.get(at), path.get(to)) {
                (None, None) => return Ok(true),
                (Some('?'), Some(character)) if *character != '/' => Some(1),
                (Some('['), Some(character)) => {
                    let rest = pattern.get(at..).unwrap_or_default();
                    steps.take(rest.len())?;
                    class(rest, *character)
                }
                (Some('\\'), Some(character)) if pattern.get(at + 1) == Some(character) => Some(2),
                (Some(expected), Some(character)) if !matches!(expected, '?' | '\\') && expected == character => {
                    Some(1)
                }
                _ => None,
            };
            if let Some(step) = step {
                at += step;
                to += 1;
                continue;
            }
            // The star takes one character more, which cannot be a stroke.
            let Some((behind, from)) = retry else { return Ok(false) };
            if path.get(from).is_none_or(|character| *character == '/') {
                return Ok(false);
            }
            retry = Some((behind, from + 1));
            (at, to) = (behind, from + 1);
        }
    }
}

/// Whether a path matches a pattern: `*` and `?` match anything but a stroke, `[a-z]` one of some characters. `None` for a pattern that is wrong.
pub fn matches(pattern: &str, path: &str) -> Option<bool> {
    let path: Vec<char> = path.chars().collect();
    Pattern::parse(pattern)?.matches(&path, &mut Steps::unlimited()).ok()
}

/// The length of a class that contains a character.
fn class(pattern: &[char], character: char) -> Option<usize> {
    let mut at = 1;
    let negated = pattern.get(at) == Some(&'^');
    at += usize::from(negated);
    let (mut found, mut first) = (false, true);
    while first || pattern.get(at) != Some(&']') {
        first = false;
        let (low, next) = member(pattern, at)?;
        let (high, next) = if pattern.get(next) == Some(&'-') { member(pattern, next + 1)? } else { (low, next) };
        found |= (low..=high).contains(&character);
        at = next;
    }
    (found != negated && character != '/').then_some(at + 1)
}

fn member(pattern: &[char], at: usize) -> Option<(char, usize)> {
    match pattern.get(at)? {
        '-' | ']' => None,
        '\\' => Some((*pattern.get(at + 1)?, at + 2)),
        other => Some((*other, at + 1)),
    }
}

/// Whether a pattern is complete.
fn check(pattern: &[char]) -> Option<()> {
    let mut at = 0;
    while let Some(character) = pattern.get(at) {
        match character {
            '\\' => {
                pattern.get(at + 1)?;
                at += 2;
            }
            '[' => {
                let mut end = at + 1 + usize::from(pattern.get(at + 1) == Some(&'^'));
                let mut first = true;
                while first || pattern.get(end) != Some(&']') {
                    first = false;
                    let (_, next) = member(pattern, end)?;
                    end = if pattern.get(next) == Some(&'-') { member(pattern, next + 1)?.1 } else { next };
                }
                at = end + 1;
            }
            _ => at += 1,
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_go() {
        for (pattern, path, expected) in [
            ("*.tmp", "a.tmp", Some(true)),
            ("*.tmp", "a/b.tmp", Some(false)),
            ("a*b*c", "axxbyyc", Some(true)),
            ("a*b*c", "axxbyy", Some(false)),
            ("[a-c]?", "bz", Some(true)),
            ("[^a]", "a", Some(false)),
            (r"\*", "*", Some(true)),
            ("[", "a", None),
            ("[]a]", "a", None),
            ("*", "", Some(true)),
            ("", "", Some(true)),
            ("a", "", Some(false)),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends_with_its_steps() {
        let path: Vec<char> = "a".repeat(1000).chars().collect();
        let pattern = Pattern::parse(&format!("*{}b", "a".repeat(500))).unwrap();
        assert_eq!(pattern.matches(&path, &mut Steps::of(10_000)), Err(TooManySteps));
        assert_eq!(pattern.matches(&path, &mut Steps::of(1_000_000)), Ok(false));
        let classes = Pattern::parse(&format!("*[{}]b", "x".repeat(1000))).unwrap();
        assert_eq!(classes.matches(&path, &mut Steps::of(10_000)), Err(TooManySteps));
    }
}
