//! The rules of a file.

use crate::{Steps, TooManySteps, pattern::Pattern};

/// The rule that Helm adds to every file.
const ALWAYS: &str = "templates/.?*";

/// The rules of a `.helmignore`.
#[derive(Clone, Debug)]
pub struct Rules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    /// `None` matches nothing: Helm reports a pattern that is wrong without the marks around it, and continues.
    pattern: Option<Pattern>,
    negated: bool,
    only_directories: bool,
    /// Whether the pattern is compared with the whole path, not the last part of it.
    whole: bool,
}

/// A pattern that Helm refuses, with Helm's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Two stars in a row.
    #[error("double-star (**) syntax is not supported")]
    DoubleStar,
    /// A class is not closed, or nothing follows a backslash.
    #[error("syntax error in pattern")]
    Syntax,
}

impl Rules {
    /// The rules of a file, and the one that always holds. A file that does not exist has the rules of an empty one.
    ///
    /// # Errors
    /// Helm refuses a pattern.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.lines().chain([ALWAYS]).map(str::trim);
        let rules = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(Rule::parse);
        Ok(Self(rules.collect::<Result<_, _>>()?))
    }

    /// Whether an entry is left out by itself. A directory that is left out takes its entries with it.
    ///
    /// # Errors
    /// The comparisons take more steps than are left.
    pub fn leave_out_entry(&self, path: &str, is_directory: bool, steps: &mut Steps) -> Result<bool, TooManySteps> {
        let path: Vec<char> = path.chars().collect();
        let name = path.rsplit(|character| *character == '/').next().unwrap_or_default();
        for rule in &self.0 {
            let compared = if rule.whole { &path } else { name };
            let matched = match &rule.pattern {
                Some(pattern) => pattern.matches(compared, steps)?,
                None => false,
            };
            let fits = is_directory || !rule.only_directories;
            if (matched && fits) != rule.negated {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a file is left out, by itself or with a directory that it is in.
    ///
    /// # Errors
    /// The comparisons take more steps than are left.
    pub fn leave_out_file(&self, path: &str, steps: &mut Steps) -> Result<bool, TooManySteps> {
        for (at, _) in path.match_indices('/') {
            if self.leave_out_entry(path.get(..at).unwrap_or_default(), true, steps)? {
                return Ok(true);
            }
        }
        self.leave_out_entry(path, false, steps)
    }
}

impl Rule {
    fn parse(line: &str) -> Result<Self, RuleError> {
        if line.contains("**") {
            return Err(RuleError::DoubleStar);
        }
        // As Helm, which checks the line with the marks around the pattern.
        Pattern::parse(line).ok_or(RuleError::Syntax)?;
        let (negated, rest) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let (only_directories, rest) = rest.strip_suffix('/').map_or((false, rest), |rest| (true, rest));
        let rooted = rest.strip_prefix('/');
        let whole = rooted.is_some() || rest.contains('/');
        let pattern = Pattern::parse(rooted.unwrap_or(rest));
        Ok(Self { pattern, negated, only_directories, whole })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(rules: &Rules, path: &str) -> bool {
        rules.leave_out_file(path, &mut Steps::unlimited()).unwrap()
    }

    #[test]
    fn rules_leave_out_files_and_directories() {
        let rules = Rules::parse("\u{feff}# comment\n*.bak\r\n/docs/\nci/\nconfig/local.yaml\n").unwrap();
        for (path, expected) in [
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
            assert_eq!(out(&rules, path), expected, "{path}");
        }
        assert_eq!(Rules::parse("a/**/b").unwrap_err(), RuleError::DoubleStar);
        assert_eq!(Rules::parse("a\n[").unwrap_err(), RuleError::Syntax);
        assert!(!out(&Rules::parse("a\\/").unwrap(), "a/b"), "without the mark, the pattern ends in a backslash");
    }

    /// Helm leaves out everything that a negated pattern does not match, so that it makes no exception to the other rules.
    #[test]
    fn a_negated_pattern_keeps_only_what_matches() {
        let rules = Rules::parse("!*.yaml\n").unwrap();
        assert!(out(&rules, "README.md") && out(&rules, "templates/a.yaml"), "templates does not match");
        assert!(!out(&rules, "Chart.yaml"));
        let directories = Rules::parse("!charts/\n").unwrap();
        assert!(out(&directories, "Chart.yaml") && out(&directories, "charts/a.tgz"), "files do not match it");
    }

    #[test]
    fn hostile_rules_end_with_their_steps() {
        let rules = Rules::parse(&"*a*a*a*a*a*b\n".repeat(1000)).unwrap();
        assert_eq!(rules.leave_out_file(&"a".repeat(1000), &mut Steps::of(100_000)), Err(TooManySteps));
        let mut steps = Steps::of(100);
        assert_eq!(Rules::parse("").unwrap().leave_out_file("a", &mut steps), Ok(false));
    }
}
