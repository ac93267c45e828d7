//! Whether a change waits for somebody's consent, and what the status says of it. Pure.

use chandler_api::{
    Approval, BundleDeployment, PendingChange,
    approval::{LINE_BYTES, LISTED_CHANGES, LISTED_FINDINGS},
};
use chandler_rollout::{Change, ChangeKind, Preview};

use super::revisions::{self, Candidate, Cause};

/// How many fields of an object are named.
const NAMED_FIELDS: usize = 5;

/// Whether the candidate needs consent before it is rolled out. What ran before, and what was begun, had it.
pub(crate) fn is_needed(deployment: &BundleDeployment, candidate: &Candidate) -> bool {
    let history = deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
    deployment.spec.approval == Some(Approval::Manual)
        && candidate.cause == Cause::Spec
        && revisions::begins(history, candidate)
}

/// What waits for consent; none where it was given or where nothing would change.
pub(crate) fn pending(
    deployment: &BundleDeployment,
    candidate: &Candidate,
    preview: &Preview,
) -> Option<PendingChange> {
    let digest = preview.digest(&candidate.release.digest, &candidate.install_namespace).to_string();
    if preview.is_empty() || deployment.spec.approved_change.as_ref() == Some(&digest) {
        return None;
    }
    let count = |kinds: &[ChangeKind]| {
        i64::try_from(kinds.iter().map(|kind| preview.count(*kind)).sum::<usize>()).unwrap_or(i64::MAX)
    };
    let omitted = preview.changes.len().saturating_sub(LISTED_CHANGES);
    Some(PendingChange {
        digest,
        release_digest: candidate.release.digest.to_string(),
        created: count(&[ChangeKind::Create]),
        changed: count(&[ChangeKind::Change, ChangeKind::Adopt, ChangeKind::Repair]),
        removed: count(&[ChangeKind::Remove, ChangeKind::Release]),
        objects: preview.changes.iter().take(LISTED_CHANGES).map(line).collect(),
        omitted: (omitted > 0).then(|| i64::try_from(omitted).unwrap_or(i64::MAX)),
        findings: preview.findings.iter().take(LISTED_FINDINGS).map(|finding| cut(finding.clone())).collect(),
        since: None,
    })
}

/// What the conditions say of a change that waits.
pub(crate) fn message(name: &str, pending: &PendingChange) -> String {
    let PendingChange { created, changed, removed, digest, .. } = pending;
    format!(
        "a change waits for consent: {created} objects to create, {changed} to change, {removed} to remove; \
         `chandler diff {name}` shows it, `chandler approve {name}` or spec.approvedChange: {digest} lets it go on"
    )
}

fn line(change: &Change) -> String {
    let mut line = format!("{} {}", change.kind, change.object);
    for (index, field) in change.fields.iter().take(NAMED_FIELDS).enumerate() {
        line.push_str(if index == 0 { ": " } else { ", " });
        line.push_str(&field.path);
    }
    let more = change.fields.len().saturating_sub(NAMED_FIELDS);
    if more > 0 {
        line.extend([" and ", &more.to_string(), " more"]);
    }
    if let Some(note) = &change.note {
        line.extend([" (", note.as_str(), ")"]);
    }
    cut(line)
}

fn cut(mut line: String) -> String {
    line.truncate(line.floor_char_boundary(LINE_BYTES));
    line
}

#[cfg(test)]
mod tests {
    use chandler_core::{Digest, ObjectKey};
    use chandler_rollout::FieldChange;
    use serde_json::json;

    use super::*;
    use crate::bundle_deployment::assessment::ReleaseFacts;

    fn deployment(spec: serde_json::Value) -> BundleDeployment {
        let mut object = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "a"},
            "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"}},
        });
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(object).unwrap()
    }

    fn candidate(cause: Cause) -> Candidate {
        Candidate {
            cause,
            source: chandler_api::BundleSource::default(),
            content_digest: String::new(),
            provisioner: chandler_api::ProvisionerInUse::default(),
            install_namespace: "n".into(),
            config: serde_json::Map::new(),
            release: ReleaseFacts { digest: Digest::of(b"a"), objects: 1, stages: 1 },
        }
    }

    fn preview(objects: usize) -> Preview {
        let change = |number: usize| Change {
            kind: if number == 0 { ChangeKind::Create } else { ChangeKind::Change },
            object: ObjectKey {
                group: String::new(),
                version: "v1".into(),
                kind: "ConfigMap".into(),
                namespace: Some("n".into()),
                name: format!("x{number}"),
            },
            fields: (0..7).map(|it| FieldChange { path: format!("data.{it}"), before: None, after: None }).collect(),
            note: None,
        };
        let changes = (0..objects).map(change).collect();
        Preview { changes, unchanged: 0, findings: vec!["x".repeat(9999)] }
    }

    #[test]
    fn only_a_new_revision_of_the_spec_needs_consent() {
        let manual = deployment(json!({"approval": "Manual"}));
        assert!(is_needed(&manual, &candidate(Cause::Spec)));
        assert!(!is_needed(&manual, &candidate(Cause::Pinned(1))));
        assert!(!is_needed(&deployment(json!({})), &candidate(Cause::Spec)));
        assert!(!is_needed(&deployment(json!({"approval": "Automatic"})), &candidate(Cause::Spec)));
    }

    #[test]
    fn what_waits_is_bounded_and_goes_on_with_its_own_digest_only() {
        let approve = |digest: &str| deployment(json!({"approval": "Manual", "approvedChange": digest}));
        let pending =
            |deployment: BundleDeployment, objects| pending(&deployment, &candidate(Cause::Spec), &preview(objects));
        let waits = pending(approve("sha256:0"), 80).unwrap();
        assert_eq!((waits.created, waits.changed, waits.objects.len(), waits.omitted), (1, 79, 50, Some(30)));
        assert_eq!(waits.objects[1], "change ConfigMap n/x1: data.0, data.1, data.2, data.3, data.4 and 2 more");
        assert!(serde_json::to_vec(&waits).unwrap().len() < 64 << 10);
        assert_eq!(pending(approve(&waits.digest), 80), None);
        assert_eq!(pending(approve("sha256:0"), 0), None, "nothing would change");
    }
}
