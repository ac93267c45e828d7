//! The formats of texts that charts demand.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Whether a text has a format. Formats that are not known hold.
pub(super) fn holds(format: &str, text: &str) -> bool {
    match format {
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "hostname" | "idn-hostname" => is_hostname(text),
        "email" | "idn-email" => text
            .rsplit_once('@')
            .is_some_and(|(local, domain)| !local.is_empty() && local.len() <= 64 && is_hostname(domain)),
        "uri" => text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)) && is_reference(text),
        "uri-reference" => is_reference(text),
        "date-time" => crate::functions::time::parse("2006-01-02T15:04:05Z07:00", &text.to_ascii_uppercase()).is_ok(),
        "date" => crate::functions::time::parse("2006-01-02", text).is_ok(),
        "regex" => crate::functions::compile_pattern(text).is_ok(),
        _ => true,
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn is_reference(text: &str) -> bool {
    !text.contains(|c: char| {
        c.is_ascii_control() || matches!(c, ' ' | '\\' | '<' | '>' | '"' | '{' | '}' | '^' | '`' | '|')
    })
}

fn is_hostname(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let text = text.strip_suffix('.').unwrap_or(text);
    text.len() <= 253 && text.split('.').all(label)
}
