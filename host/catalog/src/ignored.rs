//! `.indexignore`: which files of a tree are not part of the catalog.

use std::collections::BTreeMap;

use chandler_core::{Content, ReadError};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use crate::{Finding, Limits, Place, Problem};

/// The name of the files with patterns.
const NAME: &str = ".indexignore";

/// The patterns of all `.indexignore` files of a tree, by directory.
pub(crate) struct Ignored {
    by_directory: BTreeMap<String, Gitignore>,
}

impl Ignored {
    /// Reads the patterns. A pattern that cannot be read is a finding, and then ignores nothing. So is the first one beyond the limits
    /// on all of them, which is the last to be read.
    pub(crate) fn read(
        content: &dyn Content,
        files: &[(String, u64)],
        limits: &Limits,
        findings: &mut Vec<Finding>,
    ) -> Result<Self, ReadError> {
        let mut by_directory = BTreeMap::new();
        let (mut all_bytes, mut patterns) = (0_u64, 0);
        'files: for (path, size) in files.iter().filter(|(path, _)| is_ignore_file(path)) {
            let place = |line: usize| Place::new(path, u32::try_from(line).unwrap_or(u32::MAX));
            let too_many = || Problem::TooManyPatterns { patterns: limits.ignore_patterns, bytes: limits.ignore_bytes };
            all_bytes = all_bytes.saturating_add(*size);
            if all_bytes > limits.ignore_bytes {
                findings.push(Finding::new(too_many(), place(1)));
                break;
            }
            let bytes = content.read_all(path)?;
            let directory = path.strip_suffix(NAME).unwrap_or_default().trim_end_matches('/');
            let mut builder = GitignoreBuilder::new("");
            for (number, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
                let line = if number == 0 { line.trim_start_matches('\u{feff}') } else { line };
                patterns += usize::from(!line.trim().is_empty() && !line.starts_with('#'));
                if patterns > limits.ignore_patterns {
                    findings.push(Finding::new(too_many(), place(number + 1)));
                    break 'files;
                }
                if let Err(error) = builder.add_line(None, line) {
                    findings.push(Finding::new(Problem::Pattern { message: error.to_string() }, place(number + 1)));
                }
            }
            match builder.build() {
                Ok(patterns) => drop(by_directory.insert(directory.to_owned(), patterns)),
                Err(error) => {
                    findings.push(Finding::new(Problem::Pattern { message: error.to_string() }, place(1)));
                }
            }
        }
        Ok(Self { by_directory })
    }

    /// Whether a file is not part of the catalog: it has patterns, or matches one. A file in an ignored directory cannot be
    /// included again, as in git.
    pub(crate) fn contains(&self, path: &str) -> bool {
        if is_ignore_file(path) {
            return true;
        }
        let directories = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        directories.into_iter().any(|directory| self.matches(directory, true)) || self.matches(path, false)
    }

    /// The decision of the nearest patterns about a path.
    fn matches(&self, path: &str, is_directory: bool) -> bool {
        let mut directory = path;
        loop {
            directory = directory.rsplit_once('/').map_or("", |(parent, _)| parent);
            if let Some(patterns) = self.by_directory.get(directory) {
                let relative = path.strip_prefix(directory).unwrap_or(path).trim_start_matches('/');
                match patterns.matched(relative, is_directory) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            if directory.is_empty() {
                return false;
            }
        }
    }
}

fn is_ignore_file(path: &str) -> bool {
    path == NAME || path.strip_suffix(NAME).is_some_and(|rest| rest.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use chandler_core::MemoryContent;

    use super::*;

    fn kept(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let content = MemoryContent::new(files.iter().map(|(path, text)| (*path, *text)));
        let listed: Vec<_> = content.entries("", None, 10_000).into_iter().map(|it| (it.path, it.size)).collect();
        let mut findings = Vec::new();
        let ignored = Ignored::read(&content, &listed, &Limits::default(), &mut findings).unwrap();
        let kept = listed.into_iter().map(|(path, _)| path).filter(|path| !ignored.contains(path)).collect();
        (kept, findings.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn patterns_are_those_of_git() {
        type Case = (&'static [(&'static str, &'static str)], &'static [&'static str]);
        let cases: &[Case] = &[
            (&[("a.yaml", "")], &["a.yaml"]),
            (&[(".indexignore", "*.md\n"), ("README.md", ""), ("a/x.md", ""), ("a.yaml", "")], &["a.yaml"]),
            // A leading slash: only here.
            (&[(".indexignore", "/x\n"), ("x", ""), ("a/x", "")], &["a/x"]),
            // A trailing slash: only directories.
            (&[(".indexignore", "x/\n"), ("a/x", ""), ("x/y", "")], &["a/x"]),
            // Patterns of a directory bind below it, and win over those above.
            (&[("a/.indexignore", "*.json"), ("a/b/c.json", ""), ("d.json", "")], &["d.json"]),
            (
                &[(".indexignore", "*.json"), ("a/.indexignore", "!c.json"), ("a/c.json", ""), ("d.json", "")],
                &["a/c.json"],
            ),
            // Not so in a directory that is ignored itself.
            (&[(".indexignore", "a\n!a/c.json"), ("a/c.json", ""), ("d.json", "")], &["d.json"]),
            (
                &[(".indexignore", "**/*\n!*.json\n!*/\n"), ("a/c.json", ""), ("a/b.txt", ""), ("d.json", "")],
                &["a/c.json", "d.json"],
            ),
            (&[(".indexignore", "# a.yaml\n\n  \n"), ("a.yaml", "")], &["a.yaml"]),
        ];
        for (files, expected) in cases {
            assert_eq!(kept(files), (expected.iter().map(|it| (*it).to_owned()).collect(), vec![]), "{files:?}");
        }
    }

    #[test]
    fn all_patterns_are_counted_together() {
        let many = |files: usize, text: &str| {
            let files: Vec<_> = (0..files).map(|n| (format!("d{n:04}/.indexignore"), text.to_owned())).collect();
            let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            kept(&files).1
        };
        assert_eq!(many(1000, "*.md\n# why\n\n"), [""; 0]);
        let text = "all .indexignore files together have more than 1000 patterns or 65536 bytes";
        assert_eq!(many(1002, "*.md\n"), [format!("d1000/.indexignore:1: {text}")]);
        assert_eq!(many(3, &"a*\n".repeat(400)), [format!("d0002/.indexignore:201: {text}")]);
        assert_eq!(many(80, &"x".repeat(1000)), [format!("d0065/.indexignore:1: {text}")]);
    }

    #[test]
    fn an_unreadable_pattern_is_reported() {
        let (kept, findings) = kept(&[("b/.indexignore", "x\n[z-a]\n"), ("b/x", ""), ("b/y", "")]);
        assert_eq!(kept, ["b/y"]);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("b/.indexignore:2: "), "{findings:?}");
    }
}
