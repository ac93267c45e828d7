//! Findings of guests, bounded in number and length.

use chandler_core::{Diagnostic, Location, Severity};

use crate::{
    contract::bindings::chandler::provisioner::types::{
        Diagnostic as GuestDiagnostic, Location as GuestLocation, Severity as GuestSeverity,
    },
    text::tame,
};

const CODE_BYTES: usize = 64;
const PATH_BYTES: usize = 1024;
const TEXT_BYTES: usize = 2048;

/// A list of findings, at most `limit` of them; where some were dropped the last one says so.
pub(crate) fn diagnostics(findings: Vec<GuestDiagnostic>, limit: u32) -> Vec<Diagnostic> {
    let mut kept = Kept::new(limit);
    for finding in findings {
        kept.push(finding);
    }
    kept.finish()
}

/// Collects findings up to a limit.
pub(super) struct Kept {
    findings: Vec<Diagnostic>,
    limit: usize,
    dropped: u64,
}

impl Kept {
    pub(super) fn new(limit: u32) -> Self {
        Self { findings: Vec::new(), limit: limit as usize, dropped: 0 }
    }

    pub(super) fn push(&mut self, finding: GuestDiagnostic) {
        if self.findings.len() < self.limit {
            self.findings.push(diagnostic(finding));
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        if self.dropped > 0 {
            self.findings.push(Diagnostic {
                severity: Severity::Info,
                code: "FindingsDropped".into(),
                message: format!("{} more findings were dropped, since {} are kept", self.dropped, self.limit),
                location: None,
                help: None,
            });
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
        code: tame(finding.code, CODE_BYTES),
        message: tame(finding.message, TEXT_BYTES),
        location: finding.location.map(location),
        help: finding.help.map(|help| tame(help, TEXT_BYTES)),
    }
}

/// A location, its texts bounded.
pub(super) fn location(location: GuestLocation) -> Location {
    Location {
        path: tame(location.path, PATH_BYTES),
        line: location.line,
        column: location.column,
        pointer: location.pointer.map(|pointer| tame(pointer, PATH_BYTES)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_cut_in_number_and_length() {
        let finding = GuestDiagnostic {
            severity: GuestSeverity::Warning,
            code: "C".repeat(1000),
            message: "ä".repeat(100_000),
            location: None,
            help: None,
        };
        let kept = diagnostics(vec![finding; 5], 2);
        assert_eq!(kept.len(), 3);
        assert!(kept[0].message.len() <= TEXT_BYTES && kept[0].code.len() <= CODE_BYTES);
        assert_eq!(kept[2].to_string(), "3 more findings were dropped, since 2 are kept");
    }
}
