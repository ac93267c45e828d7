//! Compares an outcome with the expected one.

use serde_json::Value;

use crate::{
    canonical::{canonical, difference, identity},
    outcome::{Outcome, Refusal, messages},
};

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The objects are equal.
    SameObjects,
    /// Both report an error, of the same class.
    SameRefusal(Refusal),
    /// A difference: its class, for counting, and the details.
    Different {
        /// The class of the difference, without details of the bundle.
        class: String,
        /// What differs.
        text: String,
    },
}

impl Verdict {
    fn different(class: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Different { class: class.into(), text: text.into() }
    }
}

/// Compares the outcome of a bundle with OLM v1's: `{"objects": [...]}` or `{"error": "..."}`.
pub fn compare(expected: Value, outcome: Outcome) -> Verdict {
    let error = expected.get("error").and_then(Value::as_str).map(str::to_owned);
    match (error, outcome) {
        (Some(text), Outcome::Refused(refusal, findings)) => {
            let wanted = Refusal::of_olm_error(&text);
            if wanted == refusal {
                return Verdict::SameRefusal(refusal);
            }
            let found = format!("want {wanted} ({text}), got {refusal}: {}", messages(&findings));
            Verdict::different(format!("refused as {refusal} instead of {wanted}"), found)
        }
        (Some(text), Outcome::Objects(_)) => {
            Verdict::different(format!("rendered what OLM v1 refuses as {}", Refusal::of_olm_error(&text)), text)
        }
        (None, Outcome::Refused(refusal, findings)) => {
            Verdict::different(format!("refused as {refusal} what the reference renders"), messages(&findings))
        }
        (None, Outcome::Objects(objects)) => {
            let Value::Object(mut expected) = expected else {
                return Verdict::different("unreadable", "no JSON object");
            };
            let expected = match expected.remove("objects") {
                Some(Value::Array(expected)) => expected,
                // An empty slice of Go.
                Some(Value::Null) => Vec::new(),
                _ => return Verdict::different("unreadable", "neither objects nor error"),
            };
            compare_objects(expected, objects)
        }
    }
}

fn compare_objects(expected: Vec<Value>, objects: Vec<Value>) -> Verdict {
    let expected = canonical(expected.into_iter().map(with_api_version));
    let objects = canonical(objects);
    let names = |objects: &[Value]| objects.iter().map(identity).collect::<Vec<_>>();
    let (want, got) = (names(&expected), names(&objects));
    if want != got {
        let only = |these: &[String], those: &[String]| {
            these.iter().filter(|name| !those.contains(name)).cloned().collect::<Vec<_>>()
        };
        let (missing, extra) = (only(&want, &got), only(&got, &want));
        let kind = |names: &[String]| {
            names.first().and_then(|name| name.split(' ').nth(1)).map(str::to_owned).unwrap_or_default()
        };
        let class = match (missing.is_empty(), extra.is_empty()) {
            (false, true) => format!("{} missing", kind(&missing)),
            (true, false) => format!("{} too much", kind(&extra)),
            _ => format!("{} under another name", kind(&missing)),
        };
        return Verdict::different(class, format!("missing {missing:?}, too much {extra:?}"));
    }
    for (want, got) in expected.iter().zip(&objects) {
        if let Some(found) = difference(want, got) {
            let kind = want.get("kind").and_then(Value::as_str).unwrap_or_default();
            let class = format!("{kind} {}", general(&found.pointer));
            return Verdict::different(class, format!("{}{}: {}", identity(want), found.pointer, found.text));
        }
    }
    Verdict::SameObjects
}

/// OLM v1 emits objects without apiVersion, which no API server accepts; this adds the obvious one.
fn with_api_version(mut object: Value) -> Value {
    let version = match object.get("kind").and_then(Value::as_str) {
        Some("ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding") => "rbac.authorization.k8s.io/v1",
        Some("ConfigMap" | "Secret" | "Service" | "ServiceAccount") => "v1",
        _ => return object,
    };
    if let Some(object) = object.as_object_mut() {
        object.entry("apiVersion").or_insert_with(|| version.into());
    }
    object
}

/// A pointer without list indexes.
fn general(pointer: &str) -> String {
    let parts = pointer.split('/').map(|part| if part.parse::<usize>().is_ok() { "*" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Finding;

    fn object(kind: &str, name: &str, data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": data})
    }

    fn class(expected: Value, outcome: Outcome) -> String {
        match compare(expected, outcome) {
            Verdict::SameObjects => "same objects".into(),
            Verdict::SameRefusal(refusal) => format!("same refusal: {refusal}"),
            Verdict::Different { class, .. } => class,
        }
    }

    #[test]
    fn differences_are_classified() {
        let refused = |refusal| Outcome::Refused(refusal, vec![Finding::text("because")]);
        let objects = |objects: &[&Value]| json!({"objects": objects});
        let (a, b) = (object("ConfigMap", "a", &json!([1])), object("ConfigMap", "a", &json!([2])));
        let secret = object("Secret", "s", &json!(null));
        let error = |text: &str| json!({"error": text});
        let cases = [
            (objects(&[&a]), Outcome::Objects(vec![a.clone()]), "same objects"),
            (objects(&[&a]), Outcome::Objects(vec![b]), "ConfigMap /data/*"),
            (objects(&[&a]), Outcome::Objects(vec![]), "ConfigMap missing"),
            (objects(&[]), Outcome::Objects(vec![a.clone()]), "ConfigMap too much"),
            (objects(&[&a]), Outcome::Objects(vec![secret]), "ConfigMap under another name"),
            (error("stat manifests"), refused(Refusal::Content), "same refusal: content"),
            (error("unsupported bundle: x"), refused(Refusal::Content), "refused as content instead of unsupported"),
            (
                objects(&[]),
                refused(Refusal::Other("PluginTimeout")),
                "refused as PluginTimeout what the reference renders",
            ),
            (
                error("invalid configuration: x"),
                Outcome::Objects(vec![]),
                "rendered what OLM v1 refuses as configuration",
            ),
            (json!([]), Outcome::Objects(vec![]), "unreadable"),
        ];
        for (expected, outcome, class_wanted) in cases {
            assert_eq!(class(expected, outcome), class_wanted);
        }
    }
}
