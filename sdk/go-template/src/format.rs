//! Go's package fmt: `print`, `printf`, `println`.
//!
//! Values may share parts, so that a small one prints as gigabytes, and may contain themselves: whatever is written is counted first.

use std::fmt::Write as _;

use crate::{
    IntKind, Limit, List, Meter, Str, Value, float,
    literal::{is_printable, quote_with},
};

/// What `fmt.Sprint` gives: a space between two arguments of which neither is a string.
pub fn sprint(meter: &mut Meter, arguments: &[Value]) -> Result<Str, Limit> {
    let mut printer = Printer::new(meter);
    printer.print(arguments)?;
    Ok(printer.out.into())
}

/// What `fmt.Sprintln` gives: a space between arguments, and a line feed.
pub fn sprintln(meter: &mut Meter, arguments: &[Value]) -> Result<Str, Limit> {
    let mut printer = Printer::new(meter);
    for (index, argument) in arguments.iter().enumerate() {
        if index > 0 {
            printer.write(b" ")?;
        }
        printer.argument(argument, 'v')?;
    }
    printer.write(b"\n")?;
    Ok(printer.out.into())
}

/// What `fmt.Sprintf` gives.
pub fn sprintf(meter: &mut Meter, format: &Str, arguments: &[Value]) -> Result<Str, Limit> {
    let mut printer = Printer::new(meter);
    printer.printf(format.as_bytes(), arguments)?;
    Ok(printer.out.into())
}

/// Prints a value as `%v` to the end of `out`; the bytes are counted.
pub(crate) fn print_to(meter: &mut Meter, out: &mut Vec<u8>, value: &Value) -> Result<(), Limit> {
    if let Value::String(text) = value {
        meter.charge(text.len())?;
        out.extend_from_slice(text.as_bytes());
        return Ok(());
    }
    let mut printer = Printer { out: std::mem::take(out), meter, flags: Flags::default(), erroring: false };
    let result = printer.argument(value, 'v');
    *out = printer.out;
    result
}

#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the flags of a format")]
struct Flags {
    sharp: bool,
    zero: bool,
    plus: bool,
    minus: bool,
    space: bool,
    /// `%#v`.
    syntax: bool,
    /// `%+v`.
    names: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

struct Printer<'m> {
    out: Vec<u8>,
    meter: &'m mut Meter,
    flags: Flags,
    erroring: bool,
}

/// Go's limit on widths and precisions.
const MOST: usize = 1_000_000;

type Result<T, E = Limit> = std::result::Result<T, E>;

