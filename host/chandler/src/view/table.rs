//! Tables that fit the terminal. A table is a list of columns and its rows.

use console::measure_text_width;

use super::{
    terminal::{Frame, Look, Tone},
    text::one_line,
};

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

/// A column of a table.
pub struct Column<Row> {
    /// The title in the header.
    pub title: &'static str,
    /// What happens to it in a narrow or a wide terminal.
    pub fit: Fit,
    /// The cell of a row. It is printed on one line.
    pub cell: fn(&Row) -> String,
    is_optional: bool,
    tone: Option<fn(&Row) -> Tone>,
}

impl<Row> Column<Row> {
    /// A column that every table has, as far as it fits.
    pub const fn new(title: &'static str, fit: Fit, cell: fn(&Row) -> String) -> Self {
        Self { title, fit, cell, is_optional: false, tone: None }
    }

    /// A column whose cells have colours.
    pub const fn toned(title: &'static str, fit: Fit, cell: fn(&Row) -> String, tone: fn(&Row) -> Tone) -> Self {
        Self { title, fit, cell, is_optional: false, tone: Some(tone) }
    }

    /// A column that is left out if no row has a value: if all its cells are empty, or a dash.
    pub const fn optional(title: &'static str, fit: Fit, cell: fn(&Row) -> String) -> Self {
        Self { title, fit, cell, is_optional: true, tone: None }
    }

    fn is_shown(&self, rows: &[Row]) -> bool {
        !self.is_optional || rows.iter().any(|row| !matches!((self.cell)(row).as_str(), "" | "-"))
    }
}

/// A cell of a table.
#[derive(Clone, Debug)]
struct Cell {
    text: String,
    tone: Tone,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, tone: Tone::Plain }
    }
}

impl Cell {
    /// The columns that it takes.
    fn length(&self) -> usize {
        columns_of(&self.text)
    }
}

/// A table with its header, in the width of the frame where that is possible. [`lines`] describes how it fits.
pub fn text<Row>(columns: &[Column<Row>], rows: &[Row], frame: impl Into<Frame>) -> String {
    lines(columns, rows, frame).join("\n") + "\n"
}

/// A table with its header, with every column in full.
pub fn wide<Row>(columns: &[Column<Row>], rows: &[Row], look: Look) -> String {
    let cells = cells(&shown(columns, rows), rows);
    painted(&cells, look).join("\n") + "\n"
}

/// The lines of a table, the first of which is the header. In a width, columns are first left out and then cut, each from the last
/// to the first, until the lines fit; where there is room, extra columns are shown. Without a width, nothing is cut or added.
pub fn lines<Row>(columns: &[Column<Row>], rows: &[Row], frame: impl Into<Frame>) -> Vec<String> {
    let Frame { width, look } = frame.into();
    let columns = shown(columns, rows);
    let mut fits: Vec<Fit> = columns.iter().map(|column| column.fit).collect();
    let mut cells = cells(&columns, rows);
    let extras: Vec<(Fit, Vec<Cell>)> = take_extras(&mut fits, &mut cells);
    if let Some(width) = width {
        drop_columns(&mut fits, &mut cells, width);
        cut_columns(&fits, &mut cells, width);
        for (fit, extra) in extras {
            push_extra(fit, extra, &mut cells, width);
        }
    }
    painted(&cells, look)
}

/// Rows of cells, with the cells of a column below each other.
pub fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let rows: Vec<Vec<Cell>> = rows.iter().map(|row| row.iter().cloned().map(Cell::from).collect()).collect();
    painted(&rows, Look::Plain)
}

fn painted(rows: &[Vec<Cell>], look: Look) -> Vec<String> {
    let widths = widths(rows);
    let line = |row: &Vec<Cell>| {
        // Colours take no columns.
        let cell = |(cell, width): (&Cell, usize)| {
            look.paint(cell.tone, &cell.text) + &" ".repeat(width.saturating_sub(cell.length()))
        };
        let cells: Vec<String> = row.iter().zip(widths.iter().copied()).map(cell).collect();
        cells.join(GAP).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// The columns without the optional ones that no row has a value for.
fn shown<'a, Row>(columns: &'a [Column<Row>], rows: &[Row]) -> Vec<&'a Column<Row>> {
    columns.iter().filter(|column| column.is_shown(rows)).collect()
}

