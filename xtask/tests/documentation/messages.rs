//! Every message on the page docs/troubleshooting.md is one that the sources contain.

use std::fs;

use crate::files;

/// The text of all sources, with placeholders and the breaks of long literals removed.
fn sources() -> String {
    let root = files::root();
    let mut paths = Vec::new();
    for directory in ["host", "plugins", "sdk"] {
        files::find(&root.join(directory), &["rs"], &|_| false, &mut paths);
    }
    let mut text = String::new();
    for path in paths {
        let source = fs::read_to_string(path).unwrap();
        let lines = source.lines().map(str::trim);
        for line in lines {
            // A line that ends with a backslash continues a literal.
            text.push_str(line.strip_suffix('\\').unwrap_or(line));
            if !line.ends_with('\\') {
                text.push('\n');
            }
        }
    }
    text
}

/// The first column of each row: the fixed parts of a message.
fn messages(page: &str) -> Vec<(&str, Vec<&str>)> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once("` |"))
        .map(|(message, _)| (message, message.split('…').map(str::trim).filter(|part| part.len() > 2).collect()))
        .collect()
}

#[test]
fn every_message_of_the_page_exists() {
    let page = fs::read_to_string(files::root().join("docs/troubleshooting.md")).unwrap();
    let (sources, messages) = (sources(), messages(&page));
    assert!(messages.len() > 30, "{messages:?}");
    let missing: Vec<&str> = messages
        .iter()
        .filter(|(_, parts)| !parts.iter().all(|part| sources.contains(part)))
        .map(|(message, _)| *message)
        .collect();
    assert!(missing.is_empty(), "no source has these messages: {missing:#?}");
}
