//! The terminal: colours, width, and lines on standard error.

use std::{
    env,
    io::{self, IsTerminal as _, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use super::{spinner, tree::ObjectHealth};

/// How text is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Colours and box-drawing characters.
    Colour,
    /// Box-drawing characters.
    Unicode,
    /// ASCII.
    Plain,
}

/// Standard error or standard output. Everything except data goes to standard error.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    look: Look,
    width: usize,
    columns: Option<usize>,
}

/// Whether `--no-color` is set.
static NO_COLOUR: AtomicBool = AtomicBool::new(false);

/// Draws nothing in colour from here on, for `--no-color`.
pub fn disable_colours() {
    NO_COLOUR.store(true, Ordering::Relaxed);
    console::set_colors_enabled(false);
    console::set_colors_enabled_stderr(false);
}

/// The maximum width of text in columns, and the width if it is unknown.
const MAX_WIDTH: usize = 120;
/// Less is not a width that anything can be drawn in.
const MIN_WIDTH: usize = 40;

impl Terminal {
    /// Standard error. `--no-color`, `NO_COLOR` (any value that is not empty) and `TERM=dumb` are respected.
    pub fn detect() -> Self {
        Self::of(&console::Term::stderr(), io::stderr().is_terminal())
    }

    /// Standard output, for data with colours. The variable `COLUMNS` wins over the width of the terminal, also where there is none.
    pub fn output() -> Self {
        Self::of(&console::Term::stdout(), io::stdout().is_terminal())
    }

    fn of(terminal: &console::Term, is_terminal: bool) -> Self {
        let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let look = if !is_terminal || env::var_os("TERM").is_some_and(|term| term == "dumb") {
            Look::Plain
        } else if set("NO_COLOR") || NO_COLOUR.load(Ordering::Relaxed) {
            Look::Unicode
        } else {
            Look::Colour
        };
        let set = columns(env::var("COLUMNS").ok().as_deref());
        let own = || (look != Look::Plain).then(|| usize::from(terminal.size().1));
        let columns = set.or_else(own).map(|columns| columns.max(MIN_WIDTH));
        Self { look, width: columns.map_or(MAX_WIDTH, |columns| columns.min(MAX_WIDTH)), columns }
    }

    /// A terminal of this kind, for tests and tools.
    pub fn new(look: Look, width: usize) -> Self {
        Self { look, width, columns: (look != Look::Plain).then_some(width) }
    }

    /// How text is drawn.
    pub fn look(&self) -> Look {
        self.look
    }

    /// The width in columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The columns that a table may use, or `None` if there is no terminal, and so no limit.
    pub fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Whether lines can be overwritten.
    pub fn is_interactive(&self) -> bool {
        self.look != Look::Plain
    }

    /// The sign for the health of an object, coloured if colours are on.
    pub fn sign(&self, health: ObjectHealth) -> String {
        if self.look != Look::Colour {
            return health.sign();
        }
        let sign = console::style(health.sign()).force_styling(true);
        match health {
            ObjectHealth::Healthy => sign.green(),
            ObjectHealth::Progressing => sign.yellow(),
            ObjectHealth::Unhealthy | ObjectHealth::Unknown => sign.red(),
        }
        .to_string()
    }

    /// Writes a line to standard error. A write error is ignored.
    pub fn line(&self, text: impl AsRef<str>) {
        spinner::hidden(|| {
            let _ = writeln!(io::stderr().lock(), "{}", text.as_ref());
        });
    }

    /// Writes text to standard error, without a line feed. A write error is ignored.
    pub fn write(&self, text: impl AsRef<str>) {
        spinner::hidden(|| {
            let _ = write!(io::stderr().lock(), "{}", text.as_ref());
        });
    }
}

/// The value of the variable `COLUMNS`. Zero and values that are not numbers do not count, as in coreutils.
fn columns(variable: Option<&str>) -> Option<usize> {
    variable?.trim().parse().ok().filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_in_the_environment_is_a_positive_number() {
        for (variable, expected) in [
            (None, None),
            (Some("80"), Some(80)),
            (Some(" 160 "), Some(160)),
            (Some("0"), None),
            (Some("-1"), None),
            (Some("wide"), None),
            (Some(""), None),
        ] {
            assert_eq!(columns(variable), expected, "{variable:?}");
        }
    }
}
