//! The terminal: colours, width, and lines on standard error.

use std::{
    borrow::Cow,
    env,
    io::{self, IsTerminal as _, Write as _},
    sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering},
    },
};

use chandler_core::text::{is_deceptive, printable};

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

impl Look {
    /// Text in the colour of a tone, if colours are on.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        if self != Self::Colour {
            return text.to_owned();
        }
        let styled = console::style(text).force_styling(true);
        match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => styled.green(),
            Tone::Busy => styled.yellow(),
            Tone::Bad => styled.red(),
        }
        .to_string()
    }

    /// The sign for the health of an object.
    pub fn sign(self, health: ObjectHealth) -> String {
        let tone = match health {
            ObjectHealth::Healthy => Tone::Good,
            ObjectHealth::Progressing => Tone::Busy,
            ObjectHealth::Unhealthy | ObjectHealth::Unknown => Tone::Bad,
        };
        self.paint(tone, &health.sign())
    }
}

/// What a word is about: its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing in particular.
    Plain,
    /// What is as it should be.
    Good,
    /// What is under way, or waits.
    Busy,
    /// What has failed.
    Bad,
}

/// Where text is drawn. From a width alone, in no colour.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The columns, or `None` if there is no limit.
    pub width: Option<usize>,
    /// How it is drawn.
    pub look: Look,
}

impl From<Option<usize>> for Frame {
    fn from(width: Option<usize>) -> Self {
        Self { width, look: Look::Plain }
    }
}

impl From<Terminal> for Frame {
    fn from(terminal: Terminal) -> Self {
        Self { width: terminal.columns(), look: terminal.look() }
    }
}

/// Whether the locale of this process has ASCII only.
static ASCII: LazyLock<bool> = LazyLock::new(|| is_ascii_locale(|name| env::var(name).ok()));

/// Whether a locale is set that has no UTF-8, such as `C`. Without a locale, terminals of our time have it.
fn is_ascii_locale(variable: impl Fn(&str) -> Option<String>) -> bool {
    let mut variables = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable);
    variables.find(|value| !value.is_empty()).is_some_and(|locale| {
        let locale = locale.to_ascii_uppercase();
        !locale.contains("UTF-8") && !locale.contains("UTF8")
    })
}

/// Whether signs and lines are drawn in ASCII, since the locale has nothing else.
pub fn is_ascii() -> bool {
    *ASCII
}

/// Whether standard output or standard error has colours.
static COLOURS: LazyLock<bool> =
    LazyLock::new(|| [Terminal::detect(), Terminal::output()].iter().any(|terminal| terminal.look == Look::Colour));

/// Text for people in the locale of this process. All such text passes here, so that a deceptive character which the caller forgot to escape
/// does not reach the terminal.
pub fn drawn(text: &str) -> Cow<'_, str> {
    let text = harmless(text, *COLOURS);
    if !is_ascii() {
        return text;
    }
    match text {
        Cow::Borrowed(text) => in_ascii(text),
        Cow::Owned(text) => Cow::Owned(in_ascii(&text).into_owned()),
    }
}

/// Text with every deceptive character escaped, except for the sequences that [`Look::paint`] and miette write where colours are on.
fn harmless(text: &str, has_colours: bool) -> Cow<'_, str> {
    if !text.contains(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split('\u{1b}');
    let mut shown = printable(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        match colour(part).filter(|_| has_colours) {
            Some((sequence, rest)) => shown.extend(["\u{1b}".into(), sequence.into(), printable(rest)]),
            None => shown.extend([printable("\u{1b}"), printable(part)]),
        }
    }
    Cow::Owned(shown)
}

/// What follows an ESC: the rest of a sequence that selects a foreground colour or a weight, and the text behind it. No other sequence is
/// ours: a background or concealed text could hide what is printed.
fn colour(text: &str) -> Option<(&str, &str)> {
    let end = text.find('m')?;
    let (sequence, rest) = text.split_at_checked(end + 1)?;
    let parameters = sequence.strip_prefix('[')?.strip_suffix('m')?;
    let is_ours = |parameter: &str| {
        matches!(parameter, "" | "0" | "1" | "2" | "3" | "4" | "22" | "23" | "24" | "39")
            || matches!(parameter.as_bytes(), [b'3' | b'9', b'0'..=b'7'])
    };
    parameters.split(';').all(is_ours).then_some((sequence, rest))
}

