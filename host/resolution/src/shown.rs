//! The status of a Resolution as users read it.

use chandler_api::{DecisionSummary, HeldBack, LeftOut, PendingDecision, ResolutionStatus, ResolvedMember};
use chandler_core::text::printable;

/// The status without characters that could deceive its readers: catalogs choose names, messages and versions. All fields are named here, so
/// that a new one is decided, too. Conditions escape their messages themselves; catalogs have names of Kubernetes, and the state is a reason.
pub(crate) fn shown(status: ResolutionStatus) -> ResolutionStatus {
    let ResolutionStatus {
        conditions,
        observed_generation,
        decision,
        bundle_deployment,
        members,
        bundles,
        pending,
        explanation,
        notes,
        left_out,
        alternatives,
        catalogs,
        history,
    } = status;
    ResolutionStatus {
        conditions,
        observed_generation,
        decision,
        bundle_deployment,
        members: members.into_iter().map(member).collect(),
        bundles: text(&bundles),
        pending: pending.map(|PendingDecision { reason, message, changes }| PendingDecision {
            reason,
            message: text(&message),
            changes: texts(&changes),
        }),
        explanation: texts(&explanation),
        notes: texts(&notes),
        left_out: left_out
            .into_iter()
            .map(|LeftOut { package, reason, explanation }| LeftOut {
                package: text(&package),
                reason: text(&reason),
                explanation: texts(&explanation),
            })
            .collect(),
        alternatives: texts(&alternatives),
        catalogs,
        history: history
            .into_iter()
            .map(|DecisionSummary { number, time, members }| DecisionSummary { number, time, members: texts(&members) })
            .collect(),
    }
}

fn member(member: ResolvedMember) -> ResolvedMember {
    let ResolvedMember {
        package,
        bundle,
        version,
        catalog,
        channel,
        image,
        path,
        reasons,
        bundle_deployment,
        state,
        deprecated,
        held_back,
    } = member;
    let optional = |it: Option<String>| it.map(|it| text(&it));
    ResolvedMember {
        package: text(&package),
        bundle: text(&bundle),
        version: text(&version),
        catalog: optional(catalog),
        channel: optional(channel),
        image: text(&image),
        path: texts(&path),
        reasons: texts(&reasons),
        bundle_deployment: optional(bundle_deployment),
        state,
        deprecated: optional(deprecated),
        held_back: held_back.map(|it| HeldBack { version: text(&it.version), explanation: texts(&it.explanation) }),
    }
}

fn text(text: &str) -> String {
    printable(text).into_owned()
}

fn texts(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| text(line)).collect()
}