/// The header, and the cells of each row.
fn cells<Row>(columns: &[&Column<Row>], rows: &[Row]) -> Vec<Vec<Cell>> {
    let header = columns.iter().map(|column| column.title.to_owned().into()).collect();
    let cell = |column: &&Column<Row>, row: &Row| Cell {
        text: one_line(&(column.cell)(row)),
        tone: column.tone.map_or(Tone::Plain, |tone| tone(row)),
    };
    let of = |row| columns.iter().map(|column| cell(column, row)).collect();
    std::iter::once(header).chain(rows.iter().map(of)).collect()
}

/// A value in a cell; a dash if there is none.
pub fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// The columns that a text takes: two for each wide character, and none for a combining one.
fn columns_of(text: &str) -> usize {
    measure_text_width(text)
}

/// The longest part of these characters that fits into this number of columns.
fn fitting(characters: impl Iterator<Item = char>, columns: usize) -> Vec<char> {
    let (mut taken, mut used) = (Vec::new(), 0);
    for character in characters {
        used += columns_of(character.encode_utf8(&mut [0; 4]));
        if used > columns {
            break;
        }
        taken.push(character);
    }
    taken
}

/// Cuts text to this number of columns in the middle: the begin of a source is its registry, the end its tag or digest.
pub fn cut_middle(text: &str, keep: usize) -> String {
    if columns_of(text) <= keep || keep == 0 {
        return text.to_owned();
    }
    let (begin, end) = (keep / 2, keep - keep / 2 - 1);
    let (begin, end) = (fitting(text.chars(), begin), fitting(text.chars().rev(), end));
    begin.into_iter().chain(['…']).chain(end.into_iter().rev()).collect()
}

/// Cuts text to this number of columns at the end.
pub fn cut_end(text: &str, keep: usize) -> String {
    if columns_of(text) <= keep || keep == 0 {
        return text.to_owned();
    }
    fitting(text.chars(), keep - 1).into_iter().chain(['…']).collect()
}

fn take_extras(fits: &mut Vec<Fit>, rows: &mut [Vec<Cell>]) -> Vec<(Fit, Vec<Cell>)> {
    let mut extras = Vec::new();
    while let Some(column) = fits.iter().position(|fit| matches!(fit, Fit::Extra(_))) {
        extras.push((fits.remove(column), remove_column(rows, column)));
    }
    extras
}

fn drop_columns(fits: &mut Vec<Fit>, rows: &mut [Vec<Cell>], width: usize) {
    while total(rows) > width
        && let Some(column) = fits.iter().rposition(|fit| *fit == Fit::Drop)
    {
        fits.remove(column);
        remove_column(rows, column);
    }
}

fn cut_columns(fits: &[Fit], rows: &mut [Vec<Cell>], width: usize) {
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
            cell.text = cut(&cell.text, keep);
        }
    }
}

fn push_extra(fit: Fit, cells: Vec<Cell>, rows: &mut [Vec<Cell>], width: usize) {
    let Fit::Extra(least) = fit else { return };
    let room = width.saturating_sub(total(rows) + GAP.len());
    let needed = cells.iter().map(Cell::length).max().unwrap_or_default();
    // A column of dashes says nothing.
    let is_empty = cells.iter().skip(1).all(|cell| cell.text == "-");
    if !is_empty && room >= needed.min(least) {
        for (row, cell) in rows.iter_mut().zip(cells) {
            row.push(Cell { text: cut_end(&cell.text, room), ..cell });
        }
    }
}

fn remove_column(rows: &mut [Vec<Cell>], column: usize) -> Vec<Cell> {
    rows.iter_mut().map(|row| if column < row.len() { row.remove(column) } else { String::new().into() }).collect()
}

