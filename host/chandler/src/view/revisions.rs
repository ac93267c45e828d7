//! The revisions of a BundleDeployment: a table, and the choice of the revision to roll back to.

use std::time::Duration;

use chandler_api::{BundleDeployment, Outcome, Revision};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{error::CommandError, progress::seconds, text::one_line};

/// The number of characters of a digest in the table.
const DIGEST_LENGTH: usize = "sha256:".len() + 12;

/// The revisions, oldest first.
pub fn history(deployment: &BundleDeployment) -> &[Revision] {
    deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default()
}

/// The table: one row for each revision, followed by the user who approved it and its failure.
pub fn table(deployment: &BundleDeployment) -> String {
    let pinned = deployment.spec.rollout.as_ref().and_then(|rollout| rollout.to_revision);
    let mut rows = vec![["REVISION", "OUTCOME", "STARTED", "TOOK", "RELEASE", "SOURCE"].map(str::to_owned)];
    for revision in history(deployment) {
        let again = revision.rollback_to.map(|number| format!(" (as {number})")).unwrap_or_default();
        rows.push([
            format!("{}{again}", revision.number),
            revision.outcome.as_str().to_owned(),
            revision.start_time.as_ref().map(time).unwrap_or_default(),
            took(revision).map(seconds).unwrap_or_default(),
            revision.release_digest.chars().take(DIGEST_LENGTH).collect(),
            chandler_source::describe(&revision.source),
        ]);
    }
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(one_line(cell).chars().count());
        }
    }
    let mut text = String::new();
    let revisions = std::iter::once(None).chain(history(deployment).iter().map(Some));
    for (row, revision) in rows.iter().zip(revisions) {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{:<width$}", one_line(cell))).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
        if let Some(approval) = revision.and_then(|revision| revision.approval.as_ref()) {
            text.extend([
                "    approved by ",
                &one_line(&approval.approved_by),
                ": ",
                &one_line(&approval.change),
                "\n",
            ]);
        }
        if let Some(failure) = revision.and_then(|revision| revision.message.as_deref()) {
            text.extend(["    ", &one_line(failure), "\n"]);
        }
    }
    if let Some(number) = pinned {
        text.extend(["spec.rollout.toRevision is ", &number.to_string(), "\n"]);
    }
    text
}

/// The revision to roll back to: the requested one, else the last one that succeeded with another release.
pub fn target(deployment: &BundleDeployment, requested: Option<i64>) -> Result<&Revision, CommandError> {
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let history = history(deployment);
    let hint = format!("`chandler history {name}` shows the revisions");
    let Some(current) = history.last() else {
        return Err(CommandError::failed(format!("BundleDeployment {name} has no revisions")).hint(hint));
    };
    match requested {
        Some(number) => history.iter().find(|revision| revision.number == number).ok_or_else(|| {
            CommandError::failed(format!("BundleDeployment {name} has no revision {number}")).hint(hint)
        }),
        None => history
            .iter()
            .rfind(|revision| {
                revision.outcome == Outcome::Succeeded && revision.release_digest != current.release_digest
            })
            .ok_or_else(|| {
                let message = format!("no earlier revision of BundleDeployment {name} succeeded with another release");
                CommandError::failed(message).hint(hint)
            }),
    }
}

fn time(time: &Time) -> String {
    format!("{:.0}", time.0)
}

fn took(revision: &Revision) -> Option<Duration> {
    let (start, end) = (revision.start_time.as_ref()?, revision.completion_time.as_ref()?);
    Duration::try_from(end.0.duration_since(start.0)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(history: serde_json::Value) -> BundleDeployment {
        serde_json::from_value(json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "harbour"},
            "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"}},
            "status": {"history": history},
        }))
        .unwrap()
    }

    fn revision(number: i64, outcome: &str, release: &str) -> serde_json::Value {
        json!({
            "number": number, "outcome": outcome, "contentDigest": "", "configDigest": "", "installNamespace": "n",
            "provisioner": {"class": "c", "digest": ""}, "releaseDigest": format!("sha256:{}", release.repeat(64)),
            "source": {"type": "image", "image": {"ref": format!("quay.io/example/harbour@sha256:{release}")}},
            "startTime": "2026-01-01T00:00:00Z",
        })
    }

    fn three() -> BundleDeployment {
        let mut failed = revision(2, "Failed", "b");
        failed["message"] = json!("stage 1 of 1 waits for Deployment.apps n/pilot: 0 of 1 available");
        failed["completionTime"] = json!("2026-01-01T00:10:00Z");
        let mut again = revision(3, "Succeeded", "a");
        again["rollbackTo"] = json!(1);
        failed["approval"] = json!({"change": "sha256:5d41", "approvedBy": "alice"});
        deployment(json!([revision(1, "Succeeded", "a"), failed, again]))
    }

    #[test]
    fn the_table_shows_outcomes_approvals_and_failures() {
        insta::assert_snapshot!(table(&three()), @r"
        REVISION  OUTCOME    STARTED               TOOK        RELEASE              SOURCE
        1         Succeeded  2026-01-01T00:00:00Z              sha256:aaaaaaaaaaaa  image quay.io/example/harbour@sha256:a
        2         Failed     2026-01-01T00:00:00Z  10 min 0 s  sha256:bbbbbbbbbbbb  image quay.io/example/harbour@sha256:b
            approved by alice: sha256:5d41
            stage 1 of 1 waits for Deployment.apps n/pilot: 0 of 1 available
        3 (as 1)  Succeeded  2026-01-01T00:00:00Z              sha256:aaaaaaaaaaaa  image quay.io/example/harbour@sha256:a
        ");
        insta::assert_snapshot!(table(&deployment(json!([]))), @"REVISION  OUTCOME  STARTED  TOOK  RELEASE  SOURCE");
    }

    #[test]
    fn the_default_revision_succeeded_with_another_release() {
        let number = |deployment: &BundleDeployment, requested| target(deployment, requested).map(|it| it.number).ok();
        assert_eq!(number(&three(), None), None, "the only other release failed");
        assert_eq!(number(&three(), Some(2)), Some(2));
        assert_eq!(number(&three(), Some(9)), None);
        let mut history = vec![revision(1, "Succeeded", "a"), revision(2, "Succeeded", "b")];
        assert_eq!(number(&deployment(json!(history)), None), Some(1));
        history.push(revision(3, "RollingOut", "c"));
        assert_eq!(number(&deployment(json!(history)), None), Some(2));
        assert_eq!(number(&deployment(json!([])), None), None);
    }
}
