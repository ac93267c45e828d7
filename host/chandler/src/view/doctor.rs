//! What `chandler doctor` found about an installation of Chandler.

use serde::Serialize;
use serde_json::Value;

use super::{
    table::{self, Column, Fit},
    terminal::{Frame, Tone},
};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum State {
    /// It is as it should be.
    #[serde(rename = "OK")]
    Ok,
    /// The caller may not read what the check needs.
    Unknown,
    /// It works, but not everything does, or it is not as safe as it could be.
    Warning,
    /// Chandler does not work, or not in full.
    Problem,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Unknown => "Unknown",
            Self::Warning => "Warning",
            Self::Problem => "Problem",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Ok => Tone::Good,
            Self::Unknown => Tone::Plain,
            Self::Warning => Tone::Busy,
            Self::Problem => Tone::Bad,
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What was checked.
    pub check: &'static str,
    /// The result.
    pub state: State,
    /// What was found.
    pub message: String,
    /// The command that helps, or shows more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Finding {
    /// A finding without a command.
    pub fn new(check: &'static str, state: State, message: impl Into<String>) -> Self {
        Self { check, state, message: message.into(), command: None }
    }

    /// Adds the command that helps.
    #[must_use]
    pub fn with(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }
}

const COLUMNS: [Column<Finding>; 3] = [
    Column::new("CHECK", Fit::Full, |finding| finding.check.to_owned()),
    Column::toned("STATE", Fit::Full, |finding| finding.state.as_str().to_owned(), |finding| finding.state.tone()),
    Column::new("FOUND", Fit::Full, |finding| finding.message.clone()),
];

/// The findings as a table, and then the commands that help.
pub fn text(findings: &[Finding], frame: Frame) -> String {
    let mut text = table::text(&COLUMNS, findings, frame);
    let mut commands: Vec<&str> = Vec::new();
    for command in findings.iter().filter_map(|finding| finding.command.as_deref()) {
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    if !commands.is_empty() {
        text.push_str("\nCommands that help:\n");
        for command in commands {
            text.extend(["  ", command, "\n"]);
        }
    }
    text
}

/// Where the cluster has something else than is wanted, as a path; `None` if it has at least everything that is wanted. The API server adds
/// defaults, so it may have more, and an empty value equals an absent one.
pub fn difference(wanted: &Value, live: Option<&Value>) -> Option<String> {
    let below = |name: &str, wanted: &Value, live: Option<&Value>| {
        difference(wanted, live).map(|path| if path.is_empty() { name.to_owned() } else { format!("{name}.{path}") })
    };
    match (wanted, live) {
        (Value::Null, _) => None,
        (Value::Object(wanted), None) if wanted.values().all(|value| difference(value, None).is_none()) => None,
        (Value::Array(wanted), None) if wanted.is_empty() => None,
        (Value::Object(wanted), Some(Value::Object(live))) => {
            wanted.iter().find_map(|(name, value)| below(name, value, live.get(name)))
        }
        (Value::Array(wanted), Some(Value::Array(live))) if wanted.len() == live.len() => {
            let mut pairs = wanted.iter().zip(live).enumerate();
            pairs.find_map(|(index, (wanted, live))| below(&index.to_string(), wanted, Some(live)))
        }
        (wanted, Some(live)) if wanted == live => None,
        _ => Some(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_of_the_api_server_are_no_difference() {
        let wanted = json!({"a": {"b": [1, {"c": true}], "e": {}, "n": null, "l": []}});
        for (live, path) in [
            (json!({"a": {"b": [1, {"c": true, "d": 1}], "f": 2}, "status": {}}), None),
            (json!({"a": {"b": [1, {"c": false}]}}), Some("a.b.1.c")),
            (json!({"a": {"b": [1]}}), Some("a.b")),
            (json!({"a": {"b": [1, {"c": true}, 3]}}), Some("a.b")),
            (json!({"a": 1}), Some("a")),
            (json!({}), Some("a")),
        ] {
            assert_eq!(difference(&wanted, Some(&live)).as_deref(), path, "{live}");
        }
    }

    #[test]
    fn the_commands_follow_the_table() {
        let findings = [
            Finding::new("API server", State::Ok, "Kubernetes v1.36.2"),
            Finding::new("CRDs", State::Problem, "Catalog does not exist").with("chandler crds | kubectl apply -f -"),
            Finding::new("CRDs", State::Warning, "Resolution differs").with("chandler crds | kubectl apply -f -"),
            Finding::new("permissions", State::Unknown, "roles cannot be read"),
        ];
        insta::assert_snapshot!(text(&findings, Frame::from(None)));
    }
}
