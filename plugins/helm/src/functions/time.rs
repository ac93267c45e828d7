//! Times in Go's layouts.

use std::{any::Any, fmt::Write as _};

use chandler_go_template::{FunctionError, Object, Type, Value};

/// A point in time with the zone that it is shown in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time {
    /// Seconds since 1970 in UTC.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
    /// Seconds east of UTC.
    pub offset: i32,
    /// The abbreviation of the zone; empty if it has none.
    pub zone: String,
}

/// A time in its parts.
struct Civil {
    year: i64,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    weekday: usize,
    yearday: u32,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Days since 1970 of a date in the Gregorian calendar.
fn days(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month = i64::from((month + 9) % 12);
    let day_of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn days_in(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Time {
    /// A time in UTC.
    pub fn utc(seconds: i64) -> Self {
        Self { seconds, nanos: 0, offset: 0, zone: "UTC".to_owned() }
    }

    /// This time in another zone.
    pub fn within(&self, offset: i32, zone: &str) -> Self {
        Self { offset, zone: zone.to_owned(), ..self.clone() }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the parts of a time are small and positive"
    )]
    fn civil(&self) -> Civil {
        let local =
            self.seconds.saturating_add(i64::from(self.offset)).clamp(-200_000_000_000_000, 200_000_000_000_000);
        let (day, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let shifted = day + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let number = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Civil {
            year,
            month: month as u32,
            day: number as u32,
            hour: (second / 3600) as u32,
            minute: (second / 60 % 60) as u32,
            second: (second % 60) as u32,
            weekday: (day + 4).rem_euclid(7) as usize,
            yearday: (day - days(year, 1, 1) + 1) as u32,
        }
    }

    /// The time so many years, months and days later, at the same time of the day. A day that a month lacks is one of the next month.
    fn moved(&self, years: i64, months: i64, more: i64) -> Self {
        const MOST: i64 = 10_000_000;
        let [years, months, more] = [years, months, more].map(|count| count.clamp(-MOST, MOST));
        let civil = self.civil();
        let months = i64::from(civil.month) - 1 + months;
        let month = u32::try_from(months.rem_euclid(12) + 1).unwrap_or(1);
        let day = days(civil.year + years + months.div_euclid(12), month, 1) + i64::from(civil.day) - 1 + more;
        let local = self.seconds.saturating_add(i64::from(self.offset));
        let seconds = day * 86_400 + local.rem_euclid(86_400) - i64::from(self.offset);
        Self { seconds, ..self.clone() }
    }

    /// The time in a layout.
    pub fn format(&self, layout: &str) -> String {
        let civil = self.civil();
        let mut out = String::new();
        let mut rest = layout;
        while let Some((before, token, after)) = next(rest) {
            out.push_str(before);
            self.part(&civil, token, &mut out);
            rest = after;
        }
        out.push_str(rest);
        out
    }

    fn part(&self, civil: &Civil, token: &str, out: &mut String) {
        let twelve = if civil.hour.is_multiple_of(12) { 12 } else { civil.hour % 12 };
        let month = MONTHS.get(civil.month as usize - 1).copied().unwrap_or_default();
        let day = DAYS.get(civil.weekday).copied().unwrap_or_default();
        // Writing to a string does not fail.
        let _ = match token {
            "January" => write!(out, "{month}"),
            "Jan" => write!(out, "{}", month.get(..3).unwrap_or_default()),
            "Monday" => write!(out, "{day}"),
            "Mon" => write!(out, "{}", day.get(..3).unwrap_or_default()),
            "MST" if !self.zone.is_empty() => write!(out, "{}", self.zone),
            "MST" => {
                let minutes = self.offset / 60;
                let sign = if minutes < 0 { '-' } else { '+' };
                let (hours, minutes) = (minutes.abs() / 60, minutes.abs() % 60);
                if minutes == 0 { write!(out, "{sign}{hours:02}") } else { write!(out, "{sign}{hours:02}{minutes:02}") }
            }
            "2006" => write!(out, "{:04}", civil.year),
            "06" => write!(out, "{:02}", civil.year.rem_euclid(100)),
            "01" => write!(out, "{:02}", civil.month),
            "1" => write!(out, "{}", civil.month),
            "02" => write!(out, "{:02}", civil.day),
            "_2" => write!(out, "{:2}", civil.day),
            "2" => write!(out, "{}", civil.day),
            "002" => write!(out, "{:03}", civil.yearday),
            "__2" => write!(out, "{:3}", civil.yearday),
            "15" => write!(out, "{:02}", civil.hour),
            "03" => write!(out, "{twelve:02}"),
            "3" => write!(out, "{twelve}"),
            "04" => write!(out, "{:02}", civil.minute),
            "4" => write!(out, "{}", civil.minute),
            "05" => write!(out, "{:02}", civil.second),
            "5" => write!(out, "{}", civil.second),
            "PM" => write!(out, "{}", if civil.hour >= 12 { "PM" } else { "AM" }),
            "pm" => write!(out, "{}", if civil.hour >= 12 { "pm" } else { "am" }),
            fraction if fraction.starts_with(['.', ',']) => {
                let digits = format!("{:09}", self.nanos);
                let kept = digits.get(..(fraction.len() - 1).min(9)).unwrap_or(&digits);
                let kept = if fraction.ends_with('9') { kept.trim_end_matches('0') } else { kept };
                let mark = fraction.get(..1).unwrap_or_default();
                if kept.is_empty() { Ok(()) } else { write!(out, "{mark}{kept}") }
            }
            zone if zone.starts_with('Z') && self.offset == 0 => write!(out, "Z"),
            zone => {
                let sign = if self.offset < 0 { '-' } else { '+' };
                let seconds = self.offset.abs();
                let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
                let colon = if zone.contains(':') { ":" } else { "" };
                match zone.get(1..).map_or(0, |digits| digits.replace(':', "").len()) {
                    2 => write!(out, "{sign}{hours:02}"),
                    4 => write!(out, "{sign}{hours:02}{colon}{minutes:02}"),
                    _ => write!(out, "{sign}{hours:02}{colon}{minutes:02}{colon}{seconds:02}"),
                }
            }
        };
    }
}

/// The parts of layouts; a longer one is found before its beginning.
const TOKENS: [&str; 34] = [
    "January",
    "Jan",
    "Monday",
    "Mon",
    "MST",
    "2006",
    "_2006",
    "__2",
    "_2",
    "002",
    "01",
    "02",
    "03",
    "04",
    "05",
    "06",
    "15",
    "1",
    "2",
    "3",
    "4",
    "5",
    "PM",
    "pm",
    "-07:00:00",
    "-070000",
    "-07:00",
    "-0700",
    "-07",
    "Z07:00:00",
    "Z070000",
    "Z07:00",
    "Z0700",
    "Z07",
];

/// The next part of a layout, with what is before and behind it.
fn next(layout: &str) -> Option<(&str, &str, &str)> {
    for (at, character) in layout.char_indices() {
        let rest = layout.get(at..)?;
        if matches!(character, '.' | ',')
            && let Some(kind @ ('0' | '9')) = rest.chars().nth(1)
        {
            let length = rest.chars().skip(1).take_while(|digit| *digit == kind).count();
            let behind = rest.get(length + 1..)?;
            if !behind.starts_with(|c: char| c.is_ascii_digit()) {
                return Some((layout.get(..at)?, rest.get(..=length)?, behind));
            }
        }
        let Some(token) = TOKENS.iter().find(|token| rest.starts_with(**token)) else { continue };
        // `Jan` within a word that continues in lower case is text, as is `Mon`.
        let behind = rest.get(token.len()..)?;
        if matches!(*token, "Jan" | "Mon") && behind.starts_with(|c: char| c.is_ascii_lowercase()) {
            continue;
        }
        if *token == "_2006" {
            return Some((layout.get(..=at)?, rest.get(1..5)?, behind));
        }
        return Some((layout.get(..at)?, rest.get(..token.len())?, behind));
    }
    None
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    crate::json::quote(text, false, &mut out);
    out
}

/// Reads a time in a layout; one without a zone is in UTC.
///
/// # Errors
/// The text of Go's error.
pub fn parse(layout: &str, text: &str) -> Result<Time, String> {
    let error = |element: &str, value: &str| {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quoted(text),
            quoted(layout),
            quoted(value),
            quoted(element)
        )
    };
    let range = |what: &str| format!("parsing time {}: {what} out of range", quoted(text));
    let (mut year, mut month, mut day, mut hour, mut minute, mut second, mut nanos) =
        (0_i64, 1_u32, 1_u32, 0, 0, 0, 0_u32);
    let (mut yearday, mut pm, mut offset, mut zone): (Option<u32>, Option<bool>, i32, String) =
        (None, None, 0, "UTC".to_owned());
    let (mut layout_rest, mut rest) = (layout, text);
    loop {
        let (before, token, after) = next(layout_rest).unwrap_or((layout_rest, "", ""));
        rest = skip(rest, before).ok_or_else(|| error(before, rest))?;
        if token.is_empty() {
            break;
        }
        layout_rest = after;
        let held = rest;
        let fail = || error(token, held);
        let mut number = |least: usize, most: usize| -> Option<u32> {
            let digits = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
            let (value, behind) = (digits >= least).then(|| rest.split_at(digits))?;
            rest = behind;
            value.parse().ok()
        };
        match token {
            "2006" => year = i64::from(number(4, 4).ok_or_else(fail)?),
            "06" => {
                let short = i64::from(number(2, 2).ok_or_else(fail)?);
                year = if short >= 69 { short + 1900 } else { short + 2000 };
            }
            "01" => month = number(2, 2).ok_or_else(fail)?,
            "1" => month = number(1, 2).ok_or_else(fail)?,
            "02" => day = number(2, 2).ok_or_else(fail)?,
            "_2" | "2" => {
                if token == "_2" && rest.starts_with(' ') {
                    rest = rest.get(1..).unwrap_or_default();
                }
                let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
                let (value, behind) = rest.split_at(digits);
                day = value.parse().map_err(|_| fail())?;
                rest = behind;
            }
            "002" | "__2" => yearday = Some(number(3, 3).ok_or_else(fail)?),
            "15" | "3" => hour = number(1, 2).ok_or_else(fail)?,
            "03" => hour = number(2, 2).ok_or_else(fail)?,
            "04" => minute = number(2, 2).ok_or_else(fail)?,
            "4" => minute = number(1, 2).ok_or_else(fail)?,
            "05" | "5" => {
                second = number(if token == "05" { 2 } else { 1 }, 2).ok_or_else(fail)?;
                // A fraction may follow, also when the layout has none.
                let fraction_follows =
                    after.starts_with(['.', ',']) && after.get(1..).is_some_and(|rest| rest.starts_with(['0', '9']));
                if !fraction_follows && rest.starts_with(['.', ',']) {
                    let (value, behind) = fraction(rest);
                    if rest.len() - behind.len() > 1 {
                        (nanos, rest) = (value, behind);
                    }
                }
            }
            "PM" | "pm" => {
                let (half, behind) = rest.split_at_checked(2).ok_or_else(fail)?;
                pm = Some(match (token, half) {
                    ("PM", "PM") | ("pm", "pm") => true,
                    ("PM", "AM") | ("pm", "am") => false,
                    _ => return Err(fail()),
                });
                rest = behind;
            }
            "January" | "Jan" => {
                let length = if token == "Jan" { 3 } else { usize::MAX };
                let (index, behind) = name(&MONTHS, rest, length).ok_or_else(fail)?;
                (month, rest) = (u32::try_from(index + 1).unwrap_or(1), behind);
            }
            "Monday" | "Mon" => {
                let length = if token == "Mon" { 3 } else { usize::MAX };
                rest = name(&DAYS, rest, length).ok_or_else(fail)?.1;
            }
            "MST" => {
                let length = rest.bytes().take_while(u8::is_ascii_uppercase).count();
                if !(3..=5).contains(&length) {
                    return Err(fail());
                }
                let (abbreviation, behind) = rest.split_at(length);
                (zone, rest) = (abbreviation.to_owned(), behind);
            }
            point if point.starts_with(['.', ',']) => {
                if rest.starts_with(['.', ',']) {
                    let (value, behind) = fraction(rest);
                    (nanos, rest) = (value, behind);
                } else if point.ends_with('0') {
                    return Err(fail());
                }
            }
            shape => {
                if shape.starts_with('Z') && rest.starts_with('Z') {
                    rest = rest.get(1..).unwrap_or_default();
                    (offset, zone) = (0, "UTC".to_owned());
                } else {
                    (offset, rest) = zone_offset(shape, rest).ok_or_else(fail)?;
                    zone = if offset == 0 { "UTC".to_owned() } else { String::new() };
                }
            }
        }
    }
    if !rest.is_empty() {
        return Err(format!("parsing time {} as {}: extra text: {}", quoted(text), quoted(layout), quoted(rest)));
    }
    if let Some(number) = yearday {
        (month, day) = (1, number.max(1));
        while day > days_in(year, month) && month < 12 {
            day -= days_in(year, month);
            month += 1;
        }
    }
    if !(1..=12).contains(&month) {
        return Err(range("month"));
    }
    if day < 1 || day > days_in(year, month) {
        return Err(range("day"));
    }
    if hour > if pm.is_some() { 12 } else { 23 } {
        return Err(range("hour"));
    }
    if minute > 59 {
        return Err(range("minute"));
    }
    if second > 59 {
        return Err(range("second"));
    }
    match pm {
        Some(true) if hour < 12 => hour += 12,
        Some(false) if hour == 12 => hour = 0,
        _ => {}
    }
    let seconds = days(year, month, day) * 86_400 + i64::from(hour * 3600 + minute * 60 + second) - i64::from(offset);
    Ok(Time { seconds, nanos, offset, zone })
}

/// The text behind a part of the layout that stands for itself; white space is any amount of it.
fn skip<'a>(mut text: &'a str, prefix: &str) -> Option<&'a str> {
    let mut prefix = prefix;
    while let Some(character) = prefix.chars().next() {
        if character == ' ' {
            if !text.is_empty() && !text.starts_with(' ') {
                return None;
            }
            (prefix, text) = (prefix.trim_start_matches(' '), text.trim_start_matches(' '));
            continue;
        }
        text = text.strip_prefix(character)?;
        prefix = prefix.get(character.len_utf8()..)?;
    }
    Some(text)
}

