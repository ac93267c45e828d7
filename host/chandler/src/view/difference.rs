//! The changes of a rollout as text.

use std::borrow::Cow;

use chandler_crd_upgrade::{Finding, Report, Upgrade};
use chandler_rollout::{Change, ChangeKind, FieldChange, Preview};
use chandler_values::{Redactor, redaction::HIDDEN};
use serde_json::Value;

use super::{
    terminal::Look,
    text::{count, one_line, printable},
};

/// Longer values are truncated to this number of characters.
const VALUE_LENGTH: usize = 200;

/// The changes by object and field. The descriptions in the schemas of CRDs, which no client depends on, are only counted unless
/// `descriptions` is set.
pub fn text(preview: &Preview, look: Look, descriptions: bool) -> String {
    let mut text = String::new();
    for change in &preview.changes {
        text.push_str(&coloured(sign(change.kind), &head(change), look));
        text.push('\n');
        if let Some(note) = &change.note {
            text.extend(["    ! ", &one_line(note), "\n"]);
        }
        let is_counted = |field: &&FieldChange| !descriptions && is_description(change, field);
        for field in change.fields.iter().filter(|field| !is_counted(field)) {
            push_field(&mut text, field, look);
        }
        match change.fields.iter().filter(is_counted).count() {
            0 => {}
            counted => {
                text.extend(["    ", &count(counted, "description"), ", shown with --descriptions\n"]);
            }
        }
    }
    text
}

/// Whether a field is a description in the schema of a CRD.
fn is_description(change: &Change, field: &FieldChange) -> bool {
    let is_text = |value: &Option<Value>| value.as_ref().is_none_or(Value::is_string);
    change.object.kind == "CustomResourceDefinition"
        && field.path.ends_with(".description")
        && is_text(&field.before)
        && is_text(&field.after)
}

/// The counts, on one line.
pub fn summary(preview: &Preview) -> String {
    if preview.is_empty() {
        return format!("nothing would change: {} unchanged", count(preview.unchanged, "object"));
    }
    let of = |kind| preview.count(kind);
    let refused = match of(ChangeKind::Refuse) {
        0 => String::new(),
        number => format!(", {} refused", count(number, "object")),
    };
    let some = |kind, what: &str| match of(kind) {
        0 => String::new(),
        number => format!("{number} to {what}, "),
    };
    format!(
        "{} to create, {}{} to change, {}{} to repair, {} to remove, {}{} unchanged{refused}",
        of(ChangeKind::Create),
        some(ChangeKind::Adopt, "adopt"),
        of(ChangeKind::Change),
        some(ChangeKind::Recreate, "recreate"),
        of(ChangeKind::Repair),
        of(ChangeKind::Remove),
        some(ChangeKind::Orphan, "orphan"),
        preview.unchanged
    )
}

/// The reason why a rollout would be refused. It keeps the line breaks of the message.
pub fn refusal(message: &str) -> String {
    format!("would be refused: {}", printable(message.trim_end()).replace('\n', "\n  "))
}

fn head(change: &Change) -> String {
    format!("{} {} {}", sign(change.kind), change.kind, one_line(&change.object.to_string()))
}

fn sign(kind: ChangeKind) -> char {
    match kind {
        ChangeKind::Create => '+',
        ChangeKind::Adopt | ChangeKind::Change | ChangeKind::Repair => '~',
        ChangeKind::Recreate => '±',
        ChangeKind::Remove | ChangeKind::Orphan => '-',
        ChangeKind::Refuse => '!',
    }
}

/// Appends a field with its values before and after.
pub fn push_field(text: &mut String, field: &FieldChange, look: Look) {
    text.extend(["    ", &one_line(&field.path), "\n"]);
    for (sign, value) in [('-', &field.before), ('+', &field.after)] {
        if let Some(value) = value {
            text.push_str(&coloured(sign, &format!("      {sign} {}", shown(value)), look));
            text.push('\n');
        }
    }
}

/// A value on one line, truncated if it is long.
fn shown(value: &Value) -> String {
    let text = one_line(&value.to_string());
    let mut kept: String = text.chars().take(VALUE_LENGTH).collect();
    let truncated = text.chars().count().saturating_sub(VALUE_LENGTH);
    if truncated > 0 {
        kept.extend(["… (", &truncated.to_string(), " more)"]);
    }
    kept
}

