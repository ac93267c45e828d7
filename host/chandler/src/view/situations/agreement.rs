//! That all views of one status agree, whatever it is.

use chandler_api::{BundleDeployment, Reason, Remedy};
use chandler_catalog::upgrade::Newer;
use chandler_core::ObjectKey;
use k8s_openapi::jiff::Timestamp;
use proptest::{prelude::*, test_runner::TestCaseError};

use super::super::{
    explanation::Explanation,
    listing::{self, Columns, Row, State},
    outdated,
    overview::{Health, HealthWord, Next, Overview, Running},
    path::{Found, Path, StepState},
    progress_reporter::{ProgressReporter, RolloutState},
    revisions,
    text::one_line,
    tree::{self, ObjectHealth, ObjectStatus},
};

/// Every view of a BundleDeployment.
struct Views {
    overview: Overview,
    row: Row,
    table: String,
    notes: String,
    status: Explanation,
    followed: RolloutState,
    path: Path,
    history: String,
    tree: String,
    outdated: outdated::Found,
}

impl Views {
    /// The views, with an object that was read some time after the status was written.
    fn of(deployment: &BundleDeployment, health: ObjectHealth) -> Self {
        let overview = Overview::of(deployment);
        let row = Row::new(deployment, Timestamp::UNIX_EPOCH);
        let rows = std::slice::from_ref(&row);
        let found = Found {
            deployment: Some(overview.name.clone()),
            deployments: [(overview.name.clone(), deployment.clone())].into(),
            ..Found::default()
        };
        let newer = Newer {
            version: "9.0.0".into(),
            catalog: "ours".into(),
            image: "quay.io/example/harbour:v9".into(),
            steps: vec!["9.0.0".into()],
        };
        Self {
            table: listing::table(rows, Columns::Wide, None),
            notes: listing::notes(rows).join("\n"),
            status: Explanation::new(deployment, vec![object(health)], Vec::new()),
            followed: ProgressReporter::default().observe(deployment).1,
            path: Path::new(&found),
            history: revisions::table(deployment, None),
            tree: tree::title(&overview),
            outdated: outdated::Found::new(deployment, "harbour".into(), "0.1.0".into(), newer),
            overview,
            row,
        }
    }

    fn step(&self, name: &str) -> Option<StepState> {
        self.path.steps.iter().find(|step| step.step == name).map(|step| step.state)
    }
}

fn object(health: ObjectHealth) -> ObjectStatus {
    let key = ObjectKey {
        group: String::new(),
        version: "v1".into(),
        kind: "Service".into(),
        namespace: Some("n".into()),
        name: "a".into(),
    };
    ObjectStatus { key, health, message: None, created: None }
}

/// Fails if a view contradicts another one.
pub(in super::super) fn agree(deployment: &BundleDeployment) -> Result<(), TestCaseError> {
    for health in [ObjectHealth::Healthy, ObjectHealth::Progressing] {
        let views = Views::of(deployment, health);
        readiness(&views)?;
        health_of_what_runs(&views)?;
        decisions_and_failures(&views)?;
        sentences(&views)?;
    }
    Ok(())
}

/// Every view agrees on whether the spec is rolled out and healthy.
fn readiness(views: &Views) -> Result<(), TestCaseError> {
    let is_ready = views.overview.is_ready();
    prop_assert_eq!(views.row.state == State::Ready, is_ready);
    prop_assert_eq!(views.status.healthy, is_ready);
    prop_assert_eq!(views.followed == RolloutState::Healthy, is_ready);
    prop_assert_eq!(views.path.packages[0].ready, is_ready);
    prop_assert_eq!(views.status.text(None).contains("\nhealthy\n"), is_ready);
    if let Some(state) = views.step("rollout").filter(|_| is_ready) {
        prop_assert_eq!(state, StepState::Done);
    }
    Ok(())
}

