//! Tables of text that fit a terminal.

use super::text::one_line;

/// The space between columns.
const GAP: &str = "  ";
/// The fewest characters that a cut cell keeps.
const SHORTEST: usize = 12;

/// A table with a header. Cells are single lines.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

/// How a table gets narrower. The steps are taken one after the other until the table fits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Narrow {
    /// Leave out the column with this header.
    Drop(&'static str),
    /// Cut the longest cells of the column with this header in the middle, which says least: names and references differ at the end.
    Cut(&'static str),
}

impl Table {
    /// A table without rows.
    pub(super) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| one_line(&cell)).collect());
    }

    /// Leaves out a column.
    pub(super) fn drop(&mut self, header: &str) {
        if let Some(column) = self.column(header) {
            for row in self.rows.iter_mut().filter(|row| column < row.len()) {
                row.remove(column);
            }
        }
    }

    /// Takes steps until the rows have at most `width` characters; without a width, none.
    pub(super) fn fit(&mut self, width: Option<usize>, steps: &[Narrow]) {
        let Some(width) = width else { return };
        for step in steps {
            let excess = self.width().saturating_sub(width);
            match *step {
                _ if excess == 0 => return,
                Narrow::Drop(header) => self.drop(header),
                Narrow::Cut(header) => self.cut(header, excess),
            }
        }
    }

    /// The header and the rows, each aligned.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let widths = self.widths();
        self.rows.iter().map(move |row| {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            cells.join(GAP).trim_end().to_owned()
        })
    }

    fn column(&self, header: &str) -> Option<usize> {
        self.rows.first()?.iter().position(|cell| cell == header)
    }

    fn cut(&mut self, header: &str, excess: usize) {
        let Some(column) = self.column(header) else { return };
        let longest = self.widths().get(column).copied().unwrap_or_default();
        let keep = longest.saturating_sub(excess).max(SHORTEST);
        for cell in self.rows.iter_mut().skip(1).filter_map(|row| row.get_mut(column)) {
            let characters: Vec<char> = cell.chars().collect();
            if characters.len() > keep {
                let (begin, end) = (keep / 2, keep - keep / 2 - 1);
                let tail = characters.iter().skip(characters.len() - end);
                *cell = characters.iter().take(begin).chain(&['…']).chain(tail).collect();
            }
        }
    }

    fn width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(width: Option<usize>, steps: &[Narrow]) -> String {
        let mut table = Table::new(&["NAME", "SOURCE", "AGE"]);
        table.row(["harbour", "quay.io/example/harbour:v1.2.3", "3h"].map(str::to_owned));
        table.row(["pilot", "a\nb", ""].map(str::to_owned));
        table.fit(width, steps);
        table.lines().collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_table_gets_narrower_step_by_step() {
        const STEPS: [Narrow; 2] = [Narrow::Drop("AGE"), Narrow::Cut("SOURCE")];
        let whole = table(None, &STEPS);
        insta::assert_snapshot!(whole, @r"
        NAME     SOURCE                          AGE
        harbour  quay.io/example/harbour:v1.2.3  3h
        pilot    a b
        ");
        assert_eq!(table(Some(44), &STEPS), whole);
        insta::assert_snapshot!(table(Some(43), &STEPS), @r"
        NAME     SOURCE
        harbour  quay.io/example/harbour:v1.2.3
        pilot    a b
        ");
        insta::assert_snapshot!(table(Some(30), &STEPS), @r"
        NAME     SOURCE
        harbour  quay.io/ex…our:v1.2.3
        pilot    a b
        ");
        insta::assert_snapshot!(table(Some(1), &STEPS), @r"
        NAME     SOURCE
        harbour  quay.i…1.2.3
        pilot    a b
        ");
        assert_eq!(table(Some(1), &[Narrow::Drop("NONE"), Narrow::Cut("NONE")]), whole);
    }
}
