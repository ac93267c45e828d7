//! The files of the repository, and the prose of a page.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Adds every file below a path that has one of these extensions, except what is left out.
pub(crate) fn find(path: &Path, extensions: &[&str], left_out: &dyn Fn(&Path) -> bool, found: &mut Vec<PathBuf>) {
    if left_out(path) || path.ends_with("target") {
        return;
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            find(&entry.unwrap().path(), extensions, left_out, found);
        }
    } else if path.extension().is_some_and(|found| extensions.iter().any(|extension| found == *extension)) {
        found.push(path.to_owned());
    }
}

/// The text of a file below the root.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The lines of a page outside of fenced blocks; the lines of a block are empty.
pub(crate) fn prose(page: &str) -> Vec<&str> {
    let mut block = false;
    let lines = page.lines().map(|line| {
        let fence = line.trim_start().starts_with("```");
        block ^= fence;
        if block || fence { "" } else { line }
    });
    lines.collect()
}

/// The headings of a page without their marks, each with its level.
pub(crate) fn headings(page: &str) -> Vec<(usize, &str)> {
    let headings = prose(page).into_iter().filter_map(|line| {
        let text = line.trim_start_matches('#');
        let level = line.len() - text.len();
        (level > 0 && text.starts_with(' ')).then_some((level, text.trim()))
    });
    headings.collect()
}

/// The anchor that GitHub gives a heading, if no heading before it has the same text.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn headings_have_anchors() {
    let page = "# A page\n```sh\n# no heading\n```\n## `spec.a`: when, and why\n#5 is not a heading\n";
    assert_eq!(headings(page), [(1, "A page"), (2, "`spec.a`: when, and why")]);
    assert_eq!(anchor("`spec.a`: when, and why"), "speca-when-and-why");
    assert_eq!(anchor("Status_of PODs"), "status_of-pods");
}
