//! Situations of a BundleDeployment.

use chandler_api::{ChangeCause, PendingChange, ProvisionerChange, ProvisionerInUse};
use chandler_catalog::upgrade::Newer;
use chandler_decisions::{
    assessment::{Assessment, ReconcileOutcome, RolloutFindings, Running},
    drift::DriftFound,
    problem::Problem,
    revisions::Cause,
};
use chandler_rollout::{Drift, DriftKind, FieldDrift, Manager};
use chandler_source::kinds::upload::UploadError;
use serde_json::json;

use super::{
    super::{controller_absence::Unheld, tree::ObjectHealth},
    harbour::{
        Harbour, applied, found, needs_approval, not_detected, not_fetched, not_rendered, refused, running, starting,
        waiting,
    },
    problems as because,
    sides::Situation,
};

/// What a Deployment reports that cannot start.
const PULL: &str = "Deployment.apps harbour-system/pilot: ImagePullBackOff: quay.io/example/pilot:v1: not found";
const PULL_OF_OBJECT: &str = "ImagePullBackOff: quay.io/example/pilot:v1: not found";

/// A test for each situation, so that each has a name, and fails for itself.
macro_rules! situations {
    ($($name:ident: $situation:expr;)+) => {
        $(#[test]
        fn $name() {
            let situation: Situation = $situation;
            insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
                insta::assert_snapshot!(stringify!($name), situation.text());
            });
        })+
    };
}

fn healthy(harbour: Harbour) -> Situation {
    Situation::new(harbour.deployment)
}

fn nothing(harbour: Harbour) -> Situation {
    Situation::new(harbour.deployment).without_objects()
}

fn broken(harbour: Harbour) -> Situation {
    healthy(harbour).with("Deployment", ObjectHealth::Unhealthy, PULL_OF_OBJECT)
}

/// A version is installed, the spec names the next one, and a check refuses that.
fn upgrade_refused(problem: Problem) -> Harbour {
    Harbour::installed(&json!({})).upgraded("0.2.0").reconciled(&refused("0.2.0", problem, Some(runs(&[]))))
}

fn first_refused(found: &Assessment) -> Situation {
    nothing(Harbour::new(&json!({})).reconciled(found))
}

fn runs(unhealthy: &[&str]) -> Running {
    running("0.1.0", unhealthy)
}

fn change() -> PendingChange {
    PendingChange {
        digest: "sha256:5d41".into(),
        created: 1,
        changed: 2,
        objects: vec!["change Deployment.apps harbour-system/pilot: spec.replicas".into()],
        ..PendingChange::default()
    }
}

fn manual() -> serde_json::Value {
    json!({"approval": "Manual"})
}

/// Version 0.1.0 was approved, and runs.
fn approved() -> Harbour {
    Harbour::installed(&json!({})).edited(&manual()).reconciled(&applied("0.1.0", &[]))
}

/// Two versions were installed, and a rollback of the user keeps the first.
fn pinned() -> Harbour {
    let cause = || Cause::Pinned(1);
    Harbour::installed(&json!({}))
        .upgraded("0.2.0")
        .reconciled(&starting("0.2.0"))
        .reconciled(&applied("0.2.0", &[]))
        .edited(&json!({"rollout": {"toRevision": 1}}))
        .reconciled(&found("0.1.0", cause(), ReconcileOutcome::Starting))
        .reconciled(&found("0.1.0", cause(), ReconcileOutcome::Applied(Vec::new())))
}

fn scaled() -> Drift {
    let manager = Some(Manager { name: "kubectl-edit".into(), applies: false });
    let field = FieldDrift { path: "spec.replicas".into(), removed: false, manager };
    Drift { object: because::key("apps", "Deployment", "pilot"), kind: DriftKind::Changed(vec![field]) }
}

fn with_drift(drift: DriftFound) -> Assessment {
    let mut found = applied("0.1.0", &[]);
    found.rollout.drift = Some(drift);
    found
}

/// Objects were repaired, a CRD among them that another client had deleted with its custom resources.
fn repaired() -> Assessment {
    let crd = because::key("apiextensions.k8s.io", "CustomResourceDefinition", "berths.harbour.example.com");
    let mut found = applied("0.1.0", &[]);
    found.rollout = RolloutFindings {
        drift: Some(DriftFound::reported(&[])),
        repaired: vec![format!("{crd} does not exist")],
        recreated_crds: vec![crd],
        ..RolloutFindings::default()
    };
    found
}

