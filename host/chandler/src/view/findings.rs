//! The findings about upgrades of CRDs, by CRD and rule, as text and JSON.

use chandler_crd_upgrade::{
    Finding, Upgrade,
    upgrade::{by_rule, digest},
};
use serde::Serialize;

use super::{
    error::CommandError,
    invocation::quoted,
    text::{count, one_line},
};

/// All findings about the upgrades of a release.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings<'a> {
    /// The digest by which all refused upgrades are approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
    crd_upgrades: &'a [Upgrade],
}

/// The digest by which all refused upgrades are approved, or `None` if none is refused.
pub fn refused(upgrades: &[Upgrade]) -> Option<String> {
    digest(upgrades).map(|digest| digest.to_string())
}

/// The digest of the refused upgrades. Fails if none is refused, or if it is not the expected digest.
pub fn check_approvable(name: &str, upgrades: &[Upgrade], expected: Option<&str>) -> Result<String, CommandError> {
    let Some(digest) = refused(upgrades) else {
        return Err(CommandError::failed(format!("no finding refuses the upgrade of a CRD of {name}"))
            .hint(format!("`chandler status {name}` shows its status")));
    };
    match expected {
        Some(expected) if expected != digest => Err(CommandError::refused(format!(
            "the findings about CRDs of {name} are others than those that were reviewed: {digest}"
        ))
        .hint(format!("`chandler diff {name} --findings` lists them"))),
        _ => Ok(digest),
    }
}

impl<'a> Findings<'a> {
    /// The findings with the digest from [`refused`].
    pub fn of(upgrades: &'a [Upgrade], digest: Option<&'a str>) -> Self {
        Self { digest, crd_upgrades: upgrades }
    }

    /// The findings by CRD and rule, uncut.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for upgrade in self.crd_upgrades {
            let refusals = count(upgrade.report.refusals.len(), "finding");
            let verdict = match &upgrade.approved_by {
                _ if upgrade.report.refusals.is_empty() => "no finding refuses the upgrade".to_owned(),
                Some(user) => format!("{} approved {refusals}", one_line(user)),
                None if upgrade.report.refusals.len() == 1 => "1 finding refuses the upgrade".to_owned(),
                None => format!("{refusals} refuse the upgrade"),
            };
            text.extend([one_line(&upgrade.crd).as_str(), ": ", &verdict, "\n"]);
            push_rules(&mut text, &upgrade.report.refusals, "");
            push_rules(&mut text, &upgrade.report.warnings, "warning: ");
            for note in &upgrade.report.notes {
                text.extend(["  note: ", &one_line(note), "\n"]);
            }
        }
        text
    }

    /// The number of findings and CRDs that refuse the rollout of `name`, and what to do.
    ///
    /// `change` is the digest of the pending change, which the same command approves.
    pub fn summary(&self, name: &str, change: Option<&str>) -> String {
        let refused = self.crd_upgrades.iter().filter(|upgrade| upgrade.is_refused());
        let (findings, crds) =
            refused.fold((0, 0), |(findings, crds), upgrade| (findings + upgrade.report.refusals.len(), crds + 1));
        match self.digest {
            Some(digest) => {
                let (findings, crds) = (count(findings, "finding"), count(crds, "CRD"));
                let both = change
                    .map(|change| format!("; with --digest={} also the pending change", quoted(&one_line(change))));
                let both = both.unwrap_or_default();
                format!(
                    "{findings} about {crds}: `chandler approve {name} --findings={digest}` allows exactly what is listed{both}"
                )
            }
            None => "no finding refuses the upgrade of a CRD".to_owned(),
        }
    }
}

