use chandler_rollout::{Changes, Manager};
use serde_json::json;

use super::*;
use crate::{problem::Problem, spec_error::SpecError};

fn key(kind: &str, name: &str) -> ObjectKey {
    let group = if kind == "Deployment" { "apps" } else { "" };
    ObjectKey {
        group: group.into(),
        kind: kind.into(),
        namespace: Some("n".into()),
        name: name.into(),
        version: "v1".into(),
    }
}

fn field(path: &str, manager: Option<&str>) -> FieldDrift {
    let manager = manager.map(|name| Manager { name: name.into(), applies: false });
    FieldDrift { path: path.into(), removed: false, manager }
}

fn changed(name: &str, fields: Vec<FieldDrift>) -> Drift {
    Drift { object: key("Deployment", name), kind: DriftKind::Changed(fields) }
}

fn deployment(spec: &serde_json::Value, annotations: &serde_json::Value) -> BundleDeployment {
    let mut object = json!({
        "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
        "metadata": {"name": "x", "annotations": annotations},
        "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"}},
        "status": {"lastHandledReconcileAt": "1"},
    });
    for (name, value) in spec.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn list(lines: &[String]) -> String {
    lines.join("; ")
}

#[test]
fn the_report_of_remaining_drift_names_fields_and_managers() {
    let drift = [
        changed("web", vec![field("spec.replicas", Some("kubectl-edit")), field("spec.paused", None)]),
        Drift { object: key("ConfigMap", "gone"), kind: DriftKind::Missing },
    ];
    let found = DriftFound::reported(&drift);
    let (reason, message) = found.summary(list);
    assert_eq!(reason, Reason::DriftReported);
    insta::assert_snapshot!(message, @"2 objects are different from the release, and the policy does not repair: Deployment.apps n/web: spec.replicas was set by kubectl-edit, spec.paused was changed; ConfigMap n/gone does not exist");
    assert_eq!(
        serde_json::to_value(&found.drifted).unwrap(),
        json!({"total": 2, "objects": [
            {"group": "apps", "kind": "Deployment", "namespace": "n", "name": "web", "state": "Changed",
             "fields": [{"path": "spec.replicas", "manager": "kubectl-edit"}, {"path": "spec.paused"}]},
            {"kind": "ConfigMap", "namespace": "n", "name": "gone", "state": "Missing"},
        ]})
    );

    let changed = DriftKind::Changed(vec![field("spec.replicas", Some("hpa"))]);
    let contested = [(key("Deployment", "web"), changed), (key("ConfigMap", "a"), DriftKind::Outdated)];
    let contested = contested.map(|(object, kind)| ContestedObject { object, kind });
    let (reason, message) = DriftFound::contested(&contested).summary(list);
    assert_eq!(reason, Reason::Contested);
    insta::assert_snapshot!(message, @"2 objects are changed again by other clients after each repair, 4 times within 2 minutes or more often; Chandler repairs less and less often: Deployment.apps n/web: spec.replicas was set by hpa; ConfigMap n/a was replaced, without its annotation chandler.dev/applied");
    assert!(DriftFound::contested(&contested).drifted.objects[0].contested);
    let deleted = ContestedObject { object: key("ConfigMap", "gone"), kind: DriftKind::Missing };
    assert_eq!(DriftFound::contested(&[deleted]).lines, ["ConfigMap n/gone was deleted"]);

    let (reason, message) = DriftFound::not_repaired(&drift[1..]).summary(list);
    assert_eq!(reason, Reason::RepairFailed);
    insta::assert_snapshot!(message, @"1 object is different from the release, and the repair failed: ConfigMap n/gone does not exist");
    assert_eq!(DriftFound::not_repaired(&[]), DriftFound::reported(&[]));

    let (reason, message) = DriftFound::contested(&[]).summary(list);
    assert_eq!((reason, message.as_str()), (Reason::AsReleased, "every object matches the release"));
}

#[test]
fn what_the_status_lists_is_bounded() {
    let fields: Vec<FieldDrift> = (0..30).map(|number| field(&format!("é{number}").repeat(200), None)).collect();
    let drift: Vec<Drift> = (0..100).map(|number| changed(&number.to_string(), fields.clone())).collect();
    let Drifted { total, objects } = DriftFound::reported(&drift).drifted;
    assert_eq!((total, objects.len()), (100, LISTED_OBJECTS));
    assert_eq!((objects[0].fields.len(), objects[0].omitted_fields), (LISTED_FIELDS, Some(20)));
    assert!(objects[0].fields.iter().all(|field| field.path.len() <= PATH_BYTES));
}

#[test]
fn a_repair_is_made_once_when_it_is_asked_for() {
    use chandler_rollout::DriftPolicy::{Ignore, Repair, Report};
    for (spec, annotations, want) in [
        (json!({}), json!({}), Repair),
        (json!({"drift": "Report"}), json!({}), Report),
        (json!({"drift": "Ignore"}), json!({}), Ignore),
        (json!({"drift": "Report"}), json!({"requestedAt": "2"}), Report),
        (json!({"drift": "Report"}), json!({"requestedAt": "2", "repairAt": "2"}), Repair),
        (json!({"drift": "Ignore"}), json!({"requestedAt": "2", "repairAt": "2"}), Repair),
        (json!({"drift": "Report"}), json!({"requestedAt": "3", "repairAt": "2"}), Report),
        // It was handled.
        (json!({"drift": "Report"}), json!({"requestedAt": "1", "repairAt": "1"}), Report),
        (json!({"drift": "Report"}), json!({"repairAt": "1"}), Report),
    ] {
        let annotations: serde_json::Map<_, _> = annotations
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| (format!("reconcile.chandler.dev/{name}"), value.clone()))
            .collect();
        let deployment = deployment(&spec, &annotations.into());
        assert_eq!(policy_now(&deployment), want, "{spec} {:?}", deployment.annotations());
    }
}

