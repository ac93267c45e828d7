//! Whether a change waits for approval, and how the status reports it.

use chandler_api::{
    Approval, BundleDeployment, CrdDeletion, Outcome, PendingChange, ProvisionerChange, Revision,
    approval::{LINE_BYTES, LISTED_CHANGES, LISTED_FINDINGS, LISTED_REFUSALS, REFUSAL_BYTES},
};
use chandler_core::{Digest, text::printable};
use chandler_rollout::{Change, ChangeKind, Preview};
use serde_json::json;

use super::{
    revisions::{self, Candidate, Cause},
    updates,
};

/// How many fields of an object are named.
const NAMED_FIELDS: usize = 5;
/// How many bytes of refusals a condition repeats.
const REPORTED_REFUSALS: usize = 1024;

/// Whether the candidate needs approval before it is rolled out. A release that ran before, or was approved, needs none. A rollout that
/// began before the spec required approval needs it to continue. `target` is the UID of the other cluster, if the spec names one.
pub fn is_needed(deployment: &BundleDeployment, candidate: &Candidate, target: Option<&str>) -> bool {
    let history = deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
    if deployment.spec.approval != Some(Approval::Manual) {
        return false;
    }
    let current = history.last().filter(|_| !revisions::begins(history, candidate));
    match candidate.cause {
        Cause::Waiting(_) | Cause::Failed { .. } => false,
        Cause::Spec => !current.is_some_and(|current| may_run(deployment, current, target)),
        Cause::Pinned(number) => {
            let named = history.iter().find(|revision| revision.number == number);
            ![named, current].into_iter().flatten().any(|revision| may_run(deployment, revision, target))
        }
    }
}

/// Whether a revision ran before, is a rollback to one that did, or was approved on the terms of the current spec.
fn may_run(deployment: &BundleDeployment, revision: &Revision, target: Option<&str>) -> bool {
    let is_approved = || {
        let approved = revision.approval.as_ref().and_then(|approval| approval.terms.as_deref());
        approved == Some(terms(deployment, target).as_str())
    };
    revision.outcome == Outcome::Succeeded || revision.rollback_to.is_some() || is_approved()
}

/// The digest of all that the spec lets a rollout do beyond the release: its ServiceAccount, the existing objects that it may adopt, the
/// checks that it may skip, what it deletes, what it may delete and create again, and the other cluster that it writes to. `target` is the UID of
/// that cluster: the kubeconfig in a Secret may be replaced.
pub fn terms(deployment: &BundleDeployment, target: Option<&str>) -> String {
    let spec = &deployment.spec;
    let mut terms = vec![
        json!(spec.service_account),
        json!(spec.collision_protection),
        json!(spec.adopt),
        json!(spec.deletion),
        json!(spec.preflight),
    ];
    // Approvals that were given before these settings existed stay valid without them.
    terms.extend(spec.rollout.as_ref().and_then(|rollout| rollout.on_immutable.as_ref()).map(|policy| json!(policy)));
    terms.extend(spec.kube_config.as_ref().map(|reference| json!({"kubeConfig": reference, "target": target})));
    let terms = json!(terms);
    Digest::of(terms.to_string().as_bytes()).to_string()
}

/// Whether a user approved what the spec lets this rollout do, as far as it needs approval at all. A repair and a rollback to what ran
/// before need no approval; without this check they would use terms that no user approved.
pub fn covers_terms(deployment: &BundleDeployment, candidate: &Candidate, target: Option<&str>) -> bool {
    if deployment.spec.approval != Some(Approval::Manual) || candidate.approval.is_some() {
        return true;
    }
    let history = deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
    let named = match candidate.cause {
        Cause::Pinned(number) | Cause::Failed { to: number, .. } => Some(number),
        Cause::Spec | Cause::Waiting(_) => None,
    };
    let named = history.iter().find(|revision| Some(revision.number) == named);
    let terms = terms(deployment, target);
    // An approval of an earlier version of the controller does not say on which terms.
    let covers = |revision: &Revision| {
        let approval = revision.approval.as_ref();
        approval.is_some_and(|approval| approval.terms.as_ref().is_none_or(|approved| *approved == terms))
    };
    named.into_iter().chain(history.last()).any(covers)
}

