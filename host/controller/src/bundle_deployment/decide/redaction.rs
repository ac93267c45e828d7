//! Hides values of Secrets in the texts of a status. Names, digests and reasons stay as they are.

use chandler_api::{BundleDeploymentStatus, BundleWarning};
use chandler_values::Redactor;

/// Hides the values in all texts of the status, those of the history included.
pub(crate) fn hide(redactor: &Redactor, status: &mut BundleDeploymentStatus) {
    if redactor.is_empty() {
        return;
    }
    let warning = |warning: &mut BundleWarning| redactor.hide(&mut warning.message);
    status.conditions.iter_mut().for_each(|condition| redactor.hide(&mut condition.message));
    status.warnings.iter_mut().for_each(warning);
    status.release.iter_mut().flat_map(|release| &mut release.warnings).for_each(warning);
    status.history.iter_mut().filter_map(|revision| revision.message.as_mut()).for_each(|text| redactor.hide(text));
    for property in status.bundle.iter_mut().flat_map(|bundle| &mut bundle.properties) {
        redactor.hide_in(&mut property.value);
    }
    if let Some(pending) = &mut status.pending_change {
        let texts = [&mut pending.objects, &mut pending.refusals, &mut pending.findings];
        texts.into_iter().flatten().for_each(|text| redactor.hide(text));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn no_text_of_a_status_has_a_value() {
        let warning = json!({"code": "Odd", "message": "hunter2 is odd"});
        let status = json!({
            "conditions": [{"type": "Ready", "status": "False", "reason": "hunter2", "message": "has hunter2",
                            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "warnings": [warning],
            "bundle": {"properties": [{"type": "x", "value": {"a": "hunter2"}}]},
            "release": {"digest": "d", "objects": 1, "stages": 1, "warnings": [warning]},
            "history": [{"number": 1, "source": {"type": "image"}, "contentDigest": "", "provisioner": {"class": "", "digest": ""},
                         "installNamespace": "n", "configDigest": "", "releaseDigest": "", "outcome": "Failed",
                         "message": "hunter2"}],
            "pendingChange": {"digest": "", "releaseDigest": "", "created": 0, "changed": 0, "removed": 0,
                              "objects": ["hunter2"], "refusals": ["hunter2"], "findings": ["hunter2"]},
        });
        let mut status: BundleDeploymentStatus = serde_json::from_value(status).unwrap();
        hide(&Redactor::of([&json!("hunter2")]), &mut status);
        assert_eq!(status.conditions[0].reason, "hunter2", "a reason is no text");
        status.conditions[0].reason = String::new();
        let text = serde_json::to_value(&status).unwrap();
        assert!(!text.to_string().contains("hunter2"), "{text}");
        assert_eq!(text.pointer("/warnings/0/message"), Some(&Value::from("(hidden) is odd")));
    }
}