fn coloured(sign: char, line: &str, look: Look) -> String {
    if look != Look::Colour {
        return line.to_owned();
    }
    let line = console::style(line).force_styling(true);
    match sign {
        '+' => line.green(),
        '-' | '!' | '±' => line.red(),
        _ => line.yellow(),
    }
    .to_string()
}

/// Hides values of Secrets. Every field is named here, and one that is not bound to `_` is hidden: a new field does not compile before it is
/// decided which of the two it is.
pub fn hide(preview: &mut Preview, redactor: &Redactor) {
    if redactor.is_empty() {
        return;
    }
    let Preview { changes, unchanged: _, refusals, findings, crd_upgrades } = preview;
    for text in refusals.iter_mut().chain(findings) {
        redactor.hide(text);
    }
    for change in changes {
        hide_change(change, redactor);
    }
    for upgrade in crd_upgrades {
        hide_upgrade(upgrade, redactor);
    }
}

/// Where one value of a field is hidden, so is the other: it may be the value before the Secret changed.
fn hide_change(change: &mut Change, redactor: &Redactor) {
    // The API server shows the names of objects to all users who may list them.
    let Change { kind: _, object: _, fields, note } = change;
    if let Some(note) = note {
        redactor.hide(note);
    }
    // A path has names of members and of items of lists, which reveal the purpose of a value.
    for FieldChange { path: _, before, after } in fields {
        hide_values([before, after], redactor);
    }
}

/// Hides all of the values if one of them has a secret, be it as the name of a member.
fn hide_values(values: [&mut Option<Value>; 2], redactor: &Redactor) {
    let is_secret = |value: &Value| matches!(redactor.text(&value.to_string()), Cow::Owned(_));
    if values.iter().filter_map(|value| value.as_ref()).any(is_secret) {
        values.into_iter().flatten().for_each(|value| *value = HIDDEN.into());
    }
}

