//! The progress of a rollout: observed BundleDeployments in, new lines and the state out.

use chandler_api::{BundleDeployment, BundleDeploymentStatus, ConditionType, Reason, conditions::find_condition};

use super::{
    overview::{Decision, Health, Next, Overview},
    summary,
};

/// Reports each line about the current spec of one BundleDeployment once.
#[derive(Debug, Default)]
pub struct ProgressReporter {
    reported: Vec<ProgressLine>,
}

/// A line about a completed part of the rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressLine {
    /// Its subject, in one word.
    pub label: &'static str,
    /// The text.
    pub text: String,
}

/// The state of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutState {
    /// The controller is working, or waits for something.
    Waiting {
        /// What it waits for.
        message: String,
        /// The reason of `Progressing`, if it is set.
        reason: Option<String>,
    },
    /// The rollout is complete and all objects are healthy.
    Healthy,
    /// Nothing is wrong: the rollout continues once a user decides so.
    Paused {
        /// The decision.
        decision: Decision,
        /// What runs and what waits.
        message: String,
    },
    /// The rollout does not continue until a user or an administrator acts.
    Failed {
        /// The reason of `Progressing`.
        reason: String,
        /// The message of `Progressing`.
        message: String,
        /// The complete release that still runs and is healthy, in a sentence.
        runs: Option<String>,
        /// Whether the controller still looks whether the cause is gone, so that a status may be a few seconds old.
        is_retried: bool,
    },
}

impl RolloutState {
    /// What is waited for; empty if the rollout does not wait.
    pub fn waiting(&self) -> &str {
        match self {
            Self::Waiting { message, .. } => message,
            Self::Healthy | Self::Paused { .. } | Self::Failed { .. } => "",
        }
    }
}

impl ProgressReporter {
    /// The lines that were not reported before, and the state.
    pub fn observe(&mut self, deployment: &BundleDeployment) -> (Vec<ProgressLine>, RolloutState) {
        let overview = Overview::of(deployment);
        let state = state(&overview);
        let status = deployment.status.clone().unwrap_or_default();
        if status.observed_generation < deployment.metadata.generation {
            return (Vec::new(), state);
        }
        let lines: Vec<ProgressLine> = lines(&status, deployment.metadata.generation)
            .into_iter()
            .filter(|line| !self.reported.contains(line))
            .collect();
        self.reported.extend(lines.iter().cloned());
        (lines, state)
    }
}

/// What the current spec has reached. A status also has fields and conditions of the release that runs, which is another one until the
/// rollout of the spec begins.
fn lines(status: &BundleDeploymentStatus, generation: Option<i64>) -> Vec<ProgressLine> {
    let mut lines = Vec::new();
    let mut push = |label, text| lines.push(ProgressLine { label, text });
    let holds = |kind| {
        let condition = find_condition(&status.conditions, kind);
        condition.filter(|condition| condition.status == "True" && condition.observed_generation >= generation)
    };
    if holds(ConditionType::Unpacked).is_some() {
        if let Some(source) = &status.resolved_source {
            push("source", chandler_source::describe(source));
        }
        if let Some(digest) = &status.content_digest {
            push("content", digest.clone());
        }
        if let Some(provisioner) = &status.provisioner {
            push("provisioner", summary::provisioner(provisioner));
        }
    }
    let Some(release) = status.release.as_ref().filter(|release| is_of(status, &release.digest, generation)) else {
        return lines;
    };
    push("release", summary::release(release));
    if let Some(installed) = holds(ConditionType::Installed) {
        push("installed", installed.message.clone());
    }
    lines
}

/// Whether the spec of this generation has the release with this digest: the current revision says which spec describes it.
fn is_of(status: &BundleDeploymentStatus, digest: &str, generation: Option<i64>) -> bool {
    status.history.last().is_none_or(|current| {
        current.release_digest == digest && (current.generation.is_none() || current.generation >= generation)
    })
}

fn state(overview: &Overview) -> RolloutState {
    match &overview.next {
        Next::Done => match overview.health() {
            Some(Health::Healthy) if overview.is_ready() => RolloutState::Healthy,
            Some(Health::Unhealthy(message) | Health::Unknown(message)) if !message.is_empty() => {
                waiting(message, Some(Reason::Unhealthy.as_str()))
            }
            _ => waiting("the controller", None),
        },
        Next::Deleting { problem, message, .. } => {
            waiting(message, Some(problem.as_deref().unwrap_or(Reason::Deleting.as_str())))
        }
        Next::Unobserved => waiting("the controller has not observed the current spec yet", None),
        Next::Working { reason, message } => waiting(message, reason.as_deref()),
        Next::Waits(decision) => RolloutState::Paused { decision: *decision, message: overview.text() },
        Next::Blocked { reason, message, is_retried } => {
            let runs = overview.runs_healthy().then(|| overview.runs());
            RolloutState::Failed { reason: reason.clone(), message: message.clone(), runs, is_retried: *is_retried }
        }
    }
}

