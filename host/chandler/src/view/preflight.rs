//! What another version of Chandler would do in a cluster: the releases of two versions compared, and the report about all of them. Pure.

use std::collections::BTreeMap;

use chandler_core::{Diagnostic, ObjectKey, Release};
use chandler_rollout::{Change, ChangeKind, FieldChange, Preview, fields};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    difference,
    doctor::{self, Finding, State},
    terminal::{Frame, Look},
    text::{count, one_line},
};

/// The most changed fields of one BundleDeployment that are kept.
const FIELDS: usize = 2000;
/// The longest value that is kept, as JSON text in bytes.
const VALUE_BYTES: usize = 16 << 10;
/// The most bytes of changes of all BundleDeployments together, as JSON text. Beyond it a BundleDeployment is listed without its changes.
const REPORT_BYTES: usize = 64 << 20;
/// The most findings and reasons of one BundleDeployment that are kept.
const FINDINGS: usize = 100;

/// What the new version does with a BundleDeployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Outcome {
    /// It renders the release that this version renders.
    Unchanged,
    /// It renders another release.
    Changed,
    /// It refuses what this version renders.
    Refused,
    /// Both versions refuse it, so that the upgrade changes nothing.
    RefusedByBoth,
    /// A third-party provisioner renders it, which the upgrade does not replace.
    NotBuiltIn,
    /// It could not be checked.
    Unchecked,
}

/// A BundleDeployment that was checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// The namespace that it installs into.
    pub namespace: String,
    /// The class that renders it; empty if it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// The class that the new version detects, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_class: Option<String>,
    /// What the new version does with it.
    pub outcome: Outcome,
    /// Why it is refused, or could not be checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The objects that the new version adds (`create`), changes and removes, and the findings that are new.
    #[serde(flatten)]
    pub changes: Preview,
    /// The number of changed fields that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_fields: usize,
    /// Whether the probes of the release differ.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub probes_differ: bool,
    /// Whether the installed release was rendered by another component than the one that this command compares with.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rendered_by_another_version: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Checked {
    /// A BundleDeployment about which nothing is known yet.
    pub fn new(name: &str, namespace: &str, outcome: Outcome) -> Self {
        Self {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            class: String::new(),
            new_class: None,
            outcome,
            reasons: Vec::new(),
            changes: Preview::default(),
            omitted_fields: 0,
            probes_differ: false,
            rendered_by_another_version: false,
        }
    }

    /// Adds reasons, one line each.
    #[must_use]
    pub fn because(mut self, reasons: impl IntoIterator<Item = String>) -> Self {
        self.reasons.extend(reasons.into_iter().take(FINDINGS).map(|reason| one_line(&reason)));
        self
    }

    /// Adds what differs between the releases of two versions. Values that [`difference::hide`] must hide are not hidden yet.
    pub fn compare(&mut self, old: &Release, new: &Release) {
        self.changes = changes(old, new);
        self.probes_differ = old.probes() != new.probes();
        let class_differs = self.new_class.is_some();
        let differs =
            !self.changes.is_empty() || self.probes_differ || class_differs || !self.changes.findings.is_empty();
        self.outcome = if differs { Outcome::Changed } else { Outcome::Unchanged };
    }

    /// Drops fields and cuts values beyond the limits.
    pub fn bound(&mut self) {
        let mut left = FIELDS;
        for change in &mut self.changes.changes {
            let kept = change.fields.len().min(left);
            self.omitted_fields += change.fields.len() - kept;
            left -= kept;
            change.fields.truncate(kept);
            for FieldChange { before, after, .. } in &mut change.fields {
                [before, after].into_iter().flatten().for_each(cut);
            }
        }
        self.changes.findings.truncate(FINDINGS);
    }

    /// Adds the size to the bytes of a report, and drops the changes if the report is full.
    pub(super) fn fit(&mut self, bytes: &mut usize) {
        *bytes = bytes.saturating_add(serde_json::to_vec(self).map_or(0, |text| text.len()));
        if *bytes > REPORT_BYTES {
            for change in &mut self.changes.changes {
                self.omitted_fields += change.fields.len();
                change.fields.clear();
            }
            self.changes.findings.clear();
        }
    }
}

/// Replaces a long value with the beginning of its text.
fn cut(value: &mut Value) {
    let text = value.to_string();
    if text.len() > VALUE_BYTES {
        let end = text.floor_char_boundary(VALUE_BYTES);
        let kept = text.get(..end).unwrap_or_default();
        *value = format!("{kept}… ({} more bytes)", text.len() - end).into();
    }
}