fn newer(steps: &[&str]) -> Newer {
    Newer {
        version: (*steps.last().unwrap()).to_owned(),
        catalog: "operatorhub".into(),
        image: "quay.io/example/harbour:newer".into(),
        steps: steps.iter().map(|&step| step.to_owned()).collect(),
    }
}

fn provisioner_update() -> Assessment {
    let provisioner = |version: &str| ProvisionerInUse {
        class: "core-rukpak-io-registry".into(),
        name: Some("registry".into()),
        version: Some(version.into()),
        digest: format!("sha256:{version}"),
        ..ProvisionerInUse::default()
    };
    let provisioner = Some(ProvisionerChange { installed: Some(provisioner("0.1.0")), new: provisioner("0.2.0") });
    let mut found = applied("0.1.0", &[]);
    found.selection.pending = Some(PendingChange { cause: Some(ChangeCause::Provisioner), provisioner, ..change() });
    found
}

fn deadline(on_failure: &str) -> Harbour {
    let terms = json!({"rollout": {"progressDeadlineSeconds": 60, "onFailure": on_failure}});
    let rolling = || found("0.2.0", Cause::Spec, waiting(2, &[PULL]));
    Harbour::installed(&terms)
        .upgraded("0.2.0")
        .reconciled(&starting("0.2.0"))
        .reconciled(&rolling())
        .after(60)
        .reconciled(&rolling())
}

fn rolled_back(outcome: ReconcileOutcome) -> Assessment {
    let message = format!("stage 2 of 2 waits for {PULL}");
    found("0.1.0", Cause::Failed { failed: 2, message, to: 1 }, outcome)
}

