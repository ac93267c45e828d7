//! The revisions of a BundleDeployment: a table, and the choice of the revision to roll back to.

use std::time::Duration;

use chandler_api::{BundleDeployment, Outcome, Revision};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    error::CommandError,
    overview::{Overview, Running},
    progress::seconds,
    summary,
    table::{self, Column, Fit},
    terminal::{Frame, Tone},
    text::one_line,
};

/// The number of characters of a digest in the table.
const DIGEST_LENGTH: usize = "sha256:".len() + 12;

/// The revisions, oldest first.
pub fn history(deployment: &BundleDeployment) -> &[Revision] {
    deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default()
}

/// The table: one row for each revision, followed by the user who approved it and its failure; then what runs and what waits. In
/// a width, digests are left out and sources are cut where that is necessary; without one, nothing is.
pub fn table(deployment: &BundleDeployment, frame: impl Into<Frame>) -> String {
    let mut text = String::new();
    let revisions = std::iter::once(None).chain(history(deployment).iter().map(Some));
    for (line, revision) in table::lines(&COLUMNS, history(deployment), frame).iter().zip(revisions) {
        text.extend([line.as_str(), "\n"]);
        if let Some(provisioner) = revision.and_then(|revision| new_provisioner(history(deployment), revision)) {
            text.extend(["    rendered by ", &one_line(&provisioner), "\n"]);
        }
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
    let overview = Overview::of(deployment);
    let lines = match (overview.is_ready(), &overview.running) {
        (true, _) | (_, Running::Nothing) => overview.waits().into_iter().collect(),
        _ => vec![overview.text()],
    };
    for line in lines {
        text.extend([one_line(&line).as_str(), "\n"]);
    }
    text
}

/// The class and the component of a revision, where the history has several and the revision before had another one.
fn new_provisioner(history: &[Revision], revision: &Revision) -> Option<String> {
    let key = |revision: &Revision| (revision.provisioner.class.clone(), revision.provisioner.digest.clone());
    let mut known = history.iter().map(key);
    let first = known.next()?;
    if known.all(|other| other == first) {
        return None;
    }
    let before = history.iter().take_while(|earlier| earlier.number != revision.number).last();
    let is_new = before.is_none_or(|before| key(before) != key(revision));
    is_new.then(|| format!("class {}, {}", revision.provisioner.class, summary::component(&revision.provisioner)))
}

/// The shortest source that says anything.
const SHORTEST_SOURCE: usize = 16;
/// Bundles without a version have no such column. Digests are left out first; then sources are cut.
const COLUMNS: [Column<Revision>; 7] = [
    Column::new("REVISION", Fit::Full, |revision| {
        let again = revision.rollback_to.map(|number| format!(" (as {number})")).unwrap_or_default();
        format!("{}{again}", revision.number)
    }),
    Column::optional("VERSION", Fit::Full, |revision| revision.version.clone().unwrap_or_default()),
    Column::toned("OUTCOME", Fit::Full, |revision| revision.outcome.as_str().to_owned(), tone),
    Column::new("STARTED", Fit::Full, |revision| revision.start_time.as_ref().map(time).unwrap_or_default()),
    Column::new("TOOK", Fit::Full, |revision| took(revision).map(seconds).unwrap_or_default()),
    Column::new("RELEASE", Fit::Drop, |revision| revision.release_digest.chars().take(DIGEST_LENGTH).collect()),
    Column::new("SOURCE", Fit::Middle(SHORTEST_SOURCE), |revision| chandler_source::describe(&revision.source)),
];

fn tone(revision: &Revision) -> Tone {
    match revision.outcome {
        Outcome::Succeeded => Tone::Good,
        Outcome::RollingOut => Tone::Busy,
        Outcome::Failed => Tone::Bad,
        Outcome::Superseded => Tone::Plain,
    }
}

/// The revision to roll back to: the requested one, else the last one that succeeded with another release.
pub fn target(deployment: &BundleDeployment, requested: Option<i64>) -> Result<&Revision, CommandError> {
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let history = history(deployment);
    let hint = format!("`chandler history {name}` shows the revisions");
    let Some(current) = history.last() else {
        return Err(CommandError::not_found(format!("BundleDeployment {name} has no revisions")).hint(hint));
    };
    match requested {
        Some(number) => history.iter().find(|revision| revision.number == number).ok_or_else(|| {
            CommandError::not_found(format!("BundleDeployment {name} has no revision {number}")).hint(hint)
        }),
        None => history
            .iter()
            .rfind(|revision| {
                revision.outcome == Outcome::Succeeded && revision.release_digest != current.release_digest
            })
            .ok_or_else(|| {
                let message = format!("no earlier revision of BundleDeployment {name} succeeded with another release");
                CommandError::not_found(message).hint(hint)
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
        insta::assert_snapshot!(table(&three(), None), @r"
        REVISION  OUTCOME    STARTED               TOOK        RELEASE              SOURCE
        1         Succeeded  2026-01-01T00:00:00Z              sha256:aaaaaaaaaaaa  image quay.io/example/harbour@sha256:a
        2         Failed     2026-01-01T00:00:00Z  10 min 0 s  sha256:bbbbbbbbbbbb  image quay.io/example/harbour@sha256:b
            approved by alice: sha256:5d41
            stage 1 of 1 waits for Deployment.apps n/pilot: 0 of 1 available
        3 (as 1)  Succeeded  2026-01-01T00:00:00Z              sha256:aaaaaaaaaaaa  image quay.io/example/harbour@sha256:a
        revision 3 runs, and its health is unknown; it waits for the controller
        ");
        insta::assert_snapshot!(table(&deployment(json!([])), None), @r"
        REVISION  OUTCOME  STARTED  TOOK  RELEASE  SOURCE
        it waits for the controller
        ");
    }

    #[test]
    fn a_change_of_the_provisioner_is_part_of_the_history() {
        let by = |number: i64, version: &str, digest: &str| {
            let mut revision = revision(number, "Succeeded", "a");
            revision["provisioner"] = json!({"class": "helm", "name": "sail", "version": version, "digest": digest});
            revision
        };
        let history = [by(1, "1.0.0", "sha256:1"), by(2, "1.0.0", "sha256:1"), by(3, "1.1.0", "sha256:2")];
        insta::assert_snapshot!(table(&deployment(json!(history)), None), @r"
        REVISION  OUTCOME    STARTED               TOOK  RELEASE              SOURCE
        1         Succeeded  2026-01-01T00:00:00Z        sha256:aaaaaaaaaaaa  image quay.io/example/harbour@sha256:a
            rendered by class helm, sail 1.0.0 (sha256:1)
        2         Succeeded  2026-01-01T00:00:00Z        sha256:aaaaaaaaaaaa  image quay.io/example/harbour@sha256:a
        3         Succeeded  2026-01-01T00:00:00Z        sha256:aaaaaaaaaaaa  image quay.io/example/harbour@sha256:a
            rendered by class helm, sail 1.1.0 (sha256:2)
        revision 3 runs, and its health is unknown; it waits for the controller
        ");
    }

    #[test]
    fn a_narrow_table_has_no_digests_and_cut_sources() {
        let mut first = revision(1, "Succeeded", "a");
        first["version"] = json!("1.2.0");
        first["source"]["image"]["ref"] = json!(format!("quay.io/example/harbour@sha256:{}", "a".repeat(64)));
        let mut narrow = deployment(json!([first]));
        let status = narrow.status.as_mut().unwrap();
        status.candidate = Some(chandler_api::BundleCandidate {
            package: Some("harbour".into()),
            version: Some("1.3.0".into()),
            ..chandler_api::BundleCandidate::default()
        });
        insta::assert_snapshot!(table(&narrow, Some(80)), @r"
        REVISION  VERSION  OUTCOME    STARTED               TOOK  SOURCE
        1         1.2.0    Succeeded  2026-01-01T00:00:00Z        image quay.…aaaaaaaaaa
        1.2.0 runs, and its health is unknown; it waits for the controller
        ");
        for width in [40, 80, 100, 300] {
            let longest = table(&three(), Some(width)).lines().take(1).map(|line| line.chars().count()).max();
            assert!(longest <= Some(width.max(72)), "{width}: {longest:?}");
        }
        assert!(table(&narrow, Some(300)).contains(&"a".repeat(64)), "a wide terminal shows everything");
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
