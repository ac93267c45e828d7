//! What standard error can show.

use std::{
    env,
    io::{self, IsTerminal as _, Write as _},
};

use crate::tree::Mark;

/// How text for people is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Colours and box-drawing characters.
    Colour,
    /// Box-drawing characters.
    Unicode,
    /// ASCII.
    Plain,
}

/// Standard error: where everything goes that is not data.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    look: Look,
    width: usize,
}

/// Where the width is not known, and the most that reads well.
const WIDTH: usize = 120;

impl Terminal {
    /// What standard error is. `NO_COLOR` (any value but the empty one) and `TERM=dumb` are heeded.
    pub fn detect() -> Self {
        Self::of(&console::Term::stderr(), io::stderr().is_terminal())
    }

    /// What standard output is, for findings that are the data of a command.
    pub fn output() -> Self {
        Self::of(&console::Term::stdout(), io::stdout().is_terminal())
    }

    fn of(terminal: &console::Term, is_terminal: bool) -> Self {
        let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let look = if !is_terminal || env::var_os("TERM").is_some_and(|term| term == "dumb") {
            Look::Plain
        } else if set("NO_COLOR") {
            Look::Unicode
        } else {
            Look::Colour
        };
        let width = if look == Look::Plain { WIDTH } else { usize::from(terminal.size().1) };
        Self { look, width: width.clamp(40, WIDTH) }
    }

    /// A terminal of this kind, for tests and tools.
    pub fn new(look: Look, width: usize) -> Self {
        Self { look, width }
    }

    /// How text is drawn.
    pub fn look(&self) -> Look {
        self.look
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether lines can be overwritten.
    pub fn is_interactive(&self) -> bool {
        self.look != Look::Plain
    }

    /// The sign of an object's health, in its colour where there are colours.
    pub fn sign(&self, mark: Mark) -> String {
        if self.look != Look::Colour {
            return mark.sign();
        }
        let sign = console::style(mark.sign()).force_styling(true);
        match mark {
            Mark::Healthy => sign.green(),
            Mark::Progressing => sign.yellow(),
            Mark::Unhealthy | Mark::Unknown => sign.red(),
        }
        .to_string()
    }

    /// Writes a line to standard error. That nobody reads it is no reason to fail.
    pub fn line(&self, text: impl AsRef<str>) {
        let _ = writeln!(io::stderr().lock(), "{}", text.as_ref());
    }

    /// Writes text to standard error as it is.
    pub fn write(&self, text: impl AsRef<str>) {
        let _ = write!(io::stderr().lock(), "{}", text.as_ref());
    }
}
