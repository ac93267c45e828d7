//! A list of entries as JSON lines, and the differences of two.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context as _;

use crate::entry::Entry;

/// Reads a list.
pub fn read(path: &Path) -> anyhow::Result<Vec<Entry>> {
    let text = fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
    let line = |(number, line)| {
        serde_json::from_str(line).with_context(|| format!("{}:{}: invalid entry", path.display(), number + 1))
    };
    text.lines().enumerate().map(line).collect()
}

/// Writes a list.
pub fn write(path: &Path, entries: &[Entry]) -> anyhow::Result<()> {
    let mut text = String::new();
    for entry in entries {
        text.push_str(&serde_json::to_string(entry)?);
        text.push('\n');
    }
    fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}

/// What differs from the kept list, a line or two for each version.
pub fn differences(kept: &[Entry], now: &[Entry]) -> Vec<String> {
    fn by_version(entries: &[Entry]) -> BTreeMap<(&str, &str), &Entry> {
        entries.iter().map(|entry| ((entry.package.as_str(), entry.version.as_str()), entry)).collect()
    }
    let (kept, now) = (by_version(kept), by_version(now));
    let mut lines = Vec::new();
    for (version, entry) in &now {
        match kept.get(version) {
            None => lines.push(format!("+ {entry} (not in the list)")),
            Some(known) if !known.agrees(entry) => lines.extend([format!("- {known}"), format!("+ {entry}")]),
            Some(_) => {}
        }
    }
    lines.extend(
        kept.iter()
            .filter(|(version, _)| !now.contains_key(*version))
            .map(|(_, entry)| format!("- {entry} (not found)")),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Outcome;

    #[test]
    fn a_list_is_read_as_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut entry = Entry::new("oxen", "1.0.0".into());
        entry.because("Unhealthy".into(), "no \"grass\"");
        write(file.path(), std::slice::from_ref(&entry)).unwrap();
        assert_eq!(read(file.path()).unwrap(), [entry]);
        fs::write(file.path(), "{}\n").unwrap();
        assert!(read(file.path()).unwrap_err().to_string().ends_with(":1: invalid entry"));
    }

    #[test]
    fn differences_name_the_version() {
        let entry = |package: &str| Entry::new(package, "1.0.0".into());
        let changed = Entry { outcome: Outcome::Refused, ..entry("b") };
        let found = differences(&[entry("a"), entry("b"), entry("c")], &[entry("a"), changed, entry("d")]);
        let expected = [
            "- b 1.0.0: healthy",
            "+ b 1.0.0: refused",
            "+ d 1.0.0: healthy (not in the list)",
            "- c 1.0.0: healthy (not found)",
        ];
        assert_eq!(found, expected);
    }
}
