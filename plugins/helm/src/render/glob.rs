//! The patterns of `.Files.Glob`, in which `*` stays within a directory and `**` does not.

/// How many steps one comparison may take: `*` may stand for many texts, and so may the next one.
const STEPS: usize = 100_000;

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Char(char),
    /// `?`: a character except a slash.
    One,
    /// `*`.
    Some,
    /// `**`.
    Any,
    /// `[abc]`, `[a-z]`, `[!a]`.
    Class {
        not: bool,
        ranges: Vec<(char, char)>,
    },
    /// `{a,b}`.
    Either(Vec<Vec<Part>>),
}

/// Whether a path matches a pattern. A pattern that cannot be read matches everything, as in Helm.
pub(super) struct Glob(Vec<Part>);

impl Glob {
    pub(super) fn new(pattern: &str) -> Self {
        let mut chars = pattern.chars().peekable();
        Self(parse(&mut chars, 0).filter(|_| chars.peek().is_none()).unwrap_or_else(|| vec![Part::Any]))
    }

    pub(super) fn matches(&self, path: &str) -> bool {
        let path: Vec<char> = path.chars().collect();
        matches(&[&self.0], &path, &mut 0)
    }
}

type Chars<'p> = std::iter::Peekable<std::str::Chars<'p>>;

/// Parts up to the end, or within braces up to a comma or the closing one.
fn parse(chars: &mut Chars<'_>, depth: usize) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    while let Some(char) = chars.peek().copied() {
        if depth > 0 && matches!(char, ',' | '}') {
            break;
        }
        chars.next();
        parts.push(match char {
            '\\' => Part::Char(chars.next()?),
            '?' => Part::One,
            '*' => {
                let mut part = Part::Some;
                while chars.next_if_eq(&'*').is_some() {
                    part = Part::Any;
                }
                part
            }
            '[' => class(chars)?,
            '{' if depth < 10 => {
                let mut alternatives = Vec::new();
                loop {
                    alternatives.push(parse(chars, depth + 1)?);
                    match chars.next()? {
                        ',' => {}
                        _ => break Part::Either(alternatives),
                    }
                }
            }
            '{' | '}' => return None,
            char => Part::Char(char),
        });
    }
    Some(parts)
}

fn class(chars: &mut Chars<'_>) -> Option<Part> {
    let not = chars.next_if(|char| matches!(char, '!' | '^')).is_some();
    let mut ranges = Vec::new();
    loop {
        let mut first = chars.next()?;
        if first == ']' {
            return (!ranges.is_empty()).then_some(Part::Class { not, ranges });
        }
        if first == '\\' {
            first = chars.next()?;
        }
        let last = if chars.next_if_eq(&'-').is_some() { chars.next()? } else { first };
        ranges.push((first, last));
    }
}

/// Matches parts, one sequence behind the other.
fn matches(parts: &[&[Part]], path: &[char], steps: &mut usize) -> bool {
    *steps += 1;
    if *steps > STEPS {
        return false;
    }
    let Some((first, later)) = parts.split_first() else { return path.is_empty() };
    let Some((part, rest)) = first.split_first() else { return matches(later, path, steps) };
    let after: Vec<&[Part]> = std::iter::once(rest).chain(later.iter().copied()).collect();
    match part {
        Part::Char(char) => path.split_first().is_some_and(|(next, path)| next == char && matches(&after, path, steps)),
        Part::One => path.split_first().is_some_and(|(next, path)| *next != '/' && matches(&after, path, steps)),
        Part::Class { not, ranges } => path.split_first().is_some_and(|(next, path)| {
            ranges.iter().any(|(from, to)| (from..=to).contains(&next)) != *not
                && *next != '/'
                && matches(&after, path, steps)
        }),
        Part::Some | Part::Any => {
            let most = if *part == Part::Any {
                path.len()
            } else {
                path.iter().position(|char| *char == '/').unwrap_or(path.len())
            };
            (0..=most).any(|length| path.get(length..).is_some_and(|path| matches(&after, path, steps)))
        }
        Part::Either(alternatives) => alternatives.iter().any(|alternative| {
            let parts: Vec<&[Part]> = std::iter::once(alternative.as_slice()).chain(after.iter().copied()).collect();
            matches(&parts, path, steps)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_helm() {
        for (pattern, path, expected) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "b/a.yaml", false),
            ("**.yaml", "b/a.yaml", true),
            ("files/*", "files/a", true),
            ("files/*", "files/a/b", false),
            ("files/**", "files/a/b", true),
            ("{a,b}/*.{x,y}", "b/c.y", true),
            ("{a,b}/*.{x,y}", "c/c.y", false),
            ("[ab]?", "bc", true),
            ("[!ab]?", "bc", false),
            ("[a-c]", "b", true),
            ("a\\*", "a*", true),
            ("", "", true),
            ("{a", "anything/at/all", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_costly_pattern_matches_nothing() {
        assert!(!Glob::new(&"*a".repeat(40)).matches(&"a".repeat(100).replace("aaaaa", "aaaab")));
    }
}
