//! The report of `chandler plugin conformance`.

use chandler_conformance::{Check, Report, Verdict};

use super::{
    terminal::{Look, Tone},
    text::{count, one_line},
};

/// The longest problem that is shown, in characters.
const LONGEST: usize = 400;

/// A line for each check, and what the provisioner did instead.
pub fn text(report: &Report, look: Look) -> String {
    let mut text = String::new();
    for check in &report.checks {
        let (sign, tone) = match check.verdict {
            Verdict::Passed => ("ok", Tone::Good),
            Verdict::Failed => ("FAILED", Tone::Bad),
            Verdict::Skipped => ("-", Tone::Plain),
        };
        text.extend([look.paint(tone, &format!("{sign:<6}")).as_str(), "  ", check.name, ": ", check.requirement]);
        text.extend([" (", &tried(check), ")\n"]);
        for problem in &check.problems {
            let problem = one_line(problem);
            let shown: String = problem.chars().take(LONGEST).collect();
            let cut = if shown.len() < problem.len() { "..." } else { "" };
            text.extend(["          ", &shown, cut, "\n"]);
        }
        if check.omitted > 0 {
            text.extend(["          and ", &check.omitted.to_string(), " more\n"]);
        }
    }
    text
}

fn tried(check: &Check) -> String {
    match check.verdict {
        Verdict::Skipped => "does not apply".to_owned(),
        Verdict::Passed | Verdict::Failed => format!("{} tried", check.tried),
    }
}

/// The number of checks, by verdict.
pub fn summary(report: &Report) -> String {
    let checks = count(report.checks.len(), "check");
    format!("{checks}: {} passed, {} failed, {} do not apply", report.passed(), report.failed(), report.skipped())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_fails_shows_its_problems() {
        let check = |name, verdict, problems: &[&str], omitted| Check {
            name,
            requirement: "does what it must",
            verdict,
            tried: 7,
            problems: problems.iter().map(|problem| (*problem).to_owned()).collect(),
            omitted,
        };
        let report = Report {
            component: "sha256:0".into(),
            facts: chandler_engine::Facts::default(),
            checks: vec![
                check("a", Verdict::Passed, &[], 0),
                check("b", Verdict::Failed, &["it crashed\n\u{1b}[2J", &"x".repeat(500)], 3),
                check("c", Verdict::Skipped, &[], 0),
            ],
        };
        insta::assert_snapshot!(text(&report, Look::Plain).replace(&"x".repeat(400), "xxxx"), @r"
        ok      a: does what it must (7 tried)
        FAILED  b: does what it must (7 tried)
                  it crashed \u{001B}[2J
                  xxxx...
                  and 3 more
        -       c: does what it must (does not apply)
        ");
        assert_eq!(summary(&report), "3 checks: 1 passed, 1 failed, 1 do not apply");
    }
}
