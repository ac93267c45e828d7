//! A BundleDeployment whose statuses the controller's own derivation writes, and what reconciles of it find.

use chandler_api::{
    BundleDeployment, BundleDeploymentStatus, BundleDescription, BundleSource, ImageSource, PendingChange,
    ProvisionerInUse,
};
use chandler_core::Digest;
use chandler_decisions::{
    assessment::{
        Assessment, ReconcileOutcome, ReleaseFacts, RollingOut, RolloutFindings, Running, Selection, Unpacked,
    },
    bundle::BundleFacts,
    problem::Problem,
    revisions::{Candidate, Cause, Config},
    status,
};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The number of objects of each release.
pub(super) const OBJECTS: usize = 3;
/// The first second of a history.
const BEGIN: i64 = 1_767_225_600;

/// A BundleDeployment, and the time of its last reconcile.
#[derive(Clone, Debug)]
pub(super) struct Harbour {
    pub(super) deployment: BundleDeployment,
    second: i64,
}

impl Harbour {
    /// A new one of version 0.1.0, with these fields of the spec in addition.
    pub(super) fn new(spec: &Value) -> Self {
        let deployment = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
            "metadata": {"name": "harbour", "generation": 0, "creationTimestamp": at(BEGIN).to_string()},
            "spec": {"installNamespace": "harbour-system", "source": source("v0.1.0")},
        });
        let new = Self { deployment: serde_json::from_value(deployment).unwrap(), second: BEGIN };
        new.edited(spec)
    }

    /// One whose version 0.1.0 is installed and healthy.
    pub(super) fn installed(spec: &Value) -> Self {
        Self::new(spec).reconciled(&starting("0.1.0")).reconciled(&applied("0.1.0", &[]))
    }

    /// One that was restored from a backup: of its status it has the revisions, which are in the record.
    pub(super) fn restored() -> Self {
        let mut restored = Self::installed(&json!({}));
        restored.deployment.status = restored.deployment.status.map(|status| BundleDeploymentStatus {
            revision: status.revision,
            history: status.history,
            ..BundleDeploymentStatus::default()
        });
        restored
    }

    /// The spec with other values of these fields.
    pub(super) fn edited(mut self, spec: &Value) -> Self {
        let mut object = serde_json::to_value(&self.deployment).unwrap();
        for (field, value) in spec.as_object().into_iter().flatten() {
            object["spec"][field] = value.clone();
        }
        self.deployment = serde_json::from_value(object).unwrap();
        self.deployment.metadata.generation = self.deployment.metadata.generation.map(|generation| generation + 1);
        self
    }

    /// The spec names another version.
    pub(super) fn upgraded(self, version: &str) -> Self {
        self.edited(&json!({"source": source(&format!("v{version}"))}))
    }

    /// A user deletes it.
    pub(super) fn deleted(mut self) -> Self {
        let mut object = serde_json::to_value(&self.deployment).unwrap();
        object["metadata"]["deletionTimestamp"] = json!(at(self.second).to_string());
        self.deployment = serde_json::from_value(object).unwrap();
        self.edited(&json!({}))
    }

    /// Time passes.
    pub(super) fn after(self, seconds: i64) -> Self {
        Self { second: self.second + seconds, ..self }
    }

    /// A reconcile a second later.
    pub(super) fn reconciled(self, found: &Assessment) -> Self {
        let mut next = self.after(1);
        next.deployment.status = Some(status::derive(&next.deployment, found, at(next.second)));
        next
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn source(tag: &str) -> Value {
    json!({"type": "image", "image": {"ref": format!("quay.io/example/harbour:{tag}")}})
}

fn resolved(version: &str) -> BundleSource {
    let digest = Digest::of(format!("image {version}").as_bytes());
    BundleSource::image(ImageSource {
        reference: format!("quay.io/example/harbour@{digest}"),
        ..ImageSource::default()
    })
}

fn bundle(version: &str) -> BundleFacts {
    let description = BundleDescription {
        name: Some(format!("harbour.v{version}")),
        package: Some("harbour".to_owned()),
        version: Some(version.to_owned()),
        ..BundleDescription::default()
    };
    BundleFacts { description: Some(description), warnings: Vec::new() }
}

fn content(version: &str) -> Digest {
    Digest::of(format!("content {version}").as_bytes())
}

/// The release of a version, for this reason.
pub(super) fn candidate(version: &str, cause: Cause) -> Candidate {
    Candidate {
        cause,
        source: resolved(version),
        content_digest: content(version).to_string(),
        provisioner: ProvisionerInUse {
            class: "core-rukpak-io-registry".to_owned(),
            name: Some("registry".to_owned()),
            version: Some("0.1.0".to_owned()),
            digest: Digest::of(b"registry").to_string(),
            ..ProvisionerInUse::default()
        },
        install_namespace: "harbour-system".to_owned(),
        config: Config::Known(Map::new()),
        own_config: None,
        spec_config: None,
        values: Vec::new(),
        release: ReleaseFacts {
            digest: Digest::of(format!("release {version}").as_bytes()),
            objects: OBJECTS,
            stages: 2,
            version: Some(version.to_owned()),
        },
        approval: None,
    }
}

fn unpacked(version: &str) -> Unpacked {
    Unpacked { resolved_source: resolved(version), content_digest: content(version), is_verified: false }
}

fn selection(version: &str, cause: Cause) -> Selection {
    let candidate = candidate(version, cause);
    Selection {
        unpacked: Some(unpacked(version)),
        provisioner: Some(candidate.provisioner.clone()),
        candidate: Some(candidate),
        bundle: Some(bundle(version)),
        ..Selection::default()
    }
}

/// The steps selected the release of a version, and came this far.
pub(super) fn found(version: &str, cause: Cause, outcome: ReconcileOutcome) -> Assessment {
    Assessment::of_selection(selection(version, cause), outcome)
}

/// The revision begins.
pub(super) fn starting(version: &str) -> Assessment {
    found(version, Cause::Spec, ReconcileOutcome::Starting)
}

/// Every object is applied; some are not healthy.
pub(super) fn applied(version: &str, unhealthy: &[&str]) -> Assessment {
    found(version, Cause::Spec, ReconcileOutcome::Applied(texts(unhealthy)))
}

/// A rollout that waits for objects of a stage.
pub(super) fn waiting(stage: usize, objects: &[&str]) -> ReconcileOutcome {
    ReconcileOutcome::RollingOut(RollingOut { stage, stages: 2, all_applied: stage == 2, waiting: texts(objects) })
}

/// The release that runs, with its unhealthy objects.
pub(super) fn running(version: &str, unhealthy: &[&str]) -> Running {
    Running {
        bundle: Some(bundle(version)),
        health: Ok(texts(unhealthy)),
        not_repaired: None,
        findings: RolloutFindings::default(),
    }
}

/// A release that a check refused before the first write. `runs` is the release that runs.
pub(super) fn refused(version: &str, problem: Problem, runs: Option<Running>) -> Assessment {
    let mut selection = selection(version, Cause::Spec);
    let digest = selection.candidate.as_ref().map(|candidate| candidate.release.digest.clone());
    selection.described = selection.bundle.clone().zip(digest);
    Assessment::of_selection(selection, ReconcileOutcome::ApplyFailed(problem)).with_running(runs)
}

/// A bundle that was unpacked and has no release.
pub(super) fn not_rendered(version: &str, problem: Problem, runs: Option<Running>) -> Assessment {
    let selection = Selection {
        unpacked: Some(unpacked(version)),
        provisioner: Some(candidate(version, Cause::Spec).provisioner),
        ..Selection::default()
    };
    Assessment::of_selection(selection, ReconcileOutcome::RenderFailed(problem)).with_running(runs)
}

/// A bundle that was unpacked, and that no class renders.
pub(super) fn not_detected(version: &str, problem: Problem) -> Assessment {
    let selection = Selection { unpacked: Some(unpacked(version)), ..Selection::default() };
    Assessment::of_selection(selection, ReconcileOutcome::ProvisionerUnavailable(problem))
}

/// A bundle that could not be fetched.
pub(super) fn not_fetched(problem: Problem, runs: Option<Running>) -> Assessment {
    Assessment::early(ReconcileOutcome::UnpackFailed(problem)).with_running(runs)
}

/// A version that waits for approval; while none runs, nothing does.
pub(super) fn needs_approval(version: &str, pending: PendingChange, runs: Option<&str>) -> Assessment {
    let waits = selection(version, Cause::Spec);
    let digest = waits.candidate.as_ref().map(|candidate| candidate.release.digest.clone());
    let described = waits.bundle.clone().zip(digest);
    let Some(runs) = runs else {
        let selection = Selection { described, pending: Some(pending), ..waits };
        return Assessment::of_selection(selection, ReconcileOutcome::ApprovalRequired);
    };
    let selection =
        Selection { unpacked: waits.unpacked, described, pending: Some(pending), ..selection(runs, Cause::Waiting(1)) };
    Assessment::of_selection(selection, ReconcileOutcome::Applied(Vec::new()))
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}