/// The identity of an object whatever its version.
fn identity(key: &ObjectKey) -> (&str, &str, Option<&str>, &str) {
    (&key.group, &key.kind, key.namespace.as_deref(), &key.name)
}

/// The objects of the new release that the old one lacks or has with other fields, the objects that only the old one has, and the findings
/// that are new.
fn changes(old: &Release, new: &Release) -> Preview {
    let before: BTreeMap<_, _> = old.objects().iter().map(|object| (identity(&object.key), object)).collect();
    let after: BTreeMap<_, _> = new.objects().iter().map(|object| (identity(&object.key), object)).collect();
    let change = |kind, key: &ObjectKey, fields| Change { kind, object: key.clone(), fields, note: None };
    let mut preview = Preview::default();
    for object in new.objects() {
        let Some(old) = before.get(&identity(&object.key)) else {
            preview.changes.push(change(ChangeKind::Create, &object.key, Vec::new()));
            continue;
        };
        let value = |of: &serde_json::Map<String, Value>| Value::Object(of.clone());
        let mut fields = if old.value == object.value {
            Vec::new()
        } else {
            fields::changes(&object.key, &value(&old.value), &value(&object.value))
        };
        if old.stage != object.stage {
            let (before, after) = (Some(json!(old.stage)), Some(json!(object.stage)));
            fields.push(FieldChange { path: "(stage)".to_owned(), before, after });
        }
        if fields.is_empty() {
            preview.unchanged += 1;
        } else {
            preview.changes.push(change(ChangeKind::Change, &object.key, fields));
        }
    }
    let gone = old.objects().iter().filter(|object| !after.contains_key(&identity(&object.key)));
    preview.changes.extend(gone.map(|object| change(ChangeKind::Remove, &object.key, Vec::new())));
    let text = |finding: &Diagnostic| one_line(&finding.to_string());
    let known: Vec<String> = old.findings().iter().map(text).collect();
    preview.findings = new.findings().iter().map(text).filter(|finding| !known.contains(finding)).collect();
    preview
}

/// A version of Chandler, and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Version {
    /// The version.
    pub version: String,
    /// Where it comes from.
    pub place: String,
}

/// The number of BundleDeployments by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// [`Outcome::Unchanged`].
    pub unchanged: usize,
    /// [`Outcome::Changed`].
    pub changed: usize,
    /// [`Outcome::Refused`].
    pub refused: usize,
    /// [`Outcome::RefusedByBoth`].
    pub refused_by_both: usize,
    /// [`Outcome::NotBuiltIn`].
    pub not_built_in: usize,
    /// [`Outcome::Unchecked`].
    pub unchecked: usize,
}

/// What an upgrade would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version of this command.
    pub from: Version,
    /// The version to upgrade to.
    pub to: Version,
    /// What the upgrade needs in the cluster.
    pub upgrade: Vec<Finding>,
    /// How many BundleDeployments have which outcome.
    pub summary: Summary,
    /// The BundleDeployments about which there is something to say, by name.
    pub deployments: Vec<Checked>,
    /// The size of the changes.
    #[serde(skip)]
    bytes: usize,
    /// BundleDeployments whose installed release another component rendered.
    #[serde(skip)]
    other_versions: usize,
}

impl Report {
    /// A report about no BundleDeployment yet, with what is known about the cluster.
    pub fn new(from: Version, to: Version, upgrade: Vec<Finding>) -> Self {
        Self { from, to, upgrade, ..Self::default() }
    }

    /// Adds a BundleDeployment. Unchanged ones are only counted.
    pub fn push(&mut self, mut checked: Checked) {
        let summary = &mut self.summary;
        let counter = match checked.outcome {
            Outcome::Unchanged => &mut summary.unchanged,
            Outcome::Changed => &mut summary.changed,
            Outcome::Refused => &mut summary.refused,
            Outcome::RefusedByBoth => &mut summary.refused_by_both,
            Outcome::NotBuiltIn => &mut summary.not_built_in,
            Outcome::Unchecked => &mut summary.unchecked,
        };
        *counter += 1;
        self.other_versions += usize::from(checked.rendered_by_another_version);
        if matches!(checked.outcome, Outcome::Unchanged | Outcome::NotBuiltIn) {
            return;
        }
        checked.bound();
        checked.fit(&mut self.bytes);
        self.deployments.push(checked);
    }

    /// Sorts by name, and adds what is known only at the end.
    pub fn finish(&mut self) {
        self.deployments.sort_by(|one, other| one.name.cmp(&other.name));
        if self.other_versions > 0 {
            let releases = count(self.other_versions, "installed release");
            let message = format!(
                "another version than {} of this command rendered {releases}: the controller may be of another version, and the changes below \
                 are between this command and the new version",
                self.from.version
            );
            self.upgrade.push(Finding::new("provisioners", State::Warning, message));
        }
    }

