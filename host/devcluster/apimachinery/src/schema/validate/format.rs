//! The `format` of strings. Unknown formats accept everything, as in Kubernetes.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    str::FromStr as _,
};

use base64::Engine as _;

use crate::schema::names;

/// Whether a text is a time of RFC 3339.
pub(crate) fn is_time(text: &str) -> bool {
    date_time(text)
}

/// Whether a text has the format.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => date_time(text),
        "date" => date(text),
        "byte" => base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
        "ipv4" => Ipv4Addr::from_str(text).is_ok(),
        "ipv6" => Ipv6Addr::from_str(text).is_ok(),
        "cidr" => cidr(text),
        "mac" => mac(text),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => uuid(text),
        "uri" => uri(text),
        "email" => email(text),
        "hostname" => {
            text.len() <= names::SUBDOMAIN_LENGTH && names::dns1123_subdomain(&text.to_lowercase()).is_empty()
        }
        "duration" => duration(text),
        _ => true,
    }
}

fn number(text: &str, digits: usize, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
    let valid = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|value| valid && range.contains(value))
}

fn date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let year = parts.next().and_then(|part| number(part, 4, 0..=9999));
    let month = parts.next().and_then(|part| number(part, 2, 1..=12));
    let day = parts.next().and_then(|part| number(part, 2, 1..=31));
    let (Some(year), Some(month), Some(day)) = (year, month, day) else { return false };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    day <= match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// RFC 3339.
fn date_time(text: &str) -> bool {
    let Some((day, rest)) = text.split_once(['T', 't']) else { return false };
    let Some(zone) = rest.find(['Z', 'z', '+', '-']) else { return false };
    let (clock, zone) = rest.split_at(zone);
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(clock, fraction)| (clock, Some(fraction)));
    let fraction = fraction.is_none_or(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    let mut parts = clock.splitn(3, ':');
    let mut part = |range| parts.next().and_then(|part| number(part, 2, range)).is_some();
    let clock = part(0..=23) && part(0..=59) && part(0..=60);
    let zone = matches!(zone, "Z" | "z")
        || zone
            .get(1..)
            .and_then(|zone| zone.split_once(':'))
            .is_some_and(|(hours, minutes)| number(hours, 2, 0..=23).is_some() && number(minutes, 2, 0..=59).is_some());
    date(day) && fraction && clock && zone
}

fn cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let within = |most: u8| length.parse::<u8>().is_ok_and(|length| length <= most);
    (Ipv4Addr::from_str(address).is_ok() && within(32)) || (Ipv6Addr::from_str(address).is_ok() && within(128))
}

fn mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    matches!(parts.len(), 6 | 8 | 20)
        && parts.iter().all(|part| part.len() == 2 && u8::from_str_radix(part, 16).is_ok())
}

fn uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return text.starts_with('/') };
    let first = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    first && scheme && !rest.is_empty() && !text.contains(char::is_whitespace)
}

fn email(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !domain.is_empty() && !local.contains(char::is_whitespace) && matches("hostname", domain)
    })
}

/// A Go duration: `1h30m`, `1.5s`, `-2us`, `0`.
fn duration(text: &str) -> bool {
    const UNITS: &[&str] = &["ns", "us", "µs", "ms", "s", "m", "h", "d", "w"];
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        if number.parse::<f64>().is_err() {
            return false;
        }
        let unit = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        if !UNITS.contains(&unit.trim()) {
            return false;
        }
        rest = tail;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let good = [
            ("date-time", "2026-02-28T23:59:59Z"),
            ("date-time", "2024-02-29t00:00:00.123+01:00"),
            ("date", "2026-01-31"),
            ("byte", "aGk="),
            ("ipv4", "10.0.0.1"),
            ("ipv6", "fe80::1"),
            ("cidr", "10.0.0.0/8"),
            ("mac", "00:11:22:33:44:55"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000"),
            ("uri", "https://example.com/a"),
            ("email", "a@example.com"),
            ("hostname", "Example.com"),
            ("duration", "1h30m"),
            ("duration", "1.5s"),
            ("something", "else"),
        ];
        let bad = [
            ("date-time", "2026-02-29T00:00:00Z"),
            ("date-time", "2026-01-01T00:00Z"),
            ("date-time", "2026-01-01 00:00:00Z"),
            ("date", "2026-13-01"),
            ("byte", "!"),
            ("ipv4", "10.0.0.256"),
            ("cidr", "10.0.0.0/33"),
            ("mac", "00:11"),
            ("uuid", "123"),
            ("uri", "a b"),
            ("email", "example.com"),
            ("hostname", "a..b"),
            ("duration", "1x"),
            ("duration", ""),
        ];
        for (format, text) in good {
            assert!(matches(format, text), "{format} {text}");
        }
        for (format, text) in bad {
            assert!(!matches(format, text), "{format} {text}");
        }
    }
}
