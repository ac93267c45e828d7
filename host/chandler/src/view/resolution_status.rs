//! The status of a Resolution, for `chandler status`: conditions, members, what waits, and suggested actions.

use std::fmt::Write as _;

use chandler_api::{PendingDecision, ResolvedMember};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

use super::{
    conditions,
    path::{Found, LeftOutPackage, Path},
    progress_reporter::RolloutState,
    resolution_progress,
    table::{self, Column, Fit, or_dash},
    terminal::{Frame, Tone},
    text::one_line,
};

/// The width of the labels.
const LABEL: usize = 12;

const COLUMNS: [Column<ResolvedMember>; 5] = [
    Column::new("PACKAGE", Fit::Full, |member| member.package.clone()),
    Column::new("VERSION", Fit::Full, |member| match member.path.last().filter(|best| **best != member.version) {
        Some(best) => format!("{} -> {best}", member.version),
        None => member.version.clone(),
    }),
    Column::new("STATE", Fit::End(11), |member| or_dash(member.state.as_ref())),
    Column::new("CATALOG", Fit::Drop, |member| or_dash(member.catalog.as_ref())),
    Column::new("BUNDLEDEPLOYMENT", Fit::Full, |member| or_dash(member.bundle_deployment.as_ref())),
];

/// The status of a Resolution.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolutionStatusView {
    /// The name.
    pub name: String,
    /// Whether the set is complete and healthy, and no upgrade is left.
    pub healthy: bool,
    /// Whether a user or an administrator has to act, since retries will not help.
    pub needs_action: bool,
    /// Whether nothing is wrong, and the set waits for a decision of a user.
    #[serde(skip)]
    pub only_waits: bool,
    /// The number of the decision that is installed or being installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<i64>,
    /// The BundleDeployment of the set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle_deployment: Option<String>,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// What was chosen.
    pub members: Vec<ResolvedMember>,
    /// The decision that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingDecision>,
    /// Why the packages have no answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanation: Vec<String>,
    /// Optional packages that the decision is without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutPackage>,
    /// Suggested actions.
    pub next_steps: Vec<String>,
}

impl ResolutionStatusView {
    /// The status of the Resolution that was found, which is empty if there is none.
    pub fn new(found: &Found) -> Self {
        let resolution = found.resolution.clone().unwrap_or_default();
        let state = resolution_progress::state(&resolution);
        let status = resolution.status.unwrap_or_default();
        Self {
            name: resolution.metadata.name.unwrap_or_default(),
            healthy: state == RolloutState::Healthy,
            needs_action: matches!(state, RolloutState::Failed { .. } | RolloutState::Paused { .. }),
            only_waits: matches!(state, RolloutState::Paused { .. }),
            decision: status.decision,
            bundle_deployment: status.bundle_deployment,
            conditions: status.conditions,
            members: status.members,
            pending: status.pending,
            explanation: status.explanation,
            left_out: status.left_out.into_iter().map(LeftOutPackage::from).collect(),
            next_steps: Path::new(found).next_steps,
        }
    }

    /// The status as text, in the width of the frame where that is possible.
    pub fn text(&self, frame: impl Into<Frame>) -> String {
        let Frame { width, look } = frame.into();
        let (mut text, name) = (String::new(), one_line(&self.name));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<LABEL$}  resolution/{name}", "name");
        if let Some(decision) = self.decision {
            let label = "decision";
            let _ = writeln!(
                text,
                "{label:<LABEL$}  {decision}, `chandler history resolution/{name}` lists all that are kept"
            );
        }
        if let Some(set) = &self.bundle_deployment {
            let _ = writeln!(text, "{:<LABEL$}  BundleDeployment {}", "set", one_line(set));
        }
        conditions::write(&mut text, &self.conditions, look);
        if !self.members.is_empty() {
            text.push_str("\nmembers\n");
            for line in
                table::lines(&COLUMNS, &self.members, Frame { width: width.map(|width| width.saturating_sub(2)), look })
            {
                let _ = writeln!(text, "  {line}");
            }
        }
        if let Some(pending) = &self.pending {
            let _ = writeln!(text, "\npending: {}: {}", one_line(&pending.reason), one_line(&pending.message));
        }
        let left_out: Vec<String> = self.left_out.iter().map(LeftOutPackage::line).collect();
        let pending = self.pending.as_ref().map(|pending| pending.changes.as_slice()).unwrap_or_default();
        for (title, lines, sign) in [
            ("the next decision would", pending, ""),
            ("no answer, since", &self.explanation, ""),
            ("left out", &left_out, ""),
            ("suggested actions", &self.next_steps, "- "),
        ] {
            if !lines.is_empty() {
                let _ = writeln!(text, "\n{title}");
            }
            for line in lines {
                let _ = writeln!(text, "  {sign}{}", one_line(line));
            }
        }
        let (tone, health) = match (self.healthy, self.needs_action) {
            (true, _) => (Tone::Good, "complete and healthy"),
            (false, _) if self.only_waits => (Tone::Busy, "waits for your decision"),
            (false, true) => (Tone::Bad, "not ready, needs action"),
            (false, false) => (Tone::Busy, "not ready"),
        };
        let health = look.paint(tone, health);
        let why = if self.members.is_empty() { "shows why" } else { "shows why each version was chosen" };
        let _ = writeln!(text, "\n{health}; `chandler explain resolution/{name}` {why}");
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_members_stand_in_a_table_and_the_cause_is_below() {
        let resolution = serde_json::from_value(json!({
            "apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution",
            "metadata": {"name": "shop", "generation": 1},
            "spec": {"packages": [{"name": "app"}],
                "output": {"type": "ResolveSet", "resolveSet": {"installNamespace": "n"}}},
            "status": {
                "observedGeneration": 1, "decision": 2, "bundleDeployment": "resolveset-shop",
                "conditions": [
                    {"type": "Ready", "status": "False", "reason": "ApprovalRequired", "message": "it waits",
                     "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"},
                    {"type": "Stalled", "status": "True", "reason": "ApprovalRequired", "message": "it waits",
                     "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"},
                ],
                "members": [
                    {"package": "app", "bundle": "app.v1.0.0", "version": "1.0.0", "path": ["1.0.0", "2.0.0"],
                     "catalog": "ours", "bundleDeployment": "app", "state": "Succeeded"},
                    {"package": "base", "bundle": "base.v1.0.0", "version": "1.0.0", "bundleDeployment": "base"},
                ],
                "pending": {"reason": "ApprovalRequired", "message": "it waits",
                    "changes": ["change app from 1.0.0 to 2.0.0"]},
                "leftOut": [{"package": "web", "reason": "PreflightFailed", "explanation": ["web: not found"]}],
            },
        }))
        .unwrap();
        let view = ResolutionStatusView::new(&Found { resolution: Some(resolution), ..Found::default() });
        insta::assert_snapshot!(view.text(Some(100)));
    }
}