    /// Whether something stops the upgrade: the new version refuses a bundle, or the cluster lacks something.
    pub fn is_refused(&self) -> bool {
        self.summary.refused > 0 || self.upgrade.iter().any(|finding| finding.state == State::Problem)
    }

    /// Whether something could not be checked.
    pub fn is_incomplete(&self) -> bool {
        self.summary.unchecked > 0 || self.upgrade.iter().any(|finding| finding.state == State::Unknown)
    }

    /// The report for people.
    pub fn text(&self, frame: Frame, descriptions: bool) -> String {
        let mut text = doctor::text(&self.upgrade, frame);
        for checked in &self.deployments {
            text.push('\n');
            text.push_str(&block(checked, frame.look, descriptions));
        }
        text
    }

    /// The counts, on one line.
    pub fn line(&self) -> String {
        let Summary { unchanged, changed, refused, refused_by_both, not_built_in, unchecked } = self.summary;
        let mut line = format!(
            "{} -> {}: {unchanged} unchanged, {changed} changed, {refused} refused by the new version",
            one_line(&self.from.version),
            one_line(&self.to.version)
        );
        for (number, what) in [
            (refused_by_both, "refused by both versions"),
            (not_built_in, "rendered by other provisioners"),
            (unchecked, "not checked"),
        ] {
            if number > 0 {
                line.extend([", ", &number.to_string(), " ", what]);
            }
        }
        line + "; nothing was changed"
    }
}

/// One BundleDeployment, for people.
pub fn block(checked: &Checked, look: Look, descriptions: bool) -> String {
    let mut text = head(checked);
    text.push('\n');
    push_body(&mut text, checked, look, descriptions);
    text
}

fn head(checked: &Checked) -> String {
    let name = one_line(&checked.name);
    let what = match checked.outcome {
        Outcome::Unchanged => "unchanged",
        Outcome::Changed => "changed",
        Outcome::Refused => "refused by the new version",
        Outcome::RefusedByBoth => "refused by both versions",
        Outcome::NotBuiltIn => "rendered by another provisioner",
        Outcome::Unchecked => "not checked",
    };
    let class = match (&checked.new_class, checked.class.as_str()) {
        (Some(new), old) => format!(", class {} -> {}", one_line(old), one_line(new)),
        (None, "") => String::new(),
        (None, class) => format!(", class {}", one_line(class)),
    };
    format!("{name}: {what}{class}")
}