fn waiting(message: &str, reason: Option<&str>) -> RolloutState {
    RolloutState::Waiting { message: message.to_owned(), reason: reason.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use chandler_api::{
        BundleSource, ConditionStatus, ImageSource, NewCondition, Outcome, ProvisionerInUse, ReleaseInUse, Revision,
        conditions::set_condition,
    };
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    fn deployment(generation: i64) -> BundleDeployment {
        let mut deployment = BundleDeployment::default();
        deployment.metadata.generation = Some(generation);
        deployment.status =
            Some(BundleDeploymentStatus { observed_generation: Some(1), ..BundleDeploymentStatus::default() });
        deployment
    }

    fn set(
        deployment: &mut BundleDeployment,
        kind: ConditionType,
        status: ConditionStatus,
        reason: Reason,
        message: &str,
    ) {
        let new = NewCondition { kind, status, reason, message: message.into() };
        let conditions = &mut deployment.status.as_mut().unwrap().conditions;
        set_condition(conditions, new, Some(1), Time(Timestamp::UNIX_EPOCH));
    }

    fn observed(reporter: &mut ProgressReporter, deployment: &BundleDeployment) -> String {
        let (lines, state) = reporter.observe(deployment);
        let lines = lines.iter().map(|line| format!("{}: {}", line.label, line.text));
        lines.chain([format!("{state:?}")]).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_line_is_reported_once_and_the_first_unmet_condition_is_waited_for() {
        use {ConditionStatus::*, ConditionType as Type};
        let mut reporter = ProgressReporter::default();
        let mut deployment = deployment(1);
        insta::assert_snapshot!(observed(&mut reporter, &deployment), @r#"Waiting { message: "the controller", reason: None }"#);
        set(&mut deployment, Type::Unpacked, True, Reason::UnpackSuccessful, "Successfully unpacked the image Bundle");
        set(&mut deployment, Type::Progressing, True, Reason::RollingOut, "stage 1 of 2");
        set(&mut deployment, Type::Installed, False, Reason::Installing, "stage 1 of 2: 3 of 9 objects are applied");
        let status = deployment.status.as_mut().unwrap();
        status.resolved_source = Some(BundleSource::image(ImageSource {
            reference: "127.0.0.1:5000/harbour@sha256:00".into(),
            ..ImageSource::default()
        }));
        status.provisioner = Some(ProvisionerInUse {
            class: "core-rukpak-io-registry".into(),
            name: Some("registry".into()),
            version: Some("0.1.0".into()),
            digest: "sha256:11".into(),
            ..ProvisionerInUse::default()
        });
        status.release = Some(ReleaseInUse {
            digest: "sha256:22".into(),
            objects: 9,
            stages: 2,
            start_time: None,
            ..ReleaseInUse::default()
        });
        insta::assert_snapshot!(observed(&mut reporter, &deployment), @r#"
        source: image 127.0.0.1:5000/harbour@sha256:00
        provisioner: core-rukpak-io-registry (registry 0.1.0)
        release: 9 objects in 2 stages, sha256:22
        Waiting { message: "stage 1 of 2: 3 of 9 objects are applied", reason: Some("RollingOut") }
        "#);
        set(
            &mut deployment,
            Type::Installed,
            True,
            Reason::InstallationSucceeded,
            "Instantiated bundle harbour successfully",
        );
        set(
            &mut deployment,
            Type::Healthy,
            False,
            Reason::Unhealthy,
            "Deployment.apps harbour/pilot: 0 of 1 are available",
        );
        insta::assert_snapshot!(observed(&mut reporter, &deployment), @r#"
        installed: Instantiated bundle harbour successfully
        Waiting { message: "Deployment.apps harbour/pilot: 0 of 1 are available", reason: Some("RollingOut") }
        "#);
        set(&mut deployment, Type::Healthy, True, Reason::Healthy, "BundleDeployment is healthy");
        set(&mut deployment, Type::Ready, True, Reason::Succeeded, "");
        insta::assert_snapshot!(observed(&mut reporter, &deployment), @"Healthy");
    }

    #[test]
    fn a_failure_that_needs_an_action_is_final() {
        use {ConditionStatus::*, ConditionType as Type};
        let mut deployment = deployment(1);
        set(&mut deployment, Type::Progressing, True, Reason::Retrying, "no route to host");
        assert_eq!(ProgressReporter::default().observe(&deployment).1, waiting("no route to host", Some("Retrying")));
        set(&mut deployment, Type::Progressing, False, Reason::InvalidContent, "manifests/a.yaml:3: no name");
        let failed = |reason: &str, message: &str, is_retried| RolloutState::Failed {
            reason: reason.into(),
            message: message.into(),
            runs: None,
            is_retried,
        };
        let state = |deployment: &BundleDeployment| ProgressReporter::default().observe(deployment).1;
        assert_eq!(state(&deployment), failed("InvalidContent", "manifests/a.yaml:3: no name", false));
        set(&mut deployment, Type::Progressing, True, Reason::PermissionsMissing, "may not");
        assert_eq!(state(&deployment), waiting("may not", Some("PermissionsMissing")));
        set(&mut deployment, Type::Stalled, True, Reason::PermissionsMissing, "may not");
        assert_eq!(state(&deployment), failed("PermissionsMissing", "may not", true), "retries will not help");
    }

    #[test]
    fn what_runs_is_not_the_progress_of_a_newer_spec() {
        use {ConditionStatus::*, ConditionType as Type};
        let revision = |number: i64, release: &str| Revision {
            number,
            generation: Some(number),
            release_digest: release.into(),
            outcome: if number == 1 { Outcome::Succeeded } else { Outcome::RollingOut },
            ..Revision::default()
        };
        let mut deployment = deployment(1);
        set(&mut deployment, Type::Unpacked, True, Reason::UnpackSuccessful, "");
        set(&mut deployment, Type::Installed, True, Reason::InstallationSucceeded, "installed");
        let status = deployment.status.as_mut().unwrap();
        status.content_digest = Some("sha256:old".into());
        status.provisioner = Some(ProvisionerInUse { class: "plain".into(), ..ProvisionerInUse::default() });
        status.release =
            Some(ReleaseInUse { digest: "sha256:11".into(), objects: 2, stages: 1, ..ReleaseInUse::default() });
        status.history = vec![revision(1, "sha256:11")];
        assert_eq!(ProgressReporter::default().observe(&deployment).0.len(), 4);

        // The next bundle is being fetched, then its rollout begins, and then its first object is written.
        deployment.metadata.generation = Some(2);
        deployment.status.as_mut().unwrap().observed_generation = Some(2);
        let mut reporter = ProgressReporter::default();
        assert_eq!(reporter.observe(&deployment).0, []);
        let labels = |lines: Vec<ProgressLine>| lines.iter().map(|line| line.label).collect::<Vec<_>>();
        let unpacked = NewCondition::is_true(Type::Unpacked, Reason::UnpackSuccessful, "");
        let installed = NewCondition::is_true(Type::Installed, Reason::InstallationSucceeded, "installed");
        let status = deployment.status.as_mut().unwrap();
        set_condition(&mut status.conditions, unpacked, Some(2), Time(Timestamp::UNIX_EPOCH));
        set_condition(&mut status.conditions, installed, Some(2), Time(Timestamp::UNIX_EPOCH));
        status.history.push(revision(2, "sha256:22"));
        assert_eq!(labels(reporter.observe(&deployment).0), ["content", "provisioner"]);
        deployment.status.as_mut().unwrap().release.as_mut().unwrap().digest = "sha256:22".into();
        assert_eq!(labels(reporter.observe(&deployment).0), ["release", "installed"]);
    }

    #[test]
    fn a_change_that_waits_for_approval_has_not_failed() {
        use {ConditionStatus::*, ConditionType as Type};
        let mut deployment = deployment(1);
        deployment.metadata.name = Some("harbour".into());
        set(&mut deployment, Type::Installed, True, Reason::InstallationSucceeded, "");
        set(&mut deployment, Type::Healthy, True, Reason::Healthy, "");
        set(&mut deployment, Type::Progressing, False, Reason::ApprovalRequired, "a change waits for approval");
        set(&mut deployment, Type::Ready, False, Reason::ApprovalRequired, "a change waits for approval");
        let state = |deployment: &BundleDeployment| ProgressReporter::default().observe(deployment).1;
        let RolloutState::Paused { decision, message } = state(&deployment) else { panic!("{:?}", state(&deployment)) };
        assert_eq!(decision, Decision::Approve);
        insta::assert_snapshot!(message, @"the release runs and is healthy; the current spec waits for your approval: `chandler approve harbour`");
        deployment.spec.suspend = true;
        assert!(matches!(state(&deployment), RolloutState::Paused { decision: Decision::Resume, .. }));
    }

    #[test]
    fn the_status_of_an_earlier_generation_does_not_count() {
        let mut deployment = deployment(2);
        set(&mut deployment, ConditionType::Ready, ConditionStatus::True, Reason::Succeeded, "");
        assert!(matches!(ProgressReporter::default().observe(&deployment).1, RolloutState::Waiting { .. }));
    }
}
