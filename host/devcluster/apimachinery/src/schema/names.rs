//! The syntaxes of names, labels and annotations (`k8s.io/apimachinery/pkg/util/validation`).

/// Longest DNS-1123 label, longest label name and value part.
pub const LABEL_LENGTH: usize = 63;
/// Longest DNS-1123 subdomain.
pub const SUBDOMAIN_LENGTH: usize = 253;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn framed(text: &str, outer: fn(u8) -> bool, inner: fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => outer(*only),
        [first, middle @ .., last] => outer(*first) && outer(*last) && middle.iter().all(|byte| inner(*byte)),
    }
}

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

/// Why `text` is not a DNS-1123 label; empty if it is one.
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > LABEL_LENGTH {
        errors.push(too_long(LABEL_LENGTH));
    }
    if !framed(text, lower_or_digit, |byte| lower_or_digit(byte) || byte == b'-') {
        errors.push(LABEL.to_owned());
    }
    errors
}

/// Why `text` is not a DNS-1035 label (names of Services): like DNS-1123, but begins with a letter.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > LABEL_LENGTH {
        errors.push(too_long(LABEL_LENGTH));
    }
    let letter_first = text.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
    if !letter_first || !framed(text, lower_or_digit, |byte| lower_or_digit(byte) || byte == b'-') {
        errors.push(LABEL_1035.to_owned());
    }
    errors
}

/// Why `text` is not a DNS-1123 subdomain.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH {
        errors.push(too_long(SUBDOMAIN_LENGTH));
    }
    if !text.split('.').all(|part| framed(part, lower_or_digit, |byte| lower_or_digit(byte) || byte == b'-')) {
        errors.push(SUBDOMAIN.to_owned());
    }
    errors
}

/// Why `text` is not a valid name for a URL path (RBAC objects).
pub fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        _ => ['/', '%'].iter().filter(|c| text.contains(**c)).map(|c| format!("may not contain '{c}'")).collect(),
    }
}

/// Why `text` is not a qualified name: `[prefix/]name`, like the keys of labels and annotations.
pub fn qualified_name(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let mut parts = text.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, None) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(dns1123_subdomain(prefix).into_iter().map(|error| format!("prefix part {error}")));
            }
            name
        }
        _ => {
            errors.push(format!(
                "a qualified name {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
            return errors;
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH {
        errors.push(format!("name part {}", too_long(LABEL_LENGTH)));
    }
    if !label_characters(name) {
        errors.push(format!("name part {QUALIFIED}"));
    }
    errors
}

/// Why `text` is not a valid label value.
pub fn label_value(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > LABEL_LENGTH {
        errors.push(too_long(LABEL_LENGTH));
    }
    if !text.is_empty() && !label_characters(text) {
        errors.push(LABEL_VALUE.to_owned());
    }
    errors
}

fn label_characters(text: &str) -> bool {
    framed(
        text,
        |byte| byte.is_ascii_alphanumeric(),
        |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
    )
}

/// Why `text` is not a port name (`IANA_SVC_NAME`).
pub fn port_name(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 15 {
        errors.push(too_long(15));
    }
    if !text.bytes().all(|byte| lower_or_digit(byte) || byte == b'-') {
        errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        errors.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        errors.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        errors.push("must not begin or end with a hyphen".to_owned());
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        type Rule = fn(&str) -> Vec<String>;
        let long = "a".repeat(64);
        let cases: &[(Rule, &str, usize)] = &[
            (dns1123_label, "a-1", 0),
            (dns1123_label, "1a", 0),
            (dns1123_label, "a.b", 1),
            (dns1123_label, "-a", 1),
            (dns1123_label, "", 1),
            (dns1123_label, &long, 1),
            (dns1035_label, "1a", 1),
            (dns1035_label, "a1", 0),
            (dns1123_subdomain, "a.b-c.d", 0),
            (dns1123_subdomain, "a..b", 1),
            (dns1123_subdomain, "A", 1),
            (path_segment, "system:node", 0),
            (path_segment, "a/b%", 2),
            (path_segment, "..", 1),
            (qualified_name, "app.kubernetes.io/name", 0),
            (qualified_name, "Name_x.y", 0),
            (qualified_name, "/x", 1),
            (qualified_name, "a/b/c", 1),
            (qualified_name, "a/", 2),
            (label_value, "", 0),
            (label_value, "a b", 1),
            (port_name, "http-2", 0),
            (port_name, "8080", 1),
            (port_name, "a--b", 1),
        ];
        for (rule, text, errors) in cases {
            assert_eq!(rule(text).len(), *errors, "{text:?}: {:?}", rule(text));
        }
    }
}
