//! Requirements of every finding.

use std::collections::BTreeMap;

use chandler_sdk::{Diagnostic, Location, Position};

/// Asserts that a finding has a stable code, a message, and a location that exists in a file of the bundle.
pub(crate) fn assert_explained(finding: &Diagnostic, files: &BTreeMap<String, Vec<u8>>) {
    let camel_case = finding.code.starts_with(|first: char| first.is_ascii_uppercase())
        && finding.code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    assert!(camel_case, "the code is not CamelCase: {finding:?}");
    assert!(!finding.message.trim().is_empty(), "no message: {finding:?}");
    assert!(finding.help.as_ref().is_none_or(|help| !help.trim().is_empty()), "an empty help: {finding:?}");
    let Some(location) = &finding.location else { return };
    assert!(!location.path.is_empty(), "a location without a path: {finding:?}");
    if let Some(pointer) = &location.pointer {
        assert!(pointer.is_empty() || pointer.starts_with('/'), "not a JSON pointer: {finding:?}");
    }
    match files.get(&location.path) {
        Some(bytes) => assert_inside(finding, location, bytes),
        // The configuration, a directory, or a file that is missing.
        None => assert_eq!(location.start, None, "a line of what is not there: {finding:?}"),
    }
}

/// Asserts that a position is inside the text, or directly after it.
fn assert_inside(finding: &Diagnostic, location: &Location, bytes: &[u8]) {
    for Position { line, column } in [location.start, location.end].into_iter().flatten() {
        if let Err(outside) = position(bytes, line, column.max(1)) {
            panic!("{outside}: {finding:?}");
        }
    }
}

/// Like [`assert_inside`], for a text that is not in a file.
pub(crate) fn assert_position(bytes: &[u8], line: u32, column: u32) {
    if let Err(outside) = position(bytes, line, column) {
        panic!("{outside}");
    }
}

/// Checks whether a text has this position. The error describes the text.
fn position(bytes: &[u8], line: u32, column: u32) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    // Some parsers end a line at a lone carriage return.
    let breaks = text.matches('\n').count() + text.matches('\r').count() - text.matches("\r\n").count();
    let (line, column) = (line as usize, column as usize);
    if line == 0 || line > breaks + 1 {
        return Err(format!("line {line} of {}", breaks + 1));
    }
    let length = text.split('\n').nth(line - 1).unwrap_or_default().chars().count();
    // If a lone carriage return ends a line, the line numbers differ.
    if column == 0 || column > length + 1 && !text.contains('\r') {
        return Err(format!("column {column} of line {line}, which has {length}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(finding: &Diagnostic) {
        assert_explained(finding, &BTreeMap::from([("a.yaml".to_owned(), b"x: 1\ny: 2\n".to_vec())]));
    }

    #[test]
    fn a_finding_in_a_file_or_about_a_missing_one_is_explained() {
        check(&Diagnostic::error("Odd", "it is odd").at("a.yaml").position(2, 5).pointer("/y"));
        check(&Diagnostic::error("Odd", "it is odd").at("b.yaml"));
        check(&Diagnostic::warning("Odd", "it is odd").at(Location::CONFIG).pointer(""));
    }

    #[test]
    #[should_panic(expected = "line 4 of 3")]
    fn a_line_after_the_end_of_the_file_is_refused() {
        check(&Diagnostic::error("Odd", "it is odd").at("a.yaml").position(4, 1));
    }

    #[test]
    #[should_panic(expected = "column 6 of line 1")]
    fn a_column_after_the_end_of_the_line_is_refused() {
        check(&Diagnostic::error("Odd", "it is odd").at("a.yaml").position(1, 6));
    }

    #[test]
    #[should_panic(expected = "no message")]
    fn a_finding_needs_a_message() {
        check(&Diagnostic::error("Odd", " "));
    }
}
