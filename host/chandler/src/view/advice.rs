//! Suggested actions by the reason of a condition and the kind that reports it: one for every reason that reports a problem or work.

mod alert;
mod bundle_deployment;
mod catalog;
mod platform;
mod provisioner_class;
mod receiver;
mod resolution;

use chandler_api::{Reason, Remedy, ReportingKind};

use super::{
    overview::{Next, Overview},
    subject::Subject,
};

/// The suggested action for a condition of this object with this reason; `None` if nothing is wrong, or if its kind does not report the
/// reason. If a retry may help, it says so ([`Reason::remedy`]).
pub fn advice(reason: Reason, subject: &Subject<'_>) -> Option<String> {
    if reason.remedy() == Remedy::Nothing || !reason.is_reported_by(subject.kind()) {
        return None;
    }
    let name = subject.name();
    match subject.kind() {
        ReportingKind::BundleDeployment => bundle_deployment::advice(reason, name),
        ReportingKind::ProvisionerClass => provisioner_class::advice(reason, name),
        ReportingKind::Catalog => catalog::advice(reason, name),
        ReportingKind::Resolution => resolution::advice(reason, subject).or_else(|| copied(reason, subject)),
        ReportingKind::PlatformOperator => platform::of_operator(reason, name).or_else(|| copied(reason, subject)),
        ReportingKind::PlatformPolicy => platform::of_policy(reason, name),
        ReportingKind::Receiver => receiver::advice(reason, name),
        ReportingKind::Alert => alert::advice(reason, name),
    }
}

/// The suggested action for a condition of a BundleDeployment in this state.
pub fn deployment_advice(reason: Reason, overview: &Overview) -> Option<String> {
    let name = &overview.name;
    if reason == Reason::ApprovalRequired && overview.would_be_refused {
        return Some(format!(
            "`chandler diff {name}` shows why the rollout would be refused: fix that, or approve it nevertheless: `chandler approve {name} \
             --force`"
        ));
    }
    let advice = advice(reason, &Subject::deployment(name))?;
    let is_deleting = matches!(overview.next, Next::Deleting { .. });
    Some(if is_deleting { advice.replace("the rollout then continues", "the deletion then continues") } else { advice })
}

/// Whether an object of this kind copies the reason from a BundleDeployment, which has the cause.
pub fn is_copied(reason: Reason, kind: ReportingKind) -> bool {
    !reason.kinds().contains(&kind) && reason.is_reported_by(kind)
}

/// The suggested action for a reason that is copied from a BundleDeployment.
fn copied(reason: Reason, subject: &Subject<'_>) -> Option<String> {
    Some(match reason.remedy() {
        Remedy::Nothing => return None,
        Remedy::Time => format!("wait: `chandler explain {subject}` shows how far the packages are"),
        Remedy::TimeOrAction | Remedy::Requirement => format!(
            "`chandler explain {subject}` names the BundleDeployment with the cause, and what helps; the controller retries"
        ),
        Remedy::User | Remedy::Administrator => {
            format!("`chandler explain {subject}` names the BundleDeployment with the cause, and what helps")
        }
    })
}

#[cfg(test)]
mod tests;
