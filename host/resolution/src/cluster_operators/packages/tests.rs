use std::time::Duration;

use chandler_api::PlatformOperator;
use kube::core::ObjectMeta;

use super::*;

fn package(operator: &str, state: State, is_installed: bool) -> Package {
    let metadata = ObjectMeta { name: Some(operator.to_owned()), ..ObjectMeta::default() };
    let package = Package::of(&PlatformOperator { metadata, ..PlatformOperator::default() }, None, None);
    Package { state, is_installed, ..package }
}

fn moving(to: Way) -> State {
    State::Moving { to, message: "is on the way: 1 of 3 objects".to_owned() }
}

fn failed() -> State {
    State::Failed {
        reason: "ObjectRefused".to_owned(),
        is_under_way: true,
        message: "failed (ObjectRefused): no".to_owned(),
    }
}

/// The conditions after this time, of which the packages did not change.
fn seen(packages: &[Package], minutes: u64) -> String {
    let packages: Vec<&Package> = packages.iter().collect();
    let platform = Platform::default();
    let input = Packages {
        packages: &packages,
        platform: &platform,
        version: Some("1.0.0"),
        thresholds: Thresholds::default(),
    };
    let (mut memory, start) = (Memory::default(), Timestamp::UNIX_EPOCH);
    let first = input.status(Vec::new(), None, &mut memory, start);
    let derived = input.status(Vec::new(), Some(&first.status), &mut memory, start + Duration::from_mins(minutes));
    let conditions = derived.status.conditions.iter();
    let lines = conditions.map(|it| format!("{}={} {}: {}", it.kind, it.status, it.reason, it.message));
    let versions: Vec<&str> = derived.status.versions.iter().map(|it| it.version.as_str()).collect();
    format!("{}\n{versions:?}", lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn nothing_is_as_expected() {
    insta::assert_snapshot!(seen(&[], 0), @r#"
    Available=True AsExpected: No platform operators are present in the cluster
    Progressing=False AsExpected: No platform operators are present in the cluster
    Degraded=False AsExpected: No platform operators are present in the cluster
    Upgradeable=True AsExpected: No platform operator prevents an upgrade of the cluster.
    ["1.0.0"]
    "#);
}

#[test]
fn what_is_rolled_out_is_successful() {
    insta::assert_snapshot!(seen(&[package("a", State::Settled, true)], 0), @r#"
    Available=True AsExpected: All platform operators are in a successful state
    Progressing=False AsExpected: No platform operator is being rolled out
    Degraded=False AsExpected: No platform operator needs attention
    Upgradeable=True AsExpected: No platform operator prevents an upgrade of the cluster.
    ["1.0.0"]
    "#);
}

#[test]
fn a_rollout_is_progress_whatever_time_it_takes() {
    let packages = [
        package("a", moving(Way::Installation), false),
        package("b", moving(Way::Upgrade), true),
        package("c", State::Waiting { message: "waits: approve it".to_owned() }, true),
    ];
    insta::assert_snapshot!(seen(&packages, 100), @r"
    Available=False Installing: Platform operator a is on the way: 1 of 3 objects.
    Progressing=True Upgrading: Platform operators are being rolled out:
    - a is on the way: 1 of 3 objects
    - b is on the way: 1 of 3 objects
    Degraded=False AsExpected: No platform operator needs attention
    Upgradeable=True AsExpected: No platform operator prevents an upgrade of the cluster.
    []
    ");
}

#[test]
fn a_failed_installation_becomes_unavailable_and_then_degraded() {
    let packages = [package("a", failed(), false), package("b", State::Settled, true)];
    insta::assert_snapshot!(seen(&packages, 0), @r"
    Available=False Installing: Platform operator a failed (ObjectRefused): no.
    Progressing=True Installing: Platform operator a is tried again: it failed (ObjectRefused): no.
    Degraded=False AsExpected: No platform operator needs attention
    Upgradeable=True AsExpected: No platform operator prevents an upgrade of the cluster.
    []
    ");
    insta::assert_snapshot!(seen(&packages, 1), @r#"
    Available=False PlatformOperatorError: encountered the failing a platform operator with reason "ObjectRefused": it failed (ObjectRefused): no.
    Progressing=True Installing: Platform operator a is tried again: it failed (ObjectRefused): no.
    Degraded=False AsExpected: No platform operator needs attention
    Upgradeable=True AsExpected: No platform operator prevents an upgrade of the cluster.
    []
    "#);
    insta::assert_snapshot!(seen(&packages, 5), @r#"
    Available=False PlatformOperatorError: encountered the failing a platform operator with reason "ObjectRefused": it failed (ObjectRefused): no.
    Progressing=False AsExpected: No platform operator is being rolled out
    Degraded=True PlatformOperatorError: Platform operator a failed (ObjectRefused): no.
    Upgradeable=True AsExpected: No platform operator prevents an upgrade of the cluster.
    []
    "#);
}

#[test]
fn a_failed_upgrade_is_degraded_and_what_runs_is_available() {
    let outage = Some("does not work: Deployment x: 0 of 1 replicas".to_owned());
    let packages = [package("a", failed(), true), Package { outage, ..package("b", State::Settled, true) }];
    insta::assert_snapshot!(seen(&packages[..1], 5), @r"
    Available=True AsExpected: The platform operators that are installed work
    Progressing=False AsExpected: No platform operator is being rolled out
    Degraded=True PlatformOperatorError: Platform operator a failed (ObjectRefused): no.
    Upgradeable=True AsExpected: No platform operator prevents an upgrade of the cluster.
    []
    ");
    insta::assert_snapshot!(seen(&packages, 5), @r#"
    Available=False PlatformOperatorError: encountered the failing b platform operator with reason "Unhealthy": it does not work: Deployment x: 0 of 1 replicas.
    Progressing=False AsExpected: No platform operator is being rolled out
    Degraded=True PlatformOperatorError: Platform operators need attention:
    - a failed (ObjectRefused): no
    - b does not work: Deployment x: 0 of 1 replicas
    Upgradeable=True AsExpected: No platform operator prevents an upgrade of the cluster.
    []
    "#);
}