fn push_body(text: &mut String, checked: &Checked, look: Look, descriptions: bool) {
    for line in difference::text(&checked.changes, look, descriptions).lines() {
        text.extend(["  ", line, "\n"]);
    }
    if checked.probes_differ {
        text.push_str("  ~ change the probes of the release\n");
    }
    if checked.omitted_fields > 0 {
        text.extend(["  ", &count(checked.omitted_fields, "changed field"), " not shown\n"]);
    }
    for finding in &checked.changes.findings {
        text.extend(["  new finding: ", finding, "\n"]);
    }
    for reason in &checked.reasons {
        text.extend(["  ! ", reason, "\n"]);
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::{Object, Probe, Severity};

    use super::*;

    fn object(value: &Value, stage: u32) -> Object {
        Object::parse(value.to_string().as_bytes(), stage, None).unwrap()
    }

    fn named(kind: &str, name: &str, data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": data})
    }

    fn release(objects: &[Value]) -> Release {
        Release::new(objects.iter().map(|value| object(value, 0)).collect(), Vec::new(), Vec::new())
    }

    fn compared(old: &Release, new: &Release) -> Checked {
        let mut checked = Checked::new("harbour", "port", Outcome::Unchecked);
        checked.compare(old, new);
        checked
    }

    fn frame() -> Frame {
        Frame { width: None, look: Look::Plain }
    }

    #[test]
    fn objects_are_added_changed_and_removed_and_secrets_are_hidden() {
        let old = release(&[
            named("ConfigMap", "same", &json!({"a": "1"})),
            named("ConfigMap", "changed", &json!({"a": "1", "b": "2"})),
            named("ConfigMap", "removed", &json!({})),
            named("Secret", "password", &json!({"a": "aHVudGVyMg=="})),
        ]);
        let new = release(&[
            named("ConfigMap", "same", &json!({"a": "1"})),
            named("ConfigMap", "changed", &json!({"a": "3", "c": "2"})),
            named("ConfigMap", "added", &json!({})),
            named("Secret", "password", &json!({"a": "aHVudGVyMw=="})),
        ]);
        let mut report = Report::default();
        (report.from.version, report.to.version) = ("0.1.0".to_owned(), "0.2.0".to_owned());
        report.push(compared(&old, &new));
        report.push(compared(&old, &old));
        report.push(Checked::new("alpha", "port", Outcome::Unchecked).because(["no route\nto host".to_owned()]));
        report.push(Checked::new("other", "port", Outcome::NotBuiltIn));
        report.finish();
        let text = report.text(frame(), false);
        insta::assert_snapshot!(text, @r#"
        CHECK  STATE  FOUND

        alpha: not checked
          ! no route to host

        harbour: changed
          + create ConfigMap added
          ~ change ConfigMap changed
              data.a
                - "1"
                + "3"
              data.b
                - "2"
              data.c
                + "2"
          ~ change Secret password
              data.a
                - "(hidden)"
                + "(hidden)"
          - remove ConfigMap removed
        "#);
        assert!(!serde_json::to_string(&report).unwrap().contains("aHVudGVy"));
        insta::assert_snapshot!(
            report.line(),
            @"0.1.0 -> 0.2.0: 1 unchanged, 1 changed, 0 refused by the new version, 1 rendered by other provisioners, 1 not checked; nothing was changed"
        );
        assert!(report.is_incomplete() && !report.is_refused());
    }

    #[test]
    fn stages_probes_and_new_findings_are_changes() {
        let map = named("ConfigMap", "a", &json!({}));
        let old = Release::new(vec![object(&map, 0)], Vec::new(), Vec::new());
        let staged = Release::new(vec![object(&map, 1)], Vec::new(), Vec::new());
        assert_eq!(compared(&old, &staged).changes.changes[0].fields[0].path, "(stage)");
        let probed =
            Release::new(vec![object(&map, 0)], vec![Probe { rule: "true".into(), ..Probe::default() }], Vec::new());
        let checked = compared(&old, &probed);
        assert_eq!((checked.outcome, checked.probes_differ), (Outcome::Changed, true));
        let finding = |message: &str| Diagnostic {
            severity: Severity::Warning,
            code: "Deprecated".into(),
            message: message.into(),
            location: None,
            related: Vec::new(),
            help: None,
            url: None,
        };
        let found = |messages: &[&str]| {
            Release::new(vec![object(&map, 0)], Vec::new(), messages.iter().map(|text| finding(text)).collect())
        };
        let checked = compared(&found(&["known"]), &found(&["known", "new"]));
        assert_eq!((checked.outcome, checked.changes.findings), (Outcome::Changed, vec!["new".to_owned()]));
        assert_eq!(
            compared(&found(&["gone"]), &found(&[])).outcome,
            Outcome::Unchanged,
            "fewer findings need no decision"
        );
    }

    #[test]
    fn another_api_version_of_an_object_is_a_change_and_not_another_object() {
        let of = |version: &str| {
            release(&[
                json!({"apiVersion": format!("policy/{version}"), "kind": "PodDisruptionBudget", "metadata": {"name": "a"}}),
            ])
        };
        let checked = compared(&of("v1beta1"), &of("v1"));
        let [change] = checked.changes.changes.as_slice() else { panic!("{checked:?}") };
        assert_eq!((change.kind, change.fields[0].path.as_str()), (ChangeKind::Change, "apiVersion"));
    }

    #[test]
    fn what_is_kept_is_bounded_by_field_by_value_and_in_sum() {
        let data = |length: usize, letter: &str| {
            let data = (0..3000).map(|index| (format!("k{index:04}"), json!(letter.repeat(length))));
            release(&[named("ConfigMap", "a", &Value::Object(data.collect()))])
        };
        let mut checked = compared(&data(1, "a"), &data(1, "b"));
        checked.bound();
        assert_eq!((checked.changes.changes[0].fields.len(), checked.omitted_fields), (2000, 1000));
        let one = |letter: &str| release(&[named("ConfigMap", "a", &json!({"k": letter.repeat(1 << 20)}))]);
        let mut checked = compared(&one("ä"), &one("b"));
        checked.bound();
        assert!(serde_json::to_string(&checked).unwrap().len() < 3 * VALUE_BYTES);
        let mut report = Report { bytes: REPORT_BYTES, ..Report::default() };
        report.push(compared(&data(1, "a"), &data(1, "b")));
        assert_eq!(report.deployments[0].omitted_fields, 3000);
        assert_eq!(report.deployments[0].changes.changes.len(), 1, "the objects are still named");
    }
}
