//! Text from other objects, made fit for a message.

use chandler_core::text::one_line;

/// The maximum length of a cause, in bytes.
const BYTES: usize = 400;

/// One line without deceptive characters and without credentials in addresses, in at most [`BYTES`] bytes.
pub(super) fn bounded(text: &str) -> String {
    let mut line = one_line(&without_credentials(text));
    if line.len() > BYTES {
        line.truncate(line.floor_char_boundary(BYTES - '…'.len_utf8()));
        line.push('…');
    }
    line
}

/// The text with the user part and the query of each URL removed: registries and object stores put tokens there.
fn without_credentials(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + "://".len());
        clean.push_str(before);
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`');
        let (url, tail) = after.split_at(after.find(ends).unwrap_or(after.len()));
        let authority = url.find(['/', '?', '#']).unwrap_or(url.len());
        let host = url.get(..authority).and_then(|authority| authority.rfind('@')).map_or(0, |at| at + 1);
        let end = url.find(['?', '#']).unwrap_or(url.len());
        clean.push_str(url.get(host..end).unwrap_or_default());
        // The punctuation of the sentence around the URL.
        if end < url.len() && url.ends_with(':') {
            clean.push(':');
        }
        rest = tail;
    }
    clean.push_str(rest);
    clean
}

/// The first sentence, without its full stop.
pub(super) fn first_sentence(message: &str) -> &str {
    let first = message.split(". ").next().unwrap_or_default();
    first.trim_end().trim_end_matches('.')
}

/// Why the API server refused a Pod, without the name of the Pod, which is another one at each attempt.
pub(super) fn admission(message: &str) -> &str {
    let cause = message.split_once(" is forbidden: ").map_or(message, |(_, cause)| cause);
    let cause = cause.split_once(" failed error: ").map_or(cause, |(_, cause)| cause);
    cause.strip_prefix("Error creating: ").unwrap_or(cause)
}

/// Why a volume was not mounted, without the name of the kubelet's operation.
pub(super) fn volume(message: &str) -> &str {
    match message.split_once(" : ") {
        Some((operation, cause)) if operation.starts_with("MountVolume") => cause,
        _ => message,
    }
}

/// The beginnings of probe failures that the kubelet words. Anything else is the output of a command in the container, which may
/// be secret.
const WORDED: &[&str] =
    &["HTTP probe", "Get \"", "dial tcp", "command timed out", "timeout: ", "service unhealthy", "rpc error"];

/// The message of an Event about a failing probe.
pub(super) fn probe(message: &str) -> String {
    let (probe, cause) = ["failed", "errored", "warning"]
        .into_iter()
        .find_map(|verb| {
            let (probe, cause) = message.split_once(verb)?;
            let is_probe = matches!(probe.trim_end(), "Readiness probe" | "Liveness probe" | "Startup probe");
            is_probe.then(|| (probe.trim_end(), cause.trim_start_matches([':', ' '])))
        })
        .unwrap_or(("a probe", ""));
    if WORDED.iter().any(|wording| cause.starts_with(wording)) {
        format!("{probe} failed: {cause}")
    } else if cause.is_empty() {
        format!("{probe} failed")
    } else {
        format!("{probe} failed: its command did not succeed")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn credentials_in_addresses_are_removed() {
        for (text, expected) in [
            (
                "Head \"https://user:secret@r.example.com/v2/x?token=abc\": EOF",
                "Head \"https://r.example.com/v2/x\": EOF",
            ),
            ("see https://r.example.com/v2?sig=a&b=c and http://h#f", "see https://r.example.com/v2 and http://h"),
            ("from https://r.example.com/a?sig=x: denied", "from https://r.example.com/a: denied"),
            ("no address: a@b", "no address: a@b"),
            ("https://r.example.com/x@sha256:0", "https://r.example.com/x@sha256:0"),
            ("://", "://"),
        ] {
            assert_eq!(without_credentials(text), expected);
        }
    }

    #[test]
    fn the_output_of_a_probe_command_is_not_shown() {
        for (message, expected) in [
            (
                "Readiness probe failed: HTTP probe failed with statuscode: 503",
                "Readiness probe failed: HTTP probe failed with statuscode: 503",
            ),
            ("Liveness probe failed: password=hunter2", "Liveness probe failed: its command did not succeed"),
            ("Startup probe failed: ", "Startup probe failed"),
            ("Readiness probe errored: rpc error: code = Unknown", "Readiness probe failed: rpc error: code = Unknown"),
            ("password=hunter2", "a probe failed"),
        ] {
            assert_eq!(probe(message), expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_becomes_one_bounded_line(text in "(\\PC|[\u{0}-\u{20}\u{202e}]){0,900}") {
            let bounded = bounded(&text);
            prop_assert!(bounded.len() <= BYTES);
            prop_assert!(!bounded.chars().any(|c| c == '\n' || chandler_core::text::is_deceptive(c)), "{bounded:?}");
        }
    }
}
