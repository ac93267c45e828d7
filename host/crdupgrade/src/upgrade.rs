//! The findings about the upgrades of one release, by CRD, and the digests by which a user approves them.

use std::fmt;

use chandler_core::{Digest, text::printable};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    Rule,
    finding::{Finding, Report, cut},
};

/// The number of groups of findings that a message lists.
const LISTED: usize = 10;
/// The longest line of a message about a group, in bytes. All lines and the help fit into the message of a condition.
const LINE: usize = 300;

/// The findings about the upgrade of one CRD.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// The name of the CustomResourceDefinition.
    pub crd: String,
    /// The digest of what an approval of the refusals covers: the CRD in the cluster, its new version, and the refusals. It
    /// changes if any of them changes.
    pub digest: Digest,
    /// The user who approved exactly these refusals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// The findings.
    #[serde(flatten)]
    pub report: Report,
}

impl Upgrade {
    /// The findings of replacing a CRD by another. No user has approved them yet.
    pub fn new(old: &Value, new: &Value, report: Report) -> Self {
        let crd = new.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let stored_versions = old.pointer("/status/storedVersions");
        let covered = json!([crd, reviewed(old), stored_versions, reviewed(new), report.refusals]);
        let digest = Digest::of_json(&json!({"crdUpgrade": covered}));
        Self { crd, digest, approved_by: None, report }
    }

    /// Whether the upgrade is refused: it has refusals without an approval.
    pub fn is_refused(&self) -> bool {
        !self.report.refusals.is_empty() && self.approved_by.is_none()
    }

    /// What does not stop the upgrade, one line each. An approval is one line.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let approval = self.approved_by.as_ref().filter(|_| !self.report.refusals.is_empty()).map(|user| {
            let count = counted(self.report.refusals.len());
            let user = printable(user).replace('\n', " ");
            format!("{user} approved {count} about CRD {:?}: {}", self.crd, self.digest)
        });
        let warnings = self.report.warnings.iter().map(ToString::to_string);
        approval.into_iter().chain(warnings).chain(self.report.notes.iter().cloned())
    }
}

/// The spec of a CRD without the CA bundle of its conversion webhook. No rule is about it, and where the host issues the certificate,
/// each preview has another one.
fn reviewed(crd: &Value) -> Option<Value> {
    let mut spec = crd.get("spec")?.clone();
    if let Some(client) = spec.pointer_mut("/conversion/webhook/clientConfig").and_then(Value::as_object_mut) {
        client.remove("caBundle");
    }
    Some(spec)
}

/// The digest of all refused upgrades, for a user who approves all of them at once. None if none is refused.
pub fn digest<'a>(upgrades: impl IntoIterator<Item = &'a Upgrade>) -> Option<Digest> {
    let mut refused: Vec<&str> =
        upgrades.into_iter().filter(|upgrade| upgrade.is_refused()).map(|upgrade| upgrade.digest.as_str()).collect();
    refused.sort_unstable();
    (!refused.is_empty()).then(|| Digest::of_json(&json!({"crdUpgrades": refused})))
}

/// The refused upgrades of an owner's release. The text is bounded: it names one finding of each rule of each CRD, and the commands
/// that list and approve all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedUpgrades {
    /// The name of the owner.
    pub owner: String,
    /// All upgrades of the release with findings.
    pub upgrades: Vec<Upgrade>,
}

impl fmt::Display for RefusedUpgrades {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = || self.upgrades.iter().filter(|upgrade| upgrade.is_refused());
        let groups = refused().flat_map(|upgrade| by_rule(&upgrade.report.refusals));
        let groups: Vec<Vec<&Finding>> = groups.flat_map(one_line_each).collect();
        let all: usize = groups.iter().map(Vec::len).sum();
        for group in groups.iter().take(LISTED) {
            let Some(first) = group.first() else { continue };
            let more = match group.len().saturating_sub(1) {
                0 => String::new(),
                more => format!(" (and {more} more of this rule)"),
            };
            writeln!(f, "{}{more}", cut(&first.to_string(), LINE))?;
        }
        let listed: usize = groups.iter().take(LISTED).map(Vec::len).sum();
        if listed < all {
            writeln!(f, "and {} more findings", all - listed)?;
        }
        let Some((first, digest)) = groups.first().and_then(|group| group.first()).zip(digest(refused())) else {
            return Ok(());
        };
        let owner = &self.owner;
        let lists = if all == 1 { "shows the finding".to_owned() } else { format!("lists all {all} findings") };
        write!(
            f,
            "help: {}; `chandler diff {owner} --findings` {lists}, `chandler approve {owner} --findings={digest}` allows exactly \
             what was reviewed; spec.preflight.crdUpgradeSafety.enforcement: Warn allows every unsafe upgrade",
            first.rule.help()
        )
    }
}