fn total(rows: &[Vec<Cell>]) -> usize {
    let widths = widths(rows);
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

fn widths(rows: &[Vec<Cell>]) -> Vec<usize> {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.length());
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = [&'static str; 5];

    const COLUMNS: [Column<Row>; 5] = [
        Column::new("NAME", Fit::Full, |row| row[0].to_owned()),
        Column::new("SOURCE", Fit::Middle(9), |row| row[1].to_owned()),
        Column::new("AGE", Fit::Drop, |row| row[2].to_owned()),
        Column::new("STATE", Fit::End(8), |row| row[3].to_owned()),
        Column::new("MESSAGE", Fit::Extra(12), |row| row[4].to_owned()),
    ];

    const ROWS: [Row; 1] =
        [["harbour", "quay.io/example/harbour:v1", "3h", "Failed (Unhealthy)", "0 of 1 replicas are available"]];

    #[test]
    fn columns_are_dropped_then_cut_and_extra_ones_fill_the_rest() {
        let text = |width| lines(&COLUMNS, &ROWS, width).join("\n");
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
    fn a_wide_table_has_every_column_in_full() {
        insta::assert_snapshot!(wide(&COLUMNS, &ROWS, Look::Plain), @r"
        NAME     SOURCE                      AGE  STATE               MESSAGE
        harbour  quay.io/example/harbour:v1  3h   Failed (Unhealthy)  0 of 1 replicas are available
        ");
    }

    #[test]
    fn an_optional_column_needs_a_value() {
        const COLUMNS: [Column<&str>; 2] = [
            Column::new("NAME", Fit::Full, |_| "harbour".to_owned()),
            Column::optional("NEWER", Fit::Full, |newer| (*newer).to_owned()),
        ];
        for (rows, header) in
            [(vec!["-", "1.2.0"], "NAME     NEWER"), (vec!["-", "-"], "NAME"), (vec![""], "NAME"), (vec![], "NAME")]
        {
            assert_eq!(lines(&COLUMNS, &rows, None).first().map(String::as_str), Some(header), "{rows:?}");
            assert_eq!(wide(&COLUMNS, &rows, Look::Plain).lines().next(), Some(header), "{rows:?}");
        }
    }

    #[test]
    fn a_cell_is_one_line() {
        let columns = [Column::new("MESSAGE", Fit::Full, |message: &&str| (*message).to_owned())];
        assert_eq!(text(&columns, &["a\n  b"], None), "MESSAGE\na b\n");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_unless_nothing_more_can_be_cut() {
        for width in 0..160 {
            let longest = lines(&COLUMNS, &ROWS, Some(width)).iter().map(|line| line.chars().count()).max();
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

    #[test]
    fn wide_and_combining_characters_keep_the_columns_below_each_other() {
        let columns = [
            Column::new("NAME", Fit::End(6), |name: &&str| (*name).to_owned()),
            Column::new("STATE", Fit::Full, |_| "Ready".to_owned()),
        ];
        let names = ["日本語日本語", "e\u{301}e\u{301}e\u{301}", "plain"];
        let lines = lines(&columns, &names, Some(16));
        let states: Vec<usize> =
            lines[1..].iter().map(|line| columns_of(line.split_once("Ready").unwrap().0)).collect();
        assert_eq!(states, [states[0]; 3], "{lines:#?}");
        assert!(lines.iter().all(|line| columns_of(line) <= 16), "{lines:#?}");
        assert_eq!((cut_end("日本語", 4).as_str(), cut_middle("日本語日本語", 6).as_str()), ("日…", "日…語"));
    }

    #[test]
    fn colours_take_no_columns() {
        let tone = |state: &&str| if *state == "Ready" { Tone::Good } else { Tone::Bad };
        let columns = [
            Column::toned("STATE", Fit::Full, |state: &&str| (*state).to_owned(), tone),
            Column::new("AGE", Fit::Full, |_| "3h".to_owned()),
        ];
        let frame = Frame { width: Some(80), look: Look::Colour };
        let coloured = text(&columns, &["Ready", "Failed"], frame);
        assert_eq!(coloured, "STATE   AGE\n\u{1b}[32mReady\u{1b}[0m   3h\n\u{1b}[31mFailed\u{1b}[0m  3h\n");
        assert_eq!(console::strip_ansi_codes(&coloured), text(&columns, &["Ready", "Failed"], Some(80)));
    }
}
