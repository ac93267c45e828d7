//! docs/README.md lists every page, and docs/decisions/README.md every decision.

use std::fs;

use crate::files;

/// The names of the pages directly in a directory, of which there are more than `least`, except for its README.md.
fn pages(directory: &str, least: usize) -> Vec<String> {
    let entries = fs::read_dir(files::root().join(directory)).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md") && !path.ends_with("README.md"));
    let mut pages: Vec<String> = paths.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
    pages.sort();
    assert!(pages.len() > least, "{directory}: {pages:?}");
    pages
}

#[test]
fn the_map_lists_every_page() {
    let map = files::read("docs/README.md");
    let reference = map.split("\n## Reference\n").nth(1).expect("the list of all pages");
    let is_listed = |page: &str| {
        let name = page.trim_end_matches(".md");
        reference.contains(&format!("| [{name}]({page}) |"))
    };
    let missing: Vec<String> = pages("docs", 5).into_iter().filter(|page| !is_listed(page)).collect();
    assert!(missing.is_empty(), "docs/README.md does not list {missing:?}");
    assert!(files::read("README.md").contains("(docs/README.md)"), "README.md links the map");
}

#[test]
fn the_index_for_contributors_lists_every_page() {
    let index = files::read("docs/contributing/README.md");
    let is_listed = |page: &str| index.contains(&format!("| [{}]({page}) |", page.trim_end_matches(".md")));
    let missing: Vec<String> = pages("docs/contributing", 3).into_iter().filter(|page| !is_listed(page)).collect();
    assert!(missing.is_empty(), "docs/contributing/README.md does not list {missing:?}");
    assert!(files::read("docs/README.md").contains("(contributing/README.md)"), "docs/README.md links the index");
}

#[test]
fn the_index_of_decisions_is_complete_and_in_order() {
    let index = files::read("docs/decisions/README.md");
    let architecture = files::read("ARCHITECTURE.md");
    for page in pages("docs/decisions", 5) {
        let text = files::read(&format!("docs/decisions/{page}"));
        let mut decisions = Vec::new();
        for section in text.split("\n## ").skip(1) {
            let (title, rest) = section.split_once('\n').unwrap();
            let date = rest.trim_start().lines().next().and_then(|line| line.strip_prefix('*')?.strip_suffix('*'));
            let date = date.unwrap_or_else(|| panic!("docs/decisions/{page}: {title}: the first line is its date"));
            let is_date = date.len() == 10 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            assert!(is_date, "docs/decisions/{page}: {title}: {date}");
            assert!(rest.contains("\nWhy: "), "docs/decisions/{page}: {title} has a reason");
            decisions.push(format!("- {date}: [{title}]({page}#{})", files::anchor(title)));
        }
        let listed = index.split("\n## ").find(|section| section.contains(&format!("]({page})\n")));
        let listed = listed.unwrap_or_else(|| panic!("docs/decisions/README.md does not list {page}"));
        let listed = listed.split_once("\n\n").unwrap().1.trim_end();
        assert_eq!(listed, decisions.join("\n"), "docs/decisions/README.md: the decisions of {page}");
        assert!(architecture.contains(&format!("(docs/decisions/{page})")), "ARCHITECTURE.md links {page}");
    }
}