#[test]
fn what_is_left_is_not_written_about() {
    use chandler_rollout::DriftPolicy::{Ignore, Repair, Report};
    let (web, missing) = (changed("web", vec![]), Drift { object: key("ConfigMap", "gone"), kind: DriftKind::Missing });
    let outdated = Drift { object: key("Secret", "tls"), kind: DriftKind::Outdated };
    let stale = Drift { object: key("ConfigMap", "old"), kind: DriftKind::Stale };
    for (drift, contested, found, parent_current, repair) in [
        (Repair, vec![], vec![&web], true, true),
        (Repair, vec![], vec![], true, false),
        (Repair, vec![], vec![], false, true),
        (Repair, vec![&web], vec![&web], true, false),
        (Repair, vec![&web], vec![&web, &missing], true, true),
        (Report, vec![], vec![&web, &missing], true, false),
        (Report, vec![], vec![&web, &outdated], true, true),
        (Report, vec![], vec![&web], false, true),
        (Report, vec![], vec![&stale], false, false),
        (Ignore, vec![], vec![&outdated], true, true),
    ] {
        let cooldown = contested.into_iter().map(|drift| drift.object.clone()).collect();
        let found: Vec<Drift> = found.into_iter().cloned().collect();
        let observed = Observation { drift: found.clone(), parent_current, ..Observation::default() };
        let drift_options = DriftOptions { drift, complete: true, cooldown, ..DriftOptions::default() };
        assert_eq!(needs_repair(&observed, &drift_options), repair, "{drift:?} {found:?}");
    }
}

#[test]
fn drift_is_left_where_it_is_not_repaired_or_not_yet() {
    use chandler_rollout::DriftPolicy::{Repair, Report};
    let (web, other) = (changed("web", vec![]), changed("other", vec![]));
    let outdated = Drift { object: key("Secret", "tls"), kind: DriftKind::Outdated };
    let found = [web.clone(), other.clone(), outdated.clone()];
    for (drift, cooldown, left) in [
        (Repair, vec![], vec![]),
        (Repair, vec![&web, &outdated], vec![web.clone()]),
        (Report, vec![], vec![web.clone(), other]),
    ] {
        let cooldown = cooldown.into_iter().map(|drift: &Drift| drift.object.clone()).collect();
        let drift_options = DriftOptions { drift, complete: true, cooldown, ..DriftOptions::default() };
        assert_eq!(unrepaired(&found, &drift_options), left, "{drift:?}");
    }
}

#[test]
fn every_state_of_an_object_is_listed() {
    for (kind, state) in [
        (DriftKind::Changed(vec![]), DriftState::Changed),
        (DriftKind::Missing, DriftState::Missing),
        (DriftKind::Outdated, DriftState::Outdated),
        (DriftKind::Terminating, DriftState::Terminating),
        (DriftKind::Foreign(chandler_rollout::ExistingOwner::Unknown), DriftState::Foreign),
        (DriftKind::Stale, DriftState::Stale),
    ] {
        let found = DriftFound::reported(&[Drift { object: key("ConfigMap", "a"), kind }]);
        assert_eq!(found.drifted.objects[0].state, state);
        assert!(!found.drifted.objects[0].contested && found.drifted.objects[0].omitted_fields.is_none());
    }
}

#[test]
fn what_was_written_was_put_right() {
    let (web, gone) = (changed("web", vec![]), Drift { object: key("ConfigMap", "gone"), kind: DriftKind::Missing });
    let found = [web.clone(), changed("other", vec![]), gone.clone()];
    let changes = Changes {
        created: vec![gone.object.clone(), key("ConfigMap", "new")],
        recovered: vec![web.object.clone()],
        ..Changes::default()
    };
    assert_eq!(repaired(&found, &changes).collect::<Vec<_>>(), [&web, &gone]);
}

#[test]
fn a_crd_that_was_deleted_is_known() {
    let crd = ObjectKey {
        group: "apiextensions.k8s.io".into(),
        kind: "CustomResourceDefinition".into(),
        namespace: None,
        ..key("", "berths.example.com")
    };
    let drift = |object: &ObjectKey, kind| is_deleted_crd(&Drift { object: object.clone(), kind });
    assert!(drift(&crd, DriftKind::Missing));
    assert!(!drift(&crd, DriftKind::Changed(vec![])));
    assert!(!drift(&key("ConfigMap", "a"), DriftKind::Missing));
}

#[test]
fn a_pointer_that_cannot_be_ignored_is_refused() {
    let spec = json!({"ignoreDifferences": [
        {"kind": "Deployment", "jsonPointers": ["/spec/replicas"]},
        {"jsonPointers": ["/metadata/name"]},
    ]});
    let error = SpecError::from(ignored_fields(&deployment(&spec, &json!({})).spec).unwrap_err());
    let problem = Problem::from(&error);
    assert_eq!((problem.reason, problem.terminal), (Reason::InvalidConfiguration, true));
    insta::assert_snapshot!(problem.message, @r#"spec.ignoreDifferences[1].jsonPointers[0]: "/metadata/name" cannot be ignored: of metadata only labels, annotations and finalizers can"#);
}