fn hide_upgrade(upgrade: &mut Upgrade, redactor: &Redactor) {
    let Upgrade { crd: _, digest: _, approved_by: _, report: Report { refusals, warnings, notes } } = upgrade;
    for note in notes {
        redactor.hide(note);
    }
    for finding in refusals.iter_mut().chain(warnings) {
        let Finding {
            rule: _,
            enforcement: _,
            crd: _,
            version: _,
            property: _,
            pointer: _,
            old,
            new,
            effect: _,
            message,
        } = finding;
        redactor.hide(message);
        hide_values([old, new], redactor);
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::ObjectKey;
    use serde_json::json;

    use super::*;

    fn change(kind: ChangeKind, name: &str, fields: Vec<FieldChange>, note: Option<&str>) -> Change {
        let object = ObjectKey {
            group: "apps".into(),
            version: "v1".into(),
            kind: "Deployment".into(),
            namespace: Some("harbour".into()),
            name: name.into(),
        };
        Change { kind, object, fields, note: note.map(str::to_owned) }
    }

    fn preview() -> Preview {
        let fields = vec![
            FieldChange { path: "spec.replicas".into(), before: Some(json!(1)), after: Some(json!(2)) },
            FieldChange { path: "spec.paused".into(), before: Some(json!(true)), after: None },
            FieldChange { path: "data.long".into(), before: None, after: Some(json!("x".repeat(500))) },
        ];
        Preview {
            changes: vec![
                change(ChangeKind::Create, "pilot", vec![], None),
                change(ChangeKind::Change, "crane", fields, None),
                change(ChangeKind::Recreate, "quay", vec![], Some("it is deleted and created again")),
                change(ChangeKind::Refuse, "tug", vec![], Some("it exists and was created by kubectl")),
                change(ChangeKind::Remove, "buoy", vec![], None),
            ],
            unchanged: 3,
            ..Preview::default()
        }
    }

    #[test]
    fn changes_are_shown_by_object_and_field() {
        insta::assert_snapshot!(text(&preview(), Look::Plain, false), @r#"
        + create Deployment.apps harbour/pilot
        ~ change Deployment.apps harbour/crane
            spec.replicas
              - 1
              + 2
            spec.paused
              - true
            data.long
              + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (302 more)
        ± recreate Deployment.apps harbour/quay
            ! it is deleted and created again
        ! refuse Deployment.apps harbour/tug
            ! it exists and was created by kubectl
        - remove Deployment.apps harbour/buoy
        "#);
        assert_eq!(
            summary(&preview()),
            "1 to create, 1 to change, 1 to recreate, 0 to repair, 1 to remove, 3 unchanged, 1 object refused"
        );
        let nothing = Preview { unchanged: 3, ..Preview::default() };
        assert_eq!(summary(&nothing), "nothing would change: 3 objects unchanged");
        assert_eq!(text(&nothing, Look::Plain, false), "");
    }

    #[test]
    fn descriptions_of_crds_are_counted_unless_they_are_asked_for() {
        let field = |path: &str, after| FieldChange { path: path.into(), before: None, after: Some(after) };
        let schema = "spec.versions[name=v1].schema.openAPIV3Schema";
        let fields = vec![
            field(&format!("{schema}.description"), json!("a")),
            field(&format!("{schema}.properties.spec.description"), json!("b")),
            field(&format!("{schema}.properties.description"), json!({"type": "string"})),
        ];
        let mut crd = change(ChangeKind::Change, "widgets", fields, None);
        crd.object.kind = "CustomResourceDefinition".into();
        let preview =
            Preview { changes: vec![crd], unchanged: 0, refusals: vec![], findings: vec![], crd_upgrades: vec![] };
        insta::assert_snapshot!(text(&preview, Look::Plain, false), @r#"
        ~ change CustomResourceDefinition.apps harbour/widgets
            spec.versions[name=v1].schema.openAPIV3Schema.properties.description
              + {"type":"string"}
            2 descriptions, shown with --descriptions
        "#);
        assert!(text(&preview, Look::Plain, true).contains("+ \"b\""), "they are shown when asked for");
    }

    #[test]
    fn no_text_of_a_preview_has_a_value() {
        let secret = || "a hunter2".to_owned();
        let value = || Some(json!({"hunter2": ["x"]}));
        // Every field is named, so that this does not compile with a new one.
        let finding = || Finding {
            rule: chandler_crd_upgrade::Rule::Enum,
            enforcement: chandler_crd_upgrade::Enforcement::Warn,
            crd: "widgets.example.com".to_owned(),
            version: Some("v1".to_owned()),
            property: Some("^.spec".to_owned()),
            pointer: "/spec".to_owned(),
            old: value(),
            new: Some(json!("hunter2")),
            effect: chandler_crd_upgrade::Effect::Alters,
            message: secret(),
        };
        let report = Report { refusals: vec![finding()], warnings: vec![finding()], notes: vec![secret()] };
        let digest = chandler_core::Digest::of(b"x");
        let upgrade =
            Upgrade { crd: "widgets.example.com".to_owned(), digest, approved_by: Some("ann".to_owned()), report };
        let field = FieldChange { path: "data.a".to_owned(), before: value(), after: Some(json!("hunter2")) };
        let harmless = FieldChange { path: "spec.replicas".to_owned(), before: Some(json!(1)), after: Some(json!(2)) };
        let mut preview = Preview {
            changes: vec![change(ChangeKind::Change, "crane", vec![field, harmless.clone()], Some("a hunter2"))],
            unchanged: 1,
            refusals: vec![secret()],
            findings: vec![secret()],
            crd_upgrades: vec![upgrade],
        };
        hide(&mut preview, &Redactor::of([&json!("hunter2")]));
        let shown = serde_json::to_string(&preview).unwrap();
        assert!(!shown.contains("hunter2"), "{shown}");
        assert_eq!(preview.changes[0].fields[1], harmless, "other fields stay");
    }

    #[test]
    fn created_objects_are_green_and_removed_objects_are_red() {
        let coloured = text(&preview(), Look::Colour, false);
        assert!(coloured.contains("\u{1b}[32m+ create"), "{coloured:?}");
        assert!(coloured.contains("\u{1b}[31m- remove"), "{coloured:?}");
    }
}
