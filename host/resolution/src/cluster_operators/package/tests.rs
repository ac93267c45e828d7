use chandler_api::{BundleDeploymentStatus, BundleDescription, PlatformOperatorStatus, Revision};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::core::ObjectMeta;

use super::*;

/// `True`, or the reason and message of a condition that is False.
type Said<'a> = Option<(&'a str, &'a str)>;

fn condition(kind: &str, said: Said<'_>) -> Condition {
    let (reason, message) = said.unwrap_or(("Succeeded", "fine"));
    Condition {
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        message: message.to_owned(),
        observed_generation: None,
        reason: reason.to_owned(),
        status: if said.is_none() { "True" } else { "False" }.to_owned(),
        type_: kind.to_owned(),
    }
}

fn metadata(is_deleted: bool) -> ObjectMeta {
    let deletion_timestamp = is_deleted.then_some(Time(Timestamp::UNIX_EPOCH));
    ObjectMeta { name: Some("p".to_owned()), deletion_timestamp, ..ObjectMeta::default() }
}

fn operator(installed: Option<Said<'_>>, is_deleted: bool) -> PlatformOperator {
    let conditions = installed.map(|said| condition("Installed", said)).into_iter().collect();
    let status = Some(PlatformOperatorStatus { conditions, ..PlatformOperatorStatus::default() });
    PlatformOperator { metadata: metadata(is_deleted), status, ..PlatformOperator::default() }
}

fn deployment(ready: Said<'_>, healthy: Said<'_>, was_complete: bool, is_deleted: bool) -> BundleDeployment {
    let history = was_complete.then(|| Revision { outcome: Outcome::Succeeded, ..Revision::default() });
    let bundle = BundleDescription { version: Some("1.0.0".to_owned()), ..BundleDescription::default() };
    let status = BundleDeploymentStatus {
        conditions: vec![condition("Ready", ready), condition("Healthy", healthy)],
        history: history.into_iter().collect(),
        bundle: Some(bundle),
        ..BundleDeploymentStatus::default()
    };
    BundleDeployment { metadata: metadata(is_deleted), status: Some(status), ..BundleDeployment::default() }
}

/// One line: the state, and whether the package is installed and works.
fn seen(operator: &PlatformOperator, deployment: Option<&BundleDeployment>) -> String {
    let package = Package::of(operator, deployment, None);
    let state = match &package.state {
        State::Settled => "settled".to_owned(),
        State::Moving { to, message } => format!("{to:?}: {message}"),
        State::Failed { is_under_way: true, message, .. } => format!("{message}, under way"),
        State::Waiting { message } | State::Failed { is_under_way: false, message, .. } => message.clone(),
    };
    let installed = if package.is_installed { "installed" } else { "not installed" };
    let outage = package.outage.map(|outage| format!("; {outage}")).unwrap_or_default();
    let version = package.version.map(|version| format!(" {version}")).unwrap_or_default();
    format!("{state} [{installed}{version}{outage}]")
}

#[test]
fn states_follow_from_both_objects() {
    let fine = Some(None);
    let no = |reason, message| Some(Some((reason, message)));
    let source = no("SourceFailed", "no bundle fits");
    let refused = Some(("ObjectRefused", "a field is unknown"));
    let sick = Some(("Unhealthy", "Deployment x: 0 of 1"));
    let rolling = Some(("RollingOut", "1 of 3"));
    let deployed = |ready, healthy, was_complete| Some(deployment(ready, healthy, was_complete, false));
    let lines: Vec<String> = vec![
        ("new", operator(None, false), None),
        ("resolving", operator(no("UnpackPending", "Waiting"), false), None),
        ("unresolved", operator(source, false), None),
        ("waits for a window", operator(no("OutsideMaintenanceWindow", "until Saturday"), false), None),
        ("installing", operator(no("Installing", "1 of 3"), false), deployed(rolling, sick, false)),
        ("refused", operator(no("InstallFailed", "a field is unknown"), false), deployed(refused, None, false)),
        ("done, not reported", operator(no("InstallPending", "Waiting"), false), deployed(None, None, true)),
        ("settled", operator(fine, false), deployed(None, None, true)),
        ("sick", operator(fine, false), deployed(sick, sick, true)),
        ("never healthy", operator(fine, false), deployed(sick, sick, false)),
        ("upgrading", operator(fine, false), deployed(rolling, sick, true)),
        ("upgrade refused", operator(no("UpgradeFailed", "a field is unknown"), false), deployed(refused, None, true)),
        ("upgrade too late", operator(fine, false), deployed(Some(("ProgressDeadlineExceeded", "late")), sick, true)),
        ("rolled back", operator(fine, false), deployed(Some(("RolledBack", "2 failed")), None, true)),
        ("approval", operator(fine, false), deployed(Some(("ApprovalRequired", "approve it")), None, true)),
        ("suspended", operator(fine, false), deployed(Some(("Suspended", "spec.suspend is true")), None, true)),
        ("unwanted version", operator(source, false), deployed(None, None, true)),
        ("lost", operator(fine, false), None),
        ("replaced", operator(fine, false), Some(deployment(Some(("Deleting", "")), None, true, true))),
        ("removed", operator(fine, true), deployed(None, None, true)),
        ("stuck", operator(fine, true), Some(deployment(Some(("CustomResourcesExist", "3")), None, true, true))),
    ]
    .into_iter()
    .map(|(name, operator, deployment)| format!("{name} -> {}", seen(&operator, deployment.as_ref())))
    .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    new -> Installation: has not been looked at yet [not installed]
    resolving -> Installation: is on the way: Waiting [not installed]
    unresolved -> failed (SourceFailed): no bundle fits, under way [not installed]
    waits for a window -> waits: until Saturday [not installed]
    installing -> Installation: is on the way: 1 of 3 [not installed]
    refused -> failed (ObjectRefused): a field is unknown, under way [not installed]
    done, not reported -> Upgrade: is on the way: Waiting [installed 1.0.0]
    settled -> settled [installed 1.0.0]
    sick -> settled [installed 1.0.0; does not work: Deployment x: 0 of 1]
    never healthy -> failed (Unhealthy): Deployment x: 0 of 1, under way [not installed]
    upgrading -> Upgrade: is on the way: 1 of 3 [installed 1.0.0]
    upgrade refused -> failed (ObjectRefused): a field is unknown, under way [installed 1.0.0]
    upgrade too late -> failed (ProgressDeadlineExceeded): late, under way [installed 1.0.0; does not work: Deployment x: 0 of 1]
    rolled back -> failed (RolledBack): 2 failed [installed 1.0.0]
    approval -> waits: approve it [installed 1.0.0]
    suspended -> waits: spec.suspend is true [installed 1.0.0]
    unwanted version -> failed (SourceFailed): no bundle fits [installed 1.0.0]
    lost -> Installation: is to be installed again [not installed]
    replaced -> Installation: is to be installed again [installed 1.0.0]
    removed -> Removal: is being removed [installed 1.0.0]
    stuck -> cannot be removed: 3 [installed 1.0.0]
    ");
}
