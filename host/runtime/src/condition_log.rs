//! A line of the log for each condition whose status or reason changed.
//!
//! The message is the one in the status, where nothing secret is, so that the log shows what failed without the objects: which namespace lacks an
//! account, which object has another owner. A message that changes alone is not logged, as it may do so with every reconcile.

use chandler_core::{Reason, Remedy, text::one_line};
use serde_json::Value;

use crate::events::cut;

/// The bytes of a message that are logged.
const MESSAGE_BYTES: usize = 1000;

/// Logs the conditions that differ between two statuses of an object, each on one line: as a warning if an action is needed.
pub(crate) fn transitions(kind: &str, name: &str, old: &Value, new: &Value) {
    let revision = new.get("revision").and_then(Value::as_i64);
    for condition in conditions(new) {
        let text = |field: &str| condition.get(field).and_then(Value::as_str).unwrap_or_default();
        let before = conditions(old).find(|before| before.get("type") == condition.get("type"));
        let is_same = |field: &str| before.is_some_and(|before| before.get(field) == condition.get(field));
        if is_same("status") && is_same("reason") {
            continue;
        }
        let (type_, status, reason) = (text("type"), text("status"), text("reason"));
        let message = one_line(text("message"));
        let message = cut(&message, MESSAGE_BYTES);
        if needs_action(reason) {
            tracing::warn!(kind, name, revision, condition = type_, status, reason, "{message}");
        } else {
            tracing::info!(kind, name, revision, condition = type_, status, reason, "{message}");
        }
    }
}

fn conditions(status: &Value) -> impl Iterator<Item = &Value> {
    status.get("conditions").and_then(Value::as_array).into_iter().flatten()
}

fn needs_action(reason: &str) -> bool {
    Reason::from_name(reason).is_some_and(|reason| !matches!(reason.remedy(), Remedy::Nothing | Remedy::Time))
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use serde_json::json;

    use super::*;

    /// What was logged.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines about a transition.
    fn logged(old: &Value, new: &Value) -> String {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(subscriber.finish(), || transitions("BundleDeployment", "harbour", old, new));
        let bytes = log.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn status(ready: (&str, &str, &str)) -> Value {
        let (status, reason, message) = ready;
        json!({"revision": 3, "conditions": [
            {"type": "Unpacked", "status": "True", "reason": "UnpackSuccessful", "message": "unpacked"},
            {"type": "Ready", "status": status, "reason": reason, "message": message},
        ]})
    }

    #[test]
    fn each_transition_is_one_line_and_a_new_message_is_none() {
        let missing =
            status(("False", "PermissionsMissing", "the ServiceAccount a/b lacks permissions:\n  get pods\u{7}"));
        insta::assert_snapshot!(logged(&json!({}), &missing), @r#"
         INFO unpacked kind="BundleDeployment" name="harbour" revision=3 condition="Unpacked" status="True" reason="UnpackSuccessful"
         WARN the ServiceAccount a/b lacks permissions: get pods\u{0007} kind="BundleDeployment" name="harbour" revision=3 condition="Ready" status="False" reason="PermissionsMissing"
        "#);
        let another = status(("False", "PermissionsMissing", "the ServiceAccount a/b lacks permissions: get nodes"));
        assert_eq!(logged(&missing, &another), "");
        let forbidden = status(("False", "Forbidden", "no"));
        assert_eq!(logged(&missing, &forbidden).lines().count(), 1);
        let long = status(("True", "Healthy", &"é".repeat(2000)));
        let line = logged(&forbidden, &long);
        assert!(line.starts_with(" INFO") && line.len() < 1200, "{line}");
        for odd in [json!(null), json!({"conditions": "x"}), json!({"conditions": [1]})] {
            logged(&odd, &odd);
        }
    }
}