fn fraction(text: &str) -> (u32, &str) {
    let digits = text.bytes().skip(1).take_while(u8::is_ascii_digit).count();
    let (shown, behind) = text.split_at(digits + 1);
    let kept: String = shown.chars().skip(1).take(9).collect();
    (format!("{kept:0<9}").parse().unwrap_or_default(), behind)
}

fn name<'a>(names: &[&str], text: &'a str, length: usize) -> Option<(usize, &'a str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        let name = name.get(..length.min(name.len()))?;
        let (found, behind) = text.split_at_checked(name.len())?;
        found.eq_ignore_ascii_case(name).then_some((index, behind))
    })
}

fn zone_offset<'a>(shape: &str, text: &'a str) -> Option<(i32, &'a str)> {
    let length = shape.len();
    let (found, behind) = text.split_at_checked(length)?;
    let sign = match found.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let same_colons = shape.bytes().zip(found.bytes()).all(|(one, other)| (one == b':') == (other == b':'));
    let digits: String = found.chars().skip(1).filter(|c| *c != ':').collect();
    if !same_colons || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |at: usize| digits.get(at..at + 2).map_or(Some(0), |part| part.parse::<i32>().ok());
    let (hours, minutes, seconds) = (part(0)?, part(2)?, part(4)?);
    (hours <= 24 && minutes < 60 && seconds < 60).then_some((sign * (hours * 3600 + minutes * 60 + seconds), behind))
}

