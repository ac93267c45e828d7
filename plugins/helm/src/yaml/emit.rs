//! An emitter of block YAML with the layout of go-yaml: its quoting, block scalars, and folding of long lines.

/// The column after which go-yaml v2 folds a line at the next space.
const WIDTH: usize = 80;

/// The two writers whose text charts depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// go-yaml v2, behind `toYaml`: sequences in mappings are not indented, and long lines are folded.
    V2,
    /// go-yaml v3, behind `toYamlPretty`: sequences are indented, and lines stay as they are.
    V3,
}

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Without quotes, where its text allows.
    Plain,
    /// In double quotes.
    Double,
    /// As a block, `|`, where its text allows.
    Literal,
}

/// Writes events as text, and keeps the column and indentation.
pub(super) struct Emitter {
    out: String,
    dialect: Dialect,
    column: usize,
    /// The indentation of the collection; nothing at the root.
    indent: Option<usize>,
    /// Whether the last character was white space.
    whitespace: bool,
    /// Whether the line has only indentation and indicators so far.
    indention: bool,
}

/// What the text of a scalar allows.
#[expect(clippy::struct_excessive_bools, reason = "four independent permissions")]
struct Analysis {
    multiline: bool,
    plain: bool,
    single: bool,
    block: bool,
}

