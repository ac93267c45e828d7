//! A BundleDeployment on its way, step by step. Pure: states in, lines out.

use chandler_api::{BundleDeployment, BundleDeploymentStatus, ConditionType, Reason, conditions::find_condition};
use chandler_source::describe;

use crate::text::count;

/// Follows one BundleDeployment and remembers what was told.
#[derive(Debug, Default)]
pub struct Narrator {
    told: Vec<Step>,
}

/// Something that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it is about, in a word.
    pub label: &'static str,
    /// What happened.
    pub text: String,
}

/// How it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It goes on.
    Waiting {
        /// What is waited for, in words.
        message: String,
        /// Why, as a name, where there is one.
        reason: Option<String>,
    },
    /// All is done and well.
    Healthy,
    /// It will not go on by itself.
    Failed {
        /// Why, as a name.
        reason: String,
        /// Why, in words.
        message: String,
    },
}

impl Narrator {
    /// What is new in this state, and how it stands.
    pub fn observe(&mut self, deployment: &BundleDeployment) -> (Vec<Step>, Standing) {
        let status = deployment.status.clone().unwrap_or_default();
        if status.observed_generation < deployment.metadata.generation {
            return (Vec::new(), waiting("the controller has not seen it yet", None));
        }
        let steps: Vec<Step> = steps(&status).into_iter().filter(|step| !self.told.contains(step)).collect();
        self.told.extend(steps.iter().cloned());
        (steps, standing(&status))
    }
}

fn steps(status: &BundleDeploymentStatus) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut step = |label, text| steps.push(Step { label, text });
    let is_true = |kind| find_condition(&status.conditions, kind).filter(|condition| condition.status == "True");
    if is_true(ConditionType::Unpacked).is_some() {
        if let Some(source) = &status.resolved_source {
            step("source", describe(source));
        }
        if let Some(digest) = &status.content_digest {
            step("content", digest.clone());
        }
    }
    if let Some(provisioner) = &status.provisioner {
        step("provisioner", provisioner_text(provisioner));
    }
    if let Some(release) = &status.release {
        step("release", release_text(release));
    }
    if let Some(installed) = is_true(ConditionType::Installed) {
        step("installed", installed.message.clone());
    }
    steps
}

fn standing(status: &BundleDeploymentStatus) -> Standing {
    let condition = |kind| find_condition(&status.conditions, kind);
    if condition(ConditionType::Ready).is_some_and(|ready| ready.status == "True") {
        return Standing::Healthy;
    }
    if let Some(progressing) = condition(ConditionType::Progressing)
        && progressing.status == "False"
        && progressing.reason != Reason::Succeeded.as_str()
    {
        return Standing::Failed { reason: progressing.reason.clone(), message: progressing.message.clone() };
    }
    // The first aspect that is not the case is the one that the others wait for.
    let aspects =
        [ConditionType::Unpacked, ConditionType::Installed, ConditionType::Healthy, ConditionType::Progressing];
    let first = aspects
        .into_iter()
        .filter_map(condition)
        .find(|condition| condition.status != "True" && !condition.message.is_empty());
    let progressing = condition(ConditionType::Progressing);
    let reason = progressing.map(|condition| condition.reason.as_str());
    match first.or_else(|| progressing.filter(|condition| !condition.message.is_empty())) {
        Some(condition) => waiting(&condition.message, reason),
        None => waiting("the controller", reason),
    }
}

fn waiting(message: &str, reason: Option<&str>) -> Standing {
    Standing::Waiting { message: message.to_owned(), reason: reason.map(str::to_owned) }
}

/// A provisioner in a few words.
pub fn provisioner_text(provisioner: &chandler_api::ProvisionerInUse) -> String {
    let name = [&provisioner.name, &provisioner.version].into_iter().flatten().map(String::as_str);
    let name = name.collect::<Vec<_>>().join(" ");
    if name.is_empty() { provisioner.class.clone() } else { format!("{} ({name})", provisioner.class) }
}

/// A release in a few words.
pub fn release_text(release: &chandler_api::ReleaseInUse) -> String {
    let number = |count| usize::try_from(count).unwrap_or_default();
    let (objects, stages) = (count(number(release.objects), "object"), count(number(release.stages), "stage"));
    format!("{objects} in {stages}, {}", release.digest)
}