impl<'m> Printer<'m> {
    fn new(meter: &'m mut Meter) -> Self {
        Self { out: Vec::new(), meter, flags: Flags::default(), erroring: false }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.meter.charge(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn print(&mut self, arguments: &[Value]) -> Result<()> {
        let mut previous_is_string = false;
        for (index, argument) in arguments.iter().enumerate() {
            let is_string = matches!(argument, Value::String(_));
            if index > 0 && !is_string && !previous_is_string {
                self.write(b" ")?;
            }
            self.argument(argument, 'v')?;
            previous_is_string = is_string;
        }
        Ok(())
    }

    fn padding(&mut self, count: usize) -> Result<()> {
        self.meter.charge(count)?;
        self.out.resize(self.out.len() + count, if self.flags.zero && !self.flags.minus { b'0' } else { b' ' });
        Ok(())
    }

    fn pad(&mut self, bytes: &[u8]) -> Result<()> {
        let length: usize =
            bytes.utf8_chunks().map(|chunk| chunk.valid().chars().count() + chunk.invalid().len()).sum();
        let missing = self.flags.width.unwrap_or_default().saturating_sub(length);
        if !self.flags.minus {
            self.padding(missing)?;
        }
        self.write(bytes)?;
        if self.flags.minus {
            self.padding(missing)?;
        }
        Ok(())
    }

    /// As [`Self::pad`], always with spaces.
    fn pad_with_spaces(&mut self, bytes: &[u8]) -> Result<()> {
        let zero = std::mem::replace(&mut self.flags.zero, false);
        self.pad(bytes)?;
        self.flags.zero = zero;
        Ok(())
    }

    fn argument(&mut self, value: &Value, verb: char) -> Result<()> {
        match (value, verb) {
            (Value::Nil, 'T' | 'v') => self.pad(b"<nil>"),
            (Value::Nil, _) => self.bad_verb(value, verb),
            (_, 'T') => self.text(value.type_name().as_bytes()),
            _ => self.value(value, verb, 0),
        }
    }

    fn bad_verb(&mut self, value: &Value, verb: char) -> Result<()> {
        self.erroring = true;
        self.write(format!("%!{verb}(").as_bytes())?;
        if value.is_nil() {
            self.write(b"<nil>")?;
        } else {
            self.write(format!("{}=", value.type_name()).as_bytes())?;
            self.value(value, 'v', 0)?;
        }
        self.erroring = false;
        self.write(b")")
    }

    fn value(&mut self, value: &Value, verb: char, depth: usize) -> Result<()> {
        self.meter.enter()?;
        let result = self.value_inside(value, verb, depth);
        self.meter.leave();
        result
    }

    fn value_inside(&mut self, value: &Value, verb: char, depth: usize) -> Result<()> {
        match value {
            Value::Nil if self.flags.syntax => self.write(b"interface {}(nil)"),
            Value::Nil => self.write(b"<nil>"),
            Value::Bool(truth) => match verb {
                't' | 'v' => self.pad(if *truth { b"true" } else { b"false" }),
                _ => self.bad_verb(value, verb),
            },
            Value::Int(int, kind) => self.integer(value, *int, *kind, verb),
            Value::Float(float) => self.float(value, *float, verb),
            Value::String(text) => self.string(value, text.as_bytes(), verb),
            Value::List(list) => self.list(value, list, verb, depth),
            Value::Map(map) => {
                let syntax = self.flags.syntax;
                if syntax {
                    self.write(format!("{}{{", value.type_name()).as_bytes())?;
                } else {
                    self.write(b"map[")?;
                }
                for (index, (key, item)) in map.entries().iter().enumerate() {
                    if index > 0 {
                        self.write(if syntax { b", " } else { b" " })?;
                    }
                    self.value(&Value::String(key.clone().into()), verb, depth + 1)?;
                    self.write(b":")?;
                    self.value(item, verb, depth + 1)?;
                }
                self.write(if syntax { b"}" } else { b"]" })
            }
            Value::Object(object) => {
                if !self.erroring
                    && !self.flags.syntax
                    && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q')
                    && let Some(text) = object.string()
                {
                    return self.string(&Value::from(text.clone()), text.as_bytes(), verb);
                }
                let Some(fields) = object.fields() else { return self.value(&object.data(), verb, depth) };
                if depth == 0 && object.kind() == "ptr" {
                    self.write(b"&")?;
                }
                self.write(b"{")?;
                for (index, (name, field)) in fields.iter().enumerate() {
                    if index > 0 {
                        self.write(b" ")?;
                    }
                    if self.flags.names || self.flags.syntax {
                        self.write(format!("{name}:").as_bytes())?;
                    }
                    self.value(field, verb, depth + 1)?;
                }
                self.write(b"}")
            }
        }
    }

    fn list(&mut self, value: &Value, list: &List, verb: char, depth: usize) -> Result<()> {
        if let ('s' | 'q' | 'x' | 'X', Some(bytes)) = (verb, list.as_bytes()) {
            return self.string(value, bytes, verb);
        }
        let syntax = self.flags.syntax;
        if syntax && list.is_nil() {
            return self.write(format!("{}(nil)", list.type_name()).as_bytes());
        }
        if syntax {
            self.write(format!("{}{{", list.type_name()).as_bytes())?;
        } else {
            self.write(b"[")?;
        }
        for (index, item) in list.items().iter().enumerate() {
            if index > 0 {
                self.write(if syntax { b", " } else { b" " })?;
            }
            self.value(item, verb, depth + 1)?;
        }
        self.write(if syntax { b"}" } else { b"]" })
    }

    fn string(&mut self, value: &Value, bytes: &[u8], verb: char) -> Result<()> {
        // The quoted form is at most so many times longer.
        self.meter.charge(bytes.len())?;
        match verb {
            'v' if self.flags.syntax => self.quoted(bytes),
            'v' | 's' => self.text(bytes),
            'x' | 'X' => self.hexadecimal(bytes, verb == 'X'),
            'q' => self.quoted(bytes),
            _ => self.bad_verb(value, verb),
        }
    }

    fn truncate<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let Some(mut left) = self.flags.precision else { return bytes };
        let mut end = 0;
        for chunk in bytes.utf8_chunks() {
            for length in chunk.valid().chars().map(char::len_utf8).chain(chunk.invalid().iter().map(|_| 1)) {
                if left == 0 {
                    return bytes.get(..end).unwrap_or_default();
                }
                left -= 1;
                end += length;
            }
        }
        bytes
    }

    fn text(&mut self, bytes: &[u8]) -> Result<()> {
        self.pad(self.truncate(bytes))
    }

    fn quoted(&mut self, bytes: &[u8]) -> Result<()> {
        let bytes = self.truncate(bytes);
        if self.flags.sharp
            && let Ok(text) = std::str::from_utf8(bytes)
            && text
                .chars()
                .all(|char| char != '`' && char != '\u{feff}' && (char == '\t' || (!char.is_ascii_control())))
        {
            return self.pad(format!("`{text}`").as_bytes());
        }
        self.meter.charge(bytes.len().saturating_mul(3))?;
        self.pad(quote_with(bytes, '"', self.flags.plus).as_bytes())
    }

    fn hexadecimal(&mut self, bytes: &[u8], upper: bool) -> Result<()> {
        let bytes = bytes.get(..self.flags.precision.unwrap_or(usize::MAX).min(bytes.len())).unwrap_or_default();
        self.meter.charge(bytes.len().saturating_mul(5))?;
        let prefix = if upper { "0X" } else { "0x" };
        let mut out = String::new();
        for (index, byte) in bytes.iter().enumerate() {
            if index > 0 && self.flags.space {
                out.push(' ');
            }
            if self.flags.sharp && (index == 0 || self.flags.space) {
                out.push_str(prefix);
            }
            let _ = if upper { write!(out, "{byte:02X}") } else { write!(out, "{byte:02x}") };
        }
        self.pad(out.as_bytes())
    }

    fn integer(&mut self, value: &Value, int: i64, kind: IntKind, verb: char) -> Result<()> {
        let negative = kind.is_signed() && int < 0;
        let magnitude = if negative { int.unsigned_abs() } else { int.cast_unsigned() };
        let digits = match verb {
            'v' if self.flags.syntax && !kind.is_signed() => {
                let text = format!("0x{magnitude:x}");
                return self.pad(text.as_bytes());
            }
            'v' | 'd' => magnitude.to_string(),
            'b' => format!("{magnitude:b}"),
            'o' | 'O' => format!("{magnitude:o}"),
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            'c' => {
                let char =
                    u32::try_from(magnitude).ok().filter(|_| !negative).and_then(char::from_u32).unwrap_or('\u{fffd}');
                return self.pad(char.encode_utf8(&mut [0; 4]).as_bytes());
            }
            'q' => {
                let char =
                    u32::try_from(magnitude).ok().filter(|_| !negative).and_then(char::from_u32).unwrap_or('\u{fffd}');
                let text = quote_with(char.encode_utf8(&mut [0; 4]).as_bytes(), '\'', self.flags.plus);
                return self.pad(text.as_bytes());
            }
            'U' => {
                let code = int.cast_unsigned();
                let width = self.flags.precision.unwrap_or(4).max(4);
                self.meter.charge(width)?;
                let mut text = format!("U+{code:0width$X}");
                if let (true, Some(char)) = (self.flags.sharp, u32::try_from(code).ok().and_then(char::from_u32))
                    && is_printable(char)
                {
                    let _ = write!(text, " '{char}'");
                }
                return self.pad_with_spaces(text.as_bytes());
            }
            _ => return self.bad_verb(value, verb),
        };
        let signed = negative || self.flags.plus || self.flags.space;
        let least = match (self.flags.precision, self.flags.width) {
            (Some(0), _) if magnitude == 0 => {
                let zero = std::mem::replace(&mut self.flags.zero, false);
                self.padding(self.flags.width.unwrap_or_default())?;
                self.flags.zero = zero;
                return Ok(());
            }
            (Some(precision), _) => precision,
            (None, Some(width)) if self.flags.zero && !self.flags.minus => width.saturating_sub(usize::from(signed)),
            _ => 0,
        };
        self.meter.charge(least)?;
        let mut text = String::new();
        if negative {
            text.push('-');
        } else if self.flags.plus {
            text.push('+');
        } else if self.flags.space {
            text.push(' ');
        }
        let zeros = least.saturating_sub(digits.len());
        match verb {
            'O' => text.push_str("0o"),
            'b' if self.flags.sharp => text.push_str("0b"),
            'o' if self.flags.sharp && zeros == 0 && !digits.starts_with('0') => text.push('0'),
            'x' if self.flags.sharp => text.push_str("0x"),
            'X' if self.flags.sharp => text.push_str("0X"),
            _ => {}
        }
        text.extend(std::iter::repeat_n('0', zeros));
        text.push_str(&digits);
        self.pad_with_spaces(text.as_bytes())
    }

    fn float(&mut self, value: &Value, float: f64, verb: char) -> Result<()> {
        let precision = self.flags.precision;
        // A double has at most about 1100 digits; zeros behind them need no computation, but Go prints them as well.
        self.meter.charge(precision.unwrap_or_default())?;
        let mut text = match verb {
            'v' | 'g' | 'G' => float::general(float, precision),
            'e' | 'E' => float::exponent(float, Some(precision.unwrap_or(6))),
            'f' | 'F' => float::fixed(float, Some(precision.unwrap_or(6))),
            _ => return self.bad_verb(value, verb),
        };
        if matches!(verb, 'E' | 'G') {
            text.make_ascii_uppercase();
        }
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None if self.flags.plus => ("+", text.as_str()),
            None if self.flags.space => (" ", text.as_str()),
            None if text.starts_with('+') => ("+", text.get(1..).unwrap_or_default()),
            None => ("", text.as_str()),
        };
        if !float.is_finite() {
            let text = format!("{sign}{}", digits.trim_start_matches('+'));
            return self.pad_with_spaces(text.as_bytes());
        }
        let sharpened = self.flags.sharp.then(|| sharpen(digits, verb, precision));
        let digits = sharpened.as_deref().unwrap_or(digits);
        let width = self.flags.width.unwrap_or_default();
        if self.flags.zero && !self.flags.minus && !sign.is_empty() && width > sign.len() + digits.len() {
            self.write(sign.as_bytes())?;
            self.padding(width - sign.len() - digits.len())?;
            return self.write(digits.as_bytes());
        }
        self.pad(format!("{sign}{digits}").as_bytes())
    }

