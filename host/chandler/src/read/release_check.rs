//! What the controller would find in a release before it writes anything. Pure.

use chandler_core::{Diagnostic, Probe, Release, Severity, text::one_line};
use chandler_health::{Probes, Rule, probe::Compiler};

/// The longest rule that [`probe`] shows, in characters.
const RULE: usize = 200;

/// The probes of a release that the controller would refuse.
pub fn probes(release: &Release) -> Vec<Diagnostic> {
    let compiler = Compiler::default();
    let rules = release.probes().iter().enumerate().map(|(number, probe)| Rule::of_release(number, probe));
    // One after the other, to find all of them.
    let refused = rules.filter_map(|rule| Probes::compile(&compiler, [rule]).err());
    refused
        .map(|error| {
            let mut finding = Diagnostic::new(Severity::Error, "InvalidProbe", one_line(&error.to_string()));
            finding.help = Some(
                "probes are CEL expressions over `self`, the live object: report it to the author of the provisioner"
                    .to_owned(),
            );
            finding
        })
        .collect()
}

/// A probe on one line: the objects that it checks, and its rule.
pub fn probe(probe: &Probe) -> String {
    let Probe { selector, rule, .. } = probe;
    let group = if selector.group.is_empty() { String::new() } else { format!(".{}", selector.group) };
    let namespace = selector.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let name = selector.name.as_deref().unwrap_or("*");
    let labels: Vec<String> = selector.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let labels = if labels.is_empty() { String::new() } else { format!(" with {}", labels.join(",")) };
    let rule: String = rule.chars().take(RULE).collect();
    one_line(&format!("{}{group} {namespace}{name}{labels}: {rule}", selector.kind))
}

#[cfg(test)]
mod tests {
    use chandler_core::ProbeSelector;

    use super::*;

    fn with(rule: &str, message: Option<&str>) -> Probe {
        let selector = ProbeSelector { group: "apps".into(), kind: "Deployment".into(), ..ProbeSelector::default() };
        Probe { selector, rule: rule.to_owned(), message_expression: message.map(str::to_owned), ..Probe::default() }
    }

    #[test]
    fn every_probe_that_the_controller_refuses_is_found() {
        let probes =
            vec![with("self.a == 1", None), with("self.", None), with("true", Some("(")), with("true", Some("'x'"))];
        let found = super::probes(&Release::new(Vec::new(), probes, Vec::new()));
        let codes: Vec<(&str, bool, bool)> = found
            .iter()
            .map(|finding| {
                let message = finding.message.as_str();
                (
                    finding.code.as_str(),
                    message.starts_with("probe 1 of the release.rule"),
                    message.starts_with("probe 2 of the release.messageExpression"),
                )
            })
            .collect();
        assert_eq!(codes, [("InvalidProbe", true, false), ("InvalidProbe", false, true)], "{found:?}");
    }

    #[test]
    fn a_probe_is_shown_on_one_line() {
        let mut probe = with("self.status.\nready == true", None);
        assert_eq!(super::probe(&probe), "Deployment.apps *: self.status. ready == true");
        probe.selector = ProbeSelector {
            kind: "Pod".into(),
            namespace: Some("space".into()),
            name: Some("one".into()),
            labels: [("app".to_owned(), "a".to_owned())].into_iter().collect(),
            ..ProbeSelector::default()
        };
        probe.rule = "x".repeat(1000);
        assert_eq!(super::probe(&probe), format!("Pod space/one with app=a: {}", "x".repeat(RULE)));
    }
}