/// Text with our signs and lines in ASCII, each in one column as before.
fn in_ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let drawn = |c| match c {
        '✓' => '+',
        '✗' => 'x',
        '…' => '~',
        '●' | '±' => '*',
        '→' => '>',
        '─' => '-',
        '│' | '├' => '|',
        '└' => '`',
        other => other,
    };
    Cow::Owned(text.chars().map(drawn).collect())
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

    /// Writes a line to standard error. A write error is ignored.
    pub fn line(&self, text: impl AsRef<str>) {
        spinner::hidden(|| {
            let _ = writeln!(io::stderr().lock(), "{}", drawn(text.as_ref()));
        });
    }

    /// Writes text to standard error, without a line feed. A write error is ignored.
    pub fn write(&self, text: impl AsRef<str>) {
        spinner::hidden(|| {
            let _ = write!(io::stderr().lock(), "{}", drawn(text.as_ref()));
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

    #[test]
    fn a_locale_without_utf_8_gets_ascii() {
        for (set, expected) in [
            (&[][..], false),
            (&[("LANG", "C.UTF-8")], false),
            (&[("LANG", "de_DE.utf8")], false),
            (&[("LANG", "C")], true),
            (&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")], true),
            (&[("LANG", "C"), ("LC_CTYPE", "en_US.UTF-8")], false),
            (&[("LANG", "C"), ("LC_ALL", "")], true),
            (&[("LANG", "en_US.ISO-8859-1")], true),
        ] {
            let variable = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(is_ascii_locale(variable), expected, "{set:?}");
        }
    }

    #[test]
    fn signs_and_lines_keep_their_columns_in_ascii() {
        let tree = "├─ ✓ a…b\n│  └─ ✗ c ● → ±";
        assert_eq!(in_ascii(tree), "|- + a~b\n|  `- x c * > *");
        for sign in [
            crate::view::tree::Mark::Installed,
            crate::view::tree::Mark::Next,
            crate::view::tree::Mark::Health(ObjectHealth::Healthy),
            crate::view::tree::Mark::Health(ObjectHealth::Progressing),
            crate::view::tree::Mark::Health(ObjectHealth::Unhealthy),
        ] {
            assert!(in_ascii(&sign.sign()).is_ascii(), "{sign:?}");
        }
    }

    #[test]
    fn a_character_that_nothing_escaped_does_not_reach_the_terminal() {
        let hostile = "a\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}31m\rb\u{202e}c\u{1b}";
        let escaped = r"a\u{001B}[2J\u{001B}]0;x\u{0007}\u{009B}31m\u{000D}b\u{202E}c\u{001B}";
        assert_eq!((harmless(hostile, false), harmless(hostile, true)), (escaped.into(), escaped.into()));
        let ours = Look::Colour.paint(Tone::Bad, "Failed") + "\u{1b}[36;1;4mlink\u{1b}[0m\n";
        assert_eq!(harmless(&ours, true), ours);
        assert!(!harmless(&ours, false).contains('\u{1b}'));
        for hidden in ["\u{1b}[8mx", "\u{1b}[30;40mx", "\u{1b}[7mx", "\u{1b}[48;5;0mx", "\u{1b}[1", "\u{1b}[1Hm"] {
            assert!(!harmless(hidden, true).contains('\u{1b}'), "{hidden:?}");
        }
        assert!(matches!(harmless("plain ✓\ttext\n", true), Cow::Borrowed(_)));
    }

    #[test]
    fn a_tone_is_a_colour_where_colours_are_on() {
        let paint = |look: Look| look.paint(Tone::Bad, "Failed");
        assert_eq!((paint(Look::Plain), paint(Look::Unicode)), ("Failed".to_owned(), "Failed".to_owned()));
        assert_eq!(paint(Look::Colour), "\u{1b}[31mFailed\u{1b}[0m");
        assert_eq!(Look::Colour.paint(Tone::Plain, "Failed"), "Failed");
    }
}
