//! `olm.constraint`: compound conditions on the target.
//!
//! Conditions on packages or in CEL are unknown here: packages are a resolver's task. So conditions have three values,
//! and a compound condition is known if its parts decide it.

use serde_json::Value;

use super::Kinds;
use crate::csv::GroupVersionKind;

/// Whether a condition holds, if known.
pub(super) type Holds = Option<bool>;

/// Evaluates a constraint. An error describes what is malformed.
pub(super) fn evaluate(constraint: &Value, kinds: &Kinds<'_>) -> Result<Holds, String> {
    let Some(members) = constraint.as_object() else {
        return Err("a constraint is an object".to_owned());
    };
    let mut conditions = members.iter().filter(|(name, _)| *name != "failureMessage");
    let (Some((name, value)), None) = (conditions.next(), conditions.next()) else {
        return Err("a constraint has one of gvk, package, cel, all, any and not".to_owned());
    };
    match name.as_str() {
        "gvk" => serde_json::from_value::<GroupVersionKind>(value.clone())
            .map(|kind| kinds.has(&kind))
            .map_err(|error| format!("gvk: {error}")),
        "package" | "cel" => Ok(None),
        "all" => parts(value, kinds).map(|parts| all(&parts)),
        "any" => parts(value, kinds).map(|parts| any(&parts)),
        // None of several conditions may hold.
        "not" => parts(value, kinds).map(|parts| any(&parts).map(|holds| !holds)),
        _ => Err(format!("unknown constraint {name:?}")),
    }
}

fn parts(value: &Value, kinds: &Kinds<'_>) -> Result<Vec<Holds>, String> {
    let list = value.get("constraints").and_then(Value::as_array).filter(|list| !list.is_empty());
    let list = list.ok_or("a compound constraint has a list of constraints")?;
    list.iter().map(|part| evaluate(part, kinds)).collect()
}

fn all(parts: &[Holds]) -> Holds {
    if parts.contains(&Some(false)) {
        Some(false)
    } else {
        parts.iter().all(|part| *part == Some(true)).then_some(true)
    }
}

fn any(parts: &[Holds]) -> Holds {
    if parts.contains(&Some(true)) {
        Some(true)
    } else {
        parts.iter().all(|part| *part == Some(false)).then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_parts_make_a_constraint_unknown() {
        let request = chandler_sdk::Request::new().with_api_kinds(["v1/Pod"]);
        let kinds = Kinds { request: &request, brought: Vec::new() };
        let yes = json!({"gvk": {"group": "", "version": "v1", "kind": "Pod"}, "failureMessage": "no pods"});
        let no = json!({"gvk": {"group": "x.io", "version": "v1", "kind": "X"}});
        let unknown = json!({"package": {"packageName": "p", "versionRange": ">=1.0.0"}});
        let of = |name: &str, parts: &[&Value]| json!({name: {"constraints": parts}});
        let cases = [
            (yes.clone(), Ok(Some(true))),
            (no.clone(), Ok(Some(false))),
            (unknown.clone(), Ok(None)),
            (json!({"cel": {"rule": "true"}}), Ok(None)),
            (of("all", &[&yes, &unknown]), Ok(None)),
            (of("all", &[&no, &unknown]), Ok(Some(false))),
            (of("all", &[&yes, &yes]), Ok(Some(true))),
            (of("any", &[&yes, &unknown]), Ok(Some(true))),
            (of("any", &[&no, &unknown]), Ok(None)),
            (of("not", &[&no]), Ok(Some(true))),
            (of("not", &[&no, &yes]), Ok(Some(false))),
            (of("not", &[&of("any", &[&unknown])]), Ok(None)),
            (json!({}), Err("a constraint has one of gvk, package, cel, all, any and not")),
            (json!([]), Err("a constraint is an object")),
            (json!({"all": {}}), Err("a compound constraint has a list of constraints")),
            (json!({"vibes": {}}), Err("unknown constraint \"vibes\"")),
        ];
        for (constraint, want) in cases {
            assert_eq!(evaluate(&constraint, &kinds), want.map_err(str::to_owned), "{constraint}");
        }
        let request = chandler_sdk::Request::new();
        let nowhere = Kinds { request: &request, brought: vec!["x.io/v1/X".to_owned()] };
        assert_eq!(evaluate(&yes, &nowhere), Ok(None), "no cluster is known");
        assert_eq!(evaluate(&no, &nowhere), Ok(Some(true)), "the bundle brings it");
    }
}