/// The BundleDeployment with the defaults in place of the terms that let a rollout do more.
pub fn on_default_terms(deployment: &BundleDeployment) -> BundleDeployment {
    let mut strict = deployment.clone();
    let spec = &mut strict.spec;
    spec.collision_protection = None;
    spec.adopt.clear();
    spec.preflight = None;
    if let Some(rollout) = &mut spec.rollout {
        rollout.on_immutable = None;
    }
    // To keep more than by default does no harm.
    if let Some(deletion) = spec.deletion.as_mut().filter(|deletion| deletion.crds == Some(CrdDeletion::Delete)) {
        deletion.crds = None;
    }
    strict
}

/// The digest of a change: of its preview, of the terms of the spec, and of the number of its revision. So an approval serves once: the
/// same change after a rollback is another one.
pub fn digest(deployment: &BundleDeployment, candidate: &Candidate, preview: &Preview, target: Option<&str>) -> String {
    let change = preview.digest(&candidate.release.digest, &candidate.install_namespace);
    let number = revisions::number(deployment, candidate);
    Digest::of(json!([change, number, terms(deployment, target)]).to_string().as_bytes()).to_string()
}

/// The digest of an update of the provisioner. It covers the component and the configuration, too: another component that would render the
/// same now may render something else later. It also covers the approval before it: an update that changes no object begins no revision,
/// and must not be approved by what approved it before, once the class went back and forth.
pub fn update_digest(
    deployment: &BundleDeployment,
    candidate: &Candidate,
    preview: &Preview,
    target: Option<&str>,
) -> String {
    let provisioner = json!([candidate.provisioner.class, candidate.provisioner.digest]);
    let config = match &candidate.config {
        revisions::Config::Known(config) => json!(config),
        revisions::Config::Digest(digest) => json!(digest),
    };
    let history = deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
    let before = history.last().and_then(|current| current.approval.as_ref()).map(|approval| &approval.change);
    let change = json!([digest(deployment, candidate, preview, target), provisioner, config, before]);
    Digest::of(change.to_string().as_bytes()).to_string()
}

/// The revision that keeps running while a change waits for approval; `None` if none succeeded.
pub fn runs_meanwhile(history: &[Revision]) -> Option<&Revision> {
    history.last().filter(|current| current.outcome == Outcome::Succeeded)
}

/// The change that waits for approval.
pub fn pending(candidate: &Candidate, digest: String, preview: &Preview) -> PendingChange {
    let count = |kinds: &[ChangeKind]| {
        i64::try_from(kinds.iter().map(|kind| preview.count(*kind)).sum::<usize>()).unwrap_or(i64::MAX)
    };
    let omitted = preview.changes.len().saturating_sub(LISTED_CHANGES);
    PendingChange {
        digest,
        release_digest: candidate.release.digest.to_string(),
        cause: None,
        provisioner: None,
        created: count(&[ChangeKind::Create]),
        changed: count(&[ChangeKind::Change, ChangeKind::Recreate, ChangeKind::Adopt, ChangeKind::Repair]),
        removed: count(&[ChangeKind::Remove, ChangeKind::Orphan]),
        objects: preview.changes.iter().take(LISTED_CHANGES).map(line).collect(),
        omitted: (omitted > 0).then(|| i64::try_from(omitted).unwrap_or(i64::MAX)),
        refusals: first(&preview.refusals, LISTED_REFUSALS, REFUSAL_BYTES),
        findings: first(&preview.findings, LISTED_FINDINGS, LINE_BYTES),
        since: None,
    }
}

/// The message of the conditions about a change that waits.
pub fn message(name: &str, pending: &PendingChange) -> String {
    let PendingChange { created, changed, removed, refusals, .. } = pending;
    let refused = match refusals.as_slice() {
        [] => String::new(),
        refusals => format!("would be refused: {}\n", cut(refusals.join("\n"), REPORTED_REFUSALS)),
    };
    format!(
        "{refused}a change waits for approval: {created} to create, {changed} to change, {removed} to remove; `chandler diff {name}` \
         shows it, `chandler approve {name}` approves it"
    )
}

/// What the condition `Ready` adds about an update of the provisioner that waits. It names no counts, which change with the cluster.
pub(crate) fn update_message(name: &str, pending: &PendingChange) -> String {
    let Some(ProvisionerChange { installed, new }) = &pending.provisioner else { return String::new() };
    let installed = installed.as_ref().map(updates::component).unwrap_or_default();
    format!(
        "an update of provisioner class {} from {installed} to {} waits for approval: `chandler approve {name}` shows and approves it",
        new.class,
        updates::component(new)
    )
}

/// The finding about what an update of a provisioner adds to a release.
pub fn unseen(gained: &[String]) -> String {
    let gained = gained.join(", ");
    cut(
        format!("the provisioner adds what the release had none of, without a change of the spec: {gained}"),
        LINE_BYTES,
    )
}

