//! One line of a list: what became of one version of a package.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest explanation, in characters.
const WHY: usize = 400;

/// What became of one version of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The package.
    pub package: String,
    /// The version.
    pub version: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The reasons in the conditions or the codes of the findings, in the order in which they appeared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The message of the last reason. It explains, and is not compared.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The printed advice that was followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub followed: Vec<String>,
    /// Objects that remained after the uninstallation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<String>,
}

/// How the installation of one version ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Outcome {
    /// Healthy at once.
    Healthy,
    /// Healthy after the printed advice was followed.
    HealthyAfterAdvice,
    /// Refused, and the advice names something that this cluster does not have, or another version.
    Refused,
    /// Installed, and not healthy before the timeout.
    Unhealthy,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Healthy => "healthy",
            Self::HealthyAfterAdvice => "healthy after advice",
            Self::Refused => "refused",
            Self::Unhealthy => "unhealthy",
        })
    }
}

impl Entry {
    /// An entry for a version, healthy until something else is known.
    pub fn new(package: &str, version: String) -> Self {
        Self {
            package: package.to_owned(),
            version,
            outcome: Outcome::Healthy,
            reasons: Vec::new(),
            why: String::new(),
            followed: Vec::new(),
            leftovers: Vec::new(),
        }
    }

    /// Adds a reason with its message.
    pub fn because(&mut self, reason: String, message: &str) {
        self.reasons.push(reason);
        self.why = stable(message);
    }

    /// Adds advice that was followed.
    pub fn follow(&mut self, advice: &str) {
        self.followed.push(stable(advice));
    }

    /// Whether the lists of two versions of Chandler must agree about the two entries.
    pub fn agrees(&self, other: &Self) -> bool {
        let compared =
            |entry: &Self| (entry.outcome, entry.reasons.clone(), entry.followed.clone(), entry.leftovers.clone());
        compared(self) == compared(other)
    }
}

/// Outcome, reasons and leftovers on one line.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.package, self.version, self.outcome)?;
        if !self.reasons.is_empty() {
            write!(f, " ({})", self.reasons.join(", "))?;
        }
        if !self.followed.is_empty() {
            write!(f, ", followed: {}", self.followed.join("; "))?;
        }
        if !self.leftovers.is_empty() {
            write!(f, ", LEFT BEHIND: {}", self.leftovers.join(", "))?;
        }
        Ok(())
    }
}

/// The text on one line, without digests, which differ between versions of Chandler, and not too long.
fn stable(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        match word.split_once("sha256:") {
            Some((before, digest)) => {
                let after = digest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
                line.extend([before, "DIGEST", after]);
            }
            None => line.push_str(word),
        }
    }
    match line.char_indices().nth(WHY) {
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_are_one_line_without_digests() {
        assert_eq!(stable("a\n  b `c --d=sha256:0aF9` e"), "a b `c --d=DIGEST` e");
        assert_eq!(stable(&"x".repeat(WHY + 1)), format!("{}...", "x".repeat(WHY)));
    }

    #[test]
    fn the_words_of_a_message_may_change() {
        let mut entry = Entry::new("oxen", "1.0.0".into());
        let mut other = entry.clone();
        entry.because("Unhealthy".into(), "one");
        other.because("Unhealthy".into(), "another");
        assert!(entry.agrees(&other));
        other.outcome = Outcome::Unhealthy;
        assert!(!entry.agrees(&other));
    }
}