impl Object for Time {
    fn type_name(&self) -> &'static str {
        "time.Time"
    }

    fn field(&self, _name: &str) -> Option<Value> {
        None
    }

    fn method(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        let civil = self.civil();
        Some(Ok(match (name, arguments) {
            ("Format", [Value::String(layout)]) => Value::from(self.format(&layout.text())),
            ("String", []) => Value::from(self.string().unwrap_or_default()),
            ("Unix", []) => Value::int64(self.seconds),
            ("UnixNano", []) => {
                Value::int64(self.seconds.wrapping_mul(1_000_000_000).wrapping_add(i64::from(self.nanos)))
            }
            ("Year", []) => Value::int(civil.year),
            ("Day", []) => Value::int(i64::from(civil.day)),
            ("Hour", []) => Value::int(i64::from(civil.hour)),
            ("Minute", []) => Value::int(i64::from(civil.minute)),
            ("Second", []) => Value::int(i64::from(civil.second)),
            ("YearDay", []) => Value::int(i64::from(civil.yearday)),
            ("UTC", []) => Value::Object(std::rc::Rc::new(self.within(0, "UTC"))),
            ("UnixMilli", []) => {
                Value::int64(self.seconds.wrapping_mul(1000).wrapping_add(i64::from(self.nanos / 1_000_000)))
            }
            ("Nanosecond", []) => Value::int(i64::from(self.nanos)),
            ("AddDate", [Value::Int(years, _), Value::Int(months, _), Value::Int(days, _)]) => {
                Value::Object(std::rc::Rc::new(self.moved(*years, *months, *days)))
            }
            ("Before" | "After" | "Equal", [other]) => {
                let other = other.as_object::<Self>()?;
                let order = (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos));
                Value::Bool(match name {
                    "Before" => order.is_lt(),
                    "After" => order.is_gt(),
                    _ => order.is_eq(),
                })
            }
            ("IsZero", []) => Value::Bool(self.seconds == days(1, 1, 1) * 86_400 && self.nanos == 0),
            _ => return None,
        }))
    }

    fn parameters(&self, name: &str) -> &'static [Type] {
        const TIME: Type = Type::Object("time.Time");
        match name {
            "Format" => &[Type::String],
            "AddDate" => &[Type::Int, Type::Int, Type::Int],
            "Before" | "After" | "Equal" => &[TIME],
            _ => &[],
        }
    }

    fn has_method(&self, name: &str) -> bool {
        matches!(
            name,
            "Format"
                | "String"
                | "Unix"
                | "UnixNano"
                | "Year"
                | "Day"
                | "Hour"
                | "Minute"
                | "Second"
                | "YearDay"
                | "UTC"
                | "IsZero"
                | "UnixMilli"
                | "Nanosecond"
                | "AddDate"
                | "Before"
                | "After"
                | "Equal"
        )
    }

    fn string(&self) -> Option<String> {
        Some(self.format("2006-01-02 15:04:05.999999999 -0700 MST"))
    }

    fn data(&self) -> Value {
        Value::from(self.format("2006-01-02T15:04:05.999999999Z07:00"))
    }

    fn fields(&self) -> Option<Vec<(&'static str, Value)>> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_go() {
        let time = parse("2006-01-02T15:04:05Z07:00", "2024-02-03T14:05:06.5+01:30").unwrap();
        for (layout, text) in [
            ("2006-01-02", "2024-02-03"),
            ("Mon Jan _2 15:04:05 2006", "Sat Feb  3 14:05:06 2024"),
            ("Monday, 02-Jan-06 03:04PM", "Saturday, 03-Feb-24 02:05PM"),
            ("20060102150405", "20240203140506"),
            (".000 -0700 Z07:00", ".500 +0130 +01:30"),
            ("January 2, __2", "February 3,  34"),
        ] {
            assert_eq!(time.format(layout), text);
        }
        assert_eq!(time.within(0, "UTC").format("15:04 MST"), "12:35 UTC");
    }

    #[test]
    fn wrong_times_are_refused() {
        for (layout, text) in [
            ("2006-01-02", "2024-02-30"),
            ("2006-01-02", "2024-2-3"),
            ("15:04", "25:00"),
            ("2006-01-02", "x"),
            ("2006", "20245"),
        ] {
            assert!(parse(layout, text).is_err(), "{text}");
        }
        assert_eq!(
            parse("2006-01-02", "x").unwrap_err(),
            r#"parsing time "x" as "2006-01-02": cannot parse "x" as "2006""#
        );
    }
}