impl Emitter {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { out: String::new(), dialect, column: 0, indent: None, whitespace: true, indention: true }
    }

    /// The bytes written so far.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// The text, with a final line feed.
    pub(super) fn finish(mut self) -> String {
        if !self.out.is_empty() && self.column > 0 {
            self.put('\n');
        }
        self.out
    }

    fn put(&mut self, character: char) {
        self.out.push(character);
        if character == '\n' {
            self.column = 0;
        } else {
            self.column += 1;
        }
    }

    /// Writes a line break of the text; one other than a line feed is kept as it is.
    fn put_break(&mut self, character: char) {
        self.out.push(character);
        self.column = 0;
    }

    fn write_indent(&mut self) {
        let indent = self.indent.unwrap_or(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put('\n');
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, text: &str, needs_space: bool, is_space: bool, is_indention: bool) {
        if needs_space && !self.whitespace {
            self.put(' ');
        }
        for character in text.chars() {
            self.put(character);
        }
        self.whitespace = is_space;
        self.indention = self.indention && is_indention;
    }

    /// Begins a collection; [`Self::close`] takes what this returns.
    fn open(&mut self, indentless: bool) -> Option<usize> {
        let outer = self.indent;
        self.indent = Some(match outer {
            None => 0,
            Some(indent) if indentless => indent,
            Some(indent) => indent + 2,
        });
        outer
    }

    /// Begins a sequence with items.
    pub(super) fn open_sequence(&mut self, in_mapping: bool) -> Option<usize> {
        let indentless = self.dialect == Dialect::V2 && in_mapping && !self.indention;
        self.open(indentless)
    }

    /// Begins a mapping with entries.
    pub(super) fn open_mapping(&mut self) -> Option<usize> {
        self.open(false)
    }

    /// Ends a collection.
    pub(super) fn close(&mut self, outer: Option<usize>) {
        self.indent = outer;
    }

    /// `-`, before an item.
    pub(super) fn item(&mut self) {
        self.write_indent();
        self.indicator("-", true, false, true);
    }

    /// A key and its colon.
    pub(super) fn key(&mut self, text: &str, style: Style) {
        self.write_indent();
        let analysis = self.analyze(text);
        if analysis.multiline || text.len() > 128 {
            self.indicator("?", true, false, true);
            self.scalar_analyzed(text, style, &analysis, false);
            self.write_indent();
            self.indicator(":", true, false, true);
        } else {
            self.scalar_analyzed(text, style, &analysis, true);
            self.indicator(":", false, false, false);
        }
    }

    /// Text that needs no quotes: `[]`, a number.
    pub(super) fn raw(&mut self, text: &str) {
        self.indicator(text, true, false, false);
    }

    /// A scalar as a value.
    pub(super) fn scalar(&mut self, text: &str, style: Style) {
        let analysis = self.analyze(text);
        self.scalar_analyzed(text, style, &analysis, false);
    }

    fn scalar_analyzed(&mut self, text: &str, style: Style, analysis: &Analysis, in_key: bool) {
        let outer = self.indent;
        self.indent = Some(self.indent.map_or(2, |indent| indent + 2));
        let style = if in_key && analysis.multiline { Style::Double } else { style };
        match style {
            Style::Plain if analysis.plain && !(text.is_empty() && in_key) => self.plain(text, !in_key),
            Style::Plain if analysis.single => self.single(text, !in_key),
            Style::Literal if analysis.block && !in_key => self.literal(text),
            Style::Plain | Style::Double | Style::Literal => self.double(text, !in_key),
        }
        self.indent = outer;
    }

    fn folds(&self, allowed: bool) -> bool {
        allowed && self.dialect == Dialect::V2 && self.column > WIDTH
    }

    fn plain(&mut self, text: &str, allow_breaks: bool) {
        if !self.whitespace && !text.is_empty() {
            self.put(' ');
        }
        self.flow(text, allow_breaks, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn single(&mut self, text: &str, allow_breaks: bool) {
        self.indicator("'", true, false, false);
        self.flow(text, allow_breaks, true);
        self.indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    /// The text of a plain or single-quoted scalar.
    fn flow(&mut self, text: &str, allow_breaks: bool, quoted: bool) {
        let (mut spaces, mut breaks) = (false, false);
        let mut characters = text.chars().peekable();
        let mut first = true;
        while let Some(character) = characters.next() {
            if character == ' ' {
                let next = characters.peek().copied();
                let inside = !quoted || (!first && next.is_some());
                if self.folds(allow_breaks) && !spaces && inside && next != Some(' ') {
                    self.write_indent();
                } else {
                    self.put(' ');
                }
                spaces = true;
            } else if is_break(character) {
                if !breaks && character == '\n' {
                    self.put('\n');
                }
                self.put_break(character);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if quoted && character == '\'' {
                    self.put('\'');
                }
                self.put(character);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
            first = false;
        }
    }

    fn double(&mut self, text: &str, allow_breaks: bool) {
        self.indicator("\"", true, false, false);
        let mut spaces = false;
        // go-yaml looks for a byte order mark at the begin of the text, for each of its characters.
        let marked = text.starts_with('\u{feff}');
        let mut characters = text.chars().peekable();
        let mut first = true;
        while let Some(character) = characters.next() {
            if marked || !is_printable(character) || is_break(character) || matches!(character, '"' | '\\' | '\u{feff}')
            {
                self.escape(character);
                spaces = false;
            } else if character == ' ' {
                let next = characters.peek().copied();
                if self.folds(allow_breaks) && !spaces && !first && next.is_some() {
                    self.write_indent();
                    if next == Some(' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(' ');
                }
                spaces = true;
            } else {
                self.put(character);
                spaces = false;
            }
            first = false;
        }
        self.indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn escape(&mut self, character: char) {
        self.put('\\');
        let short = match character {
            '\0' => '0',
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            '\r' => 'r',
            '\u{1b}' => 'e',
            '"' => '"',
            '\\' => '\\',
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => {
                let code = u32::from(character);
                let text = match code {
                    0..=0xff => format!("x{code:02X}"),
                    0x100..=0xffff => format!("u{code:04X}"),
                    _ => format!("U{code:08X}"),
                };
                text.chars().for_each(|character| self.put(character));
                return;
            }
        };
        self.put(short);
    }

    fn literal(&mut self, text: &str) {
        self.indicator("|", true, false, false);
        if text.starts_with([' ', '\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
            self.indicator("2", false, false, false);
        }
        let mut last = text.chars().rev();
        match (last.next().is_some_and(is_break), last.next()) {
            (false, _) => self.indicator("-", false, false, false),
            (true, None) => self.indicator("+", false, false, false),
            (true, Some(before)) if is_break(before) => self.indicator("+", false, false, false),
            (true, Some(_)) => {}
        }
        self.put('\n');
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for character in text.chars() {
            if is_break(character) {
                self.put_break(character);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                self.put(character);
                self.indention = false;
                breaks = false;
            }
        }
    }

    fn analyze(&self, text: &str) -> Analysis {
        if text.is_empty() {
            return Analysis { multiline: false, plain: true, single: true, block: false };
        }
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut line_breaks, mut special, mut tabs) = (false, false, false);
        let (mut leading, mut trailing_space, mut trailing) = (false, false, false);
        let (mut break_space, mut space_break) = (false, false);
        let (mut previous_space, mut previous_break, mut after_blank) = (false, false, true);
        let mut characters = text.chars().peekable();
        let mut first = true;
        while let Some(character) = characters.next() {
            let next = characters.peek().copied();
            let before_blank = next.is_none_or(is_blank_or_break);
            indicators |= match character {
                '#' if !first => after_blank,
                ',' | '[' | ']' | '{' | '}' | '#' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => first,
                '?' | '-' => first && before_blank,
                ':' => before_blank,
                _ => false,
            };
            if character == '\t' && self.dialect == Dialect::V3 {
                tabs = true;
            } else if !is_printable(character) {
                special = true;
            }
            if character == ' ' {
                leading |= first;
                trailing_space |= next.is_none();
                break_space |= previous_break;
                (previous_space, previous_break) = (true, false);
            } else if is_break(character) {
                line_breaks = true;
                leading |= first;
                trailing |= next.is_none();
                space_break |= previous_space;
                (previous_space, previous_break) = (false, true);
            } else {
                (previous_space, previous_break) = (false, false);
            }
            after_blank = is_blank_or_break(character);
            first = false;
        }
        let mut analysis = Analysis { multiline: line_breaks, plain: true, single: true, block: true };
        if leading || trailing_space || trailing || line_breaks || indicators {
            analysis.plain = false;
        }
        if trailing_space {
            analysis.block = false;
        }
        if break_space {
            (analysis.plain, analysis.single) = (false, false);
        }
        if tabs {
            (analysis.plain, analysis.single) = (false, false);
        }
        if space_break || special {
            analysis = Analysis { multiline: line_breaks, plain: false, single: false, block: false };
        }
        analysis
    }
}

fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank_or_break(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\0') || is_break(character)
}

/// What go-yaml writes as itself; it does not know characters beyond the first plane.
fn is_printable(character: char) -> bool {
    match character {
        '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' => true,
        '\u{e000}'..='\u{ffff}' => !matches!(character, '\u{feff}' | '\u{fffe}' | '\u{ffff}'),
        _ => false,
    }
}
