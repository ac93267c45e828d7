//! Status conditions with their times.

use serde_json::{Map, Value, json};

/// Builds the conditions of a status out of those before.
pub(super) struct Conditions<'a> {
    before: &'a [Value],
    now: &'a str,
    /// Deployments also record when a condition was last written.
    update_time: Option<&'static str>,
    all: Vec<Value>,
}

impl<'a> Conditions<'a> {
    pub(super) fn new(object: &'a Value, now: &'a str, update_time: Option<&'static str>) -> Self {
        let before = object.pointer("/status/conditions").and_then(Value::as_array);
        Self { before: before.map(Vec::as_slice).unwrap_or_default(), now, update_time, all: Vec::new() }
    }

    /// Adds a condition; its times stay while it says the same.
    pub(super) fn with(mut self, condition_type: &str, status: &str, reason: &str, message: &str) -> Self {
        let before = self.before.iter().find(|condition| text(condition, "type") == condition_type);
        let kept = |field: &str, same: bool| {
            let kept = before.filter(|_| same).map(|before| text(before, field)).filter(|time| !time.is_empty());
            Value::from(kept.unwrap_or(self.now))
        };
        let same_status = before.is_some_and(|before| text(before, "status") == status);
        let same = same_status
            && before.is_some_and(|before| text(before, "reason") == reason && text(before, "message") == message);
        let mut condition = Map::new();
        condition.insert("type".to_owned(), condition_type.into());
        condition.insert("status".to_owned(), status.into());
        for (field, text) in [("reason", reason), ("message", message)] {
            if !text.is_empty() {
                condition.insert(field.to_owned(), text.into());
            }
        }
        condition.insert("lastTransitionTime".to_owned(), kept("lastTransitionTime", same_status));
        if let Some(field) = self.update_time {
            condition.insert(field.to_owned(), kept(field, same));
        }
        self.all.push(Value::Object(condition));
        self
    }

    pub(super) fn build(self) -> Value {
        json!(self.all)
    }
}

fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_move_only_when_the_condition_does() {
        let object = json!({"status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "A", "lastTransitionTime": "t0", "lastUpdateTime": "t0"}]}});
        let build = |status: &str, reason: &str| {
            Conditions::new(&object, "t1", Some("lastUpdateTime")).with("Ready", status, reason, "").build()
        };
        assert_eq!(build("True", "A"), object["status"]["conditions"]);
        assert_eq!(build("True", "B")[0]["lastTransitionTime"], "t0");
        assert_eq!(build("True", "B")[0]["lastUpdateTime"], "t1");
        assert_eq!(build("False", "A")[0]["lastTransitionTime"], "t1");
    }
}