    fn printf(&mut self, format: &[u8], arguments: &[Value]) -> Result<()> {
        let mut at = 0;
        let mut next = 0;
        let mut reordered = false;
        while at < format.len() {
            let rest = format.get(at..).unwrap_or_default();
            let plain = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
            self.write(rest.get(..plain).unwrap_or_default())?;
            at += plain;
            if at >= format.len() {
                break;
            }
            at += 1;
            self.flags = Flags::default();
            while let Some(flag) = format.get(at) {
                match flag {
                    b'#' => self.flags.sharp = true,
                    b'0' => self.flags.zero = true,
                    b'+' => self.flags.plus = true,
                    b'-' => self.flags.minus = true,
                    b' ' => self.flags.space = true,
                    _ => break,
                }
                at += 1;
            }
            let mut good = true;
            let mut index = |at: &mut usize, next: &mut usize, good: &mut bool| {
                argument_index(format, at, next, good, &mut reordered, arguments.len())
            };
            let mut after_index = index(&mut at, &mut next, &mut good);
            if format.get(at) == Some(&b'*') {
                at += 1;
                match from_argument(arguments, &mut next) {
                    Some(width) => {
                        self.flags.width = Some(width.unsigned_abs());
                        if width < 0 {
                            self.flags.minus = true;
                            self.flags.zero = false;
                        }
                    }
                    None => self.write(b"%!(BADWIDTH)")?,
                }
                after_index = false;
            } else {
                self.flags.width = digits(format, &mut at);
                if after_index && self.flags.width.is_some() {
                    good = false;
                }
            }
            if at + 1 < format.len() && format.get(at) == Some(&b'.') {
                at += 1;
                if after_index {
                    good = false;
                }
                after_index = index(&mut at, &mut next, &mut good);
                if format.get(at) == Some(&b'*') {
                    at += 1;
                    match from_argument(arguments, &mut next) {
                        Some(precision) => self.flags.precision = usize::try_from(precision).ok(),
                        None => self.write(b"%!(BADPREC)")?,
                    }
                    after_index = false;
                } else {
                    self.flags.precision = Some(digits(format, &mut at).unwrap_or_default());
                }
            }
            if !after_index {
                index(&mut at, &mut next, &mut good);
            }
            let Some(verb) = next_char(format.get(at..).unwrap_or_default()) else {
                self.write(b"%!(NOVERB)")?;
                break;
            };
            at += verb.1;
            let verb = verb.0;
            match arguments.get(next) {
                _ if verb == '%' => self.write(b"%")?,
                _ if !good => self.write(format!("%!{verb}(BADINDEX)").as_bytes())?,
                None => self.write(format!("%!{verb}(MISSING)").as_bytes())?,
                Some(argument) => {
                    if verb == 'v' {
                        self.flags.syntax = std::mem::take(&mut self.flags.sharp);
                        self.flags.names = std::mem::take(&mut self.flags.plus);
                    }
                    self.argument(argument, verb)?;
                    next += 1;
                }
            }
        }
        if !reordered && next < arguments.len() {
            self.flags = Flags::default();
            self.write(b"%!(EXTRA ")?;
            for (index, argument) in arguments.iter().skip(next).enumerate() {
                if index > 0 {
                    self.write(b", ")?;
                }
                if argument.is_nil() {
                    self.write(b"<nil>")?;
                } else {
                    self.write(format!("{}=", argument.type_name()).as_bytes())?;
                    self.argument(argument, 'v')?;
                }
            }
            self.write(b")")?;
        }
        Ok(())
    }
}