situations! {
    installed: healthy(Harbour::installed(&json!({})));
    no_controller: {
        let absence = Unheld::Missing.text("chandler-system", "chandler-controller");
        Situation { absence: Some(absence), ..nothing(Harbour::new(&json!({}))) }
    };
    controller_stopped: {
        let absence = Unheld::Released.text("chandler-system", "chandler-controller");
        let upgraded = Harbour::installed(&json!({})).upgraded("0.2.0");
        Situation { absence: Some(absence), ..healthy(upgraded) }
    };
    fetching: nothing(Harbour::new(&json!({})).reconciled(&Assessment::early(ReconcileOutcome::Preparing)));
    upload_pending: {
        let message = UploadError::Pending { name: "harbour".into() }.to_string();
        nothing(Harbour::new(&json!({})).reconciled(&Assessment::early(ReconcileOutcome::UploadPending(message))))
    };
    fetching_an_upgrade: {
        let preparing = Assessment::early(ReconcileOutcome::Preparing).with_running(Some(runs(&[])));
        healthy(Harbour::installed(&json!({})).upgraded("0.2.0").reconciled(&preparing))
    };
    first_install_in_progress: {
        let object = "Deployment.apps harbour-system/pilot: 0 of 1 replica is available";
        let rolling = found("0.1.0", Cause::Spec, waiting(2, &[object]));
        let situation = healthy(Harbour::new(&json!({})).reconciled(&starting("0.1.0")).reconciled(&rolling));
        situation.with("Deployment", ObjectHealth::Progressing, "0 of 1 replica is available")
    };
    upgrade_begins: healthy(Harbour::installed(&json!({})).upgraded("0.2.0").reconciled(&starting("0.2.0")));
    upgrade_in_progress: {
        let object = "Deployment.apps harbour-system/pilot: 0 of 1 replica is available";
        let rolling = found("0.2.0", Cause::Spec, waiting(2, &[object]));
        let upgraded = Harbour::installed(&json!({})).upgraded("0.2.0").reconciled(&starting("0.2.0"));
        healthy(upgraded.reconciled(&rolling)).with("Deployment", ObjectHealth::Progressing, "0 of 1 replica is available")
    };

    approval_of_first_install: nothing(Harbour::new(&manual()).reconciled(&needs_approval("0.1.0", change(), None)));
    approval_of_upgrade: {
        let upgraded = approved().upgraded("0.2.0").reconciled(&needs_approval("0.2.0", change(), Some("0.1.0")));
        Situation { newer: Some(newer(&["0.2.0"])), ..healthy(upgraded) }
    };
    approval_of_refused_upgrade: {
        let refusals = vec!["Service harbour-system/metrics already exists and was created by kubectl-create".into()];
        let change = PendingChange { refusals, ..change() };
        healthy(approved().upgraded("0.2.0").reconciled(&needs_approval("0.2.0", change, Some("0.1.0"))))
    };
    approval_of_provisioner: healthy(Harbour::installed(&json!({})).reconciled(&provisioner_update()));

    pinned_by_rollback: Situation { newer: Some(newer(&["0.3.0"])), ..healthy(pinned()) };
    pin_cancelled: healthy(pinned().edited(&json!({"rollout": null})));
    pin_cancelled_and_rolling: {
        let rolling = found("0.2.0", Cause::Spec, waiting(2, &["Deployment.apps harbour-system/pilot: 0 of 1 replica is available"]));
        let cancelled = pinned().edited(&json!({"rollout": null})).reconciled(&starting("0.2.0")).reconciled(&rolling);
        healthy(cancelled).with("Deployment", ObjectHealth::Progressing, "0 of 1 replica is available")
    };
    deadline_exceeded: broken(deadline("Hold"));
    rolling_back: {
        let waits = waiting(2, &["Deployment.apps harbour-system/pilot: 0 of 1 replica is available"]);
        let back = deadline("Rollback").reconciled(&rolled_back(ReconcileOutcome::Starting)).reconciled(&rolled_back(waits));
        healthy(back).with("Deployment", ObjectHealth::Progressing, "0 of 1 replica is available")
    };
    rolled_back_by_controller: {
        let applied = rolled_back(ReconcileOutcome::Applied(Vec::new()));
        healthy(deadline("Rollback").reconciled(&rolled_back(ReconcileOutcome::Starting)).reconciled(&applied))
    };

    drift_reported: {
        let installed = Harbour::installed(&json!({"drift": "Report"}));
        healthy(installed.reconciled(&with_drift(DriftFound::reported(&[scaled()]))))
    };
    repair_failed: {
        let installed = Harbour::installed(&json!({}));
        healthy(installed.reconciled(&with_drift(DriftFound::not_repaired(&[scaled()]))))
    };
    repaired_with_a_crd: healthy(Harbour::installed(&json!({})).reconciled(&repaired()));

    workload_unhealthy: broken(Harbour::installed(&json!({})).reconciled(&applied("0.1.0", &[PULL])));
    suspended: {
        let suspended = Assessment::early(ReconcileOutcome::Suspended).with_running(Some(runs(&[])));
        healthy(Harbour::installed(&json!({})).edited(&json!({"suspend": true})).reconciled(&suspended))
    };
    suspended_and_unhealthy: {
        let suspended = Assessment::early(ReconcileOutcome::Suspended).with_running(Some(runs(&[PULL])));
        broken(Harbour::installed(&json!({})).edited(&json!({"suspend": true})).reconciled(&suspended))
    };
    suspended_before_the_first_install: {
        let suspended = Assessment::early(ReconcileOutcome::Suspended);
        nothing(Harbour::new(&json!({"suspend": true})).reconciled(&suspended))
    };

    deleting: {
        let remaining = ReconcileOutcome::Deleting(vec![
            "CustomResourceDefinition.apiextensions.k8s.io berths.harbour.example.com".into(),
        ]);
        let deleted = Harbour::installed(&json!({})).deleted().reconciled(&Assessment::early(remaining));
        healthy(deleted).without("Service").without("Deployment")
    };
    deletion_blocked_by_custom_resources: {
        let held = Assessment::early(ReconcileOutcome::DeletionFailed(because::custom_resources_exist()));
        healthy(Harbour::installed(&json!({})).deleted().reconciled(&held))
    };
    deletion_without_permissions: {
        let failed = Assessment::early(ReconcileOutcome::DeletionFailed(because::account_missing_for_deletion()));
        healthy(Harbour::installed(&json!({})).deleted().reconciled(&failed))
    };

    source_unreachable: first_refused(&not_fetched(because::registry_unreachable("0.1.0"), None));
    source_unreachable_for_an_upgrade: {
        let failed = not_fetched(because::registry_unreachable("0.2.0"), Some(runs(&[])));
        healthy(Harbour::installed(&json!({})).upgraded("0.2.0").reconciled(&failed))
    };
    image_not_found: {
        let missing = || not_fetched(because::image_not_found(), Some(runs(&[])));
        let upgraded = Harbour::installed(&json!({})).upgraded("0.2.0").reconciled(&missing());
        healthy(upgraded.after(20).reconciled(&missing()))
    };
    bundle_invalid: first_refused(&not_rendered("0.1.0", because::invalid_bundle(), None));
    bundle_of_upgrade_invalid: {
        let invalid = not_rendered("0.2.0", because::invalid_bundle(), Some(runs(&[])));
        healthy(Harbour::installed(&json!({})).upgraded("0.2.0").reconciled(&invalid))
    };
    unknown_format: first_refused(&not_detected("0.1.0", because::unknown_format()));
    provisioner_crashes: first_refused(&not_rendered("0.1.0", because::trapped(), None));
    provisioner_too_slow: first_refused(&not_rendered("0.1.0", because::timed_out(), None));

    collision: first_refused(&refused("0.1.0", because::collision(), None));
    collision_of_upgrade: healthy(upgrade_refused(because::collision()));
    permissions_missing: first_refused(&refused("0.1.0", because::permissions_missing(), None));
    permissions_missing_for_long: {
        let refused = || refused("0.1.0", because::permissions_missing(), None);
        nothing(Harbour::new(&json!({})).reconciled(&refused()).after(20).reconciled(&refused()))
    };
    permissions_missing_for_an_upgrade: healthy(upgrade_refused(because::permissions_missing()));
    account_missing: first_refused(&refused("0.1.0", because::account_missing(), None));
    controller_forbidden: healthy(upgrade_refused(because::forbidden()));
    kind_missing: first_refused(&refused("0.1.0", because::kind_missing(), None));
    immutable_field: healthy(upgrade_refused(because::immutable_field()));
    crd_upgrade_unsafe: healthy(upgrade_refused(because::unsafe_crd_upgrade()));
    upgrade_refused_over_an_unhealthy_release: {
        let installed = Harbour::installed(&json!({})).reconciled(&applied("0.1.0", &[PULL]));
        broken(installed.upgraded("0.2.0").reconciled(&refused("0.2.0", because::collision(), Some(runs(&[PULL])))))
    };
    record_unavailable: {
        let failed = Assessment::early(ReconcileOutcome::RecordUnavailable(because::record_unavailable()));
        healthy(Harbour::installed(&json!({})).reconciled(&failed))
    };

    restore_incomplete: {
        let waiting = Assessment::early(ReconcileOutcome::RestoreIncomplete(because::restore_incomplete()));
        healthy(Harbour::restored().reconciled(&waiting))
    };

    target_unavailable: {
        let problem = because::target_unavailable();
        let health = Err(format!("the release that runs is in another cluster, so that its health is unknown: {}", problem.message));
        let away = Assessment::early(ReconcileOutcome::TargetUnavailable(problem));
        let away = away.with_running(Some(Running { health, bundle: None, ..runs(&[]) }));
        let elsewhere = json!({"kubeConfig": {"secretRef": {"name": "eu"}}});
        let unreadable = "all objects: they are in another cluster (spec.kubeConfig), whose kubeconfig this command does not use";
        Situation { unreadable: vec![unreadable.into()], ..nothing(Harbour::installed(&elsewhere).reconciled(&away)) }
    };

    objects_not_readable: {
        let problem = "Deployment.apps: deployments.apps is forbidden: User \"jane\" cannot list resource \"deployments\" in API \
                       group \"apps\" at the cluster scope";
        Situation { unreadable: vec![problem.into()], ..healthy(Harbour::installed(&json!({}))).without("Deployment") }
    };
    newer_versions_offered: {
        Situation { newer: Some(newer(&["0.2.0", "0.3.0"])), ..healthy(Harbour::installed(&json!({}))) }
    };
}