#[cfg(test)]
mod tests {
    use chandler_api::{
        BundleSource, ConditionStatus, ImageSource, NewCondition, ProvisionerInUse, ReleaseInUse,
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

    fn tell(narrator: &mut Narrator, deployment: &BundleDeployment) -> String {
        let (steps, standing) = narrator.observe(deployment);
        let steps = steps.iter().map(|step| format!("{}: {}", step.label, step.text));
        steps.chain([format!("{standing:?}")]).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_step_is_told_once_and_the_first_thing_missing_is_what_is_waited_for() {
        use {ConditionStatus::*, ConditionType as Type};
        let mut narrator = Narrator::default();
        let mut it = deployment(1);
        insta::assert_snapshot!(tell(&mut narrator, &it), @r#"Waiting { message: "the controller", reason: None }"#);
        set(&mut it, Type::Unpacked, True, Reason::UnpackSuccessful, "Successfully unpacked the image Bundle");
        set(&mut it, Type::Progressing, True, Reason::RollingOut, "stage 1 of 2");
        set(&mut it, Type::Installed, False, Reason::Installing, "stage 1 of 2: 3 of 9 objects are applied");
        let status = it.status.as_mut().unwrap();
        status.resolved_source = Some(BundleSource::image(ImageSource {
            reference: "127.0.0.1:5000/harbour@sha256:00".into(),
            ..ImageSource::default()
        }));
        status.provisioner = Some(ProvisionerInUse {
            class: "core-rukpak-io-registry".into(),
            name: Some("registry".into()),
            version: Some("0.1.0".into()),
            digest: "sha256:11".into(),
        });
        status.release = Some(ReleaseInUse {
            digest: "sha256:22".into(),
            objects: 9,
            stages: 2,
            start_time: None,
            ..ReleaseInUse::default()
        });
        insta::assert_snapshot!(tell(&mut narrator, &it), @r#"
        source: image 127.0.0.1:5000/harbour@sha256:00
        provisioner: core-rukpak-io-registry (registry 0.1.0)
        release: 9 objects in 2 stages, sha256:22
        Waiting { message: "stage 1 of 2: 3 of 9 objects are applied", reason: Some("RollingOut") }
        "#);
        set(&mut it, Type::Installed, True, Reason::InstallationSucceeded, "Instantiated bundle harbour successfully");
        set(&mut it, Type::Healthy, False, Reason::Unhealthy, "Deployment.apps harbour/pilot: 0 of 1 are available");
        insta::assert_snapshot!(tell(&mut narrator, &it), @r#"
        installed: Instantiated bundle harbour successfully
        Waiting { message: "Deployment.apps harbour/pilot: 0 of 1 are available", reason: Some("RollingOut") }
        "#);
        set(&mut it, Type::Healthy, True, Reason::Healthy, "BundleDeployment is healthy");
        set(&mut it, Type::Ready, True, Reason::Succeeded, "");
        insta::assert_snapshot!(tell(&mut narrator, &it), @"Healthy");
    }

    #[test]
    fn a_failure_that_is_not_tried_again_ends_the_story() {
        use {ConditionStatus::*, ConditionType as Type};
        let mut it = deployment(1);
        set(&mut it, Type::Progressing, True, Reason::Retrying, "no route to host");
        assert_eq!(Narrator::default().observe(&it).1, waiting("no route to host", Some("Retrying")));
        set(&mut it, Type::Progressing, False, Reason::InvalidContent, "manifests/a.yaml:3: no name");
        let failed =
            Standing::Failed { reason: "InvalidContent".into(), message: "manifests/a.yaml:3: no name".into() };
        assert_eq!(Narrator::default().observe(&it).1, failed);
    }

    #[test]
    fn what_the_controller_said_about_an_earlier_generation_does_not_count() {
        let mut it = deployment(2);
        set(&mut it, ConditionType::Ready, ConditionStatus::True, Reason::Succeeded, "");
        assert!(matches!(Narrator::default().observe(&it).1, Standing::Waiting { .. }));
    }
}
