//! `.helmignore`, and patterns of paths as Go's `filepath.Match` reads them.

/// The rules of a file.
pub(super) struct Rules(Vec<Rule>);

struct Rule {
    pattern: String,
    negated: bool,
    only_directories: bool,
    /// Whether the pattern is compared with the whole path, not the last part of it.
    whole: bool,
}

impl Rules {
    /// The rules of a `.helmignore`, and the one that always holds. The error names a pattern that Helm refuses.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Vec::new();
        for line in text.lines().chain(["templates/.?*"]) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.contains("**") {
                return Err("double-star (**) syntax is not supported".to_owned());
            }
            if matches(line, "abc").is_none() {
                return Err("syntax error in pattern".to_owned());
            }
            let (negated, rest) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
            let (only_directories, rest) = rest.strip_suffix('/').map_or((false, rest), |rest| (true, rest));
            let rooted = rest.strip_prefix('/');
            let whole = rooted.is_some() || rest.contains('/');
            rules.push(Rule { pattern: rooted.unwrap_or(rest).to_owned(), negated, only_directories, whole });
        }
        Ok(Self(rules))
    }

    /// Whether a file is left out, by itself or with a directory that it is in.
    pub(super) fn leave_out(&self, path: &str) -> bool {
        let directories = path.match_indices('/').map(|(at, _)| path.get(..at).unwrap_or_default());
        directories.into_iter().any(|directory| self.hit(directory, true)) || self.hit(path, false)
    }

    fn hit(&self, path: &str, directory: bool) -> bool {
        for rule in &self.0 {
            let compared = if rule.whole { path } else { path.rsplit('/').next().unwrap_or(path) };
            let matched = matches(&rule.pattern, compared).unwrap_or(false);
            if rule.negated {
                if (rule.only_directories && !directory) || !matched {
                    return true;
                }
            } else if matched && (directory || !rule.only_directories) {
                return true;
            }
        }
        false
    }
}

/// Whether a path matches a pattern: `*` and `?` match anything but a stroke, `[a-z]` one of some characters. `None` for a pattern that is wrong.
pub fn matches(pattern: &str, path: &str) -> Option<bool> {
    let pattern: Vec<char> = pattern.chars().collect();
    let path: Vec<char> = path.chars().collect();
    check(&pattern)?;
    // The place to continue from, if what follows the last star does not match here.
    let mut retry: Option<(usize, usize)> = None;
    let (mut at, mut to) = (0, 0);
    loop {
        if pattern.get(at) == Some(&'*') {
            retry = Some((at + 1, to));
            at += 1;
            continue;
        }
        let step = match (pattern.get(at), path.get(to)) {
            (None, None) => return Some(true),
            (Some('?'), Some(character)) if *character != '/' => Some(1),
            (Some('['), Some(character)) => class(pattern.get(at..)?, *character),
            (Some('\\'), Some(character)) if pattern.get(at + 1) == Some(character) => Some(2),
            (Some(expected), Some(character)) if !matches!(expected, '?' | '\\') && expected == character => Some(1),
            _ => None,
        };
        if let Some(step) = step {
            at += step;
            to += 1;
            continue;
        }
        // The star takes one character more, which cannot be a stroke.
        let Some((behind, from)) = retry else { return Some(false) };
        if path.get(from).is_none_or(|character| *character == '/') {
            return Some(false);
        }
        retry = Some((behind, from + 1));
        (at, to) = (behind, from + 1);
    }
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
    fn rules_leave_out_files_and_directories() {
        let rules = Rules::parse("# comment\n*.bak\n/docs/\nci/\nconfig/local.yaml\n").unwrap();
        for (path, out) in [
            ("a.bak", true),
            ("x/y.bak", true),
            ("docs/a.md", true),
            ("x/docs/a.md", false),
            ("x/ci/a", true),
            ("ci", false),
            ("config/local.yaml", true),
            ("templates/.hidden", true),
            ("templates/a.yaml", false),
        ] {
            assert_eq!(rules.leave_out(path), out, "{path}");
        }
        assert!(Rules::parse("a/**/b").is_err());
    }
}
