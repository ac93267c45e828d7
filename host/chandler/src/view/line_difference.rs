//! The lines that differ between two texts.

use super::terminal::{Look, Tone};

/// Unchanged lines around a change.
const CONTEXT: usize = 3;
/// Longer texts are compared as a whole: the table of the comparison has the product of their lengths.
const CELLS: usize = 4_000_000;

/// A line of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

/// The lines that differ, with those around them: `-` for lines of `before`, `+` for lines of `after`. Empty if the texts are equal.
pub fn lines(before: &str, after: &str) -> Vec<String> {
    let all = compared(&before.lines().collect::<Vec<_>>(), &after.lines().collect::<Vec<_>>());
    let is_near = |index: usize| {
        let around = all.get(index.saturating_sub(CONTEXT)..(index + CONTEXT + 1).min(all.len())).unwrap_or_default();
        around.iter().any(|line| !matches!(line, Line::Same(_)))
    };
    let mut shown: Vec<String> = Vec::new();
    for (index, line) in all.iter().enumerate() {
        match line {
            Line::Removed(text) => shown.push(format!("-{text}")),
            Line::Added(text) => shown.push(format!("+{text}")),
            Line::Same(text) if is_near(index) => shown.push(format!(" {text}")),
            Line::Same(_) if shown.last().is_some_and(|last| last != "...") => shown.push("...".to_owned()),
            Line::Same(_) => {}
        }
    }
    if shown.last().is_some_and(|last| last == "...") {
        shown.pop();
    }
    shown
}

/// The lines of [`lines`] as text, each after `indent`.
pub fn text(lines: &[String], indent: &str, look: Look) -> String {
    let mut text = String::new();
    for line in lines {
        let tone = match line.chars().next() {
            Some('-') => Tone::Bad,
            Some('+') => Tone::Good,
            _ => Tone::Plain,
        };
        text.extend([indent, &look.paint(tone, &chandler_core::text::printable(line)), "\n"]);
    }
    text
}

fn compared<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<Line<'a>> {
    let start = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let (old, new) = (before.get(start..).unwrap_or_default(), after.get(start..).unwrap_or_default());
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old, tail) = old.split_at(old.len() - end);
    let new = new.get(..new.len() - end).unwrap_or_default();
    let head = before.get(..start).unwrap_or_default();
    let mut lines: Vec<Line<'a>> = head.iter().copied().map(Line::Same).collect();
    if old.len().saturating_mul(new.len()) > CELLS {
        lines.extend(old.iter().copied().map(Line::Removed));
        lines.extend(new.iter().copied().map(Line::Added));
    } else {
        lines.extend(middle(old, new));
    }
    lines.extend(tail.iter().copied().map(Line::Same));
    lines
}

/// The comparison by the longest common subsequence.
fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let width = new.len() + 1;
    // The length for the rest of both, by row (`old`) and column (`new`).
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    let at =
        |lengths: &[u32], row: usize, column: usize| lengths.get(row * width + column).copied().unwrap_or_default();
    for (row, one) in old.iter().enumerate().rev() {
        for (column, other) in new.iter().enumerate().rev() {
            let length = if one == other {
                at(&lengths, row + 1, column + 1) + 1
            } else {
                at(&lengths, row + 1, column).max(at(&lengths, row, column + 1))
            };
            if let Some(cell) = lengths.get_mut(row * width + column) {
                *cell = length;
            }
        }
    }
    let (mut lines, mut row, mut column) = (Vec::new(), 0, 0);
    loop {
        match (old.get(row).copied(), new.get(column).copied()) {
            (Some(one), Some(other)) if one == other => {
                lines.push(Line::Same(one));
                (row, column) = (row + 1, column + 1);
            }
            (Some(one), other) if other.is_none() || at(&lengths, row + 1, column) >= at(&lengths, row, column + 1) => {
                lines.push(Line::Removed(one));
                row += 1;
            }
            (_, Some(other)) => {
                lines.push(Line::Added(other));
                column += 1;
            }
            _ => return lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn changes_have_the_lines_around_them() {
        let before: Vec<String> = (1..=20).map(|number| number.to_string()).collect();
        let mut after = before.clone();
        after[9] = "ten".to_owned();
        after.push("21".to_owned());
        let shown = lines(&before.join("\n"), &after.join("\n"));
        insta::assert_snapshot!(shown.join("\n"), @"
         7
         8
         9
        -10
        +ten
         11
         12
         13
        ...
         18
         19
         20
        +21
        ");
        assert!(lines("a\nb", "a\nb").is_empty());
        assert_eq!(lines("", "a"), ["+a"]);
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_from_the_comparison(before in prop::collection::vec("[abc]", 0..12), after in prop::collection::vec("[abc]", 0..12)) {
            let (before, after): (Vec<&str>, Vec<&str>) = (before.iter().map(String::as_str).collect(), after.iter().map(String::as_str).collect());
            let lines = compared(&before, &after);
            let of = |without: fn(&Line<'_>) -> bool| -> Vec<&str> {
                lines.iter().filter(|line| !without(line)).map(|line| match line { Line::Same(text) | Line::Removed(text) | Line::Added(text) => *text }).collect()
            };
            prop_assert_eq!(of(|line| matches!(line, Line::Added(_))), before);
            prop_assert_eq!(of(|line| matches!(line, Line::Removed(_))), after);
        }
    }
}