/// The finding that names the other cluster: the preview of a change does not show which one it was compared with.
pub fn elsewhere(secret: &str, target: &str) -> String {
    let line = format!(
        "the objects are in the cluster of the kubeconfig in Secret {secret}: its namespace kube-system has UID {target}"
    );
    cut(line, LINE_BYTES)
}

fn first(lines: &[String], count: usize, bytes: usize) -> Vec<String> {
    lines.iter().take(count).map(|line| cut(line.clone(), bytes)).collect()
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
    cut(line, LINE_BYTES)
}

fn cut(line: String, bytes: usize) -> String {
    let mut line = printable(&line).into_owned();
    line.truncate(line.floor_char_boundary(bytes));
    line
}

#[cfg(test)]
mod tests {
    use chandler_core::ObjectKey;
    use chandler_rollout::FieldChange;

    use super::*;
    use crate::assessment::ReleaseFacts;

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
            config: super::revisions::Config::Known(serde_json::Map::new()),
            own_config: None,
            spec_config: None,
            values: Vec::new(),
            release: ReleaseFacts { digest: Digest::of(b"a"), objects: 1, stages: 1, version: None },
            approval: None,
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
        let (refusals, findings) = (vec!["y".repeat(9999); 99], vec!["x".repeat(9999); 99]);
        Preview { changes, refusals, findings, ..Preview::default() }
    }

    fn with_history(outcome: &str, release: &Digest, more: &serde_json::Value) -> BundleDeployment {
        let mut revision = json!({
            "number": 3, "source": {"type": "image"}, "contentDigest": "", "provisioner": {"class": "c", "digest": ""},
            "installNamespace": "n", "configDigest": "", "releaseDigest": release, "outcome": outcome,
        });
        revision.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut deployment = deployment(json!({"approval": "Manual"}));
        deployment.status = serde_json::from_value(json!({"history": [revision], "revision": 3})).unwrap();
        deployment
    }

    #[test]
    fn only_a_new_revision_needs_approval() {
        let manual = deployment(json!({"approval": "Manual"}));
        assert!(is_needed(&manual, &candidate(Cause::Spec), None));
        assert!(!is_needed(&manual, &candidate(Cause::Waiting(1)), None));
        assert!(!is_needed(&deployment(json!({})), &candidate(Cause::Spec), None));
        assert!(!is_needed(&deployment(json!({"approval": "Automatic"})), &candidate(Cause::Spec), None));
    }

    #[test]
    fn a_rollout_goes_on_only_if_it_was_approved_or_ran_before() {
        let (same, other) = (Digest::of(b"a"), Digest::of(b"b"));
        let terms = terms(&deployment(json!({})), None);
        let approval = json!({"approval": {"change": "sha256:1", "approvedBy": "alice", "terms": terms}});
        let on_other_terms = json!({"approval": {"change": "sha256:1", "approvedBy": "alice", "terms": "sha256:2"}});
        for (outcome, release, more, spec, pinned) in [
            ("Succeeded", &same, json!({}), false, false),
            ("RollingOut", &same, json!({}), true, true),
            ("Failed", &same, json!({}), true, true),
            ("RollingOut", &same, approval.clone(), false, false),
            ("Failed", &same, approval.clone(), false, false),
            ("RollingOut", &same, on_other_terms.clone(), true, true),
            ("Succeeded", &same, on_other_terms, false, false),
            ("RollingOut", &same, json!({"rollbackTo": 1}), false, false),
            // Another one is the current revision, but the spec may name that one.
            ("Succeeded", &other, json!({}), true, false),
            ("Superseded", &other, json!({}), true, true),
        ] {
            let deployment = with_history(outcome, release, &more);
            assert_eq!(is_needed(&deployment, &candidate(Cause::Spec), None), spec, "{outcome} {more}");
            assert_eq!(is_needed(&deployment, &candidate(Cause::Pinned(3)), None), pinned, "{outcome} {more}");
            let failed = Cause::Failed { failed: 3, message: String::new(), to: 1 };
            assert!(!is_needed(&deployment, &candidate(failed), None), "what ran before needs none");
        }
    }

    #[test]
    fn an_approval_covers_the_terms_of_the_spec() {
        let before = terms(&deployment(json!({"approval": "Manual"})), None);
        for (spec, same) in [
            (json!({"suspend": true, "drift": "Report", "approval": "Automatic"}), true),
            (json!({"collisionProtection": "None"}), false),
            (json!({"serviceAccount": {"name": "admin"}}), false),
            (json!({"adopt": [{"kind": "ConfigMap", "name": "a", "uid": "u"}]}), false),
            (json!({"deletion": {"crds": "Delete"}}), false),
            (json!({"preflight": {}}), false),
            (json!({"rollout": {"historyLimit": 3}}), true),
            (json!({"rollout": {"onImmutable": {"default": "Recreate"}}}), false),
        ] {
            assert_eq!(terms(&deployment(spec.clone()), None) == before, same, "{spec}");
        }
    }

    #[test]
    fn an_approval_covers_the_cluster_that_gets_the_objects() {
        let into = |secret: &str| json!({"approval": "Manual", "kubeConfig": {"secretRef": {"name": secret}}});
        let (staging, production) = (deployment(into("staging")), deployment(into("production")));
        let of = |deployment: &BundleDeployment, target| {
            let candidate = candidate(Cause::Spec);
            let digest = digest(deployment, &candidate, &preview(1), target);
            (terms(deployment, target), digest, update_digest(deployment, &candidate, &preview(1), target))
        };
        let approved = of(&staging, Some("s"));
        assert_eq!(approved, of(&staging, Some("s")));
        for (deployment, target) in [(&production, Some("p")), (&production, Some("s")), (&staging, Some("p"))] {
            let other = of(deployment, target);
            assert!(approved.0 != other.0 && approved.1 != other.1 && approved.2 != other.2, "{target:?}");
        }

        // The rollout that was approved does not begin or continue in another cluster.
        let approval = json!({"approval": {"change": "sha256:1", "approvedBy": "alice", "terms": approved.0}});
        for outcome in ["RollingOut", "Failed"] {
            let status = with_history(outcome, &Digest::of(b"a"), &approval).status;
            let with =
                |deployment: &BundleDeployment| BundleDeployment { status: status.clone(), ..deployment.clone() };
            for (deployment, target, needed) in
                [(&staging, "s", false), (&staging, "p", true), (&production, "p", true), (&production, "s", true)]
            {
                let (deployment, candidate) = (with(deployment), candidate(Cause::Spec));
                assert_eq!(is_needed(&deployment, &candidate, Some(target)), needed, "{target}");
                assert_eq!(covers_terms(&deployment, &candidate, Some(target)), !needed, "{target}");
            }
        }
    }

    #[test]
    fn repairs_and_rollbacks_are_on_approved_terms() {
        let with = |spec: serde_json::Value, approval: serde_json::Value| {
            let mut deployment = deployment(spec);
            deployment.spec.approval = Some(Approval::Manual);
            deployment.status = with_history("Succeeded", &Digest::of(b"a"), &approval).status;
            deployment
        };
        let wide = json!({"collisionProtection": "None", "adopt": [{"kind": "ConfigMap", "name": "a", "uid": "u"}],
            "rollout": {"onImmutable": {"default": "Recreate"}}, "deletion": {"crds": "Delete", "policy": "Orphan"},
            "preflight": {}});
        let approved_on =
            |terms: Option<String>| json!({"approval": {"change": "sha256:1", "approvedBy": "a", "terms": terms}});
        let of = |spec: &serde_json::Value| terms(&deployment(spec.clone()), None);
        for (spec, approval, covered) in [
            (json!({}), approved_on(Some(of(&json!({})))), true),
            (wide.clone(), approved_on(Some(of(&json!({})))), false),
            (wide.clone(), approved_on(Some(of(&wide))), true),
            (wide.clone(), approved_on(None), true),
            (wide.clone(), json!({}), false),
        ] {
            let deployment = with(spec, approval);
            for cause in [Cause::Spec, Cause::Pinned(3)] {
                assert_eq!(covers_terms(&deployment, &candidate(cause), None), covered, "{:?}", deployment.status);
            }
            let now = chandler_api::ApprovedChange { change: "sha256:2".into(), approved_by: "a".into(), terms: None };
            let approved = Candidate { approval: Some(now), ..candidate(Cause::Spec) };
            assert!(covers_terms(&deployment, &approved, None));
            let automatic = BundleDeployment { status: deployment.status.clone(), ..self::deployment(wide.clone()) };
            assert!(covers_terms(&automatic, &candidate(Cause::Spec), None));
        }
        let strict = on_default_terms(&deployment(wide));
        let kept = json!({"rollout": {}, "deletion": {"policy": "Orphan"}});
        assert_eq!(json!(strict.spec), json!(deployment(kept).spec));
    }

    #[test]
    fn an_approval_serves_for_one_revision() {
        let candidate = candidate(Cause::Spec);
        let of = |deployment: &BundleDeployment, objects| digest(deployment, &candidate, &preview(objects), None);
        let (first, other) = (deployment(json!({})), Digest::of(b"b"));
        assert_eq!(of(&first, 1), of(&first, 1));
        assert_ne!(of(&first, 1), of(&first, 2));
        assert_ne!(of(&first, 1), of(&with_history("Succeeded", &other, &json!({})), 1));
        let begun = with_history("RollingOut", &candidate.release.digest, &json!({}));
        assert_eq!(revisions::number(&begun, &candidate), 3, "it continues as it began");
        assert_eq!(revisions::number(&with_history("Succeeded", &other, &json!({})), &candidate), 4);
    }

    /// Another component may render the same now and something else later, and so may another configuration.
    #[test]
    fn the_approval_of_an_update_is_for_one_component_and_configuration() {
        let deployment = deployment(json!({}));
        let of = |class: &str, component: &str, config: serde_json::Value| {
            let provisioner = chandler_api::ProvisionerInUse {
                class: class.into(),
                digest: component.into(),
                ..chandler_api::ProvisionerInUse::default()
            };
            let config = super::revisions::Config::Known(config.as_object().cloned().unwrap());
            let candidate = Candidate { provisioner, config, ..candidate(Cause::Spec) };
            update_digest(&deployment, &candidate, &preview(1), None)
        };
        let one = of("c", "sha256:1", json!({}));
        assert_eq!(one, of("c", "sha256:1", json!({})));
        assert_ne!(
            one,
            digest(&deployment, &candidate(Cause::Spec), &preview(1), None),
            "nor is it the digest of a usual change"
        );
        for other in
            [of("d", "sha256:1", json!({})), of("c", "sha256:2", json!({})), of("c", "sha256:1", json!({"a": 1}))]
        {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn the_approval_of_an_update_serves_once() {
        let of = |approval: serde_json::Value| {
            let deployment = with_history("Succeeded", &Digest::of(b"a"), &json!({"approval": approval}));
            update_digest(&deployment, &candidate(Cause::Spec), &preview(0), None)
        };
        let (none, first) = (of(json!(null)), of(json!({"change": "sha256:1", "approvedBy": "a"})));
        let second = of(json!({"change": "sha256:2", "approvedBy": "a"}));
        assert!(none != first && first != second && second != none);
    }

    #[test]
    fn a_pending_change_is_bounded() {
        let waits = pending(&candidate(Cause::Spec), "sha256:1".into(), &preview(80));
        assert_eq!((waits.created, waits.changed, waits.objects.len(), waits.omitted), (1, 79, 50, Some(30)));
        assert_eq!(waits.objects[1], "change ConfigMap n/x1: data.0, data.1, data.2, data.3, data.4 and 2 more");
        assert_eq!((waits.refusals.len(), waits.findings.len()), (10, 10));
        assert!(serde_json::to_vec(&waits).unwrap().len() < 64 << 10);
        assert!(message("a", &waits).len() < 2048);
        let nothing = Preview { unchanged: 1, ..Preview::default() };
        let nothing = pending(&candidate(Cause::Spec), "sha256:1".into(), &nothing);
        assert_eq!((nothing.created, nothing.changed, nothing.removed), (0, 0, 0), "it waits all the same");
        assert_eq!(nothing.omitted, None);
    }

    #[test]
    fn refusals_come_first_in_the_message() {
        let pending = PendingChange {
            created: 2,
            refusals: vec!["ConfigMap n/a already exists".into(), "namespaces \"m\" not found".into()],
            ..PendingChange::default()
        };
        insta::assert_snapshot!(message("harbour", &pending), @r#"
        would be refused: ConfigMap n/a already exists
        namespaces "m" not found
        a change waits for approval: 2 to create, 0 to change, 0 to remove; `chandler diff harbour` shows it, `chandler approve harbour` approves it
        "#);
        let pending = PendingChange { refusals: vec![], ..pending };
        assert!(message("harbour", &pending).starts_with("a change waits for approval: "));
    }

    #[test]
    fn only_a_release_that_succeeded_runs_while_a_change_waits() {
        let digest = Digest::of(b"a");
        for (outcome, number) in [("Succeeded", Some(3)), ("RollingOut", None), ("Failed", None)] {
            let status = with_history(outcome, &digest, &json!({})).status.unwrap();
            assert_eq!(runs_meanwhile(&status.history).map(|revision| revision.number), number, "{outcome}");
        }
        assert_eq!(runs_meanwhile(&[]), None);
    }
}
