//! Helpers to change JSON values.

use serde_json::{Map, Value};

/// Sets the value at a path of keys. Missing parents are created; parents that are not objects are replaced.
pub(crate) fn set<const N: usize>(target: &mut Value, path: [&str; N], value: impl Into<Value>) {
    let mut place = target;
    for key in path {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(map) = place else { return };
        place = map.entry(key).or_insert(Value::Null);
    }
    *place = value.into();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_parents_are_created() {
        let mut value = json!({"a": 1, "b": {"c": 2}});
        set(&mut value, ["b", "d"], "x");
        set(&mut value, ["a", "e"], json!([1]));
        assert_eq!(value, json!({"a": {"e": [1]}, "b": {"c": 2, "d": "x"}}));
    }
}
