use std::fmt::Write as _;

use super::*;

/// Fields and commands of other kinds, which the advice of a kind does not contain.
const FOREIGN: &[(ReportingKind, &[&str])] = &[
    (
        ReportingKind::BundleDeployment,
        &["spec.packages", "spec.image ", "of the Catalog", "of the Resolution", "PlatformOperator", "PlatformPolicy"],
    ),
    (
        ReportingKind::ProvisionerClass,
        &["BundleDeployment", "spec.source", "spec.config", "spec.packages", "Catalog", "Resolution", "Platform"],
    ),
    (
        ReportingKind::Catalog,
        &[
            "BundleDeployment",
            "spec.image",
            "spec.config",
            "spec.packages",
            "ProvisionerClass",
            "Resolution",
            "Platform",
        ],
    ),
    (ReportingKind::Resolution, &["spec.source", "spec.image", "spec.config", "ProvisionerClass", "PlatformOperator"]),
    (ReportingKind::PlatformOperator, &["spec.source", "spec.image", "spec.packages", "ProvisionerClass", "Catalog"]),
    (
        ReportingKind::PlatformPolicy,
        &["BundleDeployment", "spec.source", "spec.image", "spec.config", "ProvisionerClass", "Catalog", "Resolution"],
    ),
    (
        ReportingKind::Receiver,
        &["spec.source", "spec.image", "spec.config", "ProvisionerClass", "Resolution", "Platform"],
    ),
    (
        ReportingKind::Alert,
        &["BundleDeployment", "spec.source", "spec.image", "spec.config", "ProvisionerClass", "Resolution"],
    ),
];

/// Every pair of a kind and a reason that it reports.
fn pairs() -> impl Iterator<Item = (Reason, Subject<'static>)> {
    ReportingKind::ALL.iter().flat_map(|kind| {
        let reported = Reason::ALL.iter().filter(|reason| reason.is_reported_by(*kind));
        reported.map(|reason| (*reason, Subject::new(*kind, "harbour")))
    })
}

#[test]
fn every_reason_has_advice_of_each_kind_that_reports_it_and_it_agrees_with_its_remedy() {
    for (reason, subject) in pairs() {
        let (text, remedy, kind) = (advice(reason, &subject), reason.remedy(), subject.kind());
        assert_eq!(text.is_none(), remedy == Remedy::Nothing, "{kind}, {reason}: {text:?}");
        let text = text.unwrap_or_default();
        if remedy == Remedy::Time {
            assert!(text.starts_with("wait: "), "{kind}, {reason}: {text}");
        }
        if !remedy.time_may_help() {
            assert!(!text.contains("wait"), "{kind}, {reason}: {text}");
        }
        if remedy == Remedy::Requirement {
            let promise = ["the rollout then continues", "retries"];
            assert!(promise.iter().any(|promise| text.contains(promise)), "{kind}, {reason}: {text}");
        }
    }
}

#[test]
fn a_kind_that_does_not_report_a_reason_has_no_advice_for_it() {
    for reason in Reason::ALL {
        for kind in ReportingKind::ALL.iter().filter(|kind| !reason.is_reported_by(**kind)) {
            assert_eq!(advice(*reason, &Subject::new(*kind, "harbour")), None, "{kind}, {reason}");
        }
    }
}

#[test]
fn advice_names_fields_and_commands_of_its_own_kind() {
    for (reason, subject) in pairs() {
        let text = advice(reason, &subject).unwrap_or_default();
        let foreign = FOREIGN.iter().find(|(kind, _)| *kind == subject.kind()).unwrap().1;
        let found: Vec<_> = foreign.iter().filter(|foreign| text.contains(**foreign)).collect();
        assert!(found.is_empty(), "{}, {reason}: {found:?} in {text}", subject.kind());
        assert!(!["kubectl patch", "kubectl annotate"].iter().any(|verb| text.contains(verb)), "{reason}: {text}");
    }
}

#[test]
fn a_set_is_suspended_and_approved_as_a_bundle_deployment() {
    let active = Subject::active_resolution("shop");
    let text = |reason, subject| advice(reason, subject).unwrap_or_default();
    assert!(text(Reason::ApprovalRequired, &active).contains("`chandler approve resolveset-shop`"));
    assert!(
        text(Reason::Suspended, &active).contains("`chandler resume resolveset-shop`"),
        "only its set is suspended"
    );
    let suspended = Subject::new(ReportingKind::Resolution, "shop");
    assert!(text(Reason::Suspended, &suspended).contains("`chandler resume resolution/shop`"));
}

#[test]
fn the_table_of_advice() {
    let mut table = String::new();
    for kind in ReportingKind::ALL {
        writeln!(table, "# {kind}\n").unwrap();
        for (reason, subject) in pairs().filter(|(_, subject)| subject.kind() == *kind) {
            if let Some(text) = advice(reason, &subject) {
                writeln!(table, "{reason}: {text}").unwrap();
            }
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}
