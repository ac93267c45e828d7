//! Status conditions with their times.

use serde_json::{Map, Value};

use super::fields::{list, text};

/// The conditions of a status, changed as kube-controller-manager changes them.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    all: Vec<Value>,
    now: String,
    /// The second time that a condition has: `lastUpdateTime` of Deployments, `lastProbeTime` of Jobs.
    written: Option<&'static str>,
    /// Whether a changed message alone changes a condition.
    messages: bool,
}

impl Conditions {
    /// The conditions of an object, which change only with their status or reason.
    pub(super) fn of(object: &Value, now: &str, written: Option<&'static str>) -> Self {
        Self { all: list(object, "/status/conditions").to_vec(), now: now.to_owned(), written, messages: false }
    }

    /// The conditions of an object, which change with their message too.
    pub(super) fn with_messages(object: &Value, now: &str) -> Self {
        Self { messages: true, ..Self::of(object, now, None) }
    }

    pub(super) fn get(&self, condition_type: &str) -> Option<&Value> {
        self.all.iter().find(|condition| text(condition, "/type") == condition_type)
    }

    /// The reason of a condition; empty when it is absent.
    pub(super) fn reason(&self, condition_type: &str) -> &str {
        self.get(condition_type).map(|condition| text(condition, "/reason")).unwrap_or_default()
    }

    /// Sets a condition unless it is equal already. Its transition time stays while the status does.
    pub(super) fn set(&mut self, condition_type: &str, status: &str, reason: &str, message: &str) {
        let same = self.get(condition_type).is_some_and(|known| {
            text(known, "/status") == status
                && text(known, "/reason") == reason
                && (!self.messages || text(known, "/message") == message)
        });
        if !same {
            self.renew(condition_type, status, reason, message);
        }
    }

    /// Sets a condition even if it is equal, so that its update time shows progress.
    pub(super) fn renew(&mut self, condition_type: &str, status: &str, reason: &str, message: &str) {
        let kept = self
            .get(condition_type)
            .filter(|known| text(known, "/status") == status)
            .map(|known| text(known, "/lastTransitionTime").to_owned());
        let mut condition = Map::new();
        condition.insert("type".to_owned(), condition_type.into());
        condition.insert("status".to_owned(), status.into());
        for (field, text) in [("reason", reason), ("message", message)] {
            if !text.is_empty() {
                condition.insert(field.to_owned(), text.into());
            }
        }
        condition.insert("lastTransitionTime".to_owned(), kept.unwrap_or_else(|| self.now.clone()).into());
        if let Some(written) = self.written {
            condition.insert(written.to_owned(), self.now.clone().into());
        }
        self.put(Value::Object(condition));
    }

    /// Replaces the condition of the same type, or appends it.
    pub(super) fn put(&mut self, condition: Value) {
        let condition_type = text(&condition, "/type");
        match self.all.iter_mut().find(|known| text(known, "/type") == condition_type) {
            Some(known) => *known = condition,
            None => self.all.push(condition),
        }
    }

    pub(super) fn remove(&mut self, condition_type: &str) {
        self.all.retain(|condition| text(condition, "/type") != condition_type);
    }

    /// The conditions; `None` when there are none.
    pub(super) fn build(self) -> Option<Value> {
        (!self.all.is_empty()).then_some(Value::Array(self.all))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_move_only_when_the_condition_does() {
        let object = json!({"status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "A", "lastTransitionTime": "t0", "lastUpdateTime": "t0"}]}});
        let set = |status: &str, reason: &str, message: &str| {
            let mut conditions = Conditions::of(&object, "t1", Some("lastUpdateTime"));
            conditions.set("Ready", status, reason, message);
            conditions.build().unwrap()[0].take()
        };
        assert_eq!(set("True", "A", "another message"), object["status"]["conditions"][0]);
        let reason = set("True", "B", "");
        assert_eq!((&reason["lastTransitionTime"], &reason["lastUpdateTime"]), (&json!("t0"), &json!("t1")));
        assert_eq!(set("False", "A", "")["lastTransitionTime"], "t1");
        let mut conditions = Conditions::with_messages(&object, "t1");
        conditions.set("Ready", "True", "A", "more");
        assert_eq!(conditions.get("Ready").unwrap()["message"], "more");
        conditions.remove("Ready");
        assert_eq!(conditions.build(), None);
    }
}