/// The flag `#` keeps the point and the zeros that `g` drops.
fn sharpen(digits: &str, verb: char, precision: Option<usize>) -> String {
    let (number, exponent) = digits.find(['e', 'E']).map_or((digits, ""), |at| digits.split_at(at));
    let mut out = number.to_owned();
    let significant = number.trim_start_matches(['0', '.']).bytes().filter(u8::is_ascii_digit).count();
    let significant = if number == "0" { 1 } else { significant };
    if !out.contains('.') {
        out.push('.');
    }
    if matches!(verb, 'v' | 'g' | 'G') {
        let wanted = precision.unwrap_or(6);
        out.extend(std::iter::repeat_n('0', wanted.saturating_sub(significant)));
    }
    out.push_str(exponent);
    out
}

/// An index such as `[2]`. Gives whether there was one.
fn argument_index(
    format: &[u8],
    at: &mut usize,
    next: &mut usize,
    good: &mut bool,
    reordered: &mut bool,
    count: usize,
) -> bool {
    let rest = format.get(*at..).unwrap_or_default();
    if rest.first() != Some(&b'[') {
        return false;
    }
    *reordered = true;
    let Some(end) = rest.iter().position(|byte| *byte == b']') else {
        *good = false;
        *at += 1;
        return false;
    };
    let inside = rest.get(1..end).unwrap_or_default();
    *at += end + 1;
    let mut position = 0;
    let number = digits(inside, &mut position).filter(|_| position == inside.len());
    match number.and_then(|number| number.checked_sub(1)) {
        Some(index) if index < count => {
            *next = index;
            true
        }
        Some(_) => {
            *good = false;
            true
        }
        None => {
            *good = false;
            number.is_some()
        }
    }
}

fn digits(format: &[u8], at: &mut usize) -> Option<usize> {
    let start = *at;
    let mut number = 0usize;
    while let Some(digit) = format.get(*at).filter(|byte| byte.is_ascii_digit()) {
        number = number * 10 + usize::from(digit - b'0');
        if number > MOST {
            return None;
        }
        *at += 1;
    }
    (*at > start).then_some(number)
}

fn from_argument(arguments: &[Value], next: &mut usize) -> Option<isize> {
    let argument = arguments.get(*next)?;
    *next += 1;
    match argument {
        Value::Int(int, _) => isize::try_from(*int).ok().filter(|int| int.unsigned_abs() <= MOST),
        _ => None,
    }
}

fn next_char(bytes: &[u8]) -> Option<(char, usize)> {
    let chunk = bytes.utf8_chunks().next()?;
    Some(chunk.valid().chars().next().map_or(('\u{fffd}', 1), |char| (char, char.len_utf8())))
}
