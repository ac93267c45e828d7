//! Tables that fit the terminal.

/// The space between columns.
const GAP: &str = "  ";

/// What happens to a column if the terminal has not enough columns, or more than enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It is always shown in full.
    Full,
    /// It is left out of a narrow table.
    Drop,
    /// Its cells are cut in the middle, to no less than this number of characters.
    Middle(usize),
    /// Its cells are cut at the end, to no less than this number of characters.
    End(usize),
    /// It is shown only on a terminal that has at least this number of characters for it, and cut at the end there.
    Extra(usize),
}

/// The lines of a table: the first row is its header. In `width` columns, columns are first left out and then cut, each from the last to
/// the first, until the lines fit; where there is room, extra columns are shown. Without a width, nothing is cut or added.
pub fn lines(fits: &[Fit], mut rows: Vec<Vec<String>>, width: Option<usize>) -> Vec<String> {
    let mut fits = fits.to_vec();
    let extras: Vec<(Fit, Vec<String>)> = take_extras(&mut fits, &mut rows);
    if let Some(width) = width {
        drop_columns(&mut fits, &mut rows, width);
        cut_columns(&fits, &mut rows, width);
        for (fit, cells) in extras {
            push_extra(fit, cells, &mut rows, width);
        }
    }
    let widths = widths(&rows);
    let line = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(widths.iter().copied()).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join(GAP).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Cuts text to this number of characters in the middle: the begin of a source is its registry, the end its tag or digest.
pub fn cut_middle(text: &str, keep: usize) -> String {
    let length = text.chars().count();
    if length <= keep || keep == 0 {
        return text.to_owned();
    }
    let (begin, end) = (keep / 2, keep - keep / 2 - 1);
    text.chars().take(begin).chain(['…']).chain(text.chars().skip(length - end)).collect()
}

/// Cuts text to this number of characters at the end.
pub fn cut_end(text: &str, keep: usize) -> String {
    if text.chars().count() <= keep || keep == 0 {
        return text.to_owned();
    }
    text.chars().take(keep - 1).chain(['…']).collect()
}

fn take_extras(fits: &mut Vec<Fit>, rows: &mut [Vec<String>]) -> Vec<(Fit, Vec<String>)> {
    let mut extras = Vec::new();
    while let Some(column) = fits.iter().position(|fit| matches!(fit, Fit::Extra(_))) {
        extras.push((fits.remove(column), remove_column(rows, column)));
    }
    extras
}

fn drop_columns(fits: &mut Vec<Fit>, rows: &mut [Vec<String>], width: usize) {
    while total(rows) > width
        && let Some(column) = fits.iter().rposition(|fit| *fit == Fit::Drop)
    {
        fits.remove(column);
        remove_column(rows, column);
    }
}

fn cut_columns(fits: &[Fit], rows: &mut [Vec<String>], width: usize) {
    for (column, fit) in fits.iter().enumerate().rev() {
        let (cut, least): (fn(&str, usize) -> String, usize) = match fit {
            Fit::Middle(least) => (cut_middle, *least),
            Fit::End(least) => (cut_end, *least),
            Fit::Full | Fit::Drop | Fit::Extra(_) => continue,
        };
        let excess = total(rows).saturating_sub(width);
        let longest = widths(rows).get(column).copied().unwrap_or_default();
        if excess == 0 {
            return;
        }
        let keep = longest.saturating_sub(excess).max(least);
        for cell in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            *cell = cut(cell, keep);
        }
    }
}

fn push_extra(fit: Fit, cells: Vec<String>, rows: &mut [Vec<String>], width: usize) {
    let Fit::Extra(least) = fit else { return };
    let room = width.saturating_sub(total(rows) + GAP.len());
    let needed = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or_default();
    // A column of dashes says nothing.
    let is_empty = cells.iter().skip(1).all(|cell| cell == "-");
    if !is_empty && room >= needed.min(least) {
        for (row, cell) in rows.iter_mut().zip(cells) {
            row.push(cut_end(&cell, room));
        }
    }
}

fn remove_column(rows: &mut [Vec<String>], column: usize) -> Vec<String> {
    rows.iter_mut().map(|row| if column < row.len() { row.remove(column) } else { String::new() }).collect()
}

fn total(rows: &[Vec<String>]) -> usize {
    let widths = widths(rows);
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    const FITS: [Fit; 5] = [Fit::Full, Fit::Middle(9), Fit::Drop, Fit::End(8), Fit::Extra(12)];

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 5]| cells.map(str::to_owned).to_vec();
        vec![
            row(["NAME", "SOURCE", "AGE", "STATE", "MESSAGE"]),
            row(["harbour", "quay.io/example/harbour:v1", "3h", "Failed (Unhealthy)", "0 of 1 replicas are available"]),
        ]
    }

    #[test]
    fn columns_are_dropped_then_cut_and_extra_ones_fill_the_rest() {
        let text = |width| lines(&FITS, rows(), width).join("\n");
        insta::assert_snapshot!(text(None), @r"
        NAME     SOURCE                      AGE  STATE
        harbour  quay.io/example/harbour:v1  3h   Failed (Unhealthy)
        ");
        insta::assert_snapshot!(text(Some(40)), @r"
        NAME     SOURCE                 STATE
        harbour  quay.io/ex…harbour:v1  Failed …
        ");
        insta::assert_snapshot!(text(Some(140)), @r"
        NAME     SOURCE                      AGE  STATE               MESSAGE
        harbour  quay.io/example/harbour:v1  3h   Failed (Unhealthy)  0 of 1 replicas are available
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_unless_nothing_more_can_be_cut() {
        for width in 0..160 {
            let longest = lines(&FITS, rows(), Some(width)).iter().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width.max(28)), "{width}: {longest:?}");
        }
    }

    #[test]
    fn the_middle_is_cut() {
        assert_eq!(cut_middle("abcdefghij", 5), "ab…ij");
        assert_eq!(cut_middle("abc", 3), "abc");
        assert_eq!(cut_middle("", 0), "");
        assert_eq!(cut_end("abcdef", 3), "ab…");
    }
}
