//! The decisions of a Resolution: a table, and the choice of the decision to roll back to.

use chandler_api::{DecisionSummary, OutputType, Resolution, ResolveSetOutput};

use super::{
    error::CommandError,
    table::{self, Column, Fit, or_dash},
    text::one_line,
};

/// The decisions that are kept, oldest first.
pub fn history(resolution: &Resolution) -> &[DecisionSummary] {
    resolution.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default()
}

/// The decision that the spec names.
pub fn pinned(resolution: &Resolution) -> Option<i64> {
    set(resolution)?.to_decision
}

/// The table: a row for each decision, of which one is current; then what the spec names, and what waits.
pub fn table(resolution: &Resolution, width: Option<usize>) -> String {
    // A decision, and whether it is the current one.
    let columns: [Column<(&DecisionSummary, bool)>; 3] = [
        Column::new("DECISION", Fit::Full, |(decision, is_current)| {
            format!("{}{}", decision.number, if *is_current { " (current)" } else { "" })
        }),
        Column::new("MADE", Fit::Full, |(decision, _)| {
            or_dash(decision.time.as_ref().map(|time| format!("{:.0}", time.0)))
        }),
        Column::new("MEMBERS", Fit::End(20), |(decision, _)| decision.members.join(", ")),
    ];
    let current = current(resolution);
    let rows: Vec<_> = history(resolution).iter().map(|it| (it, Some(it.number) == current)).collect();
    let mut text = table::text(&columns, &rows, width);
    if let Some(number) = pinned(resolution) {
        text.extend(["spec.output.resolveSet.toDecision is ", &number.to_string(), "\n"]);
    }
    if let Some(pending) = resolution.status.as_ref().and_then(|status| status.pending.as_ref()) {
        text.extend(["pending: ", &one_line(&pending.reason), ": ", &one_line(&pending.message), "\n"]);
        for change in &pending.changes {
            text.extend(["    ", &one_line(change), "\n"]);
        }
    }
    text
}

/// The decision to roll back to: the requested one, else the one before the current one.
///
/// # Errors
/// The Resolution installs nothing, or has no such decision.
pub fn target(resolution: &Resolution, requested: Option<i64>) -> Result<&DecisionSummary, CommandError> {
    let name = resolution.metadata.name.as_deref().unwrap_or_default();
    let hint = format!("`chandler history resolution/{name}` shows the decisions that are kept");
    if set(resolution).is_none() {
        return Err(CommandError::failed(format!("Resolution {name} only reports its decisions"))
            .hint("only one with spec.output.type ResolveSet installs them"));
    }
    let kept = history(resolution);
    if let Some(number) = requested {
        return kept
            .iter()
            .find(|it| it.number == number)
            .ok_or_else(|| CommandError::not_found(format!("Resolution {name} has no decision {number}")).hint(hint));
    }
    let current = current(resolution);
    kept.iter()
        .rfind(|it| current.is_some_and(|current| it.number < current))
        .ok_or_else(|| CommandError::not_found(format!("Resolution {name} has no earlier decision")).hint(hint))
}

fn current(resolution: &Resolution) -> Option<i64> {
    resolution.status.as_ref()?.decision
}

/// How the decision is installed, or `None` if it is only reported.
fn set(resolution: &Resolution) -> Option<&ResolveSetOutput> {
    let output = resolution.spec.output.as_ref()?;
    output.resolve_set.as_ref().filter(|_| output.kind == OutputType::ResolveSet)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn resolution(output: Value, decision: i64) -> Resolution {
        let made = |number: i64, version: &str| json!({"number": number, "time": "2026-01-01T00:00:00Z", "members": [format!("app {version}"), "base 1.0.0"]});
        serde_json::from_value(json!({
            "apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution", "metadata": {"name": "shop"},
            "spec": {"packages": [], "output": output},
            "status": {
                "decision": decision, "history": [made(2, "1.0.0"), made(3, "1.1.0"), made(4, "2.0.0")],
                "pending": {"reason": "ApprovalRequired", "message": "it waits", "changes": ["install top 1.0.0"]},
            },
        }))
        .unwrap()
    }

    fn installed() -> Value {
        json!({"type": "ResolveSet", "resolveSet": {"installNamespace": "n", "toDecision": 3}})
    }

    #[test]
    fn the_decision_before_the_current_one_is_the_default() {
        let number = |decision, requested| {
            target(&resolution(installed(), decision), requested).map(|it| it.number).map_err(|it| it.to_string())
        };
        assert_eq!(number(4, None), Ok(3));
        assert_eq!(number(3, None), Ok(2));
        assert_eq!(number(4, Some(2)), Ok(2));
        assert!(number(2, None).unwrap_err().contains("Resolution shop has no earlier decision"));
        assert!(number(4, Some(1)).unwrap_err().contains("`chandler history resolution/shop`"));
        let reported = resolution(json!({"type": "None"}), 4);
        assert!(target(&reported, None).unwrap_err().to_string().contains("only reports its decisions"));
    }

    #[test]
    fn the_table_marks_the_current_decision() {
        insta::assert_snapshot!(table(&resolution(installed(), 3), None), @r"
        DECISION     MADE                  MEMBERS
        2            2026-01-01T00:00:00Z  app 1.0.0, base 1.0.0
        3 (current)  2026-01-01T00:00:00Z  app 1.1.0, base 1.0.0
        4            2026-01-01T00:00:00Z  app 2.0.0, base 1.0.0
        spec.output.resolveSet.toDecision is 3
        pending: ApprovalRequired: it waits
            install top 1.0.0
        ");
    }
}