/// Every view agrees on the health of what runs.
fn health_of_what_runs(views: &Views) -> Result<(), TestCaseError> {
    let Views { overview, row, table, .. } = views;
    prop_assert_eq!(row.health, overview.health().map(Health::word));
    prop_assert_eq!(views.status.running_health, row.health);
    prop_assert_eq!(views.path.packages[0].health, row.health);
    let is_healthy = row.health == Some(HealthWord::Healthy);
    prop_assert_eq!(table.contains("Healthy "), is_healthy && row.state != State::Ready, "{}", table);
    if let Some(objects) = views.step("objects").filter(|state| *state != StepState::NotReached) {
        prop_assert_eq!(objects == StepState::Done, is_healthy, "{:?}", views.path);
    }
    if let (Running::Release { version, .. }, false) = (&overview.running, overview.is_ready()) {
        let runs = format!("{version} runs and is healthy");
        for text in [&views.tree, &views.history, &views.status.text(None)] {
            prop_assert_eq!(text.contains(&runs), is_healthy, "{}", text);
        }
    }
    Ok(())
}

/// A wait for a decision is one everywhere, and a failure nowhere.
fn decisions_and_failures(views: &Views) -> Result<(), TestCaseError> {
    let Views { overview, row, status, .. } = views;
    let waits = matches!(overview.next, Next::Waits(_));
    let fails = matches!(overview.next, Next::Blocked { .. });
    let is_held = matches!(overview.next, Next::Deleting { needs_action: true, .. });
    prop_assert_eq!(matches!(row.state, State::AwaitingApproval | State::Suspended), waits);
    prop_assert_eq!(matches!(views.followed, RolloutState::Paused { .. }), waits);
    prop_assert_eq!(row.state == State::Failed, fails);
    let is_failed = matches!(views.followed, RolloutState::Failed { .. });
    prop_assert_eq!(is_failed, fails);
    prop_assert_eq!(views.step("rollout") == Some(StepState::Failed), fails || is_held);
    prop_assert_eq!(status.needs_action, waits || fails || is_held);
    if overview.only_waits() {
        let never_failed = !matches!(overview.running, Running::Failed { .. });
        for text in [status.text(None), views.notes.clone(), views.path.text(None)] {
            prop_assert!(!text.contains("not healthy\n"), "{}", text);
        }
        for line in overview.brief_lines().iter().filter(|_| never_failed) {
            prop_assert!(!line.contains("failed") && !line.contains("needs action"), "{}", line);
        }
    }
    Ok(())
}

/// What waits, and the command that helps, is in every view; and so is a rollback of the user.
fn sentences(views: &Views) -> Result<(), TestCaseError> {
    let Views { overview, status, history, tree, notes, path, .. } = views;
    let waits = overview.waits().map(|waits| one_line(&waits)).unwrap_or_default();
    let is_left_out = overview.pinned_text().is_some();
    match &views.outdated {
        outdated::Found::LeftOut(line) => prop_assert!(is_left_out && line.contains("--cancel"), "{}", line),
        outdated::Found::Newer(row) => {
            prop_assert_eq!(row.waits.is_some(), !waits.is_empty());
            let notes = outdated::notes(&[(**row).clone()]).join("\n");
            prop_assert!(!is_left_out && notes.contains(&waits), "{}", notes);
        }
    }
    for text in [tree, history] {
        prop_assert!(text.contains(&waits), "{} is not in {}", waits, text);
    }
    if overview.only_waits() {
        for text in [&status.text(None), notes, &path.text(None)] {
            prop_assert!(text.contains(&waits), "{} is not in {}", waits, text);
        }
    }
    if let Some(pinned) = overview.pinned_text() {
        for text in [&status.text(None), history, tree, notes, &path.text(None)] {
            prop_assert!(text.contains(&pinned), "{} is not in {}", pinned, text);
        }
    }
    if let Next::Working { reason: Some(reason), .. } = &overview.next {
        let remedy = Reason::from_name(reason).map(Reason::remedy);
        let is_work = matches!(remedy, None | Some(Remedy::Time | Remedy::Nothing));
        prop_assert_eq!(waits.contains("the controller is working"), is_work, "{}", waits);
    }
    Ok(())
}