fn push_rules(text: &mut String, findings: &[Finding], severity: &str) {
    for group in by_rule(findings) {
        let Some(first) = group.first() else { continue };
        let number = group.len().to_string();
        text.extend(["  ", severity, first.rule.name(), " (", &number, "): ", first.rule.help(), "\n"]);
        for finding in group {
            let mut line = String::new();
            for part in [&finding.version, &finding.property].into_iter().flatten() {
                line.extend([part.as_str(), ": "]);
            }
            text.extend(["    ", &one_line(&(line + &finding.message)), "\n"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use chandler_crd_upgrade::{Policy, compare};
    use serde_json::{Value, json};

    use super::*;

    fn crd(name: &str, fields: &Value) -> Value {
        json!({"metadata": {"name": name}, "spec": {"group": "example.com", "names": {"kind": "Ox", "plural": "oxen"}, "versions": [
            {"name": "v1", "served": true, "storage": true,
             "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}}}]}})
    }

    fn upgrades() -> Vec<Upgrade> {
        let policy: Policy =
            serde_json::from_value(json!({"rules": [{"name": "pattern", "enforcement": "Warn"}]})).unwrap();
        let upgrade = |name: &str, old: Value, new: Value| {
            let (old, new) = (crd(name, &old), crd(name, &new));
            Upgrade::new(&old, &new, compare(&old, &new, &policy))
        };
        let long = "x".repeat(400);
        vec![
            upgrade(
                "oxen.example.com",
                json!({"a": {"type": "string", "enum": [long, "y"]}, "b": {"type": "string"}, "c": {"type": "string"}}),
                json!({"a": {"type": "string", "enum": ["y"]}, "b": {"type": "integer"}, "c": {"type": "integer"}}),
            ),
            upgrade(
                "yokes.example.com",
                json!({"a": {"type": "string"}}),
                json!({"a": {"type": "string", "pattern": "^a"}}),
            ),
        ]
    }

    #[test]
    fn findings_are_listed_by_crd_and_rule() {
        let upgrades = upgrades();
        let digest = refused(&upgrades).unwrap();
        let findings = Findings::of(&upgrades, Some(&digest));
        insta::assert_snapshot!(findings.text().replace(&"x".repeat(199), "X"), @r#"
        oxen.example.com: 3 findings refuse the upgrade
          enum (1): objects or clients that are legal now may be refused, or mean something else; check that none rely on it
            v1: ^.a: allowed enum values removed : ["X…]
          type (2): objects or clients that are legal now may be refused, or mean something else; check that none rely on it
            v1: ^.b: type changed : "string" -> "integer"
            v1: ^.c: type changed : "string" -> "integer"
        yokes.example.com: no finding refuses the upgrade
          warning: pattern (1): objects or clients that are legal now may be refused, or mean something else; check that none rely on it
            v1: ^.a: pattern added : "" -> "^a"
        "#);
        insta::assert_snapshot!(findings.summary("harbour", None).replace(&digest, "DIGEST"), @"3 findings about 1 CRD: `chandler approve harbour --findings=DIGEST` allows exactly what is listed");
    }

    #[test]
    fn only_the_reviewed_findings_are_approved() {
        let upgrades = upgrades();
        let digest = refused(&upgrades).unwrap();
        assert_eq!(check_approvable("harbour", &upgrades, None).unwrap(), digest);
        assert_eq!(check_approvable("harbour", &upgrades, Some(&digest)).unwrap(), digest);
        let error = check_approvable("harbour", &upgrades, Some("sha256:0")).unwrap_err().to_string();
        insta::assert_snapshot!(error.replace(&digest, "DIGEST"), @r"
        error: the findings about CRDs of harbour are others than those that were reviewed: DIGEST
          hint: `chandler diff harbour --findings` lists them
        ");
        insta::assert_snapshot!(check_approvable("harbour", &upgrades[1..], None).unwrap_err(), @r"
        error: no finding refuses the upgrade of a CRD of harbour
          hint: `chandler status harbour` shows its status
        ");
    }

    #[test]
    fn json_is_not_truncated() {
        let upgrades = upgrades();
        let json = serde_json::to_string(&Findings::of(&upgrades, None)).unwrap();
        assert!(json.contains(&format!("\"old\":[\"{}\"", "x".repeat(400))), "{json}");
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["crdUpgrades"][0]["refusals"].as_array().unwrap().len(), 3);
        assert_eq!(value["crdUpgrades"][1]["warnings"][0]["rule"], "pattern");
        assert_eq!(value["crdUpgrades"][0]["digest"], upgrades[0].digest.to_string());
    }

    #[test]
    fn approved_findings_refuse_nothing() {
        let mut upgrades = upgrades();
        upgrades[0].approved_by = Some("alice".into());
        let findings = Findings::of(&upgrades, None);
        assert_eq!(refused(&upgrades), None);
        assert!(findings.text().starts_with("oxen.example.com: alice approved 3 findings\n"), "{}", findings.text());
        assert_eq!(findings.summary("harbour", None), "no finding refuses the upgrade of a CRD");
    }
}
