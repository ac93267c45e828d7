//! Compares shown output with the output of a run.
//!
//! `...` stands for any text within a line, and a line `...` for any number of lines. The width of columns is not compared: any white
//! space equals any other.

/// Whether the lines of a run are those that are shown.
pub(crate) fn matches(shown: &[String], actual: &[String]) -> bool {
    let shown: Vec<String> = trimmed(shown);
    let actual: Vec<String> = trimmed(actual);
    lines(&shown, &actual)
}

/// The lines with single spaces, without empty lines at the end.
fn trimmed(lines: &[String]) -> Vec<String> {
    let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = lines.iter().map(words).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn lines(shown: &[String], actual: &[String]) -> bool {
    match (shown.split_first(), actual.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "..." => (0..=actual.len()).any(|skipped| lines(rest, &actual[skipped..])),
        (Some((first, shown)), Some((found, actual))) => line(first, found) && lines(shown, actual),
        _ => false,
    }
}

/// Whether a line matches, with `...` for any text.
fn line(shown: &str, actual: &str) -> bool {
    let Some((before, after)) = shown.split_once("...") else { return shown == actual };
    let Some(rest) = actual.strip_prefix(before) else { return false };
    // The text after the elision begins anywhere in the rest.
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| line(after, &rest[at..]))
}

#[test]
fn elisions() {
    let case = |shown: &str, actual: &str| {
        let split = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        matches(&split(shown), &split(actual))
    };
    assert!(case("a  b\nc", "a b\nc\n\n"));
    assert!(case("healthy after ... s", "healthy after 0.8 s"));
    assert!(case("a\n...\nd", "a\nb\nc\nd") && case("a\n...\nd", "a\nd") && case("...", ""));
    assert!(case("x ... y ...", "x 1 y 2 y 3"));
    assert!(
        !case("a", "b") && !case("a\n...\nd", "a\nb") && !case("a ... s", "a 1 m") && !case("", "a") && !case("a", "")
    );
}
