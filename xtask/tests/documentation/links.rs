//! Every relative link of a page leads to a file, and to a heading in it.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::{Path, PathBuf},
};

use crate::files;

/// What has pages.
const PAGES: &[&str] = &[
    "docs",
    "host",
    "plugins",
    "sdk",
    "tests",
    "wit",
    "xtask",
    "deploy",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
];

/// The targets of the links of a page. Code spans and fenced blocks have none.
fn targets(page: &str) -> Vec<String> {
    let prose = files::prose(page).join("\n");
    let mut targets = Vec::new();
    for paragraph in prose.split("\n\n") {
        let text: String = paragraph.split('`').step_by(2).collect();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        targets.extend(links.map(str::to_owned));
    }
    targets
}

/// The anchors of a page: a heading that another one has before it gets a number.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut anchors = BTreeSet::new();
    for (_, heading) in files::headings(page) {
        let anchor = files::anchor(heading);
        let before = times.entry(anchor.clone()).or_default();
        anchors.insert(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
        *before += 1;
    }
    anchors
}

/// Why a target leads nowhere.
fn broken(page: &Path, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() { page.to_owned() } else { page.parent()?.join(path) };
    if !file.exists() {
        return Some("no such file".to_owned());
    }
    let is_page = file.extension().is_some_and(|extension| extension == "md");
    let is_missing = is_page && !anchor.is_empty() && !anchors(&fs::read_to_string(&file).unwrap()).contains(anchor);
    is_missing.then(|| "no such heading".to_owned())
}

#[test]
fn relative_links_lead_to_files_and_headings() {
    let root = files::root();
    let mut pages: Vec<PathBuf> = Vec::new();
    for path in PAGES {
        files::find(&root.join(path), &["md"], &|_| false, &mut pages);
    }
    let (mut checked, mut problems) = (0, Vec::new());
    for page in &pages {
        for target in targets(&fs::read_to_string(page).unwrap()) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            if let Some(problem) = broken(page, &target) {
                problems.push(format!("{}: {problem}: {target}", page.display()));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(checked > 400, "the links are found: {checked}");
}

#[test]
fn links_are_found_outside_of_code() {
    let page =
        "see [a\nb](x.md#c) and `[no](link)`, [`code`](y.md)\n\n```text\n[no](link)\n```\n| [t](z.md \"title\") |\n";
    assert_eq!(targets(page), ["x.md#c", "y.md", "z.md"]);
}

#[test]
fn equal_headings_have_numbered_anchors() {
    let found = anchors("# A\n## Status\n### Status\n");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a", "status", "status-1"]);
}
