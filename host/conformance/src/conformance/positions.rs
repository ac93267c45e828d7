//! Findings that users can act on: with a code, a message and a position that exists.

use chandler_core::{Diagnostic, Severity};

use crate::bundles::Variant;

/// What is wrong with the findings of a refusal of this variant.
pub(super) fn problem(variant: &Variant, findings: &[Diagnostic]) -> Option<String> {
    let errors: Vec<&Diagnostic> = findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    if errors.is_empty() {
        return Some("it is refused, but no finding is an error".to_owned());
    }
    if let Some(problem) = findings.iter().find_map(|finding| malformed(variant, finding)) {
        return Some(problem);
    }
    if !errors.iter().any(|finding| finding.location.is_some()) {
        return Some(format!("no finding has a location; the first one is: {}", errors.first()?));
    }
    let path = variant.broken_text.as_deref()?;
    let about: Vec<_> =
        errors.iter().filter_map(|finding| finding.location.as_ref()).filter(|at| at.path == path).collect();
    (!about.is_empty() && about.iter().all(|at| at.line.is_none()))
        .then(|| format!("no finding about {path}, which is text, has a line"))
}

fn malformed(variant: &Variant, finding: &Diagnostic) -> Option<String> {
    let mut code = finding.code.chars();
    if !code.next().is_some_and(|first| first.is_ascii_uppercase()) || !code.all(|c| c.is_ascii_alphanumeric()) {
        return Some(format!("the code {:?} of a finding is not in CamelCase", finding.code));
    }
    if finding.message.trim().is_empty() {
        return Some(format!("a finding {} has no message", finding.code));
    }
    let location = finding.location.as_ref()?;
    let lines = variant.files.get(&location.path)?.split(|byte| *byte == b'\n').count();
    let line = location.line.filter(|line| *line == 0 || *line as usize > lines + 1)?;
    Some(format!("a finding {} names line {line} of {}, which has {lines} lines", finding.code, location.path))
}

#[cfg(test)]
mod tests {
    use chandler_core::{Location, MemoryContent};

    use super::*;
    use crate::bundles::Files;

    fn variant(broken: bool) -> Variant {
        let files = Files::of(&MemoryContent::new([("a.yaml", "a: [\n")]));
        Variant { what: "a.yaml is cut".into(), broken_text: broken.then(|| "a.yaml".to_owned()), files }
    }

    fn finding(line: Option<u32>) -> Diagnostic {
        let location = Some(Location { path: "a.yaml".into(), line, ..Location::default() });
        Diagnostic { location, ..Diagnostic::new(Severity::Error, "InvalidYaml", "it ends too early") }
    }

    #[test]
    fn findings_have_a_code_a_message_and_a_position_that_exists() {
        assert_eq!(problem(&variant(true), &[finding(Some(2))]), None);
        assert_eq!(problem(&variant(false), &[finding(None)]), None);
        let wrong = |findings: &[Diagnostic]| problem(&variant(true), findings).unwrap();
        let parts = [
            (wrong(&[finding(None)]), "has a line"),
            (wrong(&[finding(Some(9))]), "names line 9 of a.yaml, which has 2 lines"),
            (wrong(&[finding(Some(0))]), "names line 0"),
            (wrong(&[Diagnostic::new(Severity::Error, "InvalidYaml", "x")]), "no finding has a location"),
            (wrong(&[Diagnostic::new(Severity::Error, "invalid yaml", "x")]), "not in CamelCase"),
            (wrong(&[Diagnostic { message: " ".into(), ..finding(Some(1)) }]), "has no message"),
            (wrong(&[Diagnostic { severity: Severity::Warning, ..finding(Some(1)) }]), "no finding is an error"),
        ];
        for (found, part) in parts {
            assert!(found.contains(part), "{found}");
        }
    }
}
