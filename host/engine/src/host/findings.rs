//! Findings of guests, bounded in number and length.

use chandler_core::{Diagnostic, Location, Related, Severity};

use crate::{
    contract::bindings::chandler::provisioner::types::{
        Diagnostic as GuestDiagnostic, Location as GuestLocation, Position as GuestPosition, Severity as GuestSeverity,
    },
    text::sanitize,
};

const CODE_BYTES: usize = 64;
const PATH_BYTES: usize = 1024;
const TEXT_BYTES: usize = 2048;
const URL_BYTES: usize = 1024;
/// The most related locations of one finding.
const RELATED: usize = 10;

/// At most `limit` findings; if some were dropped, a last finding counts them.
pub(crate) fn diagnostics(findings: Vec<GuestDiagnostic>, limit: u32) -> Vec<Diagnostic> {
    let mut kept = FindingList::new(limit);
    for finding in findings {
        kept.push(finding);
    }
    kept.finish()
}

/// Collects findings up to a limit.
pub(super) struct FindingList {
    findings: Vec<Diagnostic>,
    limit: usize,
    dropped: u64,
}

impl FindingList {
    pub(super) fn new(limit: u32) -> Self {
        Self { findings: Vec::new(), limit: limit as usize, dropped: 0 }
    }

    pub(super) fn push(&mut self, finding: GuestDiagnostic) {
        self.add(|| diagnostic(finding));
    }

    /// Adds a finding of the host, within the same limit.
    pub(super) fn add(&mut self, finding: impl FnOnce() -> Diagnostic) {
        if self.findings.len() < self.limit {
            self.findings.push(finding());
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        if self.dropped > 0 {
            let message = format!("{} more findings were dropped: the limit is {}", self.dropped, self.limit);
            self.findings.push(Diagnostic::new(Severity::Info, "FindingsDropped", message));
        }
        self.findings
    }
}

fn diagnostic(finding: GuestDiagnostic) -> Diagnostic {
    Diagnostic {
        severity: match finding.severity {
            GuestSeverity::Error => Severity::Error,
            GuestSeverity::Warning => Severity::Warning,
            GuestSeverity::Info => Severity::Info,
        },
        code: sanitize(finding.code, CODE_BYTES),
        message: sanitize(finding.message, TEXT_BYTES),
        location: finding.location.map(location),
        related: finding
            .related
            .into_iter()
            .take(RELATED)
            .map(|related| Related {
                location: location(related.location),
                message: sanitize(related.message, TEXT_BYTES),
            })
            .collect(),
        help: finding.help.map(|help| sanitize(help, TEXT_BYTES)),
        url: finding.url.filter(|url| is_web_page(url)),
    }
}

/// Whether a text is the URL of a web page, which terminals may show as a link. Other URLs are dropped instead of
/// truncated, since a truncated URL leads elsewhere.
fn is_web_page(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty())
        && url.len() <= URL_BYTES
        && url.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A location with bounded texts.
pub(super) fn location(location: GuestLocation) -> Location {
    let (line, column) = position(location.start);
    // An end without a start is meaningless.
    let (end_line, end_column) = position(location.end.filter(|_| line.is_some()));
    Location {
        path: sanitize(location.path, PATH_BYTES),
        line,
        column,
        end_line,
        end_column,
        pointer: location.pointer.map(|pointer| sanitize(pointer, PATH_BYTES)),
    }
}

/// Line and column, as far as they are known.
fn position(position: Option<GuestPosition>) -> (Option<u32>, Option<u32>) {
    let known = |number: u32| Some(number).filter(|number| *number > 0);
    let Some(line) = position.and_then(|position| known(position.line)) else { return (None, None) };
    (Some(line), position.and_then(|position| known(position.column)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_bounded_in_number_and_length() {
        let finding = GuestDiagnostic {
            severity: GuestSeverity::Warning,
            code: "C".repeat(1000),
            message: "ä".repeat(100_000),
            location: None,
            related: vec![guest_related(); 20],
            help: None,
            url: None,
        };
        let kept = diagnostics(vec![finding; 5], 2);
        assert_eq!(kept.len(), 3);
        assert!(kept[0].message.len() <= TEXT_BYTES && kept[0].code.len() <= CODE_BYTES);
        assert_eq!(kept[0].related.len(), RELATED);
        assert!(kept[0].related[0].message.len() <= TEXT_BYTES);
        assert_eq!(kept[2].to_string(), "3 more findings were dropped: the limit is 2");
    }
    fn guest_location(start: Option<(u32, u32)>, end: Option<(u32, u32)>) -> GuestLocation {
        let position = |(line, column)| GuestPosition { line, column };
        GuestLocation { path: "a".into(), start: start.map(position), end: end.map(position), pointer: None }
    }

    fn guest_related() -> crate::contract::bindings::chandler::provisioner::types::Related {
        crate::contract::bindings::chandler::provisioner::types::Related {
            location: guest_location(None, None),
            message: "m".repeat(100_000),
        }
    }

    #[test]
    fn unknown_parts_of_a_position_are_left_out() {
        for (start, end, want) in [
            (None, Some((1, 1)), (None, None, None, None)),
            (Some((0, 7)), None, (None, None, None, None)),
            (Some((3, 0)), None, (Some(3), None, None, None)),
            (Some((3, 5)), Some((4, 0)), (Some(3), Some(5), Some(4), None)),
            (Some((3, 5)), Some((3, 9)), (Some(3), Some(5), Some(3), Some(9))),
        ] {
            let place = location(guest_location(start, end));
            assert_eq!((place.line, place.column, place.end_line, place.end_column), want, "{start:?} {end:?}");
        }
    }

    #[test]
    fn only_urls_of_web_pages_are_kept() {
        for good in ["https://example.com/a?b#c", "http://localhost:8080"] {
            assert!(is_web_page(good), "{good}");
        }
        let long = format!("https://{}", "x".repeat(2000));
        for bad in
            ["", "https://", "javascript:alert(1)", "file:///etc/passwd", "https://a b", "https://a\u{1b}]8;;", &long]
        {
            assert!(!is_web_page(bad), "{bad}");
        }
    }
}