/// The findings of each rule, in the order of the first finding of the rule.
pub fn by_rule(findings: &[Finding]) -> Vec<Vec<&Finding>> {
    let mut groups: Vec<(Rule, Vec<&Finding>)> = Vec::new();
    for finding in findings {
        match groups.iter_mut().find(|(rule, _)| *rule == finding.rule) {
            Some((_, group)) => group.push(finding),
            None => groups.push((finding.rule, vec![finding])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The groups that have a line in a message. Findings about custom resources have one each: their objects must be fixed.
fn one_line_each(group: Vec<&Finding>) -> Vec<Vec<&Finding>> {
    match group.first() {
        Some(first) if first.rule == Rule::ExistingCustomResources => group.into_iter().map(|one| vec![one]).collect(),
        _ => vec![group],
    }
}

fn counted(findings: usize) -> String {
    if findings == 1 { "1 finding".to_owned() } else { format!("{findings} findings") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Policy, compare};

    fn crd(name: &str, fields: Value) -> Value {
        json!({
            "metadata": {"name": name},
            "spec": {"group": "example.com", "names": {"kind": "Ox", "plural": "oxen"}, "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}}}]},
            "status": {"storedVersions": ["v1"]},
        })
    }

    fn typed(name: &str, fields: usize, r#type: &str) -> Value {
        let fields = (0..fields).map(|number| (format!("f{number}"), json!({"type": r#type}))).collect();
        crd(name, Value::Object(fields))
    }

    fn upgrade(old: &Value, new: &Value) -> Upgrade {
        Upgrade::new(old, new, compare(old, new, &Policy::default()))
    }

    #[test]
    fn the_digest_covers_both_crds_and_the_refusals() {
        let (old, new) = (typed("a", 2, "string"), typed("a", 2, "integer"));
        let reviewed = upgrade(&old, &new);
        assert_eq!(reviewed.digest, upgrade(&old, &new).digest);
        let changed = |of: &Value, pointer: &str, value: Value| {
            let mut of = of.clone();
            *of.pointer_mut(pointer).unwrap() = value;
            of
        };
        // Metadata is not part of it: changed labels do not invalidate an approval.
        let labelled = changed(&old, "/metadata", json!({"name": "a", "labels": {"b": "c"}, "resourceVersion": "7"}));
        assert_eq!(reviewed.digest, upgrade(&labelled, &new).digest);
        let scoped =
            |of: &Value| changed(of, "/spec/names", json!({"kind": "Ox", "plural": "oxen", "shortNames": ["o"]}));
        let mut fewer = reviewed.clone();
        fewer.report.refusals.pop();
        let fewer = Upgrade::new(&old, &new, fewer.report);
        for other in [
            upgrade(&scoped(&old), &new),
            upgrade(&old, &scoped(&new)),
            upgrade(&changed(&old, "/status/storedVersions", json!(["v1", "v0"])), &new),
            upgrade(&changed(&old, "/metadata/name", json!("b")), &changed(&new, "/metadata/name", json!("b"))),
            fewer,
        ] {
            assert_ne!(reviewed.digest, other.digest, "{other:?}");
        }
    }

    /// The host issues a certificate for each preview.
    #[test]
    fn the_digest_does_not_cover_the_ca_bundle_of_a_conversion_webhook() {
        let crd = |bundle: &str, service: &str| {
            let client = json!({"caBundle": bundle, "service": {"namespace": "n", "name": service}});
            json!({"metadata": {"name": "oxen.example.com"},
                "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}}}})
        };
        let digest = |new: &Value| Upgrade::new(&crd("b2xk", "hook"), new, Report::default()).digest;
        assert_eq!(digest(&crd("b25l", "hook")), digest(&crd("dHdv", "hook")));
        assert_ne!(digest(&crd("b25l", "hook")), digest(&crd("b25l", "other")));
    }

    #[test]
    fn all_refused_upgrades_have_one_digest() {
        let one = upgrade(&typed("a", 1, "string"), &typed("a", 1, "integer"));
        let two = upgrade(&typed("b", 1, "string"), &typed("b", 1, "integer"));
        let safe = upgrade(&typed("c", 1, "string"), &typed("c", 1, "string"));
        let approved = Upgrade { approved_by: Some("alice".into()), ..two.clone() };
        assert_eq!(digest([&one, &two]), digest([&two, &one, &safe]), "the order does not matter");
        assert_eq!(digest([&one, &approved]), digest([&one]));
        assert_ne!(digest([&one, &two]), digest([&one]));
        assert_ne!(digest([&one]).unwrap(), one.digest);
        assert_eq!(digest([&approved, &safe]), None);
    }

    #[test]
    fn a_refusal_names_every_rule_and_the_commands() {
        let old = crd(
            "a",
            json!({"x": {"type": "string", "enum": ["b", "c"]}, "y": {"type": "string"}, "z": {"type": "string"}}),
        );
        let new = crd(
            "a",
            json!({"x": {"type": "string", "enum": ["b"]}, "y": {"type": "integer"}, "z": {"type": "integer"}}),
        );
        let upgrades = vec![upgrade(&old, &new), upgrade(&typed("b", 1, "string"), &typed("b", 1, "integer"))];
        let digest = digest(&upgrades).unwrap();
        let text = RefusedUpgrades { owner: "harbour".into(), upgrades }.to_string();
        insta::assert_snapshot!(text.replace(digest.as_str(), "DIGEST"), @r#"
        validating upgrade for CRD "a": v1: ^.x: enum: allowed enum values removed : ["c"]
        validating upgrade for CRD "a": v1: ^.y: type: type changed : "string" -> "integer" (and 1 more of this rule)
        validating upgrade for CRD "b": v1: ^.f0: type: type changed : "string" -> "integer"
        help: objects or clients that are legal now may be refused, or mean something else; check that none rely on it; `chandler diff harbour --findings` lists all 4 findings, `chandler approve harbour --findings=DIGEST` allows exactly what was reviewed; spec.preflight.crdUpgradeSafety.enforcement: Warn allows every unsafe upgrade
        "#);
    }

    #[test]
    fn a_refusal_is_bounded_and_ends_with_the_commands() {
        let long = |r#type: &str| {
            let field = |rule: &str| (format!("{}{rule}", "x".repeat(400)), json!({"type": r#type}));
            crd("a", Value::Object(["a", "b", "c"].into_iter().map(field).collect()))
        };
        let mut upgrades = vec![upgrade(&long("string"), &long("integer"))];
        for number in 0..40 {
            let name = format!("{number}.example.com");
            upgrades.push(upgrade(&typed(&name, 30, "string"), &typed(&name, 30, "integer")));
        }
        let text = RefusedUpgrades { owner: "o".repeat(52), upgrades }.to_string();
        assert!(text.len() < 4096, "{}", text.len());
        assert!(text.contains("and 930 more findings\nhelp: "), "{text}");
        assert!(text.contains("lists all 1203 findings"), "{text}");
    }

    #[test]
    fn an_approved_upgrade_warns_in_one_line() {
        let refused = upgrade(&typed("a", 3, "string"), &typed("a", 3, "integer"));
        assert!(refused.is_refused());
        assert_eq!(refused.warnings().count(), 0);
        let approved = Upgrade { approved_by: Some("alice\u{1b}".into()), ..refused };
        let digest = approved.digest.clone();
        let warnings: Vec<String> = approved.warnings().collect();
        assert_eq!(warnings, [format!("alice\\u{{001B}} approved 3 findings about CRD \"a\": {digest}")]);
        assert!(!approved.is_refused());
    }
}
